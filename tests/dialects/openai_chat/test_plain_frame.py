"""A frame that any strict reader can read, without calls, is read before it is mended, and gives what reading any frame gives."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.openai_chat.fast import Repetition
from bardo.dialects.openai_chat.reply_in import MAX_CHOICES, ChatDecoder
from bardo.streams.frames import Frame
from bardo.values.events import ContentChunk, Event
from dialects.openai_chat.chat import chunk
from dialects.openai_chat.test_chat_recordings import STREAMS
from dialects.openai_chat.test_plain_reply import NAMES, VALUES
from recordings import Recording, each_recording
from streams.test_sse import frames_of

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
THOUGHT = {"content": None, "reasoning_content": "Hm."}


class Unrepeated(Repetition):
    """Reads every frame by itself."""

    def read(self, data: bytes) -> Sequence[Event] | None:
        return None


def events_of(decoder: ChatDecoder, frames: Sequence[Frame], *, tries_plain: bool) -> list[list[Event]]:
    """Return the events of each frame, and those of the end. Errors are equal by what they say."""
    decoder._repetition = Unrepeated()
    found = []
    for frame in frames:
        plain = decoder.read_plain_frame(frame) if tries_plain else None
        found.append([*(decoder.feed(frame) if plain is None else plain)])
    found.append([*decoder.finish()])
    return [[shown(event) for event in events] for events in found]


def shown(event: Event) -> Any:
    error = getattr(event, "error", None)
    return event if error is None else (type(error), str(error))


def check(frames: Sequence[Frame]) -> None:
    for excludes in (None, True):
        for returns in (False, True):
            options: dict[str, Any] = {"excludes_reasoning": excludes, "returns_details": returns}
            plain = events_of(ChatDecoder(**options), frames, tries_plain=True)
            assert plain == events_of(ChatDecoder(**options), frames, tries_plain=False)


@each_recording(STREAMS)
def test_every_recording_says_the_same(recording: Recording) -> None:
    check(frames_of([recording.body]))


BODIES = {
    "the role": chunk({"role": "assistant", "content": ""}),
    "text": chunk({"content": "Hello."}),
    "thinking": chunk(THOUGHT),
    "thinking elsewhere": chunk({"reasoning": "Hm."}),
    "nothing": chunk({}),
    "the end": chunk({}, "stop"),
    "the end with text": chunk({"content": "!"}, "length"),
    "usage": {**chunk({}), "choices": [], "usage": USAGE},
    "usage at the end": chunk({}, "stop", usage=USAGE),
    "a fingerprint": chunk({"content": "a"}, system_fingerprint="fp", service_tier=None),
    "filler": chunk({"content": "a"}, obfuscation="xyz", p="ab"),
    "details": chunk({"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}]}),
    "another choice": chunk({"content": "a"}, index=1),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_frames_that_are_strict_json_without_calls_are_plain(body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    assert ChatDecoder().read_plain_frame(Frame(data)) is not None
    check([Frame(data), Frame(data)])


CHANGES = st.lists(st.tuples(st.sampled_from(["reply", "choice", "delta", "usage"]), NAMES, VALUES), max_size=2)
STREAM = st.lists(st.tuples(st.sampled_from(sorted(BODIES)), st.just([]) | CHANGES), min_size=1, max_size=6)


@given(STREAM)
def test_whatever_is_added_or_replaced_says_the_same(stream: list[tuple[str, list[tuple[str, str, Any]]]]) -> None:
    frames = []
    for name, changes in stream:
        body: dict[str, Any] = copy.deepcopy(BODIES[name])
        choice: dict[str, Any] = next(iter(body["choices"]), {"delta": {}})
        places = {"reply": body, "choice": choice, "delta": choice["delta"], "usage": body.get("usage")}
        for place, field, value in changes:
            target = places[place]
            if isinstance(target, dict):
                target[field] = value
        frames.append(Frame(json.dumps(body).encode()))
    check(frames)


OTHERS = {
    "not JSON": b"{",
    "no UTF-8": json.dumps(BODIES["text"]).encode().replace(b"Hello", b"\xff"),
    "no number": json.dumps(BODIES["usage"]).encode().replace(b"5", b"NaN"),
    "nested deeply": json.dumps(BODIES["usage"]).encode().replace(b'"total_tokens"', b'"x": ' + b"[" * 300 + b"]" * 300 + b',"y"'),
    "a call": json.dumps(chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})).encode(),
    "an older call": json.dumps(chunk({"function_call": {"arguments": "{}"}})).encode(),
    "a field without a name": json.dumps(chunk({"content": "a"}, unheard_of=1)).encode(),
    "the end of the stream": b"[DONE]",
}  # fmt: skip


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_other_frames_are_not_plain(data: bytes) -> None:
    assert ChatDecoder().read_plain_frame(Frame(data)) is None


def test_plain_frames_are_strict_json() -> None:
    for body in BODIES.values():
        data = json.dumps(body, ensure_ascii=False).encode()
        assert ChatDecoder().read_plain_frame(Frame(data)) is not None
        msgspec.json.decode(data)


def test_text_behind_a_call_says_the_same() -> None:
    call = chunk({"tool_calls": [{"index": 0, "id": "", "function": {"name": "f", "arguments": "{}"}}]})
    check([Frame(json.dumps(body).encode()) for body in (call, BODIES["text"], call, BODIES["the end"])])


def test_a_choice_too_many_is_refused_though_its_frame_is_plain() -> None:
    others = [{"index": number, "delta": {"content": "a"}} for number in range(1, MAX_CHOICES + 1)]
    check([Frame(json.dumps(body).encode()) for body in ({**chunk({}), "choices": others}, BODIES["text"])])


def test_a_frame_that_repeats_a_call_is_not_plain_though_it_says_nothing_new() -> None:
    empty = Frame(json.dumps(chunk({"content": "a", "tool_calls": [{"index": 0, "function": {}}]})).encode())
    decoder = ChatDecoder()
    for _ in range(3):
        assert decoder.read_plain_frame(empty) is None
        decoder.feed(empty)


def test_a_frame_that_repeats_text_is_plain() -> None:
    frame = Frame(json.dumps(chunk({"content": "a"})).encode())
    decoder = ChatDecoder()
    assert [decoder.read_plain_frame(frame) for _ in range(3)][-1] == (ContentChunk(0, "a"),)
