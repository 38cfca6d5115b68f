"""A frame of a stream that says no more than text, its end or usage is read in one go, and gives what reading it field by field gives."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.openai_chat.reply_in import MAX_CHOICES, ChatDecoder, Repetition
from bardo.streams.frames import Frame
from bardo.values.events import Event
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


class FieldByField(ChatDecoder):
    """Reads every frame field by field."""

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        return None


def events_of(decoder: ChatDecoder, frames: Sequence[Frame]) -> list[list[Event]]:
    """Return the events of each frame, and those of the end. Errors are equal by what they say."""
    decoder._repetition = Unrepeated()
    found = [*([*decoder.feed(frame)] for frame in frames), [*decoder.finish()]]
    return [[shown(event) for event in events] for events in found]


def shown(event: Event) -> Any:
    error = getattr(event, "error", None)
    return event if error is None else (type(error), str(error))


def check(frames: Sequence[Frame]) -> None:
    for excludes in (None, True):
        for returns in (False, True):
            options: dict[str, Any] = {"excludes_reasoning": excludes, "returns_details": returns}
            assert events_of(ChatDecoder(**options), frames) == events_of(FieldByField(**options), frames)


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
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_plain_frames_are_read_in_one_go(body: dict[str, Any]) -> None:
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
    "details": json.dumps(chunk({"reasoning_details": []})).encode(),
    "another choice": json.dumps(BODIES["text"]).encode().replace(b'"index": 0', b'"index": 1'),
    "the end of the stream": b"[DONE]",
}  # fmt: skip


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_what_is_more_than_text_is_read_field_by_field(data: bytes) -> None:
    assert ChatDecoder().read_plain_frame(Frame(data)) is None


def test_bytes_that_are_read_in_one_go_are_strict_json() -> None:
    for body in BODIES.values():
        data = json.dumps(body, ensure_ascii=False).encode()
        assert ChatDecoder().read_plain_frame(Frame(data)) is not None
        msgspec.json.decode(data)


def test_text_behind_a_call_is_read_field_by_field() -> None:
    call = chunk({"tool_calls": [{"index": 0, "id": "", "function": {"name": "f", "arguments": "{}"}}]})
    check([Frame(json.dumps(body).encode()) for body in (call, BODIES["text"], call, BODIES["the end"])])


def test_a_choice_too_many_is_refused_though_its_frame_is_plain() -> None:
    others = [{"index": number, "delta": {"content": "a"}} for number in range(1, MAX_CHOICES + 1)]
    check([Frame(json.dumps(body).encode()) for body in ({**chunk({}), "choices": others}, BODIES["text"])])
