"""Events to Anthropic streams and messages: order, late state, foreign reasoning, ends."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import UpstreamTimeout
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import ReasoningPolicy
from bardo.values.response import Response
from bardo.values.usage import Usage
from dialects.anthropic_messages.replies import (
    ARRIVAL,
    DIALECT,
    REQUEST,
    events_of,
    kinds,
    payloads,
    read,
    write_stream,
)

GPT = Opaque("encrypted", "CIPHER", "openai-responses-v1")
GEMINI = Opaque("signature", "G", "google-gemini-v1")
OWN = Opaque("signature", "S", "anthropic-claude-v1")
HEAD = ReplyStart(id="r", model="m")
STREAM_ENDS = ["message_delta", "message_stop"]


def test_blocks_follow_one_another() -> None:
    stream = write_stream(
        [
            HEAD,
            ThinkStart(0, "anthropic-claude-v1"),
            ThinkChunk(0, "Hm"),
            OpaqueState(0, OWN),
            ThinkEnd(0),
            ContentChunk(1, "a"),
            ContentChunk(1, "b"),
            ToolCallStart(2, "t", "f"),
            ToolCallChunk(2, "{}"),
            ToolCallEnd(2),
            Finish("tool_calls", "tool_calls"),
        ]
    )
    assert kinds(stream) == [
        "message_start",
        *("thinking", "thinking_delta", "signature_delta", "content_block_stop"),
        *("text", "text_delta", "text_delta", "content_block_stop"),
        *("tool_use", "input_json_delta", "content_block_stop"),
        *STREAM_ENDS,
    ]
    assert [one["index"] for one in payloads(stream) if "index" in one] == [0] * 4 + [1] * 4 + [2] * 3
    assert stream.startswith(b"event: message_start\ndata: {")
    assert payloads(stream)[-2]["delta"]["stop_reason"] == "tool_use"


def test_calls_that_alternate_are_written_in_turn() -> None:
    stream = write_stream(
        [
            HEAD,
            ToolCallStart(0, "t0", "f"),
            ToolCallStart(1, "t1", "g"),
            ToolCallChunk(0, '{"a":'),
            ToolCallChunk(1, '{"b":'),
            ContentChunk(2, "meanwhile"),
            ToolCallChunk(0, "1}"),
            ToolCallChunk(1, "2}"),
            ToolCallEnd(0),
            ToolCallEnd(1),
            Finish("tool_calls"),
        ]
    )
    response = read(stream, stream=True)
    assert response.blocks == (
        ToolCallBlock(id="t0", name="f", arguments='{"a":1}'),
        ToolCallBlock(id="t1", name="g", arguments='{"b":2}'),
        TextBlock("meanwhile"),
    )


def test_pieces_held_for_a_call_that_never_ended_are_written_and_no_call_is_ended() -> None:
    stream = write_stream(
        [
            *(HEAD, ToolCallStart(0, "t0", "f"), ToolCallChunk(0, "{")),
            *(ContentChunk(1, "x"), ToolCallStart(2, "t2", "g"), ContentChunk(1, "y")),
        ]
    )
    assert kinds(stream)[1:] == [
        *("tool_use", "input_json_delta"),
        *("text", "text_delta", "text_delta", "content_block_stop"),
        *STREAM_ENDS,
    ]
    assert [one["index"] for one in payloads(stream) if one["type"] == "content_block_start"] == [0, 1]


@pytest.mark.parametrize(
    ("late", "kind"),
    [
        pytest.param(OWN, "thinking", id="own-signature"),
        pytest.param(GPT, "thinking", id="foreign"),
        pytest.param(Opaque("redacted", "R", "anthropic-claude-v1"), "redacted_thinking", id="own-redacted"),
    ],
)
def test_state_that_comes_late_gets_a_block_of_its_own(late: Opaque, kind: str) -> None:
    events: list[Event] = [
        HEAD,
        ThinkStart(0),
        ThinkChunk(0, "t"),
        ContentChunk(1, "x"),
        OpaqueState(0, late),
        ContentChunk(1, "y"),
        ToolCallStart(2, "t", "f"),
        ToolCallEnd(2),
    ]
    stream = write_stream(events)
    assert [one["content_block"]["type"] for one in payloads(stream) if "content_block" in one] == [
        "thinking",
        "text",
        kind,
        "tool_use",
    ]
    response = read(stream, stream=True)
    assert response.text == "xy"
    assert [state for block in response.reasoning_blocks for state in block.opaque] == [late]


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param([OpaqueState(1, GEMINI)], id="of the text"),
        pytest.param([ContentChunk(2, ""), OpaqueState(2, GEMINI)], id="of an empty text behind it"),
        pytest.param([OpaqueState(0, GPT)], id="of thinking"),
    ],
)
def test_the_last_block_of_an_answer_is_its_text(behind: list[Event]) -> None:
    events: list[Event] = [HEAD, ThinkStart(0), ThinkChunk(0, "t"), ThinkEnd(0), ContentChunk(1, "Forty-two."), *behind]
    events.append(Finish("stop"))
    stream = payloads(write_stream(events))
    assert [one["content_block"]["type"] for one in stream if "content_block" in one] == ["thinking", "text"]
    (told,) = stream[-2]["bardo"]["degraded"]
    assert told["what"] == "opaque state"
    whole = DIALECT.encode_response(fold(events), REQUEST)
    assert json.loads(whole)["content"][-1] == {"type": "text", "text": "Forty-two."}
    found = [(block.text, block.opaque) for block in read(whole, stream=False).blocks]  # type: ignore[union-attr]
    assert found == [(block.text, block.opaque) for block in fold(events).blocks]  # type: ignore[union-attr]


def test_state_that_comes_before_its_text_is_written_before_it() -> None:
    events: list[Event] = [HEAD, ContentChunk(0, ""), OpaqueState(0, GEMINI), ContentChunk(0, "x"), Finish("stop")]
    stream = write_stream(events)
    began = [one["content_block"]["type"] for one in payloads(stream) if "content_block" in one]
    assert began == ["redacted_thinking", "text"]
    assert "bardo" not in payloads(stream)[-2]
    assert read(stream, stream=True).blocks == fold(events).blocks


def test_a_later_state_replaces_an_earlier_one() -> None:
    provisional = Opaque("encrypted", "SHORT", "openai-responses-v1")
    events: list[Event] = [
        HEAD,
        ThinkStart(0),
        OpaqueState(0, provisional),
        ThinkChunk(0, "t"),
        ThinkEnd(0),
        OpaqueState(0, GPT),
    ]
    assert read(write_stream(events), stream=True).reasoning_blocks[0].opaque == (GPT,)


def test_state_of_text_and_calls_comes_back_to_them() -> None:
    events: list[Event] = [
        HEAD,
        ContentChunk(0, "x"),
        OpaqueState(0, GEMINI),
        ToolCallStart(1, "t", "f"),
        ToolCallChunk(1, '{"a":1}'),
        ToolCallEnd(1),
        OpaqueState(1, GEMINI),
        ContentChunk(2, ""),
        OpaqueState(2, GEMINI),
        Finish("tool_calls"),
    ]
    expected = fold(events).blocks
    assert read(write_stream(events), stream=True).blocks == expected
    assert read(DIALECT.encode_response(fold(events), REQUEST), stream=False).blocks == expected


def test_foreign_thinking_is_signed_by_nobody() -> None:
    blocks = (
        ReasoningBlock(text="unsigned", format="reasoning_content"),
        ReasoningBlock(summary=("one", "two"), format="openai-responses-v1", opaque=(GPT,)),
    )
    plain, sealed = json.loads(DIALECT.encode_response(Response(blocks=blocks), REQUEST))["content"]
    assert plain == {"type": "thinking", "thinking": "unsigned", "signature": ""}
    assert sealed["thinking"] == "one\n\ntwo"
    assert "CIPHER" not in sealed["signature"]
    events: list[Event] = [
        HEAD,
        ThinkStart(0, "reasoning_content"),
        ThinkChunk(0, "unsigned"),
        ThinkEnd(0),
        ThinkStart(1, "openai-responses-v1"),
        ThinkChunk(1, "o", part=0),
        ThinkChunk(1, "ne", part=0),
        ThinkChunk(1, "two", part=1),
        OpaqueState(1, GPT),
        ThinkEnd(1),
        Finish("stop", "stop"),
    ]
    streamed = read(write_stream(events), stream=True)
    assert [(block.text, block.opaque) for block in streamed.reasoning_blocks] == [
        ("unsigned", ()),
        ("one\n\ntwo", (GPT,)),
    ]


def test_thinking_the_caller_wants_omitted_keeps_only_its_signature() -> None:
    policy = ReasoningPolicy(mode="auto", visible=False)
    request = msgspec.structs.replace(REQUEST, reasoning=policy)
    events: list[Event] = [
        HEAD,
        ThinkStart(0),
        ThinkChunk(0, "secret"),
        OpaqueState(0, OWN),
        ThinkEnd(0),
        ThinkStart(1),
        ThinkChunk(1, "unsigned secret"),
        ThinkEnd(1),
        ContentChunk(2, "x"),
        Finish("stop"),
    ]
    whole = DIALECT.encode_response(fold(events), request)
    streamed = write_stream(events, request)
    for written, stream in ((whole, False), (streamed, True)):
        assert b"secret" not in written
        assert read(written, stream=stream).blocks == (
            ReasoningBlock(format="anthropic-claude-v1", opaque=(OWN,)),
            TextBlock("x"),
        )


def test_usage_known_early_stands_in_the_start_and_the_totals_at_the_end() -> None:
    early = Usage(input_tokens=10, cached_input_tokens=4, cache_write_tokens=1)
    total = Usage(input_tokens=10, output_tokens=7, reasoning_tokens=5, cached_input_tokens=4, cache_write_tokens=1)
    first, *_, last, _ = payloads(
        write_stream([HEAD, UsageUpdate(early), ContentChunk(0, "x"), Finish("stop"), UsageUpdate(total)])
    )
    assert first["message"]["usage"] == {
        "input_tokens": 5,
        "cache_creation_input_tokens": 1,
        "cache_read_input_tokens": 4,
        "output_tokens": 0,
    }
    assert last["usage"]["output_tokens"] == 7
    assert last["usage"]["output_tokens_details"] == {"thinking_tokens": 5}


def test_another_dialects_usage_object_is_not_passed_on() -> None:
    raw = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "input_tokens_details": {"cached_tokens": 1}}
    usage = Usage(input_tokens=3, output_tokens=4, cached_input_tokens=1, raw=raw)
    written = json.loads(DIALECT.encode_response(Response(usage=usage), REQUEST))["usage"]
    assert written == {"input_tokens": 2, "cache_read_input_tokens": 1, "output_tokens": 4}


@pytest.mark.parametrize("events", [[], [HEAD], [ContentChunk(0, "x")], [ThinkStart(0), ThinkEnd(0)]], ids=str)
def test_a_stream_that_was_told_little_still_ends_well(events: list[Event]) -> None:
    stream = write_stream(events)
    assert kinds(stream)[0] == "message_start"
    assert kinds(stream)[-2:] == STREAM_ENDS
    assert read(stream, stream=True).error is None


def test_a_failure_is_the_last_word() -> None:
    encoder = DIALECT.open_encoder(REQUEST, ARRIVAL)
    events: list[Event] = [
        HEAD,
        ToolCallStart(0, "t", "f"),
        ToolCallChunk(0, '{"a'),
        ContentChunk(1, "held"),
        Failed(UpstreamTimeout("too slow")),
    ]
    stream = b"".join(piece for event in events for piece in encoder.feed(event))
    assert b"held" in stream
    assert stream.split(b"\n\n")[-2] == (
        b'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"too slow","code":"upstream_timeout"}}'
    )
    assert [*encoder.feed(ContentChunk(1, "more")), *encoder.finish()] == []


def test_the_extension_goes_under_bardo() -> None:
    stream = write_stream([HEAD, ContentChunk(0, "x"), Finish("stop"), Extension({"receipt": {"verdict": "honoured"}})])
    assert payloads(stream)[-2]["bardo"] == {"receipt": {"verdict": "honoured"}}
    whole = json.loads(DIALECT.encode_response(Response(bardo={"id": "x"}), REQUEST))
    assert whole["bardo"] == {"id": "x"}
    assert "bardo" not in json.loads(DIALECT.encode_response(Response(), REQUEST))


@pytest.mark.parametrize(
    ("finish", "calls", "word"),
    [
        (Finish("length", "length"), False, "max_tokens"),
        (Finish("stop", "stop", stop_sequence="END"), False, "stop_sequence"),
        (Finish("stop", "STOP"), True, "tool_use"),
        (Finish("stop", "end_turn"), True, "end_turn"),
        (Finish("refusal", "content_filter"), False, "refusal"),
        (Finish("unknown", "OTHER"), False, "end_turn"),
        (Finish("length", "model_context_window_exceeded"), False, "model_context_window_exceeded"),
    ],
    ids=str,
)
def test_stop_reasons_are_words_of_the_dialect(finish: Finish, calls: bool, word: str) -> None:
    call: list[Event] = [ToolCallStart(0, "t", "f"), ToolCallEnd(0)] if calls else []
    events = [HEAD, *call, finish]
    assert json.loads(DIALECT.encode_response(fold(events), REQUEST))["stop_reason"] == word
    assert payloads(write_stream(events))[-2]["delta"] == {"stop_reason": word, "stop_sequence": finish.stop_sequence}


def test_carried_parts_of_other_dialects_and_further_choices_are_left_out() -> None:
    events: list[Event] = [
        HEAD,
        ReplyFields("openai_chat", {"system_fingerprint": "f"}),
        ContentChunk(0, "x"),
        BlockFields(0, "openai_chat", {"annotations": [1]}),
        ContentChunk(0, "second choice", choice=1),
        UnknownContent(1, "openai_responses", {"type": "web_search_call"}),
        Finish("stop"),
        Finish("length", choice=1),
    ]
    stream = write_stream(events)
    assert kinds(stream) == ["message_start", "text", "text_delta", "content_block_stop", *STREAM_ENDS]
    assert b"fingerprint" not in stream
    assert payloads(stream)[-2]["delta"]["stop_reason"] == "end_turn"
    message = json.loads(DIALECT.encode_response(fold(events), REQUEST))
    assert message["content"] == [{"type": "text", "text": "x"}]


def test_own_fields_are_written_wherever_they_arrive() -> None:
    name = "anthropic_messages"
    events: list[Event] = [
        HEAD,
        ReplyFields(name, {"diagnostics": {"d": 1}}),
        ToolCallStart(0, "t", "f"),
        BlockFields(0, name, {"caller": {"type": "direct"}}),
        ToolCallChunk(0, "{}"),
        BlockFields(0, name, {"later": 1}),
        ToolCallEnd(0),
        ContentChunk(1, "x"),
        BlockFields(1, name, {"citations": [{"n": 1}], "odd_delta": [{"odd": 1}]}),
        ThinkStart(2),
        ThinkChunk(2, ""),
        BlockFields(2, name, {"estimated_tokens": 50}),
        ReplyFields(name, {"container": {"id": "c"}, "context_management": {}, "stop_reason": "new_word"}),
        Finish("unknown", "new_word"),
    ]
    again = fold(events_of(write_stream(events), stream=True))
    before = fold(events)
    assert again.carried == before.carried
    # Thinking is an Anthropic block in the new reading, whatever it was before; the rest is the same.
    assert again.blocks[:2] == before.blocks[:2]
    assert again.finish == before.finish
    assert again.reasoning_blocks[0].carried == before.reasoning_blocks[0].carried


def test_a_refusal_is_text_and_broken_arguments_are_wrapped() -> None:
    events: list[Event] = [
        HEAD,
        RefusalChunk(0, "No."),
        ToolCallStart(1, "t", "f"),
        ToolCallChunk(1, '{"a":'),
        ToolCallEnd(1),
    ]
    content = json.loads(DIALECT.encode_response(fold(events), REQUEST))["content"]
    assert content == [
        {"type": "text", "text": "No."},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"INVALID_JSON": '{"a":'}},
    ]
    block = read(DIALECT.encode_response(fold(events), REQUEST), stream=False).blocks[1]
    assert isinstance(block, ToolCallBlock)
    assert block.arguments == '{"a":'


def test_wrapped_arguments_are_told_to_the_client() -> None:
    events: list[Event] = [HEAD, ToolCallStart(1, "t", "f"), ToolCallChunk(1, '{"a":'), ToolCallEnd(1)]
    response = msgspec.structs.replace(fold(events), bardo={"degraded": [{"what": "earlier"}]})
    told = json.loads(DIALECT.encode_response(response, REQUEST))["bardo"]["degraded"]
    assert [(one["what"], one.get("asked"), one.get("sent")) for one in told] == [
        ("earlier", None, None),
        ("tool_use.input", "t", "INVALID_JSON"),
    ]


@st.composite
def tangled(draw: st.DrawFn) -> list[Event]:
    """Events of blocks that alternate at will, as the contract of events allows."""
    made = {number: draw(st.sampled_from(["text", "thinking", "tool"])) for number in range(draw(st.integers(1, 5)))}
    events: list[Event] = []
    begun: set[int] = set()
    for place, number in enumerate(draw(st.lists(st.sampled_from(sorted(made)), max_size=20))):
        word = f"<{place}>"
        if made[number] == "text":
            events.append(ContentChunk(number, word))
        elif made[number] == "thinking":
            events.extend([] if number in begun else [ThinkStart(number)])
            form = draw(st.sampled_from(["", "anthropic-claude-v1", "x"]))
            events.append(OpaqueState(number, Opaque("redacted", word, form)) if form else ThinkChunk(number, word))
        else:
            events.extend([] if number in begun else [ToolCallStart(number, f"t{number}", "f")])
            events.append(ToolCallChunk(number, word))
        begun.add(number)
    ends = [number for number in sorted(begun) if made[number] == "tool"]
    return [*events, *(ToolCallEnd(number) for number in ends)]


@given(tangled())
def test_whatever_the_order_blocks_are_in_sequence_and_no_word_is_lost(events: list[Event]) -> None:
    stream = write_stream(events)
    open_block: int | None = None
    following = 0
    for one in payloads(stream):
        if one["type"] == "content_block_start":
            assert (open_block, one["index"]) == (None, following)
            open_block = following
        elif one["type"] == "content_block_delta":
            assert one["index"] == open_block
        elif one["type"] == "content_block_stop":
            assert one["index"] == open_block
            open_block, following = None, following + 1
    assert open_block is None
    found, said = _words(read(stream, stream=True)), _words(fold(events))
    told = "degraded" in payloads(stream)[-2].get("bardo", {})
    assert set(found.pop("state")) < set(said["state"]) if told else found.pop("state") == said["state"]
    assert found == {name: words for name, words in said.items() if name != "state"}


def _words(response: Response) -> dict[str, list[str]]:
    """Return every word by what says it, without regard to order among blocks."""
    states = [state.data for block in response.reasoning_blocks for state in block.opaque]
    calls = {block.id: block.arguments for block in response.blocks if isinstance(block, ToolCallBlock)}
    thoughts = "".join(block.text for block in response.reasoning_blocks)
    said = {"text": response.text, "thinking": thoughts, "state": "".join(states), **calls}
    return {name: sorted(re.findall(r"<\d+>", text)) for name, text in said.items()}


def test_an_id_that_a_host_gave_to_thinking_is_not_passed_off_as_redacted() -> None:
    named = Opaque("id", "reasoning-text-1", "anthropic-claude-v1")
    events: list[Event] = [HEAD, ThinkStart(0, "anthropic-claude-v1"), ThinkChunk(0, "Hm"), OpaqueState(0, named)]
    events += [OpaqueState(0, OWN), ThinkEnd(0), ContentChunk(1, "x")]
    for body, stream in ((write_stream(events), True), (DIALECT.encode_response(fold(events), REQUEST), False)):
        thought, *others = read(body, stream=stream).reasoning_blocks
        assert thought.opaque == (OWN,)
        assert [block.opaque for block in others] == [(named,)]


TAKEN_NAMES = (
    "type",
    "index",
    "id",
    "name",
    "input",
    "text",
    "role",
    "content",
    "message",
    "delta",
    "usage",
    "error",
    "kind",
    "self",
)


@pytest.mark.parametrize("place", ["reply", "start of a block", "end of a block", "piece"])
@pytest.mark.parametrize("name", TAKEN_NAMES)
def test_a_field_that_a_provider_adds_by_a_name_of_our_own_changes_nothing_of_it(name: str, place: str) -> None:
    fields: Event = {
        "reply": ReplyFields("anthropic_messages", {name: 5}),
        "start of a block": BlockFields(0, "anthropic_messages", {name: 5}),
        "end of a block": BlockFields(0, "anthropic_messages", {name: 5}),
        "piece": BlockFields(0, "anthropic_messages", {"new_delta": [{name: 5}]}),
    }[place]  # type: ignore[assignment]
    call: list[Event] = [ToolCallStart(0, "t", "f"), ToolCallChunk(0, '{"a":1}'), ToolCallEnd(0)]
    call.insert({"start of a block": 1, "end of a block": 2}.get(place, 2), fields)
    events = [HEAD, *call, Finish("tool_calls", "tool_use")]
    stream = write_stream(events)
    assert kinds(stream)[-2:] == STREAM_ENDS
    whole = DIALECT.encode_response(fold(events, provider="p"), REQUEST)
    for response in (read(stream, stream=True), read(whole, stream=False)):
        (block,) = response.blocks
        assert isinstance(block, ToolCallBlock)
        assert (response.id, block.id, block.name, block.arguments) == ("r", "t", "f", '{"a":1}')
        assert response.finish == Finish("tool_calls", "tool_use")
