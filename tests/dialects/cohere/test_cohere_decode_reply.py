"""Cohere replies to events: the rarer shapes, and what is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.states import seal
from bardo.streams.frames import Frame
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
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
from bardo.values.response import Response
from bardo.values.usage import Usage, UsageDetails
from dialects.cohere.replies import (
    DIALECT,
    REQUEST,
    ROW,
    START,
    closing,
    events_of,
    frame,
    read,
    read_frames,
    sse,
    text,
    thinking,
    write_stream,
)

PLAN = "cohere-tool-plan"
USAGE: dict[str, Any] = {
    "billed_units": {"input_tokens": 2, "output_tokens": 9},
    "tokens": {"input_tokens": 500, "output_tokens": 12, "reasoning_tokens": 7},
    "cached_tokens": 480,
}


def call(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    start = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    return [
        frame("tool-call-start", index, tool_calls=start),
        *(frame("tool-call-delta", index, tool_calls={"function": {"arguments": piece}}) for piece in pieces),
        frame("tool-call-end", index),
    ]


def cited(index: int, **citation: Any) -> list[dict[str, Any]]:
    return [frame("citation-start", index, citations=citation), frame("citation-end", index)]


def test_a_stream_becomes_events_in_order() -> None:
    events = read_frames(
        START,
        *thinking(0, "H", "m."),
        frame("tool-plan-delta", tool_plan="I will"),
        frame("tool-plan-delta", tool_plan=" look."),
        *call(0, "c1", "look", '{"a":', "1}"),
        *call(1, "c2", "hear"),
        closing("TOOL_CALL", USAGE),
    )
    assert events == [
        ReplyStart(id="r1"),
        ThinkStart(0, "thinking"),
        ThinkChunk(0, "H"),
        ThinkChunk(0, "m."),
        ThinkEnd(0),
        ThinkStart(1, PLAN),
        ThinkChunk(1, "I will"),
        ThinkChunk(1, " look."),
        ThinkEnd(1),
        ToolCallStart(2, "c1", "look"),
        ToolCallChunk(2, '{"a":'),
        ToolCallChunk(2, "1}"),
        ToolCallEnd(2),
        ToolCallStart(3, "c2", "hear"),
        ToolCallChunk(3, "{}"),
        ToolCallEnd(3),
        UsageUpdate(
            Usage(
                input_tokens=500,
                output_tokens=12,
                reasoning_tokens=7,
                cached_input_tokens=480,
                details=UsageDetails(billed_input_tokens=2, billed_output_tokens=9),
                raw=USAGE,
            )
        ),
        Finish("tool_calls", "TOOL_CALL"),
    ]


WHOLE: dict[str, Any] = {
    "id": "r1",
    "message": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "Yes, 42."},
            {"type": "text", "text": ""},
            {"type": "chart", "data": [1]},
        ],
        "tool_plan": "I will look.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}],
        "citations": [
            {"start": 5, "end": 7, "text": "42", "sources": [{"type": "tool", "id": "s"}], "type": "TEXT_CONTENT"},
            {"start": 0, "end": 2, "text": "Hm", "content_index": 0, "type": "THINKING_CONTENT"},
            {"start": 0, "end": 1, "text": "I", "type": "PLAN"},
        ],
    },
    "finish_reason": "TOOL_CALL",
    "usage": USAGE,
    "logprobs": [{"text": "Yes", "token_ids": [1], "logprobs": [-0.1]}],
}


def test_whole_and_streamed_are_one_response() -> None:
    message = WHOLE["message"]
    scored = frame("content-delta", 1, content={"text": "Yes"}) | {"logprobs": WHOLE["logprobs"][0]}
    streamed = fold(
        read_frames(
            START,
            *thinking(0, "Hm."),
            frame("tool-plan-delta", tool_plan="I will look."),
            frame("content-start", 1, content={"type": "text", "text": ""}),
            scored,
            frame("content-delta", 1, content={"text": ", 42."}),
            frame("content-end", 1),
            *text(2),
            frame("content-start", 3, content=message["content"][3]),
            frame("content-end", 3),
            *call(0, "c1", "look", '{"a"', ":1}"),
            *(one for n, citation in enumerate(message["citations"]) for one in cited(n, **{**citation, **ABOUT[n]})),
            closing("TOOL_CALL", USAGE),
        ),
        provider="cohere",
    )
    assert read(json.dumps({**WHOLE, "message": about(message)}).encode(), stream=False) == streamed
    assert [type(block).__name__ for block in streamed.blocks] == [
        "ReasoningBlock",
        "ReasoningBlock",
        "TextBlock",
        "TextBlock",
        "UnknownBlock",
        "ToolCallBlock",
    ]


ABOUT: list[dict[str, Any]] = [{"content_index": 1}, {}, {}]


def about(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "citations": [{**one, **ABOUT[n]} for n, one in enumerate(message["citations"])]}


def test_a_whole_reply_has_everything_in_its_place() -> None:
    response = read(json.dumps(WHOLE).encode(), stream=False)
    first, second, third = WHOLE["message"]["citations"]
    thought, plan, said, silent, chart, called = response.blocks
    assert thought == ReasoningBlock(text="Hm.", format="thinking", carried=Carried("cohere", {"citations": [second]}))
    assert plan == ReasoningBlock(text="I will look.", format=PLAN, carried=Carried("cohere", {"citations": [third]}))
    assert said == TextBlock("Yes, 42.")
    # Without a word on which text it is about, a citation is of the last.
    assert silent == TextBlock("", carried=Carried("cohere", {"citations": [first]}))
    assert chart == UnknownBlock("cohere", {"type": "chart", "data": [1]})
    assert called == ToolCallBlock(id="c1", name="look", arguments='{"a":1}')
    assert response.reasoning.content == "Hm.\n\nI will look."
    assert response.carried == Carried("cohere", {"logprobs": WHOLE["logprobs"]})


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_is_written_reads_back(streamed: bool) -> None:
    body = json.dumps({**WHOLE, "message": {**about(WHOLE["message"]), "mood": "blue"}, "region": "eu"}).encode()
    events = events_of(body, stream=False)
    response = fold(events, provider="cohere")
    assert response.choice_carried == Carried("cohere", {"mood": "blue"})
    written = write_stream(events) if streamed else DIALECT.encode_response(response, REQUEST)
    assert read(written, stream=streamed) == response


def test_a_citation_without_any_text_belongs_to_the_message() -> None:
    body = {"message": {"role": "assistant", "citations": [{"start": 0}]}, "finish_reason": "COMPLETE"}
    response = read(json.dumps(body).encode(), stream=False)
    assert response.choice_carried == Carried("cohere", {"citations": [{"start": 0}]})
    assert json.loads(DIALECT.encode_response(response, REQUEST))["message"]["citations"] == [{"start": 0}]
    assert read(write_stream(events_of(json.dumps(body).encode(), stream=False)), stream=True) == response


def test_what_others_sealed_is_opened() -> None:
    state = Opaque("signature", "SIG", "anthropic-claude-v1")
    thought = {"type": "thinking", "thinking": "Hm.", "signature": seal([state])}
    said = {"type": "text", "text": "x", "signature": "own"}
    body = {"message": {"content": [thought, said]}, "finish_reason": "COMPLETE"}
    response = read(json.dumps(body).encode(), stream=False)
    assert response.blocks[0] == ReasoningBlock(text="Hm.", format="thinking", opaque=(state,))
    assert response.blocks[1] == TextBlock("x", carried=Carried("cohere", {"signature": "own"}))


def test_events_nobody_knows_are_carried_and_come_back() -> None:
    events = read_frames(
        START, {"type": "debug", "prompt": "p"}, *text(0, "x"), {"type": "debug", "prompt": "q"}, closing()
    )
    response = fold(events, provider="cohere")
    assert response.carried == Carried("cohere", {"debug": [{"prompt": "p"}, {"prompt": "q"}]})
    assert read(write_stream(events), stream=True) == response


@pytest.mark.parametrize(
    "frames",
    [
        [frame("content-delta", 0, content={"text": "x"})],
        [frame("content-delta", 0, content={"type": "text", "text": "x"}), frame("content-end", 0)],
        [frame("content-start", 0, content={"type": "text", "text": "x"})],
        [frame("content-delta", 0, content="x")],
        [frame("content-delta", 0, content=[{"type": "text", "text": "x"}])],
        [
            frame("content-start", 0, content={"type": "text", "text": None}),
            frame("content-delta", content={"text": "x"}),
        ],
    ],
    ids=["no-start", "typed-delta", "text-in-the-start", "a-string", "a-list", "no-index"],
)
def test_text_is_read_however_it_is_put(frames: list[dict[str, Any]]) -> None:
    assert fold(read_frames(START, *frames, closing())).blocks == (TextBlock("x"),)


def test_a_piece_of_another_kind_begins_a_block() -> None:
    frames = [frame("content-delta", 0, content={"thinking": "a"}), frame("content-delta", 0, content={"text": "b"})]
    both = frame("content-delta", 1, content={"text": "d", "thinking": "c"})
    blocks = fold(read_frames(START, *frames, both, closing())).blocks
    assert [getattr(block, "text", None) for block in blocks] == ["a", "b", "c", "d"]


def test_a_plan_that_resumes_is_a_block_of_its_own() -> None:
    plans = [frame("tool-plan-delta", tool_plan=word) for word in ("a", "b")]
    response = fold(read_frames(START, plans[0], *call(0, "c", "f"), plans[1], closing()))
    assert [block.text for block in response.reasoning_blocks] == ["a", "b"]
    assert response.reasoning.interleaved


def test_fields_of_a_call_are_carried() -> None:
    start = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "", "strict": True}, "cost": 3}
    events = read_frames(START, frame("tool-call-start", 0, tool_calls=[start]), frame("tool-call-end", 0), closing())
    response = fold(events, provider="cohere")
    assert response.blocks == (
        ToolCallBlock(
            id="c", name="f", arguments="{}", carried=Carried("cohere", {"cost": 3, "function": {"strict": True}})
        ),
    )
    assert read(write_stream(events), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("COMPLETE", "stop"),
        ("STOP_SEQUENCE", "stop"),
        ("MAX_TOKENS", "length"),
        ("TOOL_CALL", "tool_calls"),
        ("NEW_WORD", "unknown"),
    ],
)
def test_the_reason_for_the_end(word: str, reason: str) -> None:
    events = read_frames(START, *text(0, "x"), closing(word))
    finish = fold(events).finish
    assert (finish.reason, finish.raw) == (reason, word)
    again = fold(events_of(write_stream(events), stream=True))
    assert again.finish == finish or reason == "unknown"
    assert word.encode() in write_stream(events)


@pytest.mark.parametrize("end", [{}, {"finish_reason": None}, {"finish_reason": ""}], ids=["no word", "null", "empty"])
def test_an_end_without_a_reason_is_for_the_calls_where_there_are_any(end: dict[str, Any]) -> None:
    last = {"type": "message-end", "delta": {**end, "usage": USAGE}}
    assert fold(read_frames(START, *call(0, "c1", "look"), last)).finish == Finish("tool_calls", "")
    assert fold(read_frames(START, *text(0, "x"), last)).finish == Finish("unknown", "")
    message = {**WHOLE["message"], "content": []}
    assert (
        read(json.dumps({"id": "r1", "message": message, **end}).encode(), stream=False).finish.reason == "tool_calls"
    )
    del message["tool_calls"]
    assert read(json.dumps({"id": "r1", "message": message, **end}).encode(), stream=False).finish.reason == "unknown"


@pytest.mark.parametrize(("word", "status"), [("ERROR", 502), ("TIMEOUT", 504)])
def test_an_end_that_is_an_error_keeps_what_came_before(word: str, status: int) -> None:
    response = fold(read_frames(START, *text(0, "x"), closing(word, USAGE, error="no luck", error_type="BAD_LUCK")))
    assert response.text == "x"
    assert response.usage.output_tokens == 12
    assert (response.finish.reason, response.finish.raw) == ("error", word)
    assert isinstance(response.error, UpstreamRefused)
    assert (response.error.message, response.error.upstream_type, response.error.status) == (
        "no luck",
        "BAD_LUCK",
        status,
    )


def test_an_end_without_words_still_is_an_error() -> None:
    body = {"id": "r", "message": {"role": "assistant", "content": []}, "finish_reason": "ERROR"}
    error = read(json.dumps(body).encode(), stream=False).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == "the reply ended with ERROR"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"billed_units": {"input_tokens": 3.0, "output_tokens": 4.0}}, Usage(input_tokens=3, output_tokens=4)),
        ({"tokens": {"output_tokens": 4}}, Usage(output_tokens=4)),
        (
            {"tokens": {"input_tokens": 1, "output_tokens": 4, "reasoning_tokens": 9}},
            Usage(input_tokens=1, output_tokens=4, reasoning_tokens=4),
        ),
        ({"tokens": {"input_tokens": -1, "output_tokens": "4"}}, Usage()),
    ],
    ids=["only-the-bill", "part-of-it", "more-thought-than-said", "impossible"],
)
def test_usage_is_told_in_one_algebra(raw: dict[str, Any], expected: Usage) -> None:
    events = read_frames(START, closing(usage=raw))
    usage = fold(events).usage
    assert (
        Usage(
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, reasoning_tokens=usage.reasoning_tokens
        )
        == expected
    )
    assert usage.raw == raw
    wrong = (raw.get("tokens") or {}).get("reasoning_tokens") == 9 or expected == Usage()
    assert any(isinstance(event, Degraded) for event in events) is wrong


@pytest.mark.parametrize(
    "body",
    [
        b"null", b"[1]", b"<html>", b"{}", b'{"delta": 3, "type": "content-delta"}', b'{"finish_reason": "COMPLETE"}',
        b'{"type": "tool-call-delta", "index": 3, "delta": {"message": {"tool_calls": {"function": {"arguments": "x"}}}}}',
        b'{"message": {"content": [3]}}', b'{"type": "tool-call-start", "delta": {"message": {}}}',
        b'{"type": "content-start", "delta": {"message": {"content": 3}}}',
    ],
)  # fmt: skip
def test_what_is_no_reply_fails_once(body: bytes) -> None:
    events = events_of(body, stream=False)
    assert [type(event) for event in events if isinstance(event, Failed)] == [Failed]
    assert isinstance(events[-1], Failed)
    assert isinstance(events[-1].error, MalformedReply)


@pytest.mark.parametrize(
    "body",
    [
        {"id": "1", "message": "no such model"},
        {"message": "no such model"},
        {"error": {"message": "no such model"}},
        {"error": "no such model"},
        {"type": "error", "message": "no such model"},
    ],
)
def test_an_error_inside_a_reply_of_200_is_one(body: dict[str, Any]) -> None:
    error = read(json.dumps(body).encode(), stream=False).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == "no such model"


def test_what_is_malformed_in_mid_stream_keeps_what_came_before() -> None:
    response = read(sse(START, *text(0, "a")) + b"data: {oops\n\n" + sse(*text(1, "b"), closing()), stream=True)
    assert response.text == "a"
    assert isinstance(response.error, MalformedReply)


@pytest.mark.parametrize(("frames", "what"), [([START, *text(0, "a")], "before its end"), ([], "before it began")])
def test_a_stream_without_its_end_is_broken(frames: list[dict[str, Any]], what: str) -> None:
    error = fold(read_frames(*frames)).error
    assert isinstance(error, BrokenStream)
    assert what in error.message


def test_a_block_of_no_known_kind_grows() -> None:
    frames = [
        frame("content-start", 0, content={"type": "chart", "title": "A", "data": [1]}),
        frame("content-delta", 0, content={"title": "B", "data": [2]}),
    ]
    value = {"type": "chart", "title": "AB", "data": [1, 2]}
    assert fold(read_frames(START, *frames, frame("content-end", 0), closing())).blocks == (
        UnknownBlock("cohere", value),
    )
    assert fold(read_frames(START, *frames)).blocks == (UnknownBlock("cohere", value),)


NAMES = [
    "type", "index", "delta", "message", "content", "text", "thinking", "tool_plan", "tool_calls", "function", "arguments",
    "name", "id", "citations", "usage", "tokens", "output_tokens", "finish_reason", "error", "logprobs", "signature",
    "content_index",
]  # fmt: skip
WORDS = [
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "message-end", "text", "thinking", "function", "PLAN", "ERROR",
]  # fmt: skip
any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
any_frame = st.builds(
    lambda kind, index, message, more: {"type": kind, "index": index, "delta": {"message": message}, **more},
    st.sampled_from(WORDS),
    st.integers(0, 2),
    st.dictionaries(st.sampled_from(NAMES), any_json, max_size=4),
    st.dictionaries(st.sampled_from(NAMES), any_json, max_size=1),
)


@given(
    st.lists(st.binary(max_size=60) | (any_json | any_frame).map(lambda value: json.dumps(value).encode()), max_size=6)
)
def test_no_bytes_make_the_decoder_raise(bodies: list[bytes]) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events: list[Event] = [event for body in bodies for event in decoder.feed(Frame(body))]
    events += decoder.finish()
    failed = [place for place, event in enumerate(events) if isinstance(event, Failed)]
    assert failed in ([], [len(events) - 1])
    response: Response = fold(events)
    DIALECT.encode_response(response, REQUEST)
    write_stream(events)


def test_a_plain_delta_makes_one_event() -> None:
    decoder = DIALECT.open_decoder(ROW)
    for one in (START, frame("content-start", 0, content={"type": "text", "text": ""})):
        decoder.feed(Frame(json.dumps(one).encode()))
    plain = frame("content-delta", 0, content={"text": "x"})
    assert decoder.feed(Frame(json.dumps(plain).encode())) == [ContentChunk(0, "x")]
