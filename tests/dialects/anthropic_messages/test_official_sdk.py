"""Anthropic's own SDK reads what bardo writes, and is understood when it writes."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest

from bardo.values.blocks import Opaque, ReasoningBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, InvalidRequest
from bardo.values.events import (
    ContentChunk,
    Event,
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
from dialects.anthropic_messages.replies import ARRIVAL, DIALECT, REQUEST, events_of, payloads, read, write_stream
from recordings import Recording, each_recording, rows

pytestmark = pytest.mark.each_python

GOOD = [one for one in rows("anthropic-messages") if "-error-" not in one.file]
GPT = Opaque("encrypted", "CIPHER", "openai-responses-v1")
GEMINI = Opaque("signature", "G", "google-gemini-v1")
FOREIGN: list[Event] = [
    ReplyStart(id="resp_1", model="gpt-6"),
    ThinkStart(0, "openai-responses-v1"),
    ThinkChunk(0, "first", part=0),
    ThinkChunk(0, "then", part=1),
    OpaqueState(0, GPT),
    ThinkEnd(0),
    ContentChunk(1, "Let me "),
    ContentChunk(1, "look."),
    ToolCallStart(2, "call_1", "look"),
    ToolCallChunk(2, '{"where":'),
    ToolCallChunk(2, '"there"}'),
    OpaqueState(2, GEMINI),
    ToolCallEnd(2),
    Finish("tool_calls", "tool_calls"),
    UsageUpdate(Usage(input_tokens=12, output_tokens=9, reasoning_tokens=4, cached_input_tokens=2)),
]
ASKED: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "hi"}],
}


class Server:
    """Answers every request with one body, and keeps what it was sent."""

    def __init__(self, body: bytes, *, content_type: str = "application/json", status: int = 200) -> None:
        self._answer = (status, {"content-type": content_type}, body)
        self.received = b""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.received = request.read()
        status, headers, body = self._answer
        return httpx2.Response(status, headers=headers, content=body)

    def client(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(
            api_key="k",
            base_url="http://test",
            max_retries=0,
            http_client=httpx2.Client(transport=httpx2.MockTransport(self)),
        )


def whole_message(body: bytes) -> Any:
    with Server(body).client() as client:
        return client.messages.create(**ASKED)


def streamed_message(body: bytes) -> Any:
    with Server(body, content_type="text/event-stream").client() as client, client.messages.stream(**ASKED) as stream:
        return stream.get_final_message()


@each_recording(GOOD)
def test_the_sdk_reads_every_recording_from_both_forms(recording: Recording) -> None:
    events = events_of(recording.body, stream=recording.stream)
    response = fold(events)
    whole = whole_message(DIALECT.encode_response(response, REQUEST))
    streamed = streamed_message(write_stream(events))
    assert _plain(whole) == _plain(streamed)
    assert whole.stop_reason == response.finish.raw
    assert "".join(block.text for block in whole.content if block.type == "text") == response.text
    assert [block.thinking for block in whole.content if block.type == "thinking"] == [
        block.text for block in response.reasoning_blocks if all(state.kind != "redacted" for state in block.opaque)
    ]
    assert [block.input for block in whole.content if block.type == "tool_use"] == [
        call.arguments for call in response.tool_calls
    ]


def _plain(message: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = message.model_dump(exclude_none=True, warnings=False)
    # The SDK takes neither the totals' other fields nor unknown fields from `message_delta`.
    dumped["usage"] = {name: dumped["usage"][name] for name in ("input_tokens", "output_tokens")}
    dumped.pop("context_management", None)
    for block in dumped["content"]:
        block.pop("parsed_output", None)
        if block["type"] == "mcp_tool_use":
            block.pop("input")  # Only the SDK's beta half reads this one from deltas, as the real API sends it.
        if not block.get("citations"):
            block.pop("citations", None)
    return dumped


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_foreign_reasoning_makes_the_round_through_an_sdk_client(stream: bool) -> None:
    message = (
        streamed_message(write_stream(FOREIGN))
        if stream
        else whole_message(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    )
    thought, text, call, _ = message.content
    assert (thought.type, thought.thinking) == ("thinking", "first\n\nthen")
    assert text.text == "Let me look."
    assert (call.id, call.name, call.input) == ("call_1", "look", {"where": "there"})
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, 9)
    assert message.usage.output_tokens_details.thinking_tokens == 4
    request = _sent_back(message)
    assistant, user = request.messages[1:]
    assert assistant.blocks[0] == ReasoningBlock(text="first\n\nthen", format="openai-responses-v1", opaque=(GPT,))
    assert assistant.blocks[2:] == (
        ToolCallBlock(id="call_1", name="look", arguments='{"where":"there"}', opaque=(GEMINI,)),
    )
    assert user.blocks[0].name == "look"  # type: ignore[union-attr]


def _sent_back(message: Any) -> Request:
    """Send the reply back as an agent does, with the tool's result."""
    server = Server(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    result: Any = {"type": "tool_result", "tool_use_id": "call_1", "content": "42"}
    with server.client() as client:
        client.messages.create(
            model="claude-sonnet-5",
            max_tokens=1000,
            messages=[
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": message.content},
                {"role": "user", "content": [result]},
            ],
        )
    return DIALECT.decode_request(server.received, ARRIVAL)


def test_a_stream_that_fails_raises_in_the_sdk() -> None:
    stream = write_stream([*FOREIGN[:7], Failed(BrokenStream("the reply stopped before its end"))])
    with pytest.raises(anthropic.APIStatusError, match="the reply stopped before its end"):
        streamed_message(stream)


def test_an_error_body_raises_with_its_message() -> None:
    body = DIALECT.encode_error(InvalidRequest("max_tokens is required", param="max_tokens"))
    with Server(body, status=400).client() as client, pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**ASKED)
    assert "max_tokens is required" in str(caught.value)
    assert caught.value.type == "invalid_request_error"


def test_the_sdk_and_the_decoder_agree_on_the_events_it_gets() -> None:
    stream = write_stream(FOREIGN)
    body_types = [one["type"] for one in payloads(stream)]
    with Server(stream, content_type="text/event-stream").client() as client:
        seen = [event.type for event in client.messages.create(**ASKED, stream=True)]
    assert seen == body_types
    assert read(stream, stream=True).text == "Let me look."
