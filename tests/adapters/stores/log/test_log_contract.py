"""What every log keeps, whichever engine holds it: SQLite always, PostgreSQL where one can be started."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from bardo.adapters.stores.log import AmbiguousRequest, LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.database import address_of, open_for_writing
from bardo.adapters.stores.log.row import (
    DEEPEST_JSON,
    LARGEST_COUNT,
    LONGEST_CONTENT,
    LONGEST_JSON,
    LONGEST_MESSAGE,
    LONGEST_NAME,
)
from bardo.values.attempts import AttemptRecord
from support.patience import PATIENCE
from support.revisions import upgrade

pytestmark = pytest.mark.each_python


def row(request_id: str, **values: Any) -> LogRow:
    return LogRow(**{"request_id": request_id, "started_at": 1_700_000_000.0, **values})


def written(place: str, *rows: LogRow, keep_content: bool = True) -> LogReader:
    with LogWriter(place, keep_content=keep_content) as writer:
        for one in rows:
            writer.write(one)
    return LogReader(place)


def read_back(place: str, one: LogRow) -> LogRow:
    with written(place, one) as reader:
        [found] = reader.recent(1)
        return found


def test_a_row_with_everything_reads_back_as_it_was_written(place: str) -> None:
    full = row(
        "req-1",
        seconds=1.25,
        first_byte_seconds=0.1 + 0.2,
        client_dialect="openai_chat",
        provider="lab",
        provider_dialect="anthropic",
        model_asked="qwen3",
        model="qwen3-32b",
        streamed=True,
        passed_through=True,
        attempts=2,
        status=200,
        outcome="broken",
        error_class="BrokenStream",
        error_message="the stream ended — 途中で",
        finish_reason="stop",
        finish_raw="end_turn",
        visibility="visible",
        input_tokens=10,
        output_tokens=20,
        reasoning_tokens=0,
        tokens_approx=True,
        cached_input_tokens=3,
        cache_write_tokens=4,
        usage_raw={"z": 1, "a": [1.0, 1e16, None, True, "é"]},
        cost_usd=0.000_012_3,
        degraded=({"what": "reasoning_effort", "asked": "high", "sent": "medium"}, {"what": "seed"}),
        receipt={"emitted": {"reasoning": {"effort": "medium"}}, "verdict": "clamped"},
        reasoning_intent="high",
        reasoning_emitted="medium",
        reasoning_layer="L1",
        reasoning_verdict="clamped",
        cost_nanos=12_300,
        cost_parts={"answer": 12_000, "retry": 300},
        reported_cost_nanos=12_300,
        computed_cost_nanos=12_299,
        cache_saved_nanos=-7,
        price_source="provider",
        key_id="key_1",
        subsystem="heartbeat",
        tags=("batch", "night"),
        attempt_records=(
            AttemptRecord(cause="first", provider="lab", model="m", seconds=0.5, error="UpstreamTimeout", status=504),
            AttemptRecord(cause="retry", provider="lab", model="m", why="it timed out", key="LAB_KEY", nanos=300),
        ),
        pipeline={"profile": "fast", "layers": [{"layer": "cache", "saw": {"cache": "hit"}}]},
        cache="hit",
        reply_saved_nanos=12_300,
        request_content="line\nline\t\U0001f9e0",
        reply_content="",
    )
    assert read_back(place, full) == full


def test_a_number_that_was_not_reported_stays_apart_from_zero(place: str) -> None:
    found = read_back(place, row("req-1", reasoning_tokens=0, cost_usd=0.0))
    assert (found.reasoning_tokens, found.cost_usd) == (0, 0.0)
    assert (found.output_tokens, found.first_byte_seconds, found.status, found.usage_raw) == (None,) * 4


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_NAME = st.none() | _TEXT
_COUNT = st.none() | st.integers(0, LARGEST_COUNT)
_NUMBER = st.floats(allow_nan=False, allow_infinity=False)
_JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | _NUMBER | _JSON_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_JSON_TEXT, inner, max_size=3),
    max_leaves=8,
)
_OBJECT = st.dictionaries(_JSON_TEXT, _JSON, max_size=3)
_ROWS = st.builds(
    LogRow,
    request_id=st.uuids().map(str),
    started_at=_NUMBER,
    seconds=_NUMBER,
    first_byte_seconds=st.none() | _NUMBER,
    provider=_TEXT,
    model=_TEXT,
    streamed=st.booleans(),
    passed_through=st.booleans(),
    attempts=st.integers(0, 9),
    status=st.none() | st.integers(100, 599),
    outcome=st.sampled_from(["ok", "error", "cancelled", "broken"]),
    error_message=_NAME,
    finish_raw=_NAME,
    visibility=_NAME,
    input_tokens=_COUNT,
    output_tokens=_COUNT,
    reasoning_tokens=_COUNT,
    tokens_approx=st.booleans(),
    usage_raw=_JSON,
    cost_usd=st.none() | _NUMBER,
    degraded=st.lists(_OBJECT, max_size=2).map(tuple),
    receipt=st.none() | _OBJECT,
    reasoning_intent=_NAME,
    reasoning_emitted=_NAME,
    reasoning_layer=_NAME,
    reasoning_verdict=_NAME,
    cost_nanos=_COUNT,
    cost_parts=st.none()
    | st.dictionaries(st.sampled_from(["answer", "thinking", "retry"]), st.integers(0, LARGEST_COUNT)),
    key_id=_NAME,
    subsystem=_NAME,
    tags=st.lists(_TEXT, max_size=2).map(tuple),
    operation=st.sampled_from(["generate", "complete", "embed", "count_tokens"]),
    request_content=_NAME,
    reply_content=_NAME,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(_ROWS, min_size=1, max_size=8))
def test_whatever_is_written_reads_back_exactly(place: str, rows: list[LogRow]) -> None:
    with LogWriter(place, keep_content=True) as writer:
        for one in rows:
            writer.write(one)
    with LogReader(place) as reader:
        assert reader.recent(len(rows)) == rows[::-1]


def test_half_a_character_is_replaced_visibly(place: str) -> None:
    half = "half \ud83e of it"
    found = read_back(place, row("req-1", error_message=half, usage_raw={half: [half, 1.0]}))
    assert found.error_message == "half \N{REPLACEMENT CHARACTER} of it"
    assert found.usage_raw == {found.error_message: [found.error_message, 1.0]}


def test_nul_is_replaced_visibly_where_an_engine_takes_none(place: str) -> None:
    found = read_back(place, row("req-1", error_message="a\0b", usage_raw={"said": "a\0b"}))
    assert (found.error_message, found.usage_raw) == ("a\N{SYMBOL FOR NULL}b", {"said": "a\0b"})


def test_what_json_cannot_say_is_written_as_text(place: str) -> None:
    found = read_back(place, row("req-1", receipt={"reason": ValueError("no \ud83e")}))
    assert found.receipt == {"reason": "ValueError('no \\ud83e')"}


def test_long_texts_are_cut_with_a_mark_that_says_how_much_is_missing(place: str) -> None:
    found = read_back(
        place,
        row("req-1", model="m" * 10_000, error_message="e" * 10_000, reply_content="r" * (LONGEST_CONTENT + 1)),
    )
    assert len(found.model) <= LONGEST_NAME
    assert found.error_message is not None
    assert len(found.error_message) <= LONGEST_MESSAGE
    kept = found.error_message.count("e") - "more characters".count("e")
    assert found.error_message.endswith(f"… [{10_000 - kept} more characters]")
    assert found.reply_content is not None
    assert found.reply_content.endswith("more characters]")


def test_text_at_its_limit_is_whole(place: str) -> None:
    assert read_back(place, row("req-1", error_message="e" * LONGEST_MESSAGE)).error_message == "e" * LONGEST_MESSAGE


def test_long_json_keeps_its_shape_and_its_beginning(place: str) -> None:
    long = {"text": "x" * LONGEST_JSON}
    found = read_back(place, row("req-1", usage_raw=long, degraded=(long,)))
    around = len('{"text":""}')
    assert found.usage_raw["shortened"] == f"{LONGEST_JSON + around} characters"
    assert found.usage_raw["beginning"].startswith('{"text":"xxx')
    assert found.degraded[0].keys() == {"shortened", "beginning"}


def test_absurd_numbers_do_not_cost_the_row(place: str) -> None:
    found = read_back(place, row("req-1", input_tokens=10**40, cost_usd=float("nan"), receipt={"n": float("inf")}))
    assert (found.input_tokens, found.cost_usd, found.receipt) == (LARGEST_COUNT, None, {"n": None})


@pytest.mark.parametrize("depth", [150, 5_000])
def test_json_nested_beyond_reason_is_cut_where_every_reader_can_follow(place: str, depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    found = read_back(place, row("req-1", usage_raw=nested)).usage_raw
    deep = 0
    while isinstance(found, list):
        [found] = found
        deep += 1
    assert (deep, found) == (DEEPEST_JSON, "… [nested too deeply]")


def test_wide_json_is_kept_exactly(place: str) -> None:
    wide = {str(number): [{"a\0": 1e16}] for number in range(200)}
    assert read_back(place, row("req-1", usage_raw=wide)).usage_raw == wide


def test_content_is_stored_only_where_that_was_asked_for(place: str) -> None:
    with written(place, row("req-1", request_content="q", reply_content="a"), keep_content=False) as reader:
        [found] = reader.recent(1)
    assert (found.request_content, found.reply_content) == (None, None)


def test_recent_rows_come_newest_first_and_only_those_that_match(place: str) -> None:
    rows = [
        row("a", provider="p", model="m", started_at=1.0),
        row("b", provider="p", model="n", started_at=2.0, outcome="error", reasoning_verdict="void", operation="embed"),
        row("c", provider="q", model="m", started_at=3.0),
    ]
    with written(place, *rows) as reader:

        def ids(limit: int = 9, **wanted: Any) -> str:
            return "".join(found.request_id for found in reader.recent(limit, **wanted))

        assert ids() == "cba"
        assert ids(2) == "cb"
        assert ids(provider="p") == "ba"
        assert ids(model="m") == "ca"
        assert ids(outcome="error") == "b"
        assert (ids(verdict="void"), ids(verdict="honoured")) == ("b", "")
        assert (ids(operation="embed"), ids(operation="count_tokens")) == ("b", "")
        assert ids(since=2.0) == "cb"
        assert ids(provider="q", model="n") == ""


def test_a_request_is_found_by_any_beginning_only_it_has(place: str) -> None:
    with written(place, row("req-a1"), row("req-a2"), row("REQ-b"), row("req-a"), row("日本")) as reader:

        def found(request_id: str) -> str | None:
            one = reader.get(request_id)
            return None if one is None else one.request_id

        assert found("req-a1") == "req-a1"
        assert found("REQ") == "REQ-b"
        assert found("日") == "日本"
        assert found("req-a") == "req-a"  # A whole id counts, though others begin with it.
        assert found("nobody") is None
        with pytest.raises(AmbiguousRequest, match="req-a"):
            reader.get("req-")


def test_a_follower_sees_every_row_once_and_in_order(place: str) -> None:
    with LogWriter(place) as writer, LogReader(place) as reader:
        writer.write(row("before"))
        assert writer.flush(PATIENCE)
        seen: list[str] = []
        place_in_log = reader.last_row_number()
        assert reader.after(place_in_log).rows == ()
        for step in range(3):
            for number in range(4):
                writer.write(row(f"{step}-{number}"))
            assert writer.flush(PATIENCE)
            while (new := reader.after(place_in_log, limit=3)).rows:
                place_in_log = new.row_number
                seen += [found.request_id for found in new.rows]
    assert seen == [f"{step}-{number}" for step in range(3) for number in range(4)]


def test_an_empty_log_has_nothing_to_tell(place: str) -> None:
    with written(place) as reader:
        assert (reader.recent(5), reader.costs(), reader.gaps()) == ([], [], [])
        assert (reader.get("x"), reader.last_row_number(), reader.after(0).row_number) == (None, 0, 0)


def test_a_row_the_database_refuses_costs_no_other_row(place: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = [row("a"), row("bad", started_at=None), row("worse", model={"not": "text"}), row("b")]
    with written(place, *rows) as reader:
        assert [found.request_id for found in reader.recent(9)] == ["b", "a"]
        [gap] = reader.gaps()
    assert (gap.rows, gap.why) == (2, "the database refused them")
    assert "request bad" in caplog.text
    assert "request worse" in caplog.text


FIRST_FORM = """INSERT INTO inference_log (request_id, started_at, seconds, client_dialect, provider, provider_dialect,
model_asked, model, streamed, passed_through, attempts, outcome, tokens_approx, cost_by_cause, degraded, receipt)
VALUES ('old', 1.0, 2.0, 'gemini', 'p', 'gemini', 'm', 'm', true, false, 1, 'ok', false, '{}', '[]', '{"intent": null}')"""


@pytest.mark.parametrize("opened", ["read", "written"])
def test_a_log_of_the_first_form_gets_receipts_and_keeps_its_rows(place: str, opened: str) -> None:
    engine = open_for_writing(address_of(place))
    with engine.begin() as connection:
        upgrade(connection, "log_0001")
        connection.execute(text(FIRST_FORM))
    engine.dispose()
    new = row("new", reasoning_intent="off", reasoning_verdict="contradicted")
    if opened == "written":
        written(place, new).close()
    with LogReader(place) as reader:
        (old,) = reader.recent(5, model="m")
        assert (old.request_id, old.streamed, old.receipt) == ("old", True, {"intent": None})
        assert (old.reasoning_intent, old.reasoning_verdict, old.operation) == (None, None, "generate")
        assert reader.recent(5, verdict="contradicted") == ([new] if opened == "written" else [])


def test_a_batch_of_any_size_is_stored_whole_and_in_order(place: str) -> None:
    wanted = [f"req_{number:03}" for number in range(61)]
    with written(place, *(row(request_id) for request_id in wanted)) as log:
        assert [one.request_id for one in reversed(log.recent(limit=100))] == wanted
