"""A whole body that is read in one go says the same, and sends the same bytes, as one that is read as frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.reasoning.control import observation
from bardo.replies.reply_reader import ReplyHandling, ReplyReader, row_reader
from bardo.replies.reply_stages import WithoutReasoning
from bardo.replies.strict_frames import EventsAndBytes
from bardo.streams.frames import MAX_FRAME_BYTES
from bardo.values.events import Event, ReplyStart
from bardo.values.response import Response
from bardo.values.secrets import secrets_of
from dialects.openai_chat.test_chat_recordings import ALL, row_of
from recordings import Recording, each_recording

STAMP = ReplyStart(id="req_1", model="m", created=1)
KEY = "sk-ant-0123456789abcdef"
Options = Callable[[], dict[str, Any]]
OPTIONS: dict[str, Options] = {
    "forwarded": lambda: {"forward": True},
    "translated": dict,
    "without thinking": lambda: {"thinking": WithoutReasoning()},
    "with a secret": lambda: {"forward": True, "secrets": secrets_of((KEY,))},
    "with little room": lambda: {"forward": True, "most_text": 5},
}
_FOUND = builtin().provider("openai-chat")
assert _FOUND is not None
ROW = _FOUND
BODY: dict[str, Any] = {
    "id": "",
    "model": "m",
    "choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "note": "of the caller"},
}
BODIES = {
    "plain": BODY,
    "with spaces": BODY,
    "quoting a key beside the answer": {**BODY, "usage": {**BODY["usage"], "note": KEY}},
    "with a key as the answer": {**BODY, "choices": [{"message": {"content": KEY}, "finish_reason": "stop"}]},
    "empty": {**BODY, "choices": [{"message": {"content": ""}, "finish_reason": "stop"}]},
    "without an end": {**BODY, "choices": [{"message": {"content": "Hello."}}]},
    "thinking in tags": {**BODY, "choices": [{"message": {"content": "<think>a</think>b"}, "finish_reason": "stop"}]},
}


def as_frames(reader: ReplyReader, body: bytes) -> EventsAndBytes:
    pieces = [*reader.read(body, joined=False), *reader.read_rest()]
    return [event for events, _ in pieces for event in events], b"".join([raw for _, raw in pieces])


def said(events: Sequence[Event]) -> list[str]:
    """Return events as text: errors are equal by what they say."""
    return [repr(event) for event in events]


def check(body: bytes, row: Any, *, streamed: bool, options: Options) -> Response:
    quick, slow = (
        row_reader(row, streamed=streamed, model="m", handling=ReplyHandling(stamp=STAMP, **options()))
        for _ in range(2)
    )
    events, sent = quick.read_whole(body)
    expected, sent_as_frames = as_frames(slow, body)
    assert said(events) == said(expected)
    assert sent == sent_as_frames
    assert repr(quick.failure) == repr(slow.failure)
    one, other = quick.fold.response(), slow.fold.response()
    for name in Response.__struct_fields__:
        if name != "error":
            assert getattr(one, name) == getattr(other, name), name
    assert observation(one.reasoning) == observation(other.reasoning)
    known = [one.fold_with_reasoning for one in (quick, slow)]
    assert repr(known[0].response()) == repr(known[1].response())
    assert known[0].whole == known[1].whole
    states = ("lacks_ids", "switches", "over", "complete", "reframed", "thinking_place")
    assert [getattr(quick, name) for name in states] == [getattr(slow, name) for name in states]
    begun = ("begun", "has_content", "has_token")
    assert [getattr(quick, name) for name in begun] == [getattr(slow, name) for name in begun]
    assert quick.fields_to_return() == slow.fields_to_return()
    return one


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@each_recording(ALL)
def test_every_recording_says_the_same(recording: Recording, options: Options) -> None:
    check(recording.body, row_of(recording), streamed=recording.framing == "sse", options=options)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "said to be a stream"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_our_own_say_the_same(name: str, options: Options, streamed: bool) -> None:
    body = json.dumps(BODIES[name], indent=2 if name == "with spaces" else None).encode()
    check(b"\n " + body if name == "with spaces" else body, ROW, streamed=streamed, options=options)


def test_a_body_that_is_too_large_is_refused_in_both_ways() -> None:
    text = "x" * MAX_FRAME_BYTES
    body = json.dumps({**BODY, "choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
    assert check(body, ROW, streamed=False, options=OPTIONS["forwarded"]).error is not None


_QUOTING = f"The key is {KEY}."
_MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
OF_DIALECTS: dict[str, dict[str, Any]] = {
    "openai-chat": {**BODY, "choices": [{"message": {"content": _QUOTING}, "finish_reason": "stop"}]},
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
            {"type": "text", "text": _QUOTING},
        ],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    },
    "openai": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [{**_MESSAGE, "content": [{"type": "output_text", "text": _QUOTING, "annotations": []}]}],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": _QUOTING}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    },
    "cohere": {
        "id": "c1",
        "message": {"role": "assistant", "content": [{"type": "text", "text": _QUOTING}]},
        "finish_reason": "COMPLETE",
        "usage": {"tokens": {"input_tokens": 3, "output_tokens": 2}},
    },
    "bedrock": {
        "output": {"message": {"role": "assistant", "content": [{"text": _QUOTING}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("preset", OF_DIALECTS)
def test_bodies_of_every_dialect_say_the_same_also_where_they_quote_a_key(preset: str, options: Options) -> None:
    row = builtin().provider(preset)
    assert row is not None
    response = check(json.dumps(OF_DIALECTS[preset]).encode(), row, streamed=False, options=options)
    if "most_text" not in options():
        assert response.text.startswith("The key is")
