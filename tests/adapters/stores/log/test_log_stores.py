"""What every store of the log promises: the one over SQLite's driver, and the one at an address."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator

import pytest

import bardo.adapters.stores.log
from bardo.adapters.stores.database.problems import RowsRefused, StoreUnavailable
from bardo.adapters.stores.log import LogGap, LogReader, LogRow
from bardo.adapters.stores.log.store import LogStore, open_store
from bardo.adapters.stores.migrations import LOG_BRANCH

pytestmark = pytest.mark.each_python

STORES = {"sqlite": "SqliteLogStore", "postgres": "AddressedStore"}
"""The store that each place of these tests is opened with."""

Open = Callable[..., LogStore]


@pytest.fixture
def opened(place: str) -> Iterator[Open]:
    """Open stores of one place, which are closed after the test."""
    stores: list[LogStore] = []

    def opening(*, keep_content: bool = False) -> LogStore:
        stores.append(open_store(place, keep_content=keep_content))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()


def row(request_id: str, **values: object) -> LogRow:
    return LogRow(request_id=request_id, started_at=1.0, provider="p", model="m", **values)  # type: ignore[arg-type]


def ids(place: str) -> list[str]:
    with LogReader(place) as log:
        return [one.request_id for one in reversed(log.recent(1_000))]


def calls_in_sums(place: str) -> int:
    with LogReader(place) as log:
        return sum(group.sums.calls for group in log.costs())


def test_each_store_of_the_log_runs_these_tests(opened: Open, request: pytest.FixtureRequest) -> None:
    assert type(opened()).__name__ == STORES[request.node.callspec.params["place"]]
    modules = [one.name for one in pkgutil.iter_modules(bardo.adapters.stores.log.__path__)]
    assert len([name for name in modules if name.endswith("_store")]) == len(STORES)


def test_what_is_stored_is_there_for_others_at_once_in_order(place: str, opened: Open) -> None:
    first, second = opened(), opened()
    first.append([row("a"), row("b")])
    assert ids(place) == ["a", "b"]
    second.append([row("c")])
    first.append([row("d")])
    assert ids(place) == ["a", "b", "c", "d"]
    assert calls_in_sums(place) == 4


def test_of_rows_one_of_which_is_refused_none_is_stored_and_none_is_summed(place: str, opened: Open) -> None:
    store = opened()
    refused = row("bad", operation=None)
    with pytest.raises(RowsRefused):
        store.append([row("a"), refused, row("b")])
    assert ids(place) == []
    assert calls_in_sums(place) == 0
    store.append([row("a")])
    assert ids(place) == ["a"]
    assert calls_in_sums(place) == 1


def test_nothing_is_stored_of_no_rows(place: str, opened: Open) -> None:
    opened().append([])
    assert ids(place) == []


def test_calls_that_have_a_row_are_told_from_those_that_have_none(opened: Open) -> None:
    store = opened()
    store.append([row("a"), row("é"), row("'; --")])
    assert store.stored(["a", "b", "é", "'; --", "A"]) == {"a", "é", "'; --"}
    assert store.stored(["b"]) == frozenset()


def test_content_is_stored_only_by_a_store_that_was_told_to(place: str, opened: Open) -> None:
    asked = {"request_content": "asked", "reply_content": "answered", "sent_content": "sent"}
    opened().append([row("without", **asked)])
    opened(keep_content=True).append([row("with", **asked)])
    with LogReader(place) as log:
        found, without = log.recent(2)
    assert (found.request_content, found.reply_content, found.sent_content) == ("asked", "answered", "sent")
    assert (without.request_content, without.reply_content, without.sent_content) == (None, None, None)


def test_a_gap_is_noted_for_readers(place: str, opened: Open) -> None:
    gap = LogGap(noticed_at=1.5, rows=3, why="the log could not keep up")
    opened().note_gap(gap)
    with LogReader(place) as log:
        assert log.gaps() == [gap]


def test_a_log_whose_tables_are_gone_stores_nothing_and_says_so(place: str, opened: Open) -> None:
    from support.databases import open_database

    store = opened()
    engine = open_database(place)
    with engine.begin() as connection:
        for table in ("inference_rollup", "inference_log_gaps"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    engine.dispose()
    with pytest.raises((RowsRefused, StoreUnavailable)):
        store.append([row("a")])
    with pytest.raises((RowsRefused, StoreUnavailable)):
        store.note_gap(LogGap(noticed_at=1.0, rows=1, why="x"))
    assert ids(place) == []


def test_the_name_of_a_store_holds_no_password(place: str, opened: Open) -> None:
    assert opened().name
    assert "password" not in opened().name


def test_a_log_is_made_in_the_form_that_its_branch_of_revisions_ends_in(place: str, opened: Open) -> None:
    from sqlalchemy import text

    from support.databases import open_database

    opened()
    engine = open_database(place)
    with engine.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM bardo_revisions")).all() == [LOG_BRANCH.newest]
    engine.dispose()
