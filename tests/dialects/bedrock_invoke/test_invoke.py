"""InvokeModel: payloads of three languages, wrapped and unwrapped."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.eventstream import EventStreamDecoder, encode_event
from bardo.streams.frames import Frame
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, CallerError, InvalidRequest, MalformedReply, Unsupported, UpstreamRefused
from bardo.values.events import (
    ContentChunk,
    Event,
    Failed,
    Finish,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import Control, Message, Request, Tool
from bardo.values.usage import Usage
from bardo.values.wire import Arrival, WireRequest
from dialects.bedrock_invoke.replies import (
    CLAUDE,
    DIALECT,
    GPT,
    NOVA,
    ROW,
    chunks,
    events_of,
    payloads,
    read,
    write_stream,
)

NOVA_2 = "us.amazon.nova-2-lite-v1:0"
ASK = Message("user", (TextBlock("Hi"),))
SIGNED = Opaque("signature", "c2ln", "bedrock-v1")
REDACTED = Opaque("redacted", base64.b64encode(b"EuBlob==").decode(), "bedrock-v1")


def send(model: str, *messages: Message, dialect: str = "openai_chat", **fields: Any) -> WireRequest:
    return DIALECT.encode_request(Request(model=model, messages=messages or (ASK,), dialect=dialect, **fields), ROW)


def body(wire: WireRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(wire.body)
    return found


def lost(wire: WireRequest) -> dict[str, Any]:
    return {one.what: one.sent for one in wire.degraded}


def failure(events: list[Event]) -> Any:
    assert isinstance(events[-1], Failed)
    assert sum(isinstance(event, Failed) for event in events) == 1
    return events[-1].error


def test_claude_gets_an_anthropic_body_with_its_version() -> None:
    wire = send(CLAUDE, stream=True, max_output_tokens=9)
    assert wire.path == "model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
    assert body(wire) == {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert not wire.degraded


def test_most_others_get_a_chat_body() -> None:
    wire = send(GPT, control=Control(fields={"reasoning_effort": "low"}))
    assert wire.path == "model/openai.gpt-oss-20b-1%3A0/invoke"
    assert body(wire) == {"model": GPT, "messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": "low"}
    assert body(send(GPT, stream=True))["stream_options"] == {"include_usage": True}


def test_nova_gets_converses_body_with_its_own_settings_inside() -> None:
    config = {"topK": 4, "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}
    wire = send(NOVA_2, max_output_tokens=9, control=Control(fields={"inferenceConfig": config}))
    assert body(wire) == {
        "schemaVersion": "messages-v1",
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "inferenceConfig": {
            "maxTokens": 9,
            "topK": 4,
            "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"},
        },
    }
    assert "inferenceConfig" not in body(send(NOVA))


@pytest.mark.parametrize(
    "model",
    ["meta.llama3-70b-instruct-v1:0", "cohere.command-r-v1:0", "us.deepseek.r1-v1:0", "amazon.titan-text-express-v1"],
)
def test_a_model_with_a_body_of_its_own_is_pointed_to_converse(model: str) -> None:
    with pytest.raises(Unsupported, match="Converse"):
        send(model)


def test_claudes_thinking_goes_back_if_bedrock_signed_it() -> None:
    foreign = Opaque("signature", "AbC", "anthropic-claude-v1")
    turn = Message(
        "assistant",
        (
            ReasoningBlock(text="ours", opaque=(SIGNED,)),
            ReasoningBlock(opaque=(REDACTED,)),
            ReasoningBlock(text="anthropic's", opaque=(foreign,)),
            TextBlock("x"),
        ),
    )
    wire = send(CLAUDE, ASK, turn, ASK)
    assert body(wire)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "ours", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "EuBlob=="},
        {"type": "text", "text": "x"},
    ]
    assert lost(wire) == {"reasoning": None}


def test_betas_bedrock_knows_go_into_the_body() -> None:
    headers = {"anthropic-beta": "context-1m-2025-08-07, files-api-2025-04-14"}
    wire = send(
        CLAUDE,
        dialect="anthropic_messages",
        headers=headers,
        extra={"service_tier": "auto", "metadata": {"user_id": "u"}},
    )
    assert body(wire)["anthropic_beta"] == ["context-1m-2025-08-07"]
    assert body(wire)["metadata"] == {"user_id": "u"}
    assert lost(wire) == {"service_tier": None, "anthropic-beta": ["context-1m-2025-08-07"]}


CLAUDE_STREAM = (
    {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": []},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "EuBlob=="}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 3, "output_tokens": 2}},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}},
)


def test_claudes_state_is_bedrocks() -> None:
    response = read(chunks(*CLAUDE_STREAM), stream=True)
    assert response.error is None
    assert response.blocks == (
        ReasoningBlock(text="Hm", format="bedrock-v1", opaque=(SIGNED,)),
        ReasoningBlock(format="bedrock-v1", opaque=(REDACTED,)),
        TextBlock("Hi"),
    )
    again = write_stream(events_of(chunks(*CLAUDE_STREAM), stream=True), CLAUDE)
    assert read(again, stream=True) == response
    assert {"type": "redacted_thinking", "data": "EuBlob=="} in [one.get("content_block") for one in payloads(again)]
    whole = DIALECT.encode_response(response, Request(model=CLAUDE, messages=()))
    assert read(whole, stream=False) == response
    assert json.loads(whole)["content"][0]["signature"] == "c2ln"


def test_a_conversation_moves_between_converse_and_invoke() -> None:
    """The same redacted thinking is base64 of Anthropic's letters in one, and the letters themselves in the other."""
    sent = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 5,
        "messages": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "EuBlob=="}]}],
    }
    request = DIALECT.decode_request(json.dumps(sent).encode(), Arrival(model=CLAUDE))
    assert request.messages[0].blocks == (ReasoningBlock(format="bedrock-v1", opaque=(REDACTED,)),)


