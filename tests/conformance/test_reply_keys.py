"""Every key that all recorded replies of a dialect have is in bardo's replies of that dialect, whole and in each kind of event."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from botocore import eventstream  # type: ignore[import-untyped]

from bardo.dialects import dialect
from bardo.replies.written_tokens import MeasuredTime
from bardo.values.blocks import Opaque
from bardo.values.events import (
    ContentChunk,
    Event,
    Finish,
    OpaqueState,
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
from bardo.values.request import Request
from bardo.values.usage import Usage, UsageDetails
from bardo.values.wire import Arrival
from conformance.replies import reply_of
from recordings import OWN, RECORDINGS, rows
from support.offenders import offenders

Keys = dict[str, list[frozenset[str]]]
MAKERS = {
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
    "anthropic_messages": "anthropic-messages",
    "gemini": "gemini",
    "gemini_interactions": "gemini-interactions",
    "ollama": "ollama",
    "cohere": "cohere",
    "bedrock_converse": "bedrock-converse",
}
"""The folder with the replies of the dialect's own maker: other servers leave keys out."""
NOT_WRITTEN = {
    # Padding that hides from who listens how long a piece is.
    ("bedrock_converse", "p"),
    # The name of a configuration of OpenAI's own servers; their library takes a reply without it.
    ("openai_chat", "system_fingerprint"),
    # Counts that nobody gave: written as 0 they would say that there were none.
    ("openai_chat", "accepted_prediction_tokens"),
    ("openai_chat", "rejected_prediction_tokens"),
    ("openai_chat", "audio_tokens"),
}
NOT_KNOWN_YET = {("gemini", "chunk", "usageMetadata")}
"""Google counts in each chunk; a provider of another dialect does so at the end."""
USAGE = Usage(
    input_tokens=20,
    output_tokens=5,
    reasoning_tokens=2,
    cached_input_tokens=3,
    cache_write_tokens=4,
    details=UsageDetails(cache_write_1h_tokens=1),
)
TEXT: tuple[Event, ...] = (
    ReplyStart(id="r1", model="m", created=1_790_000_000),
    ContentChunk(1, "Soup."),
    UsageUpdate(USAGE),
    Finish("stop", "stop"),
)
ALL: tuple[Event, ...] = (
    TEXT[0],
    ThinkStart(0, "anthropic-claude-v1"),
    ThinkChunk(0, "Salt first."),
    OpaqueState(0, Opaque("signature", "c2lnbmVk", "anthropic-claude-v1")),
    ThinkEnd(0),
    TEXT[1],
    ToolCallStart(2, "call_1", "salt"),
    ToolCallChunk(2, '{"grams": 1}'),
    ToolCallEnd(2),
    TEXT[2],
    Finish("tool_calls", "tool_calls"),
)


@pytest.mark.skipif(RECORDINGS is None, reason="the recorded replies are not here")
@pytest.mark.parametrize("name", MAKERS)
def test_what_all_replies_of_a_dialect_have_is_in_bardos(name: str) -> None:
    recorded = [one for one in rows(MAKERS[name]) if one.root is not OWN and reply_of(one).response.error is None]
    real = keys_of((one.body, one.framing) for one in recorded)
    mine = keys_of(written(name))
    lacking = []
    for place, found in sorted(real.items()):
        if len(found) > 1 and place in mine:
            missing = frozenset.intersection(*found) - frozenset.intersection(*mine[place])
            lacking += [f"{place}: {key}" for key in sorted(missing) if (name, key) not in NOT_WRITTEN]
    known = [one for one in lacking if (name, *one.split(": ")) in NOT_KNOWN_YET]
    offenders([one for one in lacking if one not in known], "all recorded replies have it and bardo's do not: write it")


def written(name: str) -> Iterator[tuple[bytes, str]]:
    """Yield bardo's replies of a dialect to what a provider of another one said."""
    language, request = dialect(name), Request(model="m", messages=(), dialect=name, stream_usage=True)
    for said in (TEXT, ALL):
        stage = MeasuredTime(name, lambda: 2.0)
        events = [one for event in said for one in stage.feed(event)]
        yield language.encode_response(fold(events), request), "json"
        encoder = language.open_encoder(request, Arrival())
        frames = [*(frame for event in events for frame in encoder.feed(event)), *encoder.finish()]
        yield b"".join(frames), language.stream_framing


def keys_of(replies: Iterable[tuple[bytes, str]]) -> Keys:
    """Return the keys of each object of these replies, by the kind of event and the place that it stands in."""
    keys: Keys = defaultdict(list)
    for body, framing in replies:
        for kind, value in frames_of(body, framing):
            _collect(value, kind, keys)
    return keys


def frames_of(body: bytes, framing: str) -> list[tuple[str, Any]]:
    """Return the objects of a reply, each with its kind."""
    if framing == "json":
        return [("whole", json.loads(body))]
    if framing == "eventstream":
        buffer = eventstream.EventStreamBuffer()
        buffer.add_data(body)
        return [(str(one.headers.get(":event-type")), json.loads(one.payload or b"{}")) for one in buffer]
    lines = body.decode().splitlines()
    if framing == "sse":
        lines = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    values = [json.loads(line) for line in lines if line.strip() not in ("", "[DONE]")]
    return [(_kind(value), value) for value in values]


def _kind(value: dict[str, Any]) -> str:
    if "done" in value:
        return "last" if value["done"] else "line"
    choices = value.get("choices", value.get("candidates"))
    if choices is None:
        return str(value.get("type") or value.get("event_type"))
    ends = any(one.get("finish_reason") or one.get("finishReason") for one in choices)
    return "usage" if not choices else "finish" if ends else "chunk"


_TELLING = ("text", "thought", "functionCall", "reasoningContent", "toolUse")


def _collect(value: Any, place: str, keys: Keys) -> None:
    if isinstance(value, dict):
        keys[place].append(frozenset(value))
        for name, held in value.items():
            _collect(held, f"{place}.{name}", keys)
    elif isinstance(value, list):
        for one in value:
            kind = ""
            if isinstance(one, dict):
                kind = one.get("type") or "/".join(name for name in _TELLING if name in one)
            _collect(one, f"{place}[{kind}]", keys)
