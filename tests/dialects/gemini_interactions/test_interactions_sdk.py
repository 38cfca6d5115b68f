"""Google's own SDK reads what bardo writes, and bardo reads what the SDK sends back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest
from google import genai
from google.genai import types

from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
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
from bardo.values.usage import Usage
from dialects.gemini_interactions.replies import ARRIVAL, DIALECT, REQUEST, write_stream

pytestmark = pytest.mark.each_python

CLAUDE = Opaque("signature", "~~~???>>>", "anthropic-claude-v1")
NATIVE = Opaque("signature", "+/+/c2ln", "google-gemini-v1")
EVENTS: list[Event] = [
    ReplyStart(id="reply-1", model="claude", created=1_700_000_000),
    ThinkStart(0, "anthropic-claude-v1"),
    ThinkChunk(0, "let me "),
    ThinkChunk(0, "think"),
    OpaqueState(0, CLAUDE),
    ThinkEnd(0),
    ContentChunk(1, "Look"),
    ContentChunk(1, "ing."),
    ToolCallStart(2, "call-1", "weather"),
    ToolCallChunk(2, '{"city":'),
    ToolCallChunk(2, '"Paris"}'),
    ToolCallEnd(2),
    OpaqueState(2, NATIVE),
    UsageUpdate(Usage(input_tokens=10, output_tokens=7, reasoning_tokens=4)),
    Finish("tool_calls", "tool_use"),
]
RESULT = {"type": "function_result", "call_id": "call-1", "name": "weather", "result": "sunny"}


class Wire:
    """A server that answers with given bytes and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer = b""
        self.content_type = "application/json"
        self.sent: list[Any] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.path in ("/v1/interactions", "/v1beta/interactions")
        self.sent.append(msgspec.json.decode(request.content))
        return httpx2.Response(200, content=self.answer, headers={"content-type": self.content_type})


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def client(wire: Wire) -> Iterator[genai.Client]:
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    options = types.HttpOptions(base_url="http://bardo.test", httpx_client=http)
    with genai.Client(api_key="k", http_options=options) as client:
        yield client


def test_the_sdk_reads_a_whole_reply_and_sends_it_back(wire: Wire, client: genai.Client) -> None:
    wire.answer = DIALECT.encode_response(fold(EVENTS), REQUEST)
    reply: Any = client.interactions.create(model="gemini-3-flash-preview", input="hi")
    assert reply.status == "requires_action"
    thought, output, call = reply.steps
    assert thought.summary[0].text == "let me think"
    assert output.content[0].text == "Looking."
    assert (call.id, call.name, call.arguments) == ("call-1", "weather", {"city": "Paris"})
    usage = reply.usage
    counts = (usage.total_input_tokens, usage.total_output_tokens, usage.total_thought_tokens, usage.total_tokens)
    assert counts == (10, 3, 4, 17)

    client.interactions.create(model="gemini-3-flash-preview", input=[*reply.steps, RESULT])
    request = DIALECT.decode_request(msgspec.json.encode(wire.sent[-1]), ARRIVAL)
    answer, result = request.messages
    assert answer.blocks == (
        ReasoningBlock(text="let me think", format="anthropic-claude-v1", opaque=(CLAUDE,)),
        TextBlock("Looking."),
        ToolCallBlock(id="call-1", name="weather", arguments='{"city":"Paris"}', opaque=(NATIVE,)),
    )
    assert result.blocks == (ToolResultBlock(call_id="call-1", name="weather", content=(TextBlock("sunny"),)),)


def test_the_sdk_reads_a_stream(wire: Wire, client: genai.Client) -> None:
    wire.answer, wire.content_type = write_stream(EVENTS), "text/event-stream"
    told: dict[str, str] = {}
    last: Any = None
    stream: Any = client.interactions.create(model="gemini-3-flash-preview", input="hi", stream=True)
    for event in stream:
        last = event
        if event.event_type == "step.start" and event.step.type == "function_call":
            told["call"] = f"{event.step.id} {event.step.name}"
        if event.event_type != "step.delta":
            continue
        assert not getattr(event.delta, "is_unknown", False)
        piece = {
            "thought_summary": lambda delta: delta.content.text,
            "thought_signature": lambda delta: delta.signature,
            "text": lambda delta: delta.text,
            "arguments_delta": lambda delta: delta.arguments,
        }[event.delta.type](event.delta)
        key = f"{event.index} {event.delta.type}"
        told[key] = told.get(key, "") + piece
    assert told.pop("0 thought_signature")
    assert told == {
        "0 thought_summary": "let me think",
        "1 text": "Looking.",
        "call": "call-1 weather",
        "2 arguments_delta": '{"city":"Paris"}',
        "2 thought_signature": NATIVE.data,
    }
    assert wire.sent[-1]["stream"] is True
    assert last.event_type == "interaction.completed"
    assert (last.interaction.status, last.interaction.usage.total_tokens) == ("requires_action", 17)
