"""Whatever arrives: a request is refused with the caller's error or read, a reply never raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bardo.streams.frames import Frame
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.events import Event, Failed
from bardo.values.fold import fold
from dialects.gemini_interactions.replies import ARRIVAL, DIALECT, REQUEST, ROW, write_stream

WORDS = (
    *(
        "text",
        "thought",
        "model_output",
        "function_call",
        "function_result",
        "user_input",
        "image",
        "google_search_call",
    ),
    *("thought_summary", "thought_signature", "arguments_delta", "text_annotation_delta", "completed", "failed"),
)
KINDS = ("interaction.created", "step.start", "step.delta", "step.stop", "interaction.completed", "error")
LEAVES = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=5)
    | some.sampled_from(WORDS)
)


def named(*names: str) -> Callable[[Any], Any]:
    return lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(names), inner, max_size=5)


REQUEST_NAMES = (
    *("input", "type", "content", "text", "summary", "signature", "call_id", "id", "name", "arguments", "result"),
    *("tools", "parameters", "generation_config", "tool_choice", "allowed_tools", "mode", "thinking_level", "seed"),
    *("stop_sequences", "response_format", "response_mime_type", "mime_type", "schema", "data", "uri", "bardo"),
    *("system_instruction", "agent", "stream", "store"),
)
REPLY_NAMES = (
    *("id", "model", "status", "created", "steps", "usage", "type", "content", "text", "summary", "signature", "name"),
    *(
        "arguments",
        "index",
        "delta",
        "step",
        "interaction",
        "metadata",
        "total_usage",
        "total_thought_tokens",
        "errors",
    ),
    *("total_output_tokens", "total_tokens", "annotations", "error", "code", "message", "continues", "call_id"),
)
REQUESTS = some.recursive(LEAVES, named(*REQUEST_NAMES), max_leaves=25)
REPLIES = some.recursive(LEAVES, named(*REPLY_NAMES), max_leaves=25)
STEPS = some.lists(
    some.fixed_dictionaries({"type": some.sampled_from(WORDS)}, optional=dict.fromkeys(REPLY_NAMES[7:14], REPLIES)),
    max_size=3,
)
FRAMES = some.fixed_dictionaries(
    {"event_type": some.sampled_from(KINDS), "index": some.integers(0, 2)},
    optional={
        "step": some.fixed_dictionaries(
            {"type": some.sampled_from(WORDS)}, optional={"summary": REPLIES, "text": REPLIES}
        ),
        "delta": some.fixed_dictionaries(
            {"type": some.sampled_from(WORDS)},
            optional=dict.fromkeys(("text", "content", "arguments", "mood"), REPLIES),
        ),
        "interaction": some.dictionaries(some.sampled_from(REPLY_NAMES), REPLIES, max_size=4),
        "metadata": REPLIES,
    },
)


def try_request(body: bytes) -> None:
    try:
        request = DIALECT.decode_request(body, ARRIVAL)
    except CallerError:
        return
    msgspec.json.decode(DIALECT.encode_request(request, ROW).body)


def try_reply(frames: list[bytes]) -> list[Event]:
    decoder = DIALECT.open_decoder(ROW)
    events = [event for data in frames for event in decoder.feed(Frame(data))]
    events += decoder.finish()
    assert [event for event in events if isinstance(event, Failed)] in ([], events[-1:])
    response = fold(events)
    assert write_stream(events)
    assert DIALECT.encode_response(response, REQUEST)
    return events


@settings(max_examples=150, deadline=None)
@given(some.dictionaries(some.sampled_from(REQUEST_NAMES), REQUESTS, max_size=4))
def test_any_object_is_read_or_refused(value: Any) -> None:
    try_request(msgspec.json.encode({"model": "m", "input": "x", **value}))


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_any_steps_are_read_or_refused(steps: Any) -> None:
    try_request(msgspec.json.encode({"model": "m", "input": steps}))


@settings(max_examples=100, deadline=None)
@given(some.binary(max_size=60))
def test_any_bytes_are_refused(body: bytes) -> None:
    try_request(body)


@settings(max_examples=150, deadline=None)
@given(some.lists(REPLIES, max_size=4))
def test_any_reply_is_read_to_an_end(payloads: list[Any]) -> None:
    assert try_reply([msgspec.json.encode(payload) for payload in payloads])


@settings(max_examples=150, deadline=None)
@given(STEPS, REPLIES)
def test_any_steps_of_a_reply_are_read_to_an_end(steps: Any, usage: Any) -> None:
    assert try_reply(
        [msgspec.json.encode({"object": "interaction", "status": "completed", "steps": steps, "usage": usage})]
    )


@settings(max_examples=200, deadline=None)
@given(some.lists(FRAMES, max_size=6))
def test_any_events_are_read_to_an_end(frames: list[Any]) -> None:
    assert try_reply([msgspec.json.encode(frame) for frame in frames])


@settings(max_examples=100, deadline=None)
@given(some.lists(some.binary(max_size=60), max_size=3))
def test_any_bytes_of_a_reply_are_read_to_an_end(frames: list[bytes]) -> None:
    assert try_reply(frames)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"model":"m","input":"x","generation_config":{"temperature":NaN}}',
        b'{"model":"m","input":"x","generation_config":{"seed":1e400}}',
        b'{"model":"m","input":"\\ud800"}',
        b'{"model":"m","input":' + b'{"type":"text","content":' * 400 + b"1" + b"}" * 401,
    ],
    ids=["brackets", "NaN", "infinity", "surrogate", "deep"],
)
def test_hostile_bodies_are_invalid(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        DIALECT.decode_request(body, ARRIVAL)


def test_a_deep_reply_is_malformed() -> None:
    assert isinstance(try_reply([b'{"steps":' + b"[" * 100_000])[-1], Failed)
