"""Events to Converse's replies: the order of blocks, opaque state of others, and what AWS's own library reads."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, UpstreamRefused
from bardo.values.events import (
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
from dialects.bedrock_converse.replies import DIALECT, REQUEST, kinds, payloads, read, write_stream

ANTHROPIC = Opaque("signature", "AbC=", "anthropic-claude-v1")
OPENAI = Opaque("encrypted", "gAAAA", "openai-responses-v1")
GOOGLE = Opaque("signature", "xyz", "google-gemini-v1")
BEDROCK = Opaque("signature", "c2ln", "bedrock-v1")
STOP = Finish("stop", "stop")


def content(*blocks: Any, **fields: Any) -> list[dict[str, Any]]:
    whole = json.loads(DIALECT.encode_response(Response(blocks=blocks, **fields), REQUEST))
    found: list[dict[str, Any]] = whole["output"]["message"]["content"]
    return found


def test_a_stream_is_written_as_bedrock_writes_it() -> None:
    events: list[Event] = [
        ReplyStart(id="x"),
        ThinkStart(0, "reasoningContent"),
        ThinkChunk(0, "Hm"),
        OpaqueState(0, BEDROCK),
        ThinkEnd(0),
        ContentChunk(1, "Yes"),
        ContentChunk(1, "."),
        ToolCallStart(2, "t", "f"),
        ToolCallChunk(2, '{"a"'),
        ToolCallChunk(2, ":1}"),
        ToolCallEnd(2),
        UsageUpdate(Usage(input_tokens=5, output_tokens=4)),
        Finish("tool_calls", "tool_calls"),
        Extension({"receipt": {"id": "r"}}),
    ]
    assert payloads(write_stream(events)) == [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2ln"}}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Yes"}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "."}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"a"'}}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ":1}"}}}),
        ("contentBlockStop", {"contentBlockIndex": 2}),
        ("messageStop", {"stopReason": "tool_use"}),
        (
            "metadata",
            {
                "usage": {"inputTokens": 5, "outputTokens": 4, "totalTokens": 9},
                "metrics": {"latencyMs": 0},
                "bardo": {"receipt": {"id": "r"}},
            },
        ),
    ]


def test_an_end_is_well_formed_though_nothing_came() -> None:
    assert [name for name, _ in payloads(write_stream([]))] == ["messageStart", "messageStop", "metadata"]
    assert payloads(write_stream([]))[1][1] == {"stopReason": "end_turn"}


def test_a_failure_is_an_exception_and_the_end() -> None:
    body = write_stream([ReplyStart(), ContentChunk(0, "so"), Failed(BrokenStream("it broke")), ContentChunk(0, "x")])
    assert [name for name, _ in payloads(body)] == ["messageStart", "contentBlockDelta", "modelStreamErrorException"]
    error = read(body, stream=True).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == "it broke"


def test_a_provider_that_was_too_busy_is_told_as_that() -> None:
    refused = UpstreamRefused("slow down", status=429)
    assert payloads(write_stream([Failed(refused)]))[-1][0] == "throttlingException"


def test_blocks_follow_one_another_though_their_pieces_alternate() -> None:
    body = write_stream(
        [
            ToolCallStart(0, "a", "f"),
            ToolCallStart(1, "b", "g"),
            ToolCallChunk(0, '{"x"'),
            ToolCallChunk(1, '{"y"'),
            ContentChunk(2, "meanwhile"),
            ToolCallChunk(0, ":1}"),
            ToolCallChunk(1, ":2}"),
            ToolCallEnd(0),
            ToolCallEnd(1),
            STOP,
        ]
    )
    indexes = [payload["contentBlockIndex"] for _, payload in payloads(body) if "contentBlockIndex" in payload]
    assert indexes == sorted(indexes)
    response = read(body, stream=True)
    assert [call.arguments for call in response.tool_calls] == [{"x": 1}, {"y": 2}]
    assert response.text == "meanwhile"
    assert response.finish.raw == "tool_use"


@pytest.mark.parametrize("state", [ANTHROPIC, OPENAI, GOOGLE], ids=lambda state: state.format)
def test_state_of_others_is_sealed_and_comes_back(state: Opaque) -> None:
    events: list[Event] = [
        ThinkStart(0),
        ThinkChunk(0, "t"),
        OpaqueState(0, state),
        ThinkEnd(0),
        ContentChunk(1, "x"),
        OpaqueState(1, state),
        ToolCallStart(2, "id", "f"),
        ToolCallChunk(2, "{}"),
        ToolCallEnd(2),
        OpaqueState(2, state),
        STOP,
    ]
    streamed = read(write_stream(events), stream=True)
    whole = read(DIALECT.encode_response(fold(events), REQUEST), stream=False)
    for response in (streamed, whole):
        assert [block.opaque for block in response.blocks if not hasattr(block, "value")] == [(state,)] * 3  # type: ignore[union-attr]
    assert state.data.encode() not in write_stream(events)


def test_own_state_is_written_natively() -> None:
    redacted = Opaque("redacted", "YWJj", "bedrock-v1")
    assert content(ReasoningBlock(text="t", opaque=(BEDROCK,)), ReasoningBlock(opaque=(redacted,))) == [
        {"reasoningContent": {"reasoningText": {"text": "t", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "YWJj"}},
    ]


def test_unsigned_thinking_has_no_signature() -> None:
    assert content(ReasoningBlock(text="t")) == [{"reasoningContent": {"reasoningText": {"text": "t"}}}]
    assert kinds(write_stream([ThinkStart(0), ThinkChunk(0, "t"), ThinkEnd(0), STOP]))[1:3] == [
        "text",
        "contentBlockStop",
    ]


def test_own_and_foreign_state_of_one_thought_both_survive() -> None:
    block = ReasoningBlock(text="t", format="reasoningContent", opaque=(BEDROCK, OPENAI))
    found = read(DIALECT.encode_response(Response(blocks=(block,)), REQUEST), stream=False).reasoning_blocks
    assert [one.opaque for one in found] == [(BEDROCK,), (OPENAI,)]


def test_state_that_comes_late_is_not_lost() -> None:
    called: list[Event] = [ToolCallStart(2, "t", "f"), ToolCallEnd(2), STOP]
    body = write_stream([ThinkStart(0), ThinkChunk(0, "t"), ContentChunk(1, "x"), OpaqueState(0, BEDROCK), *called])
    assert [state for block in read(body, stream=True).reasoning_blocks for state in block.opaque] == [BEDROCK]


def test_parts_of_a_summary_are_paragraphs() -> None:
    events: list[Event] = [
        ThinkStart(0),
        ThinkChunk(0, "One", 0),
        ThinkChunk(0, ".", 0),
        ThinkChunk(0, "Two.", 1),
        ThinkEnd(0),
        STOP,
    ]
    assert read(write_stream(events), stream=True).reasoning.content == "One.\n\nTwo."


def test_a_refusal_is_text_with_its_reason() -> None:
    body = write_stream([RefusalChunk(0, "I won't."), Finish("refusal", "refusal")])
    assert read(body, stream=True).text == "I won't."
    assert read(body, stream=True).finish.raw == "content_filtered"


@pytest.mark.parametrize(
    ("finish", "word"),
    [
        (Finish("stop", "stop"), "end_turn"),
        (Finish("length", "MAX_TOKENS"), "max_tokens"),
        (Finish("tool_calls", "tool_calls"), "tool_use"),
        (Finish("pause", "pause_turn"), "end_turn"),
        (Finish("error", "error"), "malformed_model_output"),
        (Finish("unknown", ""), "end_turn"),
        (Finish("stop", "stop", "END"), "stop_sequence"),
        (Finish("refusal", "guardrail_intervened"), "guardrail_intervened"),
    ],
)
def test_stop_reasons_are_the_dialects(finish: Finish, word: str) -> None:
    whole = json.loads(DIALECT.encode_response(Response(finish=finish), REQUEST))
    assert whole["stopReason"] == word
    assert payloads(write_stream([finish]))[-2][1]["stopReason"] == word
    if finish.stop_sequence:
        assert (
            read(DIALECT.encode_response(Response(finish=finish), REQUEST), stream=False).finish.stop_sequence == "END"
        )


def test_a_call_always_stops_with_tool_use() -> None:
    call = ToolCallBlock(id="t", name="f", arguments="{}")
    assert (
        json.loads(DIALECT.encode_response(Response(blocks=(call,), finish=STOP), REQUEST))["stopReason"] == "tool_use"
    )


def test_arguments_that_are_no_object_are_wrapped_in_a_whole_reply() -> None:
    block = ToolCallBlock(id="t", name="f", arguments="{oops")
    assert content(block)[0]["toolUse"]["input"] == {"INVALID_JSON": "{oops"}
    assert read(DIALECT.encode_response(Response(blocks=(block,)), REQUEST), stream=False).blocks == (block,)


def test_what_another_dialect_carried_is_left_out() -> None:
    events: list[Event] = [
        ContentChunk(0, "x"),
        UnknownContent(1, "gemini", {"a": 1}),
        ReplyFields("gemini", {"b": 2}),
        ContentChunk(0, "other choice", 1),
        STOP,
    ]
    assert b"gemini" not in write_stream(events)
    assert read(write_stream(events), stream=True).text == "x"


def test_thinking_without_its_text_is_for_those_who_asked() -> None:
    request = msgspec.structs.replace(REQUEST, reasoning=ReasoningPolicy(mode="auto", visible=False))
    events: list[Event] = [
        *(ThinkStart(0), ThinkChunk(0, "secret"), OpaqueState(0, BEDROCK), ThinkEnd(0)),
        *(ThinkStart(1), ThinkChunk(1, "secret"), ThinkEnd(1)),
        *(ContentChunk(2, "x"), STOP),
    ]
    whole = DIALECT.encode_response(fold(events), request)
    for body in (write_stream(events, request), whole):
        assert b"secret" not in body
        assert b"c2ln" in body


EVERYTHING: list[Event] = [
    ReplyStart(id="x", model="m"),
    *(ThinkStart(0), ThinkChunk(0, "Let me "), ThinkChunk(0, "think."), OpaqueState(0, ANTHROPIC), ThinkEnd(0)),
    *(ThinkStart(1), OpaqueState(1, Opaque("redacted", "YWJj", "bedrock-v1")), ThinkEnd(1)),
    *(ContentChunk(2, "Calling "), ContentChunk(2, "é\u2028\U0001f600"), OpaqueState(2, GOOGLE)),
    *(ToolCallStart(3, "t1", "f"), ToolCallChunk(3, '{"a":'), ToolCallChunk(3, "1}"), ToolCallEnd(3)),
    *(ToolCallStart(4, "t2", "g"), ToolCallChunk(4, "{}"), ToolCallEnd(4)),
    UsageUpdate(Usage(input_tokens=9, output_tokens=5, cached_input_tokens=4)),
    Finish("tool_calls", "tool_use"),
    Extension({"receipt": {"id": "r"}}),
]


def _parsed(body: bytes, operation: str, status: int = 200) -> Any:
    """Read a reply with botocore's own parser and model of the service."""
    parsers = pytest.importorskip("botocore.parsers")
    model = pytest.importorskip("botocore.session").get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model(operation).output_shape
    headers = {"content-type": "application/json"}
    return parsers.RestJSONParser().parse({"status_code": status, "headers": headers, "body": body}, shape)


