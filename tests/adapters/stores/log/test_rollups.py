"""The sums beside the rows are those of the rows, whichever engine holds them, and older logs are summed when they are migrated."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import text

from bardo.adapters.stores.database.problems import LOG
from bardo.adapters.stores.database.revisions import migrate
from bardo.adapters.stores.log import CallSums, CostGroup, Dimension, LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.database import address_of, open_for_writing
from bardo.adapters.stores.log.rollup import ADDED_SUMS, CAUSES, DIMENSIONS, SECONDS_PER_DAY, day_of
from bardo.adapters.stores.log.row import LARGEST_COUNT
from bardo.adapters.stores.migrations import LOG_BRANCH
from bardo.values.attempts import AttemptRecord
from support.revisions import downgrade, upgrade

pytestmark = pytest.mark.each_python

DAY = float(SECONDS_PER_DAY)
NOON = 20_000 * DAY + DAY / 2


def row(request_id: str, **values: Any) -> LogRow:
    return LogRow(**{"request_id": request_id, "started_at": NOON, "provider": "p", "model": "m", **values})


def priced(request_id: str, parts: dict[str, int], **values: Any) -> LogRow:
    return row(request_id, cost_nanos=sum(parts.values()), cost_parts=parts, **values)


def log(place: str, *rows: LogRow) -> LogReader:
    with LogWriter(place) as writer:
        for one in rows:
            writer.write(one)
    return LogReader(place)


def test_sums_say_what_was_reported_and_how_much_that_was(place: str) -> None:
    rows = [
        priced("a", {"input": 5, "answer": 20}, seconds=1.0, input_tokens=5, reasoning_tokens=7),
        row("b", seconds=2.0, input_tokens=6, outcome="error", cost_parts={"input": 3}),
        row("c", model="n", started_at=1.0, reasoning_tokens=0),
    ]
    with log(place, *rows) as reader:
        first, second = reader.costs()
        assert first.of == {"provider": "p", "model": "m"}
        assert (first.sums.calls, first.sums.failed, first.sums.seconds) == (2, 1, 3.0)
        assert (first.sums.input_tokens, first.sums.input_known, first.sums.output_known) == (11, 2, 0)
        assert (first.sums.cost_nanos, first.sums.cost_known, first.sums.partial_nanos) == (25, 1, 3)
        assert first.sums.parts == {"input": 5, "answer": 20}
        assert (second.of["model"], second.sums.reasoning_known, second.sums.cost_known) == ("n", 1, 0)
        assert [group.of["model"] for group in reader.costs(since=2.0)] == ["m"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, (0, 0, 0)),
        ({"tokens_approx": True}, (0, 0, 1)),
        ({"tokens_approx": True, "outcome": "broken"}, (1, 25, 0)),
        ({"tokens_approx": True, "outcome": "cancelled", "cost_nanos": None}, (1, 0, 0)),
        ({"outcome": "broken"}, (0, 0, 0)),
        ({"attempt_records": (AttemptRecord(cause="retry", provider="p", model="m", tokens_approx=True),)}, (1, 25, 0)),
        ({"attempt_records": (AttemptRecord(cause="retry", provider="p", model="m"),)}, (0, 0, 0)),
    ],
    ids=["exact", "thinking", "broken", "left, of unknown cost", "broken and counted", "a retry", "a counted retry"],
)
def test_sums_say_how_much_of_them_is_estimated(values: dict[str, Any], expected: tuple[int, int, int]) -> None:
    sums = CallSums()
    sums.take(priced("a", {"input": 5, "answer": 20}))
    sums.take(replace(priced("b", {"answer": 25}), **values))
    assert (sums.estimated_calls, sums.estimated_nanos, sums.thinking_estimated) == expected


@pytest.mark.parametrize("by", [(), *((one,) for one in DIMENSIONS), DIMENSIONS], ids=lambda by: "+".join(by) or "all")
def test_costs_are_summed_by_what_calls_have_in_common(place: str, by: tuple[Dimension, ...]) -> None:
    rows = [
        priced("a", {"answer": 1}, key_id="k1", subsystem="s1", session="x", agent="codex"),
        priced("b", {"answer": 10}, key_id="k2", subsystem="s1", operation="embed", session="x", repository="r"),
        priced("c", {"answer": 100}, key_id="k2", model="n"),
        priced("d", {"answer": 1_000}, provider="q", started_at=NOON + DAY),
    ]
    expected: Counter[tuple[object, ...]] = Counter()
    for one in rows:
        of = {"day": day_of(one.started_at), "provider": one.provider, "model": one.model, "key": one.key_id or "",
              "subsystem": one.subsystem or "", "operation": one.operation, "session": one.session or "",
              "agent": one.agent or "", "repository": one.repository or ""}  # fmt: skip
        expected[tuple(of[name] for name in by)] += one.cost_nanos or 0
    with log(place, *rows) as reader:
        assert {tuple(one.of.values()): one.sums.cost_nanos for one in reader.costs(by)} == expected


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (None, None, 11111),
        (NOON, None, 11110),
        (None, NOON, 1),
        (NOON - DAY, NOON + DAY, 111),
        (NOON - DAY, NOON + DAY + 1, 1111),
        (NOON + 1, NOON + 2, 0),
        (NOON, NOON + 1, 10),
        (DAY * 20_000, DAY * 20_001, 110),
        (NOON + DAY, NOON, 0),
    ],
)
def test_calls_are_found_to_the_second(place: str, since: float | None, until: float | None, found: int) -> None:
    times = (NOON - DAY, NOON, NOON + 60, NOON + DAY, NOON + 2 * DAY)
    rows = [priced(str(at), {"answer": 10**place}, started_at=at) for place, at in enumerate(times)]
    with log(place, *rows) as reader:
        assert sum(one.sums.cost_nanos for one in reader.costs(("provider",), since=since, until=until)) == found


_AMOUNT = st.none() | st.integers(0, 10**12)
_EXACT = AttemptRecord(cause="retry", provider="p", model="m")
_ESTIMATED = AttemptRecord(cause="failover", provider="p", model="m", tokens_approx=True)
_NAMES = st.sampled_from(["", "p", "long " * 100, "é\0", "half \ud83e", "a\x1fb"])
_ROWS = st.builds(
    LogRow,
    request_id=st.uuids().map(str),
    started_at=st.floats(0, 4 * DAY),
    seconds=st.floats(0, 100),
    provider=_NAMES,
    model=_NAMES,
    key_id=st.none() | _NAMES,
    subsystem=st.none() | _NAMES,
    outcome=st.sampled_from(["ok", "error", "cancelled", "broken"]),
    input_tokens=_AMOUNT,
    output_tokens=_AMOUNT,
    reasoning_tokens=_AMOUNT,
    cached_input_tokens=_AMOUNT,
    cost_nanos=_AMOUNT,
    cost_parts=st.none() | st.dictionaries(st.sampled_from(CAUSES), st.integers(0, 10**12)),
    reported_cost_nanos=_AMOUNT,
    computed_cost_nanos=_AMOUNT,
    cache_saved_nanos=st.none() | st.integers(-(10**9), 10**9),
    tokens_approx=st.booleans(),
    attempt_records=st.sampled_from([(), (_EXACT,), (_EXACT, _ESTIMATED)]),
)


# A log grows with each example, so that a failing one is not made smaller.
@settings(
    max_examples=12,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=st.lists(_ROWS, min_size=1, max_size=12), batch=st.integers(1, 5))
def test_sums_are_those_of_the_rows(place: str, rows: list[LogRow], batch: int) -> None:
    with LogReader(_written(place, rows, batch)) as reader:
        by_days = reader.costs(DIMENSIONS)
        by_rows = reader.costs(DIMENSIONS, since=-DAY, until=10 * DAY)
        stored = reader.recent(10_000)
    assert _plain(by_days) == _plain(by_rows)
    whole = CallSums()
    for one in stored:
        whole.take(one)
    summed = CallSums()
    for group in by_days:
        summed.add(group.sums)
    assert summed.calls == len(stored)
    assert (summed.cost_nanos, summed.partial_nanos) == (whole.cost_nanos, whole.partial_nanos)
    assert _without_zeros(summed.parts) == _without_zeros(whole.parts)
    assert (summed.reported_nanos, summed.saved_nanos) == (whole.reported_nanos, whole.saved_nanos)
    assert [getattr(summed, name) for name in ADDED_SUMS] == [getattr(whole, name) for name in ADDED_SUMS]


def _written(place: str, rows: list[LogRow], batch: int) -> str:
    with LogWriter(place, batch=batch) as writer:
        for one in rows:
            writer.write(one)
    return place


def _without_zeros(parts: dict[str, int]) -> dict[str, int]:
    return {cause: nanos for cause, nanos in parts.items() if nanos}


def _plain(groups: list[CostGroup]) -> list[Any]:
    return [
        (
            one.of,
            one.sums.calls,
            one.sums.cost_nanos,
            _without_zeros(one.sums.parts),
            *(getattr(one.sums, name) for name in ADDED_SUMS),
        )
        for one in groups
    ]


def test_absurd_amounts_do_not_cost_a_row(place: str) -> None:
    rows = [
        row(str(number), input_tokens=10**40, cost_nanos=10**30, cost_parts={"answer": 10**30}) for number in range(5)
    ]
    with log(place, *rows) as reader:
        (group,) = reader.costs()
        assert len(reader.recent(10)) == 5
    assert (group.sums.calls, group.sums.input_tokens, group.sums.cost_nanos) == (5, LARGEST_COUNT, LARGEST_COUNT)


def test_a_refused_row_is_in_no_sum(place: str) -> None:
    with log(place, row("a"), row("bad", model={"not": "text"}), row("b")) as reader:
        (group,) = reader.costs()
        assert group.sums.calls == len(reader.recent(5)) == 2


def test_costs_are_told_by_key_and_day(place: str) -> None:
    log(
        place,
        priced("a", {"answer": 5}, key_id="k"),
        priced("b", {"answer": 7}, key_id="k", started_at=NOON + DAY),
        row("c", key_id="k", cost_parts={"input": 2}),
        priced("d", {"answer": 11}, key_id="other"),
    ).close()
    today = day_of(NOON) * DAY
    with LogReader(place) as reader:
        (first,) = reader.costs((), since=today, until=today + DAY, key="k")
        assert (first.sums.cost_nanos, first.sums.partial_nanos, first.sums.calls, first.sums.cost_known) == (
            5,
            2,
            2,
            1,
        )
        assert [one.sums.cost_nanos for one in reader.costs((), since=today, key="k")] == [12]
        assert [one.sums.cost_nanos for one in reader.costs((), since=today, until=today + DAY)] == [16]
        assert reader.costs((), since=today, key="nobody") == []


OLD = (
    "INSERT INTO inference_log (request_id, started_at, seconds, client_dialect, provider, provider_dialect, model_asked, model, streamed, "
    "passed_through, attempts, outcome, tokens_approx, degraded, operation, input_tokens, cost_usd) VALUES "
    "(:id, :at, 1.5, 'openai_chat', 'p', 'openai_chat', 'm', 'm', false, false, 1, :outcome, false, '[]', 'generate', :tokens, :cost)"
)


def test_a_log_from_before_is_summed_when_it_is_migrated(place: str) -> None:
    engine = open_for_writing(address_of(place))
    old: list[dict[str, Any]] = [
        {"id": "a", "at": NOON, "outcome": "ok", "tokens": 5, "cost": 0.000_012_3},
        {"id": "b", "at": NOON, "outcome": "error", "tokens": None, "cost": None},
        {"id": "c", "at": -1.0, "outcome": "ok", "tokens": LARGEST_COUNT, "cost": 1.5},
        *(
            {"id": f"d{number}", "at": NOON + DAY, "outcome": "ok", "tokens": LARGEST_COUNT, "cost": 2}
            for number in range(2000)
        ),
    ]
    with engine.begin() as connection:
        upgrade(connection, "log_0005")
        connection.execute(text(OLD), old)
    migrate(engine, LOG_BRANCH, use=LOG)
    engine.dispose()
    with LogWriter(place) as writer:
        writer.write(priced("e", {"answer": 700}, started_at=NOON, input_tokens=2))
    with LogReader(place) as reader:
        first, second, third = reader.costs(("day", "model"))
        found = reader.get("a")
    assert [group.of["day"] for group in (first, second, third)] == [-1, day_of(NOON), day_of(NOON) + 1]
    assert (first.sums.cost_nanos, first.sums.calls) == (1_500_000_000, 1)
    assert (second.sums.calls, second.sums.failed, second.sums.input_tokens, second.sums.seconds) == (3, 1, 7, 3.0)
    assert (second.sums.cost_nanos, second.sums.cost_known, second.sums.parts) == (13_000, 2, {"answer": 700})
    assert (third.sums.calls, third.sums.input_tokens, third.sums.cost_nanos) == (2000, LARGEST_COUNT, 4_000 * 10**9)
    assert found is not None
    assert (found.cost_nanos, found.reported_cost_nanos, found.price_source) == (12_300, 12_300, "provider")


def test_what_is_estimated_of_an_older_log_is_counted_when_it_is_migrated(place: str) -> None:
    retried = (AttemptRecord(cause="retry", provider="p", model="m", tokens_approx=True),)
    with LogWriter(place) as writer:
        writer.write(priced("a", {"answer": 40}, tokens_approx=True, outcome="broken", key_id="k"))
        writer.write(priced("b", {"answer": 30}, tokens_approx=True))
        writer.write(priced("c", {"answer": 20}, attempt_records=retried))
        writer.write(priced("d", {"answer": 10}, tokens_approx=True, outcome="cancelled", started_at=-1.0))
        writer.write(priced("e", {"answer": 5}, outcome="broken"))
    engine = open_for_writing(address_of(place))
    with LogReader(place) as reader:
        new = reader.costs(("day", "key"))
    with engine.begin() as connection:
        downgrade(connection, "log@log_0009")
    migrate(engine, LOG_BRANCH, use=LOG)
    engine.dispose()
    with LogReader(place) as reader:
        assert reader.costs(("day", "key")) == new
    assert [(one.sums.estimated_calls, one.sums.estimated_nanos, one.sums.thinking_estimated) for one in new] == [
        (1, 10, 0),
        (1, 20, 1),
        (1, 40, 0),
    ]