def test_a_client_of_invoke_is_read_in_its_payloads_language() -> None:
    claude = {"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["a", "b"], "max_tokens": 5, "messages": []}
    request = DIALECT.decode_request(json.dumps(claude).encode(), Arrival(model=CLAUDE, stream=True))
    assert (request.dialect, request.model, request.stream) == ("anthropic_messages", CLAUDE, True)
    assert request.headers == {"anthropic-beta": "a,b"}
    assert request.extra == {}
    nova = {"schemaVersion": "messages-v1", "messages": [], "inferenceConfig": {"max_new_tokens": 7, "topK": 2}}
    request = DIALECT.decode_request(json.dumps(nova).encode(), Arrival(model=NOVA))
    assert (request.dialect, request.max_output_tokens, request.sampling.top_k) == ("bedrock_converse", 7, 2)
    request = DIALECT.decode_request(b'{"messages":[]}', Arrival(model=GPT, stream=True))
    assert (request.dialect, request.model, request.stream) == ("openai_chat", GPT, True)


@pytest.mark.parametrize(
    ("fields", "model", "param"),
    [
        ({"messages": []}, "", "model"),
        ({"messages": [], "max_tokens": 1, "anthropic_beta": "x"}, CLAUDE, "anthropic_beta"),
        ({"messages": [], "max_tokens": 1, "anthropic_beta": ["a", "b\tc"]}, CLAUDE, "anthropic_beta[1]"),
        ({"messages": [], "inferenceConfig": 1}, NOVA, "inferenceConfig"),
        ({"messages": 1}, GPT, "messages"),
    ],
)
def test_a_wrong_request_names_the_field(fields: Any, model: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        DIALECT.decode_request(json.dumps(fields).encode(), Arrival(model=model))
    assert caught.value.param == param


def test_an_exception_ends_the_reply_and_keeps_what_came() -> None:
    headers = {":exception-type": "throttlingException", ":message-type": "exception"}
    broken = chunks(*CLAUDE_STREAM[:9]) + encode_event(b'{"message":"slow"}', headers)
    error = failure(events_of(broken, stream=True))
    assert isinstance(error, UpstreamRefused)
    assert (error.status, error.message) == (429, "slow")
    assert read(broken, stream=True).text == "Hi"


def test_a_stream_that_stops_early_is_broken() -> None:
    assert isinstance(failure(events_of(chunks(*CLAUDE_STREAM[:9]), stream=True)), BrokenStream)
    assert isinstance(failure(events_of(b"", stream=True)), BrokenStream)


@pytest.mark.parametrize(
    "payload",
    [b"{}", b'{"bytes":5}', b'{"bytes":"!"}', b'{"bytes":"e30="}', b'{"bytes":"W10="}', b'{"bytes":"ew=="}', b"["],
    ids=["empty", "number", "no-base64", "no-language", "a-list", "cut", "no-json"],
)
def test_a_chunk_that_is_none_is_malformed(payload: bytes) -> None:
    headers = {":event-type": "chunk", ":message-type": "event"}
    assert isinstance(failure(events_of(encode_event(payload, headers), stream=True)), MalformedReply)


def test_an_error_object_in_a_good_reply_is_a_refusal() -> None:
    assert failure(events_of(b'{"message":"no"}', stream=False)).message == "no"
    assert isinstance(failure(events_of(b"", stream=False)), MalformedReply)


def test_unknown_events_are_carried() -> None:
    odd = encode_event(b'{"x":1}', {":event-type": "odd", ":message-type": "event"})
    events = events_of(odd + chunks(*CLAUDE_STREAM), stream=True)
    assert events[0] == ReplyFields("bedrock_invoke", {"odd": ['{"x":1}']})
    assert fold(events).error is None


REPLY: list[Event] = [
    ReplyStart(id="i", model="m"),
    *(ThinkStart(0), ThinkChunk(0, "Hm"), OpaqueState(0, SIGNED), ThinkEnd(0)),
    *(ContentChunk(1, "Yes"), ContentChunk(1, ".")),
    *(ToolCallStart(2, "t", "f"), ToolCallChunk(2, '{"a":'), ToolCallChunk(2, "1}"), ToolCallEnd(2)),
    UsageUpdate(Usage(input_tokens=4, output_tokens=3)),
    Finish("tool_calls", "tool_use"),
]


@pytest.mark.parametrize("model", [CLAUDE, NOVA, GPT])
def test_a_reply_is_written_in_each_language(model: str) -> None:
    whole = DIALECT.encode_response(fold(REPLY), Request(model=model, messages=()))
    for response in (read(write_stream(REPLY, model), stream=True), read(whole, stream=False)):
        assert response.error is None
        assert response.text == "Yes."
        assert response.reasoning.content == "Hm"
        assert [call.arguments for call in response.tool_calls] == [{"a": 1}]
        assert response.finish.reason == "tool_calls"
        assert (response.usage.input_tokens, response.usage.output_tokens) == (4, 3)


@pytest.mark.parametrize("model", [CLAUDE, NOVA, GPT])
def test_a_failure_is_written_as_bedrocks_exception(model: str) -> None:
    body = write_stream([*REPLY[:7], Failed(BrokenStream("it broke")), ContentChunk(1, "x")], model)
    frames = EventStreamDecoder().feed(body)
    assert [frame.event for frame in frames if frame.event != "chunk"] == ["modelStreamErrorException"]
    assert frames[-1].event == "modelStreamErrorException"
    response = read(body, stream=True)
    assert isinstance(response.error, UpstreamRefused)
    assert response.error.message == "it broke"
    assert response.text == "Yes."


def test_calls_come_back_with_their_names() -> None:
    tool = Tool(name="f", schema={"type": "object"})
    call = ToolCallBlock(id="t", name="f", arguments="{}")
    for model, place in ((CLAUDE, "tools"), (GPT, "tools"), (NOVA, "toolConfig")):
        assert place in body(send(model, ASK, Message("assistant", (call,)), tools=(tool,)))


@given(st.lists(st.tuples(st.sampled_from(["", "chunk", "x", "xException"]), st.binary(max_size=40)), max_size=5))
def test_no_bytes_make_the_decoder_raise(frames: list[tuple[str, bytes]]) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events = [event for name, data in frames for event in decoder.feed(Frame(data, name, data))]
    events += decoder.finish()
    assert sum(isinstance(event, Failed) for event in events) <= 1


NAMES = (
    "messages",
    "type",
    "choices",
    "delta",
    "message",
    "content",
    "messageStart",
    "contentBlockDelta",
    "output",
    "index",
)
VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3), min_size=1, max_size=4))
def test_no_payloads_make_the_decoder_raise(values: list[dict[str, Any]]) -> None:
    events = events_of(chunks(*values), stream=True)
    assert sum(isinstance(event, Failed) for event in events) <= 1


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4), st.sampled_from([CLAUDE, NOVA, GPT]))
def test_no_request_makes_it_raise_anything_else(fields: dict[str, Any], model: str) -> None:
    try:
        DIALECT.decode_request(json.dumps({"messages": [], **fields}).encode(), Arrival(model=model))
    except CallerError:
        return
