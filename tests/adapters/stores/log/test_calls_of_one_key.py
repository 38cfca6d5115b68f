"""What is asked of a log for one key is told from the calls of that key alone; and how much a log holds, in both engines."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.adapters.stores.log import LogGap, LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.columns import WATCHED
from bardo.adapters.stores.log.database import address_of, open_readable
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY
from bardo.adapters.stores.log.store import open_store

pytestmark = pytest.mark.each_python

DAY = float(SECONDS_PER_DAY)
NOON = 20_000 * DAY + DAY / 2


def row(request_id: str, **values: Any) -> LogRow:
    return LogRow(**{"request_id": request_id, "started_at": NOON, "provider": "p", "model": "m", **values})


ROWS = (
    row("a", key_id="mine", cost_nanos=1, input_tokens=10, cached_input_tokens=4, cache="hit", reply_saved_nanos=7),
    row("b", key_id="mine", cost_nanos=None, started_at=NOON + 1, seconds=2.0, first_byte_seconds=0.5),
    row("c", key_id="other", cost_nanos=100, input_tokens=30, cached_input_tokens=30, cache="hit", reply_saved_nanos=9),
    row("d", cost_nanos=1_000, outcome="error", error_class="RateLimited", started_at=NOON + 2),
)


@pytest.fixture
def log(place: str) -> str:
    with LogWriter(place) as writer:
        for one in ROWS:
            writer.write(one)
    return place


@pytest.mark.parametrize("since", [None, NOON - 1], ids=["by days", "by rows"])
@pytest.mark.parametrize(("key", "calls", "cost"), [(None, 4, 1101), ("mine", 2, 1), ("other", 1, 100)])
def test_costs_of_a_key(log: str, since: float | None, key: str | None, calls: int, cost: int) -> None:
    with LogReader(log) as reader:
        groups = reader.costs(("provider",), since=since, until=None, key=key)
    assert sum(one.sums.calls for one in groups) == calls
    assert sum(one.sums.cost_nanos for one in groups) == cost


def test_caches_of_a_key(log: str) -> None:
    with LogReader(log) as reader:
        prompts = reader.cache_totals(key="mine")
        replies = reader.reply_cache_totals(key="mine")
        assert [(one.key_id, one.calls, one.input_tokens, one.cached_input_tokens) for one in prompts] == [
            ("mine", 2, 10, 4)
        ]
        assert [(one.cache, one.calls, one.saved_nanos) for one in replies] == [("hit", 1, 7)]
        assert reader.reply_cache_totals(key="nobody") == []


@pytest.mark.parametrize("key", [None, "mine", "other"])
def test_prompt_caches_by_sums_of_days_are_those_of_the_rows(place: str, key: str | None) -> None:
    with LogWriter(place) as writer:
        for one in ROWS:
            writer.write(one)
        for number in range(3):
            lost = {"what": WATCHED, "asked": None, "sent": None, "why": f"at {number}"}
            writer.write(
                row(
                    f"e{number}",
                    key_id="mine",
                    degraded=(lost,),
                    cost_nanos=1 if number else None,
                    cache_write_tokens=5,
                    cache_saved_nanos=-2,
                )
            )
    with LogReader(place) as reader:
        by_days, by_rows = reader.cache_totals(since=NOON - DAY / 2, key=key), reader.cache_totals(since=1.5, key=key)
    assert by_days == by_rows
    assert [(one.changing, one.why) for one in by_days if one.key_id == "mine"] == [(3, "at 2")] * (key != "other")


def test_times_are_of_the_newest_calls(log: str) -> None:
    with LogReader(log) as reader:
        newest = reader.call_times(2, since=NOON)
        assert [(one.started_at - NOON, one.outcome, one.error_class) for one in newest] == [
            (2.0, "error", "RateLimited"),
            (1.0, "ok", None),
        ]
        assert (newest[1].seconds, newest[1].first_byte_seconds) == (2.0, 0.5)
        assert [one.started_at - NOON for one in reader.call_times(9, since=NOON, key="mine")] == [1.0, 0.0]
        assert reader.call_times(9, since=NOON + 3) == []
        assert len(reader.call_times(9, since=NOON, until=NOON + 1)) == 2


def test_times_are_found_by_the_index_on_when_calls_began(log: str) -> None:
    engine = open_readable(address_of(log))
    query = "SELECT provider FROM inference_log WHERE started_at >= 1 ORDER BY started_at DESC LIMIT 5"
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                plan = " ".join(str(one) for one in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
                assert "USING INDEX ix_inference_log_started_at" in plan
                assert "TEMP B-TREE" not in plan
    finally:
        engine.dispose()


def test_the_extent_of_a_log(log: str) -> None:
    store = open_store(log, keep_content=False)
    try:
        store.note_gap(LogGap(noticed_at=NOON, rows=5, why="the disk was full"))
        store.note_gap(LogGap(noticed_at=NOON, rows=2, why="the disk was full"))
    finally:
        store.close()
    with LogReader(log) as reader:
        found = reader.extent()
    assert (found.rows, found.dropped, found.first, found.last) == (4, 7, 20_000, 20_000)
    assert found.bytes is not None
    assert found.bytes > 4_096


def test_an_empty_log_has_no_days(place: str) -> None:
    LogWriter(place).close()
    with LogReader(place) as reader:
        found = reader.extent()
    assert (found.rows, found.dropped, found.first, found.last) == (0, 0, None, None)