def _streamed(body: bytes) -> list[Any]:
    """Read a stream with botocore's own decoder."""
    buffer = pytest.importorskip("botocore.eventstream").EventStreamBuffer()
    parsers = pytest.importorskip("botocore.parsers")
    model = pytest.importorskip("botocore.session").get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model("ConverseStream").output_shape.members["stream"]
    buffer.add_data(body)
    return [parsers.EventStreamJSONParser().parse(event.to_response_dict(), shape) for event in buffer]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_reads_a_whole_reply() -> None:
    found = _parsed(DIALECT.encode_response(fold(EVERYTHING), REQUEST), "Converse")
    blocks = found["output"]["message"]["content"]
    assert blocks[0]["reasoningContent"]["reasoningText"]["text"] == "Let me think."
    assert blocks[1]["reasoningContent"]["redactedContent"] == b"abc"
    assert "redactedContent" in blocks[2]["reasoningContent"]
    assert blocks[3]["text"] == "Calling é\u2028\U0001f600"
    assert [block["toolUse"]["input"] for block in blocks if "toolUse" in block] == [{"a": 1}, {}]
    assert found["stopReason"] == "tool_use"
    assert found["usage"] == {"inputTokens": 5, "outputTokens": 5, "totalTokens": 14, "cacheReadInputTokens": 4}
    assert found["metrics"] == {"latencyMs": 0}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_reads_a_stream() -> None:
    found = _streamed(write_stream(EVERYTHING))
    deltas = [event["contentBlockDelta"]["delta"] for event in found if "contentBlockDelta" in event]
    assert "".join(delta["text"] for delta in deltas if "text" in delta) == "Calling é\u2028\U0001f600"
    thoughts = [delta["reasoningContent"] for delta in deltas if "reasoningContent" in delta]
    assert "".join(thought.get("text", "") for thought in thoughts) == "Let me think."
    assert b"abc" in [thought.get("redactedContent") for thought in thoughts]
    assert "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta) == '{"a":1}{}'
    assert found[-2]["messageStop"]["stopReason"] == "tool_use"
    assert found[-1]["metadata"]["usage"]["totalTokens"] == 14


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_awss_own_library_names_our_errors() -> None:
    body = DIALECT.encode_error(UpstreamRefused("slow down", status=429))
    assert _parsed(body, "Converse", 429)["Error"] == {"Message": "slow down", "Code": "ThrottlingException"}


@pytest.mark.parametrize("thought", [None, {"reasoningText": None}, {"reasoningText": 1}], ids=str)
def test_reasoning_in_a_shape_nobody_knows_goes_on_as_it_came(thought: Any) -> None:
    events: list[Event] = [
        ReplyStart(id="x"),
        UnknownContent(0, "bedrock_converse", {"reasoningContent": thought}),
        STOP,
    ]
    deltas = [value for name, value in payloads(write_stream(events)) if name == "contentBlockDelta"]
    assert deltas == [{"contentBlockIndex": 0, "delta": {"reasoningContent": thought}}]


def test_text_blocks_of_other_dialects_keep_their_words() -> None:
    assert content(TextBlock("a"), TextBlock("b")) == [{"text": "a"}, {"text": "b"}]
