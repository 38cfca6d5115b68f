"""Anthropic replies to events: the rarer shapes, and what is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.rows import Quirks
from bardo.dialects.shared.states import seal
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
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
)
from bardo.values.fold import fold
from dialects.anthropic_messages.replies import (
    DIALECT,
    ROW,
    START,
    STOP,
    began,
    closing,
    ended,
    events_of,
    piece,
    read,
    read_frames,
    sse,
)

FORMAT = "anthropic-claude-v1"


def test_a_stream_becomes_events_in_order() -> None:
    events = read_frames(
        START,
        began(0, type="thinking", thinking="", signature=""),
        {"type": "ping"},
        piece(0, type="thinking_delta", thinking="Hm."),
        piece(0, type="signature_delta", signature="SIG"),
        ended(0),
        began(1, type="text", text=""),
        piece(1, type="text_delta", text="Yes"),
        ended(1),
        began(2, type="tool_use", id="t1", name="look", input={}, caller={"type": "direct"}),
        piece(2, type="input_json_delta", partial_json='{"a": 1}'),
        ended(2),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "container": {"id": "c"}},
            "context_management": {},
        },
        STOP,
    )
    assert events == [
        ReplyStart(id="msg_1", model="m"),
        ThinkStart(0, FORMAT),
        ThinkChunk(0, "Hm."),
        OpaqueState(0, Opaque("signature", "SIG", FORMAT)),
        ThinkEnd(0),
        ContentChunk(1, "Yes"),
        ToolCallStart(2, "t1", "look"),
        BlockFields(2, "anthropic_messages", {"caller": {"type": "direct"}}),
        ToolCallChunk(2, '{"a": 1}'),
        ToolCallEnd(2),
        ReplyFields("anthropic_messages", {"context_management": {}, "container": {"id": "c"}}),
        Finish("tool_calls", "tool_use"),
    ]


def test_whole_and_streamed_are_one_response() -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "redacted_thinking", "data": "R1"},
            {"type": "text", "text": "a", "citations": [{"n": 1}, {"n": 2}]},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            {"type": "text", "text": ""},
        ],
        "stop_reason": "pause_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }
    whole = read(json.dumps(message).encode(), stream=False)
    streamed = fold(
        read_frames(
            START,
            began(0, type="redacted_thinking", data="R1"),
            ended(0),
            began(1, type="text", text="", citations=[]),
            piece(1, type="citations_delta", citation={"n": 1}),
            piece(1, type="text_delta", text="a"),
            piece(1, type="citations_delta", citation={"n": 2}),
            ended(1),
            began(2, type="server_tool_use", id="s", name="web_search", input={}),
            piece(2, type="input_json_delta", partial_json='{"query"'),
            piece(2, type="input_json_delta", partial_json=': "q"}'),
            ended(2),
            began(3, type="tool_use", id="t", name="f", input={}),
            piece(3, type="input_json_delta", partial_json=""),
            ended(3),
            began(4, type="text", text=""),
            ended(4),
            closing("pause_turn", input_tokens=3, output_tokens=5),
            STOP,
        ),
        provider="anthropic",
    )
    assert whole == streamed
    assert whole.finish == Finish("pause", "pause_turn")
    assert [type(block) for block in whole.blocks] == [
        ReasoningBlock,
        TextBlock,
        UnknownBlock,
        ToolCallBlock,
        TextBlock,
    ]
    assert isinstance(whole.blocks[3], ToolCallBlock)
    assert whole.blocks[3].arguments == "{}"


def test_arguments_are_the_text_the_model_wrote() -> None:
    body = b'{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{ "b":1.0,  "a":2 }}],"stop_reason":"tool_use"}'
    block = read(body, stream=False).blocks[0]
    assert isinstance(block, ToolCallBlock)
    assert block.arguments == '{ "b":1.0,  "a":2 }'


@pytest.mark.parametrize(
    ("frames", "blocks"),
    [
        pytest.param(
            [piece(0, type="thinking_delta", thinking="t"), piece(0, type="text_delta", text="x")],
            [ReasoningBlock(text="t", format=FORMAT), TextBlock("x")],
            id="deltas-without-starts",
        ),
        pytest.param(
            [began(0, type="text", text="x"), began(1, type="tool_use", id="t", name="f", input={"a": 1})],
            [TextBlock("x"), ToolCallBlock(id="t", name="f", arguments='{"a": 1}')],
            id="no-stops-and-input-in-the-start",
        ),
        pytest.param(
            [began(0, type="compaction", content=None), piece(0, type="compaction_delta", content="so"), ended(0)],
            [UnknownBlock("anthropic_messages", {"type": "compaction", "content": "so"})],
            id="a-block-from-the-future-that-grows",
        ),
        pytest.param(
            [
                began(
                    0, type="thinking", thinking="t", signature=seal([Opaque("encrypted", "E", "openai-responses-v1")])
                )
            ],
            [ReasoningBlock(text="t", format=FORMAT, opaque=(Opaque("encrypted", "E", "openai-responses-v1"),))],
            id="a-seal-is-opened",
        ),
    ],
)
def test_odd_streams_are_read(frames: list[dict[str, Any]], blocks: list[Any]) -> None:
    response = fold(read_frames(START, *frames, closing(), STOP))
    assert response.error is None
    assert list(response.blocks) == blocks


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("something_new", "unknown"),
    ],
)
def test_stop_reasons_keep_the_providers_word(word: str, reason: str) -> None:
    finish = fold(read_frames(START, closing(word), STOP)).finish
    assert (finish.reason, finish.raw) == (reason, word)


def test_usage_is_merged_field_by_field() -> None:
    message = {"id": "msg_1", "model": "m", "usage": {"input_tokens": 9, "output_tokens": 1, "tier": "x"}}
    start = {"type": "message_start", "message": message}
    final = closing(output_tokens=40, cache_read_input_tokens=5, output_tokens_details={"thinking_tokens": 30})
    usage = fold(read_frames(start, final, STOP)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_input_tokens) == (
        14,
        40,
        30,
        5,
    )
    assert usage.raw["tier"] == "x"


def test_counts_that_cannot_be_are_reported() -> None:
    events = read_frames(
        START, closing(output_tokens=4, output_tokens_details={"thinking_tokens": 9}, input_tokens=-2), STOP
    )
    response = fold(events)
    assert response.usage.input_tokens is None
    assert response.usage.reasoning_tokens == 4
    assert {one.degradation.what for one in events if isinstance(one, Degraded)} == {
        "usage.input_tokens",
        "usage.reasoning_tokens",
    }


def test_a_row_may_say_that_thinking_is_counted_beside() -> None:
    row = type(ROW)(id="x", name="x", dialect="anthropic_messages", quirks=Quirks(output_excludes_reasoning=True))
    body = sse(START, closing(output_tokens=4, output_tokens_details={"thinking_tokens": 9}), STOP)
    assert read(body, stream=True, row=row).usage.output_tokens == 13


def test_an_error_in_the_stream_keeps_what_came_before() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = read_frames(
        START, began(0, type="text", text=""), piece(0, type="text_delta", text="so far"), error, piece(0, type="x")
    )
    assert events[-2] == ContentChunk(0, "so far")
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UpstreamRefused)
    assert (failed.error.status, failed.error.kind, failed.error.provider) == (529, "overloaded", "anthropic")


def test_a_block_that_was_held_is_given_when_the_stream_breaks_unless_it_is_a_call() -> None:
    events = read_frames(
        START,
        began(0, type="map", at="here"),
        began(1, type="server_tool_use", id="s", name="web_search", input={}),
        piece(1, type="input_json_delta", partial_json='{"que'),
    )
    assert events[1] == UnknownContent(0, "anthropic_messages", {"type": "map", "at": "here"})
    assert isinstance(events[2], Failed)
    assert isinstance(events[2].error, BrokenStream)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"[1]", id="not-an-object"),
        pytest.param(b"{nonsense", id="not-json"),
        pytest.param(b'{"type":"message_start"}', id="no-message"),
        pytest.param(b'{"type":"message","content":7}', id="content-is-no-list"),
        pytest.param(b'{"type":"message","content":[7]}', id="block-is-no-object"),
        pytest.param(b'{"type":"content_block_start","content_block":{"type":"text"}}', id="no-index"),
        pytest.param(
            b'{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{"}}',
            id="no-call",
        ),
        pytest.param(
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}', id="text-is-no-text"
        ),
        pytest.param(b'{"type":"message_delta","delta":{"stop_reason":["x"]}}', id="stop-reason-is-no-text"),
        pytest.param(b'{"a":' * 5000 + b"1" + b"}" * 5000, id="nested-too-deeply"),
        pytest.param(b'{"type":7}', id="type-is-no-text"),
    ],
)
def test_what_is_no_message_fails_once(payload: bytes) -> None:
    decoder = DIALECT.open_decoder(ROW)
    first = decoder.feed(Frame(payload))
    assert isinstance(first[-1], Failed)
    assert isinstance(first[-1].error, MalformedReply)
    assert [*decoder.feed(Frame(payload)), *decoder.finish()] == []


def test_a_last_frame_without_its_blank_line_is_used() -> None:
    body = sse(START, closing(), STOP)
    assert read(body.rstrip(), stream=True).error is None
    assert isinstance(read(body.rstrip()[:-3], stream=True).error, BrokenStream)


def test_comments_and_a_foreign_done_are_passed_over() -> None:
    assert read(b": hello\n\n" + sse(START, closing()) + b"data: [DONE]\n\n" + sse(STOP), stream=True).error is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["type", "index", "delta", "content_block", "message", "usage", "content", "text", "stop_reason", "error"]
)
TYPES = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message",
        "text",
        "tool_use",
        "thinking",
        "redacted_thinking",
        "input_json_delta",
        "signature_delta",
        "citations_delta",
    ]
)
OBJECTS = st.recursive(
    JSON | TYPES | st.fixed_dictionaries({"type": TYPES}),
    lambda inner: st.dictionaries(FIELDS, inner, max_size=5) | st.lists(inner, max_size=2),
    max_leaves=12,
)


@given(
    st.lists(st.binary(max_size=40) | OBJECTS.map(lambda value: json.dumps(value).encode()), max_size=8), st.booleans()
)
def test_no_bytes_make_the_decoder_raise(bodies: list[bytes], complete: bool) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events = [event for body in bodies for event in decoder.feed(Frame(body, complete=complete))]
    events.extend(decoder.finish())
    assert sum(isinstance(event, Failed) for event in events) <= 1
    fold(events)


@given(st.binary(max_size=300))
def test_any_body_ends_in_a_response(body: bytes) -> None:
    assert events_of(body, stream=True)
    assert events_of(body, stream=False)


def outcome(*frames: dict[str, Any]) -> list[Any]:
    """Return what a stream of these frames says, errors by their words."""
    return [one.error.message if isinstance(one, Failed) else one for one in read_frames(*frames)]


BEGIN: dict[str, Any] = {"type": "message_start", "message": {"id": "m", "type": "message", "model": "m"}}
TEXT: dict[str, Any] = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}
NO_MESSAGE = "the reply is not an Anthropic message: "


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"type": "message_start"}, "message is null"),
        ({"type": "message_start", "message": {"id": 5}}, "id is a number"),
        ({"type": "message_start", "message": {"content": {"a": 1}}}, "content is an object"),
        ({"type": "message_start", "message": {"content": [5]}}, "content[0] is a number"),
        (
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": 5}},
            "text is not a string",
        ),
        ({"type": "content_block_start", "index": 1, "content_block": {"type": 5}}, "type is not a string"),
        ({"type": "content_block_start", "index": 1.0, "content_block": {"type": "text"}}, "index is a number"),
        ({"type": "content_block_delta", "index": 0}, "delta is null"),
        ({"type": "content_block_delta", "index": 0, "delta": {}}, "delta.type is null"),
        (
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": []}},
            "text is not a string",
        ),
        (
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
            "input_json_delta for block 0, which is not such a block",
        ),
        ({"type": "message_delta", "delta": {"stop_reason": 5}}, "stop_reason is a number"),
        ({"type": "message_delta", "usage": "a"}, "usage is a string"),
    ],
)
def test_what_is_wrong_in_a_frame_is_named(frame: dict[str, Any], words: str) -> None:
    assert outcome(BEGIN, TEXT, frame)[-1] == NO_MESSAGE + words


def test_what_stands_before_a_wrong_part_is_said_first() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "tool_use", "id": 5}]
    body = {"type": "message", "id": "m", "content": content, "stop_reason": "tool_use"}
    events = events_of(json.dumps(body).encode(), stream=False)
    assert [type(one) for one in events] == [ReplyStart, ContentChunk, Failed]


@pytest.mark.parametrize("nothing", [None, 0, "", [], {}, False])
def test_an_id_and_an_end_may_be_missing_in_any_way(nothing: Any) -> None:
    start = {"type": "message_start", "message": {"id": nothing, "model": nothing, "content": nothing}}
    events = outcome(start, {"type": "message_delta", "delta": {"stop_reason": nothing}})
    assert events == [ReplyStart(), "the reply stopped before its end"]


def test_an_index_may_be_a_boolean() -> None:
    delta = {"type": "content_block_delta", "index": False, "delta": {"type": "text_delta", "text": "b"}}
    texts = [one.text for one in read_frames(BEGIN, TEXT, delta) if isinstance(one, ContentChunk)]
    assert texts == ["a", "b"]


@pytest.mark.parametrize("typed", [True, False])
def test_fields_that_nobody_knows_are_carried_from_wherever_they_stand(typed: bool) -> None:
    start = {"type": "message_start", "message": {**BEGIN["message"], "a": 1, "b": None}, "z": 0}
    block = {**TEXT, "c": 2, "content_block": {"type": "text", "text": "", "d": 3, "citations": None}}
    delta = {"type": "content_block_delta", "index": 0, "e": 4, "delta": {"type": "text_delta", "text": "x", "f": 5}}
    end = {"type": "message_delta", "g": 6, "delta": {"stop_reason": "end_turn", "h": 7}}
    rest = [{"type": "content_block_stop", "index": 0, "j": 9}, {"type": "ping", "k": 10}, end, {**STOP, "l": 11}]
    frames = [start, block, delta, {"type": "content_block_stop", "index": 0, "i": 8}, *rest]
    without_type = [encode_sse(json.dumps({**one, "type": None}).encode(), one["type"]) for one in frames]
    events = events_of(sse(*frames) if typed else b"".join(without_type), stream=True)
    carried = [{"a": 1}, {"z": 0}, {"j": 9}, {"k": 10}, {"g": 6, "h": 7}, {"l": 11}]
    assert [one.fields for one in events if isinstance(one, ReplyFields)] == carried
    assert [one.fields for one in events if isinstance(one, BlockFields)] == [
        {"d": 3},
        {"c": 2},
        {"f": 5},
        {"e": 4},
        {"i": 8},
    ]


def test_a_piece_of_a_new_kind_is_carried_with_its_block() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "calm"}}
    assert BlockFields(0, "anthropic_messages", {"mood_delta": [{"mood": "calm"}]}) in read_frames(BEGIN, TEXT, delta)


def test_the_name_of_an_event_says_what_a_frame_without_a_type_is() -> None:
    frame = encode_sse(b'{"index":0,"content_block":{"type":"text","text":"a"}}', "content_block_start")
    assert ContentChunk(0, "a") in events_of(frame, stream=True)


@pytest.mark.parametrize("name", ["", "chunk"])
def test_a_piece_of_an_open_block_needs_no_type(name: str) -> None:
    piece = b'{"index":0,"delta":{"type":"text_delta","text":"b"}}'
    other = b'{"index":0,"delta":{"type":"thinking_delta","thinking":"b"}}'
    for data, texts in ((piece, ["a", "b"]), (other, ["a"])):
        decoder = DIALECT.open_decoder(ROW)
        decoder.feed(Frame(json.dumps(TEXT).encode()))
        found = [*decoder.feed(Frame(data, name)), *decoder.finish()]
        assert [one.text for one in found if isinstance(one, ContentChunk)] == texts[1:]
        assert bool([one for one in found if isinstance(one, ReplyFields)]) == (data is other)


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{ "a":1.50 }', '{ "a":1.50 }'),
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ('{"INVALID_JSON":"a b"}', "a b"),
        ("null", "{}"),
    ],
)
def test_the_input_of_a_whole_call_is_the_text_it_stood_in(given: str, arguments: str) -> None:
    call = f'{{"type":"tool_use","id":"t","name":"f","input":{given}}}'
    body = f'{{"type":"message","content":[{{"type":"text","text":"a"}},{call}],"stop_reason":"tool_use"}}'
    for odd in (body, body.replace("{", '{"unheard_of":1,', 1)):
        chunks = [one for one in events_of(odd.encode(), stream=False) if isinstance(one, ToolCallChunk)]
        assert chunks == [ToolCallChunk(1, arguments)]
