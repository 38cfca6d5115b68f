"""Google's own SDK reads what bardo writes, and bardo reads what the SDK sends back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest
from google import genai
from google.genai import errors, types

from bardo.dialects.gemini import DIALECT
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import UpstreamTimeout
from bardo.values.events import (
    ContentChunk,
    Event,
    Extension,
    Failed,
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
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from dialects.gemini.support import REQUEST, streamed

pytestmark = pytest.mark.each_python

# Bytes whose base64 differs between the two alphabets.
CLAUDE = Opaque("signature", "~~~???>>>", "anthropic-claude-v1")
NATIVE = Opaque("signature", "+/+/c2ln", "google-gemini-v1")

EVENTS: list[Event] = [
    ReplyStart(id="reply-1", model="claude"),
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
    Extension({"receipt": {"verdict": "honoured"}}),
]


class Wire:
    """A server that answers with given bytes and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer = b""
        self.content_type = "application/json"
        self.status = 200
        self.sent: list[Any] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(msgspec.json.decode(request.content))
        return httpx2.Response(self.status, content=self.answer, headers={"content-type": self.content_type})


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def client(wire: Wire) -> Iterator[genai.Client]:
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    with genai.Client(
        api_key="k", http_options=types.HttpOptions(base_url="http://bardo.test", httpx_client=http)
    ) as client:
        yield client


def replayed(wire: Wire) -> Request:
    return DIALECT.decode_request(msgspec.json.encode(wire.sent[-1]), Arrival(model="gemini-2.5-flash"))


def check(parts: list[types.Part], usage: types.GenerateContentResponseUsageMetadata | None) -> None:
    assert "".join(part.text or "" for part in parts if part.thought) == "let me think"
    assert "".join(part.text or "" for part in parts if not part.thought) == "Looking."
    (call,) = [part for part in parts if part.function_call]
    assert call.function_call is not None
    assert (call.function_call.id, call.function_call.name) == ("call-1", "weather")
    assert call.function_call.args == {"city": "Paris"}
    assert usage is not None
    counts = (
        usage.prompt_token_count,
        usage.candidates_token_count,
        usage.thoughts_token_count,
        usage.total_token_count,
    )
    assert counts == (10, 3, 4, 17)


def check_replay(request: Request) -> None:
    """What the SDK sends back is what was thought, state and all."""
    answer = [block for message in request.messages if message.role == "assistant" for block in message.blocks]
    thinking, *texts, call = [block for block in answer if block != TextBlock("")]
    assert thinking == ReasoningBlock(text="let me think", format="anthropic-claude-v1", opaque=(CLAUDE,))
    assert "".join(block.text for block in texts if isinstance(block, TextBlock)) == "Looking."
    assert isinstance(call, ToolCallBlock)
    (state,) = call.opaque
    assert state.data.replace("-", "+").replace("_", "/") == NATIVE.data
    assert msgspec.structs.replace(call, opaque=()) == ToolCallBlock(
        id="call-1", name="weather", arguments='{"city":"Paris"}'
    )
    (result,) = [block for block in request.messages[-1].blocks if isinstance(block, ToolResultBlock)]
    assert (result.call_id, result.text) == ("call-1", "sunny")


RESULT = types.Part(function_response=types.FunctionResponse(id="call-1", name="weather", response={"output": "sunny"}))


def test_the_sdk_reads_a_whole_reply(wire: Wire, client: genai.Client) -> None:
    wire.answer = DIALECT.encode_response(fold(EVENTS), REQUEST)
    reply = client.models.generate_content(model="gemini-2.5-flash", contents="weather?")
    assert reply.candidates is not None
    assert (reply.model_version, reply.response_id) == ("claude", "reply-1")
    assert reply.candidates[0].finish_reason == types.FinishReason.STOP
    content = reply.candidates[0].content
    assert content is not None
    check(content.parts or [], reply.usage_metadata)
    client.models.generate_content(
        model="gemini-2.5-flash", contents=["weather?", content, types.Content(role="user", parts=[RESULT])]
    )
    check_replay(replayed(wire))


def test_the_sdk_reads_a_stream(wire: Wire, client: genai.Client) -> None:
    wire.answer, wire.content_type = streamed(EVENTS), "text/event-stream"
    chunks = list(client.models.generate_content_stream(model="gemini-2.5-flash", contents="weather?"))
    contents = [chunk.candidates[0].content for chunk in chunks if chunk.candidates]
    check([part for content in contents if content for part in content.parts or []], chunks[-1].usage_metadata)
    assert chunks[-1].candidates is not None
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP


def test_the_sdks_chat_brings_a_stream_back(wire: Wire, client: genai.Client) -> None:
    wire.answer, wire.content_type = streamed(EVENTS), "text/event-stream"
    chat = client.chats.create(model="gemini-2.5-flash")
    for _ in chat.send_message_stream("weather?"):
        pass
    for _ in chat.send_message_stream([RESULT]):
        pass
    check_replay(replayed(wire))


def test_the_sdk_raises_a_failure_in_mid_stream(wire: Wire, client: genai.Client) -> None:
    wire.answer, wire.content_type = streamed([*EVENTS[:8], Failed(UpstreamTimeout("too slow"))]), "text/event-stream"
    chunks: list[types.GenerateContentResponse] = []
    with pytest.raises(errors.ServerError, match="too slow") as caught:
        chunks.extend(client.models.generate_content_stream(model="gemini-2.5-flash", contents="weather?"))
    assert (caught.value.code, caught.value.status) == (504, "DEADLINE_EXCEEDED")
    assert chunks


def test_the_sdk_raises_an_error(wire: Wire, client: genai.Client) -> None:
    wire.status, wire.answer = 400, DIALECT.encode_error(UpstreamTimeout("too slow"))
    with pytest.raises(errors.ClientError, match="too slow"):
        client.models.generate_content(model="gemini-2.5-flash", contents="x")


def test_the_sdks_request_is_read(wire: Wire, client: genai.Client) -> None:
    wire.answer = DIALECT.encode_response(fold(EVENTS), REQUEST)
    declared = types.FunctionDeclaration(
        name="weather",
        parameters=types.Schema(type=types.Type.OBJECT, properties={"city": types.Schema(type=types.Type.STRING)}),
    )
    config = types.GenerateContentConfig(
        system_instruction="be brief",
        temperature=0.5,
        tools=[types.Tool(function_declarations=[declared])],
        thinking_config=types.ThinkingConfig(thinking_budget=512, include_thoughts=True),
    )
    client.models.generate_content(model="gemini-2.5-flash", contents="hi", config=config)
    request = replayed(wire)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.tools[0].schema == {"type": "object", "properties": {"city": {"type": "string"}}}
    assert request.reasoning is not None
    assert (request.reasoning.budget, request.sampling.temperature) == (512, 0.5)
