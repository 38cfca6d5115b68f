"""The hot path says what the general path says, whatever a stream repeats, and is taken where it matters."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.dialects.openai_chat.fast import Repetition, learn
from bardo.dialects.openai_chat.reply_in import ChatDecoder
from bardo.streams.frames import Frame
from bardo.values.events import ContentChunk, Event
from dialects.openai_chat.chat import chunk, events_of_frames


class Never(Repetition):
    """Reads every frame the general way."""

    def read(self, data: bytes) -> Sequence[Event] | None:
        return None


class Counting(Repetition):
    """Counts the frames that were not read the general way."""

    hits = 0

    def read(self, data: bytes) -> Sequence[Event] | None:
        events = super().read(data)
        self.hits += events is not None
        return events


def decoder_with(kind: type[Repetition]) -> ChatDecoder:
    decoder = ChatDecoder(provider="p")
    decoder._repetition = kind()
    return decoder


def frames(*bodies: Any) -> list[Frame]:
    return [Frame(packed(body)) for body in bodies]


def packed(body: Any) -> bytes:
    """Write JSON without spaces, as the servers do."""
    return json.dumps(body, separators=(",", ":")).encode()


def hits(*bodies: Any) -> int:
    decoder = decoder_with(Counting)
    found = events_of_frames(decoder, frames(*bodies))
    assert found == events_of_frames(decoder_with(Never), frames(*bodies))
    assert isinstance(decoder._repetition, Counting)
    return decoder._repetition.hits


def detail(text: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}


WORDS = ["one", " two", "\n", "“drei”", '"4"', "\\", "five\u2028", "😀"]
SHAPES: dict[str, Callable[[str], dict[str, Any]]] = {
    "content": lambda word: chunk({"content": word}),
    "role and nulls": lambda word: chunk({"role": "assistant", "content": word, "tool_calls": None}, usage=None),
    "reasoning_content": lambda word: chunk({"content": None, "reasoning_content": word}),
    "both plain fields": lambda word: chunk({"reasoning": word, "reasoning_content": word}),
    "details": lambda word: chunk({"content": "", "reasoning": word, "reasoning_details": [detail(word)]}),
    "a summary": lambda word: chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": word, "index": 0}]}),
    "flags and lists": lambda word: chunk({"content": word}, sensitive=False, citations=["a", "b"], choice_stop=None),
    "filler": lambda word: chunk({"content": word}, obfuscation="x" * (len(word) * 7 % 5)),
    "Mistral's list": lambda word: chunk(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": word}], "closed": True}]}, p="ab" * len(word)
    ),
    "arguments": lambda word: chunk({"tool_calls": [{"index": 0, "function": {"arguments": word}}]}),
    "a refusal": lambda word: chunk({"refusal": word}),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_ordinary_streams_are_read_the_short_way(shape: Callable[[str], dict[str, Any]]) -> None:
    bodies = [chunk(), *(shape(word) for word in WORDS * 3), chunk({}, "stop")]
    assert hits(*bodies) >= len(WORDS) * 3 - 4


def test_two_shapes_in_turns_are_both_known() -> None:
    shapes = (SHAPES["reasoning_content"], lambda word: chunk({"role": "assistant", "reasoning_content": word}))
    assert hits(*(shapes[place % 2](word) for place, word in enumerate(WORDS * 4)), chunk({}, "stop")) >= 26


def test_frames_that_say_nothing_are_known_again() -> None:
    assert hits(chunk({"content": "a"}), *[chunk({})] * 9, chunk({"content": "b"}), chunk({}, "stop")) >= 8


def test_a_stream_that_never_repeats_costs_a_few_lessons_only(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[bytes] = []
    monkeypatch.setattr("bardo.dialects.openai_chat.fast.learn", lambda data, text: lessons.append(data))
    bodies = [chunk({"content": word}, created=number) for number, word in enumerate(WORDS * 20)]
    events_of_frames(decoder_with(Repetition), frames(*bodies))
    assert len(lessons) <= 8


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chunk({"role": "assistant", "content": "assistant"}), "assistant"),
        (chunk({"content": "content"}), "content"),
        (chunk({"content": "m"}), "m"),
        (chunk({"content": "a"}, note="a"), "a"),
        (chunk({"content": "a", "text": "a"}), "a"),
        (chunk({"content": [{"type": "text", "text": "a"}, {"type": "x", "text": "a"}]}), "a"),
    ],
)
def test_a_text_that_also_stands_elsewhere_is_no_lesson(body: dict[str, Any], text: str) -> None:
    assert learn(packed(body), text) is None


def test_what_only_looks_the_same_is_read_again() -> None:
    known = learn(packed(chunk({"content": "a"})), "a")
    assert known is not None
    body = packed(chunk({"content": "xyz"}))
    assert known.text(body) == "xyz"
    for other in (
        body.replace(b'"xyz"', b"null"),
        body.replace(b'"xyz"', b'"x","reasoning":"y"'),
        body.replace(b'"xyz"', b'"\\ud800"'),
        body.replace(b'"xyz"', b'"\xff"'),
        body.replace(b'"created":7', b'"created":8'),
        body[:-1],
        body + b" ",
        b"",
    ):
        assert known.text(other) is None


def test_text_in_two_places_must_be_the_same() -> None:
    known = learn(packed(SHAPES["details"]("ab")), "ab")
    assert known is not None
    assert known.text(packed(SHAPES["details"]("other"))) == "other"
    differs = chunk({"content": "", "reasoning": "cd", "reasoning_details": [detail("ef")]})
    assert known.text(packed(differs)) is None


def test_later_frames_of_a_block_go_where_the_first_went() -> None:
    bodies = [chunk({"content": "a"}, index=1), chunk({"content": "b"}, index=1), chunk({"content": "c"}, index=1)]
    found = events_of_frames(decoder_with(Repetition), frames(*bodies))
    assert [event for event in found if isinstance(event, ContentChunk)] == [ContentChunk(0, text, 1) for text in "abc"]


words = st.sampled_from([*WORDS, "", "assistant", "m", "content", "{", "}"])
deltas = st.one_of(
    words.map(lambda word: {"content": word}),
    words.map(lambda word: {"role": "assistant", "content": word}),
    words.map(lambda word: {"reasoning": word, "reasoning_content": word}),
    words.map(lambda word: {"content": "", "reasoning_content": word}),
    words.map(lambda word: {"reasoning": word, "reasoning_details": [detail(word)]}),
    words.map(lambda word: {"reasoning_details": [{**detail(""), "signature": word}]}),
    words.map(lambda word: {"reasoning_details": [{"type": "reasoning.summary", "summary": word, "index": 0}]}),
    words.map(lambda word: {"reasoning_details": [{"summary": "\n\n" + word, "index": 0, "part": 1}]}),
    words.map(lambda word: {"tool_calls": [{"index": 0, "function": {"arguments": word}}]}),
    words.map(lambda word: {"tool_calls": [{"index": 0, "id": word, "function": {"name": "f", "arguments": ""}}]}),
    words.map(lambda word: {"tool_calls": [{"index": 1, "id": word}]}),
    words.map(lambda word: {"refusal": word}),
    st.just({}),
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "system_fingerprint": st.sampled_from("xy"),
        "p": words,
        "tags": st.sampled_from([[], ["a"], ["a", "b"]]),
    },
)
chunks = st.builds(
    lambda delta, finish, index, more, logprobs: chunk(delta, finish, index=index, choice_logprobs=logprobs, **more),
    deltas,
    st.sampled_from([None] * 9 + ["stop"]),
    st.sampled_from([0, 0, 0, 1]),
    fields,
    st.sampled_from([None, None, {"content": [1]}]),
)
# Runs of one shape are what the hot path lives on.
runs = st.lists(st.tuples(chunks, st.integers(1, 4)), max_size=8).map(
    lambda given: [one for one, times in given for _ in range(times)]
)


@given(runs)
@example([chunk({"content": "one"}, "stop")] * 3)
@example([chunk({"content": "one"}), chunk({"tool_calls": [{"index": 0, "id": "c"}]}), chunk({"content": "two"})] * 2)
def test_both_paths_say_the_same(bodies: list[dict[str, Any]]) -> None:
    hits(*bodies)
