"""Converse replies to events: the rare shapes, and everything that is no reply."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.states import seal
from bardo.streams.eventstream import encode_event
from bardo.streams.frames import Frame
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
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
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.response import Response
from dialects.bedrock_converse.replies import (
    DIALECT,
    META,
    REQUEST,
    ROW,
    START,
    began,
    closing,
    ended,
    events_of,
    message,
    piece,
    read,
    read_frames,
    read_whole,
    stream,
    thought,
    write_stream,
)

SIGNED = Opaque("signature", "c2ln", "bedrock-v1")


def failure(events: list[Event]) -> Any:
    assert isinstance(events[-1], Failed)
    assert sum(isinstance(event, Failed) for event in events) == 1
    return events[-1].error


def same_both_ways(response: Response, events: list[Event]) -> None:
    assert read(write_stream(events), stream=True) == response
    whole = read(DIALECT.encode_response(response, REQUEST), stream=False)
    fields = dict(whole.carried.fields) if whole.carried else {}
    reported = fields.pop("bardo", None)
    assert msgspec.structs.replace(whole, carried=Carried("bedrock_converse", fields)) == response
    # Input that is no object is wrapped in a whole reply, which is reported.
    assert (reported is not None) is any(call.malformed for call in response.tool_calls)


def test_a_stream_says_each_thing_once() -> None:
    events = read_frames(
        START,
        thought(0, text="Hm"),
        thought(0, text="m."),
        thought(0, signature="c2ln"),
        ended(0),
        piece(1, text="Yes"),
        piece(1, text="."),
        ended(1),
        began(2, toolUse={"toolUseId": "t", "name": "f"}),
        piece(2, toolUse={"input": '{"a"'}),
        piece(2, toolUse={"input": ":1}"}),
        ended(2),
        closing("tool_use"),
        META,
    )
    assert events[:-2] == [
        ReplyStart(),
        ThinkStart(0, "reasoningContent"),
        ThinkChunk(0, "Hm"),
        ThinkChunk(0, "m."),
        OpaqueState(0, SIGNED),
        ThinkEnd(0),
        ContentChunk(1, "Yes"),
        ContentChunk(1, "."),
        ToolCallStart(2, "t", "f"),
        ToolCallChunk(2, '{"a"'),
        ToolCallChunk(2, ":1}"),
        ToolCallEnd(2),
        Finish("tool_calls", "tool_use"),
    ]
    assert isinstance(events[-2], UsageUpdate)
    assert events[-1] == ReplyFields("bedrock_converse", {"metrics": {"latencyMs": 5}})


def test_a_whole_reply_says_the_same() -> None:
    whole = read_whole(
        {"reasoningContent": {"reasoningText": {"text": "Hmm.", "signature": "c2ln"}}},
        {"text": "Yes."},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}}},
        stopReason="tool_use",
        usage=META[1]["usage"],
        metrics=META[1]["metrics"],
    )
    streamed = read_frames(
        START,
        thought(0, text="Hmm."),
        thought(0, signature="c2ln"),
        ended(0),
        piece(1, text="Yes."),
        ended(1),
        began(2, toolUse={"toolUseId": "t", "name": "f"}),
        piece(2, toolUse={"input": '{"a": 1}'}),
        ended(2),
        closing("tool_use"),
        META,
    )
    assert fold(whole) == fold(streamed)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("guardrail_intervened", "refusal"),
        ("content_filtered", "refusal"),
        ("malformed_tool_use", "error"),
        ("never_heard_of", "unknown"),
    ],
)
def test_the_stop_reason_is_kept_beside_ours(word: str, reason: str) -> None:
    events = read_whole({"text": "x"}, stopReason=word)
    assert fold(events).finish == Finish(reason, word)  # type: ignore[arg-type]
    same_both_ways(fold(events, provider="bedrock"), events) if word != "never_heard_of" else None
    written = json.loads(DIALECT.encode_response(fold(events), REQUEST))
    assert written["stopReason"] == word


def test_claudes_stop_sequence_is_found_where_it_was_asked_for() -> None:
    fields = {"additionalModelResponseFields": {"stop_sequence": "END"}}
    for events in (
        read_whole({"text": "x"}, stopReason="stop_sequence", **fields),
        read_frames(START, piece(0, text="x"), closing("stop_sequence", **fields), META),
    ):
        assert fold(events).finish == Finish("stop", "stop_sequence", "END")
        assert fold(events).carried is not None


def test_an_empty_text_before_the_reasoning_is_no_block() -> None:
    response = fold(
        read_frames(START, piece(0, text=""), ended(0), thought(1, text="Hm"), ended(1), piece(2, text="Hi"), closing())
    )
    assert [type(block) for block in response.blocks] == [ReasoningBlock, TextBlock]


def test_signed_thinking_without_words_is_kept() -> None:
    whole = fold(
        read_whole({"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}}), provider="bedrock"
    )
    assert whole.blocks == (ReasoningBlock(format="reasoningContent", opaque=(SIGNED,)),)
    events = read_frames(START, thought(0, signature="c2ln"), ended(0), closing(), META)
    assert fold(events).blocks == whole.blocks
    same_both_ways(fold(events, provider="bedrock"), events)


def test_a_blob_that_comes_in_pieces_is_one() -> None:
    events = read_frames(
        START, thought(0, redactedContent="YWI="), thought(0, redactedContent="Yw=="), ended(0), closing()
    )
    assert [event.opaque.data for event in events if isinstance(event, OpaqueState)] == ["YWJj"]


@pytest.mark.parametrize(
    "inputs",
    [('{"a": 1}',), ('{"a"', ": 1}"), ("",), ("not json",), ("[1]",)],
    ids=["whole", "cut", "empty", "no-json", "no-object"],
)
def test_arguments_are_what_the_model_wrote(inputs: tuple[str, ...]) -> None:
    events = read_frames(
        START,
        began(0, toolUse={"toolUseId": "t", "name": "f"}),
        *(piece(0, toolUse={"input": one}) for one in inputs),
        ended(0),
        closing("tool_use"),
        META,
    )
    call = fold(events).blocks[0]
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == ("".join(inputs) or "{}")
    same_both_ways(fold(events, provider="bedrock"), events)


def test_a_whole_calls_arguments_keep_their_spelling() -> None:
    body = b'{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f","input":{"a" :1.0}}}]}},"stopReason":"x"}'
    call = read(body, stream=False).blocks[0]
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == '{"a" :1.0}'


def test_a_call_without_input_has_empty_arguments() -> None:
    for events in (
        read_frames(START, began(0, toolUse={"toolUseId": "t", "name": "f"}), ended(0), closing("tool_use")),
        read_whole({"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}),
        read_whole({"toolUse": {"toolUseId": "t", "name": "f"}}),
    ):
        assert fold(events).tool_calls[0].arguments == {}
        assert fold(events).tool_calls[0].raw_arguments == "{}"


HOSTED = {"toolUse": {"toolUseId": "t", "name": "code", "type": "server_tool_use", "input": {"x": 1}}}
RESULT = {"toolResult": {"toolUseId": "t", "status": "success", "content": [{"json": {"y": 2}}]}}


@pytest.mark.parametrize(
    "block",
    [
        HOSTED,
        RESULT,
        {"image": {"format": "png", "source": {"bytes": "aGk="}}},
        {"somethingNew": {"a": [1, {"b": None}]}},
        {"document": {"name": "d"}, "beside": [1, 2]},
    ],
    ids=["server-tool", "server-result", "image", "unknown", "two-keys"],
)
def test_a_block_of_no_known_kind_is_carried_whole(block: dict[str, Any]) -> None:
    events = read_whole({"text": "a"}, block, {"text": "b"})
    assert [event for event in events if isinstance(event, UnknownContent)] == [
        UnknownContent(1, "bedrock_converse", block)
    ]
    assert fold(events).tool_calls == []
    same_both_ways(fold(events, provider="bedrock"), events)


def test_a_streamed_server_tool_is_the_whole_ones_block() -> None:
    use = {name: value for name, value in HOSTED["toolUse"].items() if name != "input"}
    result = {name: value for name, value in RESULT["toolResult"].items() if name != "content"}
    events = read_frames(
        START,
        began(0, toolUse=use),
        piece(0, toolUse={"input": '{"x"'}),
        piece(0, toolUse={"input": ":1}"}),
        ended(0),
        began(1, toolResult=result),
        piece(1, toolResult=RESULT["toolResult"]["content"]),
        ended(1),
        closing(),
        META,
    )
    assert fold(events).blocks == (UnknownBlock("bedrock_converse", HOSTED), UnknownBlock("bedrock_converse", RESULT))


def test_a_block_of_no_known_kind_grows_by_its_pieces() -> None:
    events = read_frames(
        START,
        piece(0, film={"text": "one ", "frames": [1], "size": {"wide": 3}}),
        piece(0, film={"text": "two", "frames": [2], "size": {"high": 4}, "at": 5}),
        piece(0, film={"at": 6}),
        ended(0),
        closing(),
        META,
    )
    film = {"text": "one two", "frames": [1, 2], "size": {"wide": 3, "high": 4}, "at": 6}
    assert fold(events).blocks == (UnknownBlock("bedrock_converse", {"film": film}),)


CITATION = {"title": "t", "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}}}


def test_citations_decorate_their_text() -> None:
    cited = {"citationsContent": {"citations": [CITATION], "content": [{"text": "It is so"}]}}
    whole = read_whole(cited, {"text": "."})
    streamed = read_frames(
        START,
        piece(0, text="It is"),
        piece(0, text=" so"),
        piece(0, citation=CITATION),
        ended(0),
        piece(1, text="."),
        closing(),
    )
    assert fold(whole).blocks == fold(streamed).blocks
    assert fold(whole).blocks[0] == TextBlock("It is so", (), Carried("bedrock_converse", {"citations": [CITATION]}))
    same_both_ways(fold(whole, provider="bedrock"), whole)
    assert json.loads(DIALECT.encode_response(fold(streamed), REQUEST))["output"]["message"]["content"][0] == cited


@pytest.mark.parametrize(
    "block",
    [
        {"text": "x", "mood": "good"},
        {"text": "x", "marks": [{"a": 1}, {"b": 2}], "empty": []},
        {"reasoningContent": {"reasoningText": {"text": "x", "tone": 1}, "more": {"y": 2}}, "beside": 3},
        {"reasoningContent": {"redactedContent": "YQ==", "more": 1}, "beside": 3},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": 1}, "type": "tool_use", "x": {"y": 1}}, "beside": 3},
        {"citationsContent": {"citations": [], "content": [{"text": "a"}, {"text": "b", "c": 1}], "d": 2}, "e": 3},
        {"citationsContent": {"citations": [], "content": []}},
    ],
    ids=["text", "text-lists", "thinking", "redacted", "call", "cited", "cited-nothing"],
)
def test_what_nobody_knows_goes_back_where_it_stood(block: dict[str, Any]) -> None:
    events = read_whole(block, {"text": "end"}, somewhere={"z": 1})
    response = fold(events, provider="bedrock")
    assert json.loads(DIALECT.encode_response(response, REQUEST))["output"]["message"]["content"] == [
        block,
        {"text": "end"},
    ]
    same_both_ways(response, events)


def test_unknown_pieces_and_events_are_carried() -> None:
    events = read_frames(
        START,
        piece(0, text="x"),
        piece(0, sparkle={"a": 1}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "y"}, "glow": 2}),
        ended(0),
        ("surprise", {"b": 2, "p": "abc"}),
        closing(),
        META,
    )
    response = fold(events, provider="bedrock")
    assert response.text == "xy"
    carried = Carried("bedrock_converse", {"sparkle": [{"a": 1}], "glow": 2})
    assert response.blocks == (TextBlock("xy", (), carried),)
    assert response.carried == Carried("bedrock_converse", {"surprise": [{"b": 2}], "metrics": {"latencyMs": 5}})
    same_both_ways(response, events)


def test_state_of_others_comes_out_of_its_seal() -> None:
    foreign = Opaque("encrypted", "gAAA", "openai-responses-v1")
    for sealed in (
        {"reasoningText": {"text": "t", "signature": seal([foreign])}},
        {"redactedContent": seal([foreign])},
    ):
        states = [event.opaque for event in read_whole({"reasoningContent": sealed}) if isinstance(event, OpaqueState)]
        assert states == [foreign]


def test_a_block_without_a_stop_is_ended_by_the_message() -> None:
    events = read_frames(START, thought(0, text="a"), piece(1, text="b"), closing(), META)
    assert ThinkEnd(0) in events
    assert fold(events).error is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"inputTokens": 22, "outputTokens": 13, "totalTokens": 2527, "cacheReadInputTokens": 2492}, (2514, 13, 2492)),
        (
            {"inputTokens": 2514, "outputTokens": 13, "totalTokens": 2527, "cacheReadInputTokens": 2492},
            (2514, 13, 2492),
        ),
        ({"inputTokens": 5, "outputTokens": 1, "cacheReadInputTokenCount": 2}, (7, 1, 2)),
        ({"inputTokens": 5, "outputTokens": 1}, (5, 1, None)),
        ({"outputTokens": 1}, (None, 1, None)),
    ],
    ids=["beside", "inside", "long-names", "plain", "missing"],
)
def test_usage_is_counted_in_our_algebra(usage: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    response = fold(read_whole({"text": "x"}, usage=usage))
    counted = response.usage
    assert (counted.input_tokens, counted.output_tokens, counted.cached_input_tokens) == expected
    assert counted.raw == usage
    assert json.loads(DIALECT.encode_response(response, REQUEST))["usage"] == usage


def test_impossible_counts_are_reported() -> None:
    events = read_whole({"text": "x"}, usage={"inputTokens": -1, "outputTokens": "many", "totalTokens": 3})
    response = fold(events)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (None, None)
    assert [event.degradation.what for event in events if isinstance(event, Degraded)] == [
        "usage.inputTokens",
        "usage.outputTokens",
    ]


def test_usage_of_another_dialect_is_written_as_converses() -> None:
    usage = msgspec.structs.replace(
        fold([]).usage, input_tokens=10, output_tokens=4, cached_input_tokens=3, raw={"x": 1}
    )
    written = json.loads(DIALECT.encode_response(Response(usage=usage), REQUEST))["usage"]
    assert written == {"inputTokens": 7, "outputTokens": 4, "totalTokens": 14, "cacheReadInputTokens": 3}


@pytest.mark.parametrize(
    ("name", "status", "retryable"),
    [
        ("throttlingException", 429, True),
        ("validationException", 400, False),
        ("internalServerException", 500, True),
        ("modelStreamErrorException", 502, True),
        ("serviceUnavailableException", 503, True),
        ("modelTimeoutException", 408, True),
        ("somethingElseException", 502, True),
    ],
)
def test_an_exception_in_the_stream_is_a_refusal(name: str, status: int, retryable: bool) -> None:
    body = stream(START, piece(0, text="so far")) + message(name, b'{"message":"no"}', "exception")
    error = failure(events_of(body, stream=True))
    assert isinstance(error, UpstreamRefused)
    assert (error.status, error.message, error.upstream_type, error.retryable) == (status, "no", name, retryable)
    assert read(body, stream=True).text == "so far"


def test_an_error_without_a_payload_stands_in_its_headers() -> None:
    headers = {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "it broke"}
    error = failure(events_of(stream(START) + encode_event(b"", headers), stream=True))
    assert (error.status, error.message, error.upstream_type) == (500, "it broke", "InternalFailure")


@pytest.mark.parametrize(
    "payloads",
    [
        (("contentBlockDelta", {"contentBlockIndex": 0, "delta": "x"}),),
        (("contentBlockDelta", {"contentBlockIndex": True, "delta": {}}),),
        (("contentBlockDelta", {"delta": {"text": "x"}}),),
        (piece(0, text=5),),
        (piece(0, toolUse={"input": "x"}),),
        (piece(0, text="x"), piece(0, toolUse={"input": "x"})),
        (thought(0, text=[]),),
        (began(0, toolUse="x"),),
        (began(0, toolUse={"toolUseId": 1}),),
        (("contentBlockStop", {}),),
        (("messageStop", {"stopReason": 3}),),
        (("metadata", {"usage": []}),),
        (("contentBlockStart", []),),
    ],
    ids=str,
)
def test_a_wrong_shape_ends_the_reply_once(payloads: tuple[tuple[str, Any], ...]) -> None:
    assert isinstance(failure(read_frames(START, *payloads, closing(), META)), MalformedReply)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"null",
        b'{"output":1}',
        b'{"output":{"message":{"content":[1]}}}',
        b"\xff" * 9,
        b"[" * 9999,
    ],
)
def test_a_body_that_is_no_reply_is_malformed(body: bytes) -> None:
    assert isinstance(failure(events_of(body, stream=False)), MalformedReply)


def test_a_stream_that_stops_early_is_broken() -> None:
    events = read_frames(START, thought(0, text="a"), thought(0, redactedContent="YQ=="))
    assert isinstance(failure(events), BrokenStream)
    assert OpaqueState(1, Opaque("redacted", "YQ==", "bedrock-v1")) in events


def test_a_stream_is_complete_with_its_message() -> None:
    assert fold(read_frames(START, piece(0, text="x"), closing())).error is None


def test_nothing_follows_a_failure() -> None:
    decoder = DIALECT.open_decoder(ROW)
    assert isinstance(decoder.feed(Frame(b"{"))[-1], Failed)
    assert list(decoder.feed(Frame(b'{"role":"assistant"}', "messageStart"))) == []
    assert list(decoder.finish()) == []


FIELDS = (
    *("text", "toolUse", "toolResult", "reasoningContent", "reasoningText", "redactedContent", "signature", "input"),
    *("type", "content", "citationsContent", "citation", "output", "message", "usage", "stopReason", "name"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["", "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "x"]
)


@given(st.lists(st.tuples(NAMES, JSON, st.integers(0, 2)), max_size=6))
def test_no_frames_make_the_decoder_raise(frames: list[tuple[str, Any, int]]) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events: list[Event] = []
    for name, value, index in frames:
        body = {"contentBlockIndex": index, "delta": value, "start": value} if name.startswith("content") else value
        events += decoder.feed(Frame(msgspec.json.encode(body), name))
    events += decoder.finish()
    response = fold(events)
    assert sum(isinstance(event, Failed) for event in events) <= 1
    DIALECT.encode_response(response, REQUEST)
    write_stream(events)


@given(st.binary(max_size=60), NAMES, st.booleans())
def test_no_bytes_make_the_decoder_raise(data: bytes, name: str, complete: bool) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events = [*decoder.feed(Frame(data, name, data, complete)), *decoder.finish()]
    assert sum(isinstance(event, Failed) for event in events) <= 1


def test_a_piece_of_two_kinds_is_read_in_its_order() -> None:
    both = ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm"}, "text": "Yes"}})
    events = read_frames(START, both, ended(0), closing(), META)
    said = [event for event in events if isinstance(event, ThinkChunk | ContentChunk)]
    assert said == [ThinkChunk(0, "Hm"), ContentChunk(1, "Yes")]


def test_the_words_before_a_malformed_block_of_a_whole_reply_are_kept() -> None:
    events = read_whole({"text": "Yes"}, {"reasoningContent": {"reasoningText": {"text": 5}}})
    assert ContentChunk(0, "Yes") in events
    assert isinstance(events[-1], Failed)
    assert str(events[-1].error).endswith("text is a number")


def test_a_block_is_of_the_kind_of_its_first_member_whatever_the_others_are() -> None:
    events = read_whole({"text": "Yes", "toolUse": 5})
    assert ContentChunk(0, "Yes") in events
    assert BlockFields(0, "bedrock_converse", {"toolUse": 5}) in events


def test_a_hosted_call_is_kept_whole_however_it_is_written() -> None:
    use = {"toolUse": {"type": "server_tool_use", "name": 5, "toolUseId": None}}
    assert UnknownContent(0, "bedrock_converse", use) in read_whole(use)


def test_a_piece_of_nothing_but_null_begins_no_block() -> None:
    events = read_frames(START, piece(0, unheard_of=None), piece(0, text="Yes"), ended(0), closing(), META)
    assert [event for event in events if isinstance(event, UnknownContent | ContentChunk)] == [ContentChunk(0, "Yes")]
