"""Pages of the calls of a log: each once, newest first, by what they have in common, in steps of bounded time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bardo.adapters.stores.log import LogReader, LogRow, LogWriter, queries
from bardo.adapters.stores.log.row import CallFilter, CallPage

pytestmark = pytest.mark.each_python

CALLS = 120


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogReader]:
    path = tmp_path_factory.mktemp("log") / "log.db"
    with LogWriter(path, keep_content=True) as writer:
        for number in range(CALLS):
            writer.write(
                LogRow(
                    request_id=f"req_{number:04}%_{number % 7}",
                    started_at=float(1000 + number),
                    provider=f"p{number % 3}",
                    model=f"m{number % 5}",
                    model_asked="fast" if number % 2 else "slow",
                    outcome="error" if number % 10 == 0 else "ok",
                    reasoning_verdict="void" if number % 4 == 0 else None,
                    key_id=f"k{number % 6}",
                    request_content="secret",
                    reply_content="secret",
                )
            )
    with LogReader(path) as reader:
        yield reader


def all_pages(log: LogReader, wanted: CallFilter, limit: int) -> list[LogRow]:
    found: list[LogRow] = []
    before: int | None = None
    while True:
        page = log.calls_before(wanted, before, limit=limit)
        assert len(page.rows) <= limit
        found += page.rows
        before = page.before
        if before is None:
            return found


@pytest.mark.parametrize("limit", [1, 7, 50, CALLS, CALLS + 1])
def test_each_call_is_on_one_page_newest_first(log: LogReader, limit: int) -> None:
    found = all_pages(log, CallFilter(), limit)
    assert [row.started_at for row in found] == [float(1000 + number) for number in reversed(range(CALLS))]


FILTERS: dict[str, tuple[CallFilter, Callable[[LogRow], bool]]] = {
    "provider": (CallFilter(provider="p1"), lambda row: row.provider == "p1"),
    "model": (CallFilter(model="m2"), lambda row: row.model == "m2"),
    "model asked for": (CallFilter(model="fast"), lambda row: row.model_asked == "fast"),
    "outcome": (CallFilter(outcome="error"), lambda row: row.outcome == "error"),
    "verdict": (CallFilter(verdict="void"), lambda row: row.reasoning_verdict == "void"),
    "key": (CallFilter(key_id="k4"), lambda row: row.key_id == "k4"),
    "time": (CallFilter(since=1010.0, until=1020.0), lambda row: 1010 <= row.started_at < 1020),
    "part of the id": (CallFilter(id_part="11"), lambda row: "11" in row.request_id),
    "letters that SQL takes for any": (CallFilter(id_part="%_3"), lambda row: "%_3" in row.request_id),
    "several": (
        CallFilter(provider="p0", outcome="error"),
        lambda row: row.provider == "p0" and row.outcome == "error",
    ),
    "none": (CallFilter(provider="other"), lambda row: False),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_leaves_what_it_names(log: LogReader, name: str) -> None:
    wanted, fits = FILTERS[name]
    every = all_pages(log, CallFilter(), 50)
    assert all_pages(log, wanted, 5) == [row for row in every if fits(row)]


def test_a_page_holds_no_content(log: LogReader) -> None:
    page = log.calls_before(CallFilter())
    assert {row.request_content for row in page.rows} == {None}
    assert {row.reply_content for row in page.rows} == {None}


def test_what_was_not_looked_through_in_time_is_left_to_the_next_page(
    log: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_ROWS_OF_A_STEP", 50)
    late = iter([0.0, 1000.0, 0.0, 1000.0, 0.0, 1000.0])
    wanted, before = CallFilter(provider="other"), None
    pages = []
    with log._reading() as connection:
        for _ in range(3):
            page = queries.calls_before(connection, wanted, before, limit=5, clock=lambda: next(late))
            before = page.before
            pages.append(page)
    assert pages == [CallPage(rows=(), before=71), CallPage(rows=(), before=21), CallPage(rows=(), before=None)]
