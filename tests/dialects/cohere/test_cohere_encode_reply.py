"""Events of other dialects as Cohere's replies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, InvalidRequest, UpstreamRefused
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
from bardo.values.usage import Usage
from dialects.cohere.replies import ARRIVAL, DIALECT, REQUEST, kinds, payloads, read, write_stream

GPT = Opaque("encrypted", "CIPHER", "openai-responses-v1")
GEMINI = Opaque("signature", "G", "google-gemini-v1")
FOREIGN: list[Event] = [
    ReplyStart(id="resp_1", model="gpt-6", created=1),
    ThinkStart(0, "openai-responses-v1"),
    ThinkChunk(0, "first", part=0),
    ThinkChunk(0, "then", part=1),
    OpaqueState(0, GPT),
    ThinkEnd(0),
    ContentChunk(1, "Let me "),
    ContentChunk(1, "look."),
    ToolCallStart(2, "call_1", "look"),
    ToolCallChunk(2, '{"where":'),
    ToolCallChunk(2, '"there"}'),
    OpaqueState(2, GEMINI),
    ToolCallEnd(2),
    Finish("tool_calls", "completed"),
    UsageUpdate(Usage(input_tokens=12, output_tokens=9, reasoning_tokens=4, cached_input_tokens=2)),
]


def test_a_stream_is_blocks_one_after_the_other() -> None:
    stream = write_stream(FOREIGN)
    assert kinds(stream) == [
        "message-start",
        "content-start",
        "content-delta",
        "content-delta",
        "content-delta",
        "content-end",
        "content-start",
        "content-delta",
        "content-delta",
        "content-end",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-delta",
        "tool-call-delta",
        "tool-call-end",
        "message-end",
    ]
    assert stream.startswith(b'event: message-start\ndata: {"type":"message-start","id":"resp_1",')
    first, *_, last = payloads(stream)
    assert first["delta"]["message"]["role"] == "assistant"
    assert last["delta"] == {
        "finish_reason": "TOOL_CALL",
        "usage": {
            "tokens": {"input_tokens": 12, "output_tokens": 9, "reasoning_tokens": 4},
            "billed_units": {"input_tokens": 12, "output_tokens": 9},
            "cached_tokens": 2,
        },
    }


def test_a_whole_reply_says_the_same() -> None:
    whole = json.loads(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    assert [(item["type"], item[item["type"]]) for item in whole["message"]["content"]] == [
        ("thinking", "first\n\nthen"),
        ("text", "Let me look."),
    ]
    (call,) = whole["message"]["tool_calls"]
    assert (call["id"], call["type"]) == ("call_1", "function")
    assert call["function"] == {"name": "look", "arguments": '{"where":"there"}'}
    assert (whole["id"], whole["finish_reason"]) == ("resp_1", "TOOL_CALL")
    blocks = [
        ReasoningBlock(text="first\n\nthen", format="thinking", opaque=(GPT,)),
        TextBlock("Let me look."),
        ToolCallBlock(id="call_1", name="look", arguments='{"where":"there"}', opaque=(GEMINI,)),
    ]
    assert list(read(DIALECT.encode_response(fold(FOREIGN), REQUEST), stream=False).blocks) == blocks
    assert list(read(write_stream(FOREIGN), stream=True).blocks) == blocks


def test_opaque_state_comes_back_with_the_message() -> None:
    message = json.loads(DIALECT.encode_response(fold(FOREIGN), REQUEST))["message"]
    request = DIALECT.decode_request(json.dumps({"model": "m", "messages": [message]}).encode(), ARRIVAL)
    assert request.messages[0].blocks == (
        ReasoningBlock(text="first\n\nthen", format="openai-responses-v1", opaque=(GPT,)),
        TextBlock("Let me look."),
        ToolCallBlock(id="call_1", name="look", arguments='{"where":"there"}', opaque=(GEMINI,)),
    )


def test_state_that_comes_late_is_still_told_whose_it_is() -> None:
    events = [*FOREIGN[:4], *FOREIGN[5:8], OpaqueState(0, GPT), *FOREIGN[8:11], ToolCallEnd(2), OpaqueState(2, GEMINI)]
    late = [one for one in payloads(write_stream(events)) if "signature" in json.dumps(one)]
    assert [(one["type"], one["index"]) for one in late] == [("content-delta", 0), ("tool-call-delta", 0)]


def test_a_later_state_replaces_an_earlier_one() -> None:
    first = Opaque("encrypted", "PROVISIONAL", "openai-responses-v1")
    events = [*FOREIGN[:4], OpaqueState(0, first), *FOREIGN[4:]]
    assert write_stream(events) == write_stream(FOREIGN)


def test_a_plan_goes_where_plans_go() -> None:
    events: list[Event] = [
        ThinkStart(0, "cohere-tool-plan"),
        ThinkChunk(0, "I will "),
        ThinkChunk(0, "look."),
        ThinkEnd(0),
        ToolCallStart(1, "c", "look"),
        ToolCallEnd(1),
        Finish("tool_calls", "TOOL_CALL"),
    ]
    stream = write_stream(events)
    assert kinds(stream)[1:3] == ["tool-plan-delta", "tool-plan-delta"]
    assert "content-start" not in kinds(stream)
    whole = json.loads(DIALECT.encode_response(fold(events), REQUEST))
    assert whole["message"]["tool_plan"] == "I will look."
    assert "content" not in whole["message"]


def test_a_plan_with_opaque_state_loses_none_of_it() -> None:
    events: list[Event] = [
        ThinkStart(0, "cohere-tool-plan"),
        ThinkChunk(0, "I will look."),
        OpaqueState(0, GPT),
        ContentChunk(1, "x"),
        Finish("stop"),
    ]
    for response in (
        read(write_stream(events), stream=True),
        read(DIALECT.encode_response(fold(events), REQUEST), stream=False),
    ):
        assert response.reasoning.content == "I will look."
        assert [state for block in response.reasoning_blocks for state in block.opaque] == [GPT]


def test_pieces_of_two_calls_wait_for_their_turn() -> None:
    events: list[Event] = [
        ToolCallStart(0, "a", "f"),
        ToolCallStart(1, "b", "g"),
        ToolCallChunk(0, '{"x":'),
        ToolCallChunk(1, "{}"),
        ContentChunk(2, "said"),
        ToolCallEnd(1),
        ToolCallChunk(0, "1}"),
        ToolCallEnd(0),
        Finish("tool_calls"),
    ]
    response = read(write_stream(events), stream=True)
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert [(call.id, call.arguments) for call in calls] == [("a", '{"x":1}'), ("b", "{}")]
    assert response.text == "said"
    shown = [kind for kind in kinds(write_stream(events)) if kind.endswith(("start", "end"))]
    assert shown[1:-1] == [
        f"{kind}-{end}" for kind in ("tool-call", "tool-call", "content") for end in ("start", "end")
    ]


def test_calls_that_did_not_end_are_not_ended() -> None:
    events: list[Event] = [ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "g"), ToolCallChunk(1, '{"y":2}')]
    shown = kinds(write_stream([*events, Finish("length")]))
    assert [kind for kind in shown if kind.startswith("tool-call")] == [
        *("tool-call-start", "tool-call-start", "tool-call-delta")
    ]


def test_text_and_thinking_may_alternate() -> None:
    events: list[Event] = [
        ThinkStart(0, "x"),
        ThinkChunk(0, "a"),
        ContentChunk(1, "b"),
        ThinkChunk(0, "c"),
        ContentChunk(1, "d"),
        Finish("stop"),
    ]
    response = read(write_stream(events), stream=True)
    assert (response.text, "".join(block.text for block in response.reasoning_blocks)) == ("bd", "ac")


@pytest.mark.parametrize(
    ("finish", "calls", "word"),
    [
        (Finish("stop", "end_turn"), False, "COMPLETE"),
        (Finish("stop", "stop"), True, "TOOL_CALL"),
        (Finish("stop", "stop_sequence", "END"), False, "STOP_SEQUENCE"),
        (Finish("length", "max_tokens"), False, "MAX_TOKENS"),
        (Finish("refusal", "refusal"), False, "COMPLETE"),
        (Finish("unknown", ""), False, "COMPLETE"),
        (Finish("stop", "STOP_SEQUENCE"), False, "STOP_SEQUENCE"),
    ],
)
def test_the_word_for_the_end(finish: Finish, calls: bool, word: str) -> None:
    events: list[Event] = [ToolCallStart(0, "a", "f"), ToolCallEnd(0)] if calls else [ContentChunk(0, "x")]
    events.append(finish)
    assert payloads(write_stream(events))[-1]["delta"]["finish_reason"] == word
    assert json.loads(DIALECT.encode_response(fold(events), REQUEST))["finish_reason"] == word


def test_a_refusal_is_text() -> None:
    events: list[Event] = [RefusalChunk(0, "I "), RefusalChunk(0, "won't."), Finish("refusal")]
    assert read(write_stream(events), stream=True).text == "I won't."
    assert read(DIALECT.encode_response(fold(events), REQUEST), stream=False).text == "I won't."


def test_what_belongs_to_others_is_left_out() -> None:
    events: list[Event] = [
        UnknownContent(0, "anthropic_messages", {"type": "x"}),
        BlockFields(1, "anthropic_messages", {"citations": [1]}),
        ReplyFields("openai_chat", {"system_fingerprint": "f"}),
        ContentChunk(1, "a"),
        ContentChunk(0, "other", choice=1),
        Finish("length", "max_tokens"),
        Finish("stop", "stop", choice=1),
    ]
    stream = write_stream(events)
    assert kinds(stream) == ["message-start", "content-start", "content-delta", "content-end", "message-end"]
    assert b"fingerprint" not in stream
    assert payloads(stream)[-1]["delta"]["finish_reason"] == "MAX_TOKENS"


def test_what_bardo_has_to_say_stands_in_the_last_event() -> None:
    stream = write_stream([ContentChunk(0, "a"), Finish("stop"), Extension({"request_id": "r"})])
    assert payloads(stream)[-1]["bardo"] == {"request_id": "r"}
    assert stream.count(b"bardo") == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BrokenStream("it stopped"), {"error": "it stopped", "error_type": "BROKEN_STREAM", "code": "broken_stream"}),
        (
            UpstreamRefused("no", upstream_type="INVALID_TOOL_GENERATION", upstream_code="c"),
            {"error": "no", "error_type": "INVALID_TOOL_GENERATION", "code": "c"},
        ),
    ],
    ids=["ours", "the-providers"],
)
def test_a_failure_is_the_last_event_and_the_end(error: Any, said: dict[str, Any]) -> None:
    encoder = DIALECT.open_encoder(REQUEST, ARRIVAL)
    start = [*encoder.feed(ToolCallStart(0, "a", "f")), *encoder.feed(ContentChunk(1, "held"))]
    stream = b"".join([*start, *encoder.feed(Failed(error))])
    assert payloads(stream)[-1]["delta"] == {"finish_reason": "ERROR", **said, "usage": {}}
    assert b"held" in stream
    assert [*encoder.feed(ContentChunk(0, "b")), *encoder.finish()] == []


def test_an_empty_reply_is_well_formed() -> None:
    assert kinds(write_stream([])) == ["message-start", "message-end"]


def test_an_error_body_has_the_message_and_the_code() -> None:
    body = DIALECT.encode_error(InvalidRequest("model is required", hint="name one", param="model"))
    assert json.loads(body) == {"message": "model is required (name one)", "code": "invalid_request", "param": "model"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"id": "1", "message": "invalid api token"}', "invalid api token"),
        (b'{"error": {"message": "inner", "code": "c"}}', "inner"),
        (b'{"detail": "slow down"}', "slow down"),
        (b"upstream timeout", "upstream timeout"),
        (b"", "the provider answered 429 without a word"),
        (b"{}", "the provider answered 429 without a word"),
    ],
)
def test_error_answers_are_read(body: bytes, message: str) -> None:
    error = DIALECT.decode_error(429, body, {"retry-after": "7"}, "cohere")
    assert (error.message, error.status, error.retry_after, error.provider) == (message, 429, "7", "cohere")
    assert error.retryable
