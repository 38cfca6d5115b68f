"""Whatever arrives: a request is refused with the caller's error or read, a reply never raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bardo.dialects.gemini import DIALECT
from bardo.streams.frames import Frame
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.events import Event, Failed
from bardo.values.fold import fold
from bardo.values.wire import Arrival
from dialects.gemini.support import ROW

ARRIVAL = Arrival(model="gemini-2.5-flash")
LEAVES = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=5)
)


def named(*names: str) -> Callable[[Any], Any]:
    return lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(names), inner, max_size=5)


REQUEST_NAMES = (
    *("contents", "parts", "role", "text", "thought", "thoughtSignature", "functionCall", "functionResponse", "name"),
    *("id", "args", "response", "inlineData", "fileData", "mimeType", "data", "systemInstruction", "tools"),
    *("functionDeclarations", "parameters", "type", "properties", "items", "nullable", "anyOf", "generationConfig"),
    *(
        "thinkingConfig",
        "thinkingBudget",
        "topK",
        "stopSequences",
        "toolConfig",
        "functionCallingConfig",
        "mode",
        "bardo",
    ),
)
REPLY_NAMES = (
    *("candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args", "id"),
    *("finishReason", "index", "usageMetadata", "promptTokenCount", "thoughtsTokenCount", "totalTokenCount", "error"),
    *(
        "modelVersion",
        "responseId",
        "createTime",
        "promptFeedback",
        "blockReason",
        "groundingMetadata",
        "logprobsResult",
    ),
)
REQUESTS = some.recursive(LEAVES, named(*REQUEST_NAMES), max_leaves=25)
REPLIES = some.recursive(LEAVES, named(*REPLY_NAMES), max_leaves=25)
PARTS = some.lists(some.dictionaries(some.sampled_from(REPLY_NAMES), REPLIES, max_size=3), max_size=3)


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
    assert fold(events).bardo == {}
    return events


@settings(max_examples=150, deadline=None)
@given(some.dictionaries(some.sampled_from(REQUEST_NAMES), REQUESTS, max_size=4))
def test_any_object_is_read_or_refused(value: Any) -> None:
    try_request(msgspec.json.encode({"contents": [{"parts": [{"text": "x"}]}], **value}))


@settings(max_examples=150, deadline=None)
@given(PARTS)
def test_any_parts_are_read_or_refused(parts: Any) -> None:
    try_request(msgspec.json.encode({"contents": [{"role": "model", "parts": parts}]}))


@settings(max_examples=100, deadline=None)
@given(some.binary(max_size=60))
def test_any_bytes_are_refused(body: bytes) -> None:
    try_request(body)


@settings(max_examples=150, deadline=None)
@given(some.lists(REPLIES, max_size=4))
def test_any_reply_is_read_to_an_end(payloads: list[Any]) -> None:
    assert try_reply([msgspec.json.encode(payload) for payload in payloads])


@settings(max_examples=150, deadline=None)
@given(some.lists(PARTS, max_size=4))
def test_any_parts_of_a_reply_are_read_to_an_end(chunks: list[Any]) -> None:
    payloads = [{"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]} for parts in chunks]
    events = try_reply([msgspec.json.encode(payload) for payload in payloads])
    encoder = DIALECT.open_encoder(DIALECT.decode_request(b'{"contents":[{"parts":[]}]}', ARRIVAL), Arrival())
    assert b"".join([*(piece for event in events for piece in encoder.feed(event)), *encoder.finish()])


@settings(max_examples=100, deadline=None)
@given(some.lists(some.binary(max_size=60), max_size=3))
def test_any_bytes_of_a_reply_are_read_to_an_end(frames: list[bytes]) -> None:
    assert try_reply(frames)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"seed":NaN}}',
        b'{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"topK":1e400}}',
        b'{"contents":[{"parts":[{"text":"\\ud800"}]}]}',
    ],
    ids=["brackets", "NaN", "infinity", "surrogate"],
)
def test_hostile_bodies_are_invalid(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        DIALECT.decode_request(body, ARRIVAL)


def test_a_deep_part_is_read_or_refused() -> None:
    try_request(b'{"contents":' + b'{"parts":' * 400 + b"1" + b"}" * 401)


def test_a_schema_of_absurd_depth_is_read_or_refused() -> None:
    deep = b'{"items":' * 900 + b"{}" + b"}" * 900
    tool = b'{"functionDeclarations":[{"name":"f","parameters":' + deep + b"}]}"
    try_request(b'{"contents":[{"parts":[{"text":"x"}]}],"tools":[' + tool + b"]}")


def test_a_deep_reply_is_malformed() -> None:
    assert isinstance(try_reply([b'{"candidates":' + b"[" * 100_000])[-1], Failed)


def test_many_calls_are_matched_in_linear_time() -> None:
    calls: list[dict[str, Any]] = [{"functionCall": {"name": "f", "id": str(number)}} for number in range(20_000)]
    results = [{"functionResponse": {"name": "f", "id": str(number)}} for number in reversed(range(20_000))]
    body = msgspec.json.encode({"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]})
    request = DIALECT.decode_request(body, ARRIVAL)
    assert len(request.messages[1].blocks) == 20_000
