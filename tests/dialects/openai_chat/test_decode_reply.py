"""Replies to events: text, thinking, finish, and everything that may go wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.streams.frames import Frame
from bardo.values.blocks import Carried, Opaque, ReasoningBlock, RefusalBlock, TextBlock, UnknownBlock
from bardo.values.errors import BrokenStream, EmptyReply, MalformedReply, UpstreamRefused
from bardo.values.events import ContentChunk, Failed, Finish, ReplyFields, ReplyStart, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.fold import fold
from dialects.openai_chat.chat import ROW, chunk, events, events_of, message, sse, streamed, whole, written_chunks

STOP = chunk({}, "stop")


def thought(text: str, style: str) -> ReasoningBlock:
    return ReasoningBlock(text=text, format=style)


def test_a_stream_is_a_start_blocks_and_a_finish() -> None:
    found = events(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "pl"}),
        chunk({"reasoning_content": "an"}),
        chunk({"content": "Hi"}),
        chunk({"content": "!"}),
        STOP,
    )
    assert found == [
        ReplyStart(id="r", model="m", created=7),
        ThinkStart(0, "reasoning_content"),
        ThinkChunk(0, "pl"),
        ThinkChunk(0, "an"),
        ThinkEnd(0),
        ContentChunk(1, "Hi"),
        ContentChunk(1, "!"),
        Finish("stop", "stop"),
    ]


THINKING: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "reasoning_content": ({"reasoning_content": "x", "content": "a"}, (thought("x", "reasoning_content"), TextBlock("a"))),
    "reasoning": ({"reasoning": "x", "content": "a"}, (thought("x", "reasoning"), TextBlock("a"))),
    "both, the same text": ({"reasoning": "x", "reasoning_content": "x"}, (thought("x", "reasoning_content"),)),
    "one of them null": ({"reasoning": "x", "reasoning_content": None}, (thought("x", "reasoning"),)),
    "one of them empty": ({"reasoning": "x", "reasoning_content": ""}, (thought("x", "reasoning"),)),
    "details as a string": ({"reasoning_details": "x", "content": "a"}, (thought("x", "reasoning_details"), TextBlock("a"))),
    "white space alone": ({"reasoning_content": "\n", "content": "a"}, (thought("\n", "reasoning_content"), TextBlock("a"))),
    "content null": ({"reasoning_content": "x", "content": None}, (thought("x", "reasoning_content"),)),
    "a list of parts": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}], "closed": True}, {"type": "text", "text": "a"}]},
        (thought("x", "content_list"), TextBlock("a")),
    ),
    "a thinking part as a string": (
        {"content": [{"type": "thinking", "thinking": "x"}, "a"]},
        (thought("x", "content_list"), TextBlock("a")),
    ),
    "a signed thinking part": (
        {"content": [{"type": "thinking", "thinking": "x", "signature": "s"}]},
        (ReasoningBlock(text="x", format="content_list", opaque=(Opaque("signature", "s", "content_list"),)),),
    ),
    "a part and a field with the same text": (
        {"reasoning_content": "x", "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "a"}]},
        (thought("x", "reasoning_content"), TextBlock("a")),
    ),
    "a part nobody knows": (
        {"content": [{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "b"}]},
        (TextBlock("a"), UnknownBlock("openai_chat", {"type": "reference", "reference_ids": [1]}), TextBlock("b")),
    ),
    "an object instead of text": ({"content": {"title": "T"}}, (TextBlock('{"title":"T"}'),)),
    "a refusal": ({"content": None, "refusal": "No."}, (RefusalBlock("No."),)),
    "an empty refusal": ({"content": "a", "refusal": ""}, (TextBlock("a"),)),
    "nothing": ({"content": None}, ()),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "blocks"), THINKING.values(), ids=THINKING.keys())
def test_a_message_says_the_same_whole_and_streamed(fields: dict[str, Any], blocks: tuple[Any, ...]) -> None:
    assert message(**fields).blocks == blocks
    assert streamed(chunk(fields), STOP).blocks == blocks
    assert streamed(chunk(fields, "stop")).blocks == blocks


def test_fields_may_take_turns_within_one_stretch() -> None:
    response = streamed(chunk({"reasoning": "a"}), chunk({"reasoning_content": "b"}), chunk({"reasoning": "c"}), STOP)
    assert response.blocks == (thought("abc", "reasoning"),)


def test_thinking_may_resume_after_text() -> None:
    response = streamed(*(chunk({name: "x"}) for name in ("reasoning", "content", "reasoning", "content")), STOP)
    assert response.blocks == (thought("x", "reasoning"), TextBlock("x")) * 2


def test_mistral_changes_between_lists_and_strings() -> None:
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "x"}], "closed": True}
    response = streamed(
        chunk({"content": [part]}),
        chunk({"content": [part, {"type": "text", "text": "a"}]}),
        chunk({"content": "b"}),
        STOP,
    )
    assert response.blocks == (thought("xx", "content_list"), TextBlock("ab"))


FINISHES = [
    ("stop", "stop"),
    ("STOP", "stop"),
    ("eos", "stop"),
    ("length", "length"),
    ("model_length", "length"),
    ("tool_calls", "tool_calls"),
    ("tool_call", "tool_calls"),
    ("function_call", "tool_calls"),
    ("content_filter", "refusal"),
    ("error", "error"),
    ("something new", "unknown"),
]


@pytest.mark.parametrize(("raw", "reason"), FINISHES)
def test_finish_reasons_keep_the_providers_word(raw: str, reason: str) -> None:
    assert message(raw, content="a").finish == streamed(chunk({"content": "a"}, raw)).finish == Finish(reason, raw)  # type: ignore[arg-type]


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize("raw", ["stop", "tool_calls", ""])
def test_a_reply_with_calls_is_finished_for_them(raw: str) -> None:
    assert message(raw, tool_calls=[CALL]).finish.reason == "tool_calls"


@pytest.mark.parametrize(("raw", "reason"), [("length", "length"), ("content_filter", "refusal"), ("odd", "unknown")])
def test_a_reply_with_calls_that_was_cut_says_so(raw: str, reason: str) -> None:
    assert message(raw, tool_calls=[CALL]).finish.reason == reason


def test_a_finish_reason_said_twice_is_told_once() -> None:
    found = events(chunk({"content": "a"}), STOP, chunk({"content": ""}, "stop", usage={"completion_tokens": 1}))
    assert [event for event in found if isinstance(event, Finish)] == [Finish("stop", "stop")]


def test_blocks_are_closed_before_the_finish() -> None:
    found = events(chunk({"reasoning": "x"}, "length"))
    assert found[-2:] == [ThinkEnd(0), Finish("length", "length")]


def test_choices_stand_apart() -> None:
    response = streamed(
        chunk({"content": "a"}, index=1),
        chunk({"content": "b"}, index=0),
        chunk({"content": "c"}, index=1),
        chunk({}, "stop", index=0),
        chunk({}, "length", index=1),
    )
    assert response.text == "b"
    assert [(one.text, one.finish.raw) for one in response.alternatives] == [("ac", "length")]


def test_perplexity_sends_delta_and_message_at_once() -> None:
    said = {"delta": {"role": "assistant", "content": ""}, "message": {"role": "assistant", "content": "Hi"}}
    body = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", **said}]}
    assert whole(body).text == "Hi"
    response = streamed(
        chunk({"content": "H"}, choice_message={"content": "H"}),
        chunk({"content": "i"}, choice_message={"content": "Hi"}),
        {**chunk({"content": ""}, "stop", choice_message={"content": "Hi"}), "object": "chat.completion.done"},
    )
    assert (response.text, response.error) == ("Hi", None)


def test_a_frame_without_choices_is_about_the_prompt_or_the_usage() -> None:
    prompt = {"id": "", "model": "", "created": 0, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
    response = streamed(prompt, chunk({"content": "a"}), STOP, usage)
    assert (response.id, response.model, response.created) == ("r", "m", 7)
    assert response.carried == Carried("openai_chat", {"prompt_filter_results": [{"prompt_index": 0}]})
    assert response.usage.total_tokens == 5
    assert response.error is None


def test_a_frame_of_fields_alone_is_no_error_once_there_are_choices() -> None:
    about = {"id": "r", "object": "chat.completion.chunk", "service_tier": "default"}
    response = streamed(chunk({"content": "a"}), about, chunk({"content": "b"}), STOP)
    assert (response.text, response.error) == ("ab", None)
    assert response.carried == Carried("openai_chat", {"service_tier": "default"})
    assert isinstance(streamed(about, chunk({"content": "a"}), STOP).error, MalformedReply)


def test_azures_choices_may_be_null_beside_usage() -> None:
    response = streamed(chunk({"content": "a"}, "stop"), {"choices": None, "usage": {"completion_tokens": 2}})
    assert (response.usage.output_tokens, response.error) == (2, None)


# Fields without a word here


def test_fields_are_told_when_they_are_new() -> None:
    found = events(
        chunk({"content": "a"}, system_fingerprint="x", p="abc"),
        chunk({"content": "b"}, system_fingerprint="x", p="de"),
        chunk({"content": "c"}, system_fingerprint="y", obfuscation="f"),
        STOP,
    )
    fields = [event.fields for event in found if isinstance(event, ReplyFields)]
    assert fields == [{"system_fingerprint": "x"}, {"system_fingerprint": "y"}]


def test_a_list_that_grows_is_told_by_what_is_new() -> None:
    response = streamed(*(chunk({"content": "a"}, citations=["u", "v"][:count]) for count in (1, 2, 2)), STOP)
    assert response.carried == Carried("openai_chat", {"citations": ["u", "v"]})


def test_log_probabilities_are_joined_even_when_they_repeat() -> None:
    scores = [{"token": "ha", "logprob": -0.1}]
    frames = [chunk({"content": "ha"}, choice_logprobs={"content": scores, "refusal": None}) for _ in range(3)]
    response = streamed(*frames, STOP)
    assert response.text == "hahaha"
    assert response.choice_carried == Carried("openai_chat", {"logprobs.content": scores * 3})


def test_fields_of_choice_and_message_are_carried_apart() -> None:
    response = streamed(
        chunk({"content": "a", "channel": "final"}, choice_stop_reason=None, choice_native_finish_reason="x"), STOP
    )
    assert response.choice_carried == Carried("openai_chat", {"native_finish_reason": "x", "message.channel": "final"})


def test_sound_and_its_transcript_are_joined() -> None:
    response = streamed(
        chunk({"audio": {"id": "a", "transcript": "Hel", "data": "AA"}}),
        chunk({"audio": {"transcript": "lo"}}),
        chunk({"audio": {"data": "BB", "expires_at": 9}}),
        STOP,
    )
    pieces = response.choice_carried.fields["message.audio"] if response.choice_carried else []
    assert "".join(piece.get("transcript", "") for piece in pieces) == "Hello"


def test_a_field_of_another_type_than_known_is_carried() -> None:
    response = message(content="a", reasoning={"effort": "low"})
    assert response.choice_carried == Carried("openai_chat", {"message.reasoning": {"effort": "low"}})


def test_further_fields_of_a_part_are_fields_of_the_message() -> None:
    response = message(content=[{"type": "text", "text": "a", "annotations": [{"url": "u"}]}])
    assert response.text == "a"
    assert response.choice_carried == Carried("openai_chat", {"message.annotations": [{"url": "u"}]})


# What goes wrong


def test_an_error_after_a_finish_reason_fails_the_reply_and_nothing_follows() -> None:
    broken = {**chunk({}, "stop"), "error": {"message": "Provider returned error", "code": 502}}
    found = events(chunk({"content": "a"}), STOP, broken, chunk({"content": "b"}))
    failure = found[-1]
    assert isinstance(failure, Failed)
    assert isinstance(failure.error, UpstreamRefused)
    assert (failure.error.message, failure.error.status, failure.error.provider) == (
        "Provider returned error",
        502,
        "p",
    )
    assert fold(found).text == "a"


def test_an_error_within_a_choice_fails_the_reply() -> None:
    choice = {"index": 0, "message": {"content": "half"}, "finish_reason": None, "error": {"code": 502, "message": "x"}}
    response = whole({"choices": [choice]})
    assert (response.text, response.finish.reason) == ("half", "error")
    assert isinstance(response.error, UpstreamRefused)
    assert response.error.provider == "p"


@pytest.mark.parametrize(
    "body", [{"error": {"message": "no", "status_code": 400}}, {"message": "no", "status_code": 400}]
)
def test_an_error_event_fails_the_reply(body: dict[str, Any]) -> None:
    stream = sse(chunk({"reasoning": "x"})) + b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n"
    found = events_of([stream], sse=True)
    assert found[-2] == ThinkEnd(0)
    assert isinstance(failure := found[-1], Failed)
    assert isinstance(failure.error, UpstreamRefused)
    assert (failure.error.message, failure.error.status) == ("no", 400)


BROKEN: dict[str, tuple[bytes, type[Exception]]] = {
    "cut after text": (sse(chunk({"content": "a"})), BrokenStream),
    "cut inside a frame": (sse(chunk({"content": "a"})) + b'data: {"id":"r","cho', BrokenStream),
    "cut inside the first frame": (b'data: {"id":"r","cho', MalformedReply),
    "no JSON in mid-stream": (sse(chunk({"content": "a"}), "oops"), MalformedReply),
    "a page": (b"<html>busy</html>", EmptyReply),
    "nothing": (b"", EmptyReply),
    "only comments": (b": ping\n\n: ping\n\n", EmptyReply),
    "a number": (sse("3"), MalformedReply),
    "no choices": (sse({"id": "r"}), MalformedReply),
    "choices of another type": (sse({"choices": {"0": {}}}), MalformedReply),
    "a choice of another type": (sse({"choices": ["a"]}), MalformedReply),
    "a delta of another type": (sse({"choices": [{"delta": ["a"]}]}), MalformedReply),
}


@pytest.mark.parametrize(("stream", "kind"), BROKEN.values(), ids=BROKEN.keys())
def test_what_broke_is_told_once_and_what_came_before_is_kept(stream: bytes, kind: type[Exception]) -> None:
    found = events_of([stream], sse=True)
    assert [type(event.error) for event in found if isinstance(event, Failed)] == [kind]
    assert isinstance(found[-1], Failed)
    assert fold(found).text == ("a" if b'"content": "a"' in stream else "")


ENDINGS: dict[str, bytes] = {
    "with the mark": sse(chunk({"content": "a"}, "stop"), "[DONE]"),
    "with space around the mark": sse(chunk({"content": "a"}, "stop")) + b"data:   [DONE]  \n\n",
    "without the mark": sse(chunk({"content": "a"}, "stop")),
    "without the last blank line": sse(chunk({"content": "a"}, "stop"))[:-2],
    "with the mark and no finish reason": sse(chunk({"content": "a"}), "[DONE]"),
    "with an empty frame": sse(chunk({"content": "a"}, "stop"), "", "[DONE]"),
}


@pytest.mark.parametrize("stream", ENDINGS.values(), ids=ENDINGS.keys())
def test_proper_ends(stream: bytes) -> None:
    response = fold(events_of([stream], sse=True))
    assert (response.text, response.error) == ("a", None)


def test_nothing_is_read_after_a_failure() -> None:
    from bardo.dialects.openai_chat import DIALECT

    decoder = DIALECT.open_decoder(ROW)
    assert isinstance(decoder.feed(Frame(b"oops"))[-1], Failed)
    assert list(decoder.feed(Frame(json.dumps(chunk({"content": "a"})).encode()))) == []
    assert list(decoder.finish()) == []


def test_log_probabilities_that_are_one_number_are_written_in_an_object() -> None:
    # OpenRouter gives the sum alone, and OpenAI's library takes every `logprobs` for an object.
    found = events(chunk({"content": "a"}, choice_logprobs=-1.5), chunk({}, "stop"))
    assert fold(found).choice_carried == Carried("openai_chat", {"logprobs.value": -1.5})
    assert {"value": -1.5} in [one["choices"][0].get("logprobs") for one in written_chunks(found)]


def test_a_call_that_the_native_reason_says_was_cut_ends_by_its_length() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a'}}
    choice = {"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    for native, reason in (("max_output_tokens", "length"), ("completed", "tool_calls")):
        body = json.dumps({"id": "r", "choices": [{**choice, "native_finish_reason": native}]}).encode()
        assert fold(events_of([body], sse=False)).finish.reason == reason
