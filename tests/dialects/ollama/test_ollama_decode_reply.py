"""Ollama replies to events: the rarer shapes, and what is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.frames import Frame
from bardo.values.blocks import Carried, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, MalformedReply, UpstreamRefused
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Failed,
    Finish,
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
from bardo.values.usage import Usage
from dialects.ollama.replies import (
    DIALECT,
    REQUEST,
    ROW,
    TIME,
    events_of,
    last,
    ndjson,
    piece,
    read,
    read_lines,
    write_stream,
)

CALL: dict[str, Any] = {"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"where": "there", "n": 1.0}}}


def test_a_stream_becomes_events_in_order() -> None:
    events = read_lines(
        piece(thinking="H"),
        piece(thinking="m."),
        piece("Ye"),
        piece("s"),
        piece(tool_calls=[CALL]),
        last(prompt_eval_count=5, eval_count=9, total_duration=77),
    )
    assert events == [
        ReplyStart(model="qwen3:4b", created=1786082903),
        ReplyFields("ollama", {"created_at": TIME}),
        ThinkStart(0, "thinking"),
        ThinkChunk(0, "H"),
        ThinkChunk(0, "m."),
        ThinkEnd(0),
        ContentChunk(1, "Ye"),
        ContentChunk(1, "s"),
        ToolCallStart(2, "c1", "look"),
        BlockFields(2, "ollama", {"function": {"index": 0}}),
        ToolCallChunk(2, '{"where": "there", "n": 1.0}'),
        ToolCallEnd(2),
        UsageUpdate(
            Usage(
                input_tokens=5,
                output_tokens=9,
                raw={"total_duration": 77, "prompt_eval_count": 5, "eval_count": 9},
            )
        ),
        Finish("tool_calls", "stop"),
    ]


def test_whole_and_streamed_are_one_response() -> None:
    message = {"role": "assistant", "content": "Yes", "thinking": "Hm.", "tool_calls": [CALL]}
    totals: dict[str, Any] = {"prompt_eval_count": 5, "eval_count": 9}
    whole = read(json.dumps({**last(**totals), "message": message}).encode(), stream=False)
    streamed = fold(
        read_lines(piece(thinking="Hm."), piece("Y"), piece("es"), piece(tool_calls=[CALL]), last(**totals)),
        provider="ollama",
    )
    assert whole == streamed
    assert whole.blocks == (
        ReasoningBlock(text="Hm.", format="thinking"),
        TextBlock("Yes"),
        ToolCallBlock(
            id="c1",
            name="look",
            arguments='{"where": "there", "n": 1.0}',
            carried=Carried("ollama", {"function": {"index": 0}}),
        ),
    )


def test_that_an_id_was_missing_is_remembered() -> None:
    line = piece(tool_calls=[{"function": {"name": "look", "arguments": {}}}])
    response = fold(read_lines(line, last()))
    written = json.loads(DIALECT.encode_response(response, REQUEST))
    assert written["message"]["tool_calls"] == [{"function": {"name": "look", "arguments": {}}}]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({}, "{}"), (None, ""), ('{"a": 1}', '{"a": 1}'), ({"INVALID_JSON": "{broken"}, "{broken"), ([1], "[1]")],
    ids=["empty", "null", "a-string", "wrapped", "a-list"],
)
def test_arguments_become_text(arguments: Any, text: str) -> None:
    line = piece(tool_calls=[{"id": "c", "function": {"name": "f", "arguments": arguments}}])
    call = fold(read_lines(line, last())).blocks[0]
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == text


def test_thinking_that_resumes_is_a_block_of_its_own() -> None:
    events = read_lines(piece(thinking="a"), piece("b"), piece(thinking="c"), last("d"))
    blocks = fold(events).blocks
    thoughts = [ReasoningBlock(text=text, format="thinking") for text in "ac"]
    assert blocks == (thoughts[0], TextBlock("b"), thoughts[1], TextBlock("d"))
    # A message has one text of thinking, so that a stretch which is written begins a paragraph of it.
    again = ReasoningBlock(text="\n\nc", format="thinking")
    assert read(write_stream(events), stream=True).blocks == (thoughts[0], TextBlock("b"), again, TextBlock("d"))


def test_scores_and_further_fields_are_carried_once() -> None:
    scores = [{"token": "Y", "logprob": -0.1}]
    lines = (
        {**piece("Y"), "logprobs": scores, "remote_model": "m", "remote_host": "h"},
        {**piece("Y"), "logprobs": scores, "remote_model": "m", "remote_host": "h"},
        last(remote_model="m", remote_host="h"),
    )
    response = fold(read_lines(*lines), provider="ollama")
    assert response.carried == Carried(
        "ollama", {"created_at": TIME, "logprobs": scores * 2, "remote_model": "m", "remote_host": "h"}
    )
    assert read(write_stream(read_lines(*lines)), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


def test_fields_of_the_message_are_carried_and_come_back() -> None:
    events = read_lines(piece("x", images=["aGk="], mood="blue"), last())
    response = fold(events, provider="ollama")
    assert response.choice_carried == Carried("ollama", {"images": ["aGk="], "mood": "blue"})
    assert read(write_stream(events), stream=True) == response
    assert read(DIALECT.encode_response(response, REQUEST), stream=False) == response


@pytest.mark.parametrize(
    ("word", "reason"),
    [("stop", "stop"), ("length", "length"), ("load", "stop"), ("unload", "stop"), ("later", "unknown"), ("", "stop")],
)
def test_the_reason_for_the_end(word: str, reason: str) -> None:
    response = fold(read_lines(last("x", word)))
    assert (response.finish.reason, response.finish.raw) == (reason, word)


def test_a_word_nobody_knows_comes_back() -> None:
    events = read_lines(last("x", "later"))
    assert json.loads(write_stream(events).splitlines()[-1])["done_reason"] == "later"


def test_a_prompt_that_was_cached_has_no_count() -> None:
    usage = fold(read_lines(last("x", eval_count=4))).usage
    assert (usage.input_tokens, usage.output_tokens) == (None, 4)
    assert not fold(read_lines(last("x"))).usage.reported


def test_an_impossible_count_is_reported() -> None:
    events = read_lines(last("x", eval_count=-4))
    assert [event.degradation.what for event in events if isinstance(event, Degraded)] == ["usage.eval_count"]


def test_an_error_line_ends_a_stream_that_began_well() -> None:
    response = fold(read_lines(piece("a"), {"error": "llama runner crashed"}, last("never")))
    assert response.text == "a"
    assert isinstance(response.error, UpstreamRefused)
    assert (response.error.message, response.error.status) == ("llama runner crashed", 500)


def test_an_error_inside_a_whole_reply_is_one() -> None:
    error = read(b'{"error": {"message": "no", "type": "x"}}', stream=False).error
    assert isinstance(error, UpstreamRefused)
    assert error.message == "no"


@pytest.mark.parametrize(
    "body",
    [b"", b"null\n", b"[1]\n", b"<html>\n", b"hello", b'{"response": "x", "done": true}\n', b'{"message": "x"}\n'],
)
def test_what_is_no_reply_fails_once(body: bytes) -> None:
    events = events_of(body, stream=True)
    assert [type(event) for event in events] == [Failed]


def test_what_is_malformed_in_mid_stream_keeps_what_came_before() -> None:
    body = ndjson(piece("a")) + b'{"message": \n' + ndjson(last("b"))
    response = read(body, stream=True)
    assert response.text == "a"
    assert isinstance(response.error, MalformedReply)


@pytest.mark.parametrize(("lines", "what"), [((piece("a"),), "before its end"), ((), "before it began")])
def test_a_stream_without_its_end_is_broken(lines: tuple[dict[str, Any], ...], what: str) -> None:
    error = fold(read_lines(*lines)).error
    assert isinstance(error, BrokenStream)
    assert what in error.message


def test_the_last_line_needs_no_line_end() -> None:
    assert read(ndjson(piece("a"), last("b")).rstrip(b"\n"), stream=True).text == "ab"


def test_letters_that_are_no_text_are_mended() -> None:
    response = read(b'{"message": {"role": "assistant", "content": "a\\ud800b\xff"}, "done": true}', stream=False)
    assert response.text == "a\ufffdb\ufffd"


NAMES = [
    "message", "content", "thinking", "tool_calls", "function", "arguments", "name", "id",
    "done", "done_reason", "error", "model", "created_at", "eval_count", "logprobs",
]  # fmt: skip
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.binary(max_size=60) | any_json.map(lambda value: json.dumps(value).encode()), max_size=5))
def test_no_bytes_make_the_decoder_raise(payloads: list[bytes]) -> None:
    decoder = DIALECT.open_decoder(ROW)
    events = [event for payload in payloads for event in decoder.feed(Frame(payload))]
    events += decoder.finish()
    failed = [place for place, event in enumerate(events) if isinstance(event, Failed)]
    assert failed in ([], [len(events) - 1])
    response = fold(events)
    DIALECT.encode_response(response, REQUEST)
    write_stream(events)


def test_arguments_keep_their_digits_beside_a_field_that_nobody_knows() -> None:
    call = b'{"function":{"name":"f","unheard_of":1,"arguments":{"n": 1.0, "e": 1e3}}}'
    line = b'{"model":"m","message":{"role":"assistant","tool_calls":[%s]},"done":true}\n' % call
    arguments = [event.arguments for event in events_of(line, stream=True) if isinstance(event, ToolCallChunk)]
    assert arguments == ['{"n": 1.0, "e": 1e3}']


@pytest.mark.parametrize("levels", [194, 195])
def test_arguments_are_nested_as_deeply_as_any_json(levels: int) -> None:
    nested: Any = []
    for _ in range(levels - 1):
        nested = [nested]
    call = {"function": {"name": "f", "arguments": {"a": nested}}}
    failed = [event for event in read_lines(piece(tool_calls=[call]), last()) if isinstance(event, Failed)]
    assert bool(failed) == (levels > 194)


def test_a_letter_that_is_no_text_in_arguments_is_mended_and_reported() -> None:
    call = b'{"function":{"name":"f","arguments":{"a":"\xff"}}}'
    line = b'{"model":"m","message":{"role":"assistant","tool_calls":[%s]},"done":true}\n' % call
    events = events_of(line, stream=True)
    assert any(isinstance(event, Degraded) for event in events)
    assert ToolCallChunk(0, '{"a":"\ufffd"}') in events
