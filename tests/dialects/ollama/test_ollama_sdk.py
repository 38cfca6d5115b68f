"""Ollama's own library reads what bardo writes, and is understood when it writes."""

from __future__ import annotations

from typing import Any

import httpx
import ollama
import pytest

from bardo.values.blocks import ReasoningBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import BrokenStream, InvalidRequest
from bardo.values.events import ContentChunk, Failed
from bardo.values.fold import fold
from dialects.ollama.replies import ARRIVAL, DIALECT, REQUEST, events_of, write_stream
from dialects.ollama.test_ollama_encode_reply import FOREIGN
from recordings import Recording, each_recording, rows

pytestmark = pytest.mark.each_python

ALL = rows("ollama")
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Server:
    """Answers every request with one body, and keeps what it was sent."""

    def __init__(self, body: bytes, *, content_type: str = "application/json", status: int = 200) -> None:
        self._answer = (status, {"content-type": content_type}, body)
        self.received = b""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.received = request.read()
        assert request.url.path == "/api/chat"
        status, headers, body = self._answer
        return httpx.Response(status, headers=headers, content=body)

    def client(self) -> ollama.Client:
        return ollama.Client(host="http://test", transport=httpx.MockTransport(self))


def whole_message(body: bytes) -> Any:
    with Server(body).client() as client:
        return client.chat(**ASKED)


def streamed_parts(body: bytes) -> list[Any]:
    with Server(body, content_type="application/x-ndjson").client() as client:
        return list(client.chat(**ASKED, stream=True))


@each_recording(ALL)
def test_the_library_reads_every_recording_from_both_forms(recording: Recording) -> None:
    events = events_of(recording.body, stream=recording.stream)
    response = fold(events)
    whole = whole_message(DIALECT.encode_response(response, REQUEST))
    parts = streamed_parts(write_stream(events))
    said = {"content": response.text, "thinking": response.reasoning.content or ""}
    for name, expected in said.items():
        assert (getattr(whole.message, name) or "") == expected
        assert "".join(getattr(part.message, name) or "" for part in parts) == expected
    for calls in (whole.message.tool_calls or [], [call for part in parts for call in part.message.tool_calls or ()]):
        assert [(call.function.name, call.function.arguments) for call in calls] == [
            (call.name, call.arguments) for call in response.tool_calls
        ]
    for last in (whole, parts[-1]):
        assert last.done is True
        assert (last.done_reason, last.eval_count) == (response.finish.raw, response.usage.output_tokens)
        assert last.total_duration == response.usage.raw["total_duration"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_foreign_reply_makes_the_round_through_the_library(streamed: bool) -> None:
    body = write_stream(FOREIGN) if streamed else DIALECT.encode_response(fold(FOREIGN), REQUEST)
    parts = streamed_parts(body) if streamed else [whole_message(body)]
    message = ollama.Message(
        role="assistant",
        content="".join(part.message.content for part in parts),
        thinking="".join(part.message.thinking or "" for part in parts),
        tool_calls=[call for part in parts for call in part.message.tool_calls or ()],
    )
    server = Server(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    with server.client() as client:
        client.chat(model="m", messages=[message, {"role": "tool", "content": "42", "tool_name": "look"}], think=True)
    request = DIALECT.decode_request(server.received, ARRIVAL)
    assert request.stream is False
    thought, text, call = request.messages[0].blocks
    # The library's types have no place for ids and seals, so that these are lost on it.
    assert thought == ReasoningBlock(text="first\n\nthen", format="thinking")
    assert text.text == "Let me look."  # type: ignore[union-attr]
    assert isinstance(call, ToolCallBlock)
    assert (call.id, call.name, call.arguments) == ("call_0", "look", '{"where":"there"}')
    result = request.messages[1].blocks[0]
    assert isinstance(result, ToolResultBlock)
    assert (result.call_id, result.text) == ("call_0", "42")


def test_a_stream_that_fails_raises_in_the_library() -> None:
    stream = write_stream([ContentChunk(0, "a"), Failed(BrokenStream("the reply stopped before its end"))])
    with pytest.raises(ollama.ResponseError, match="the reply stopped before its end"):
        streamed_parts(stream)


def test_an_error_body_raises_with_its_message() -> None:
    body = DIALECT.encode_error(InvalidRequest("model is required", param="model"))
    with Server(body, status=400).client() as client, pytest.raises(ollama.ResponseError) as caught:
        client.chat(**ASKED)
    assert (caught.value.error, caught.value.status_code) == ("model is required", 400)


def test_everything_the_library_sends_is_understood() -> None:
    def look(where: str) -> str:
        """Look somewhere.

        Args:
            where: The place.
        """
        return where

    server = Server(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    with server.client() as client:
        client.chat(
            **ASKED,
            tools=[look],
            options=ollama.Options(temperature=0.2, num_predict=9, stop=["x"], num_ctx=2048),
            format={"type": "object"},
            think="low",
            keep_alive=0,
        )
    request = DIALECT.decode_request(server.received, ARRIVAL)
    assert request.tools[0].schema is not None
    assert request.tools[0].schema["required"] == ["where"]
    assert (request.sampling.temperature, request.max_output_tokens, request.sampling.stop) == (0.2, 9, ("x",))
    assert request.extra == {"keep_alive": 0, "options": {"num_ctx": 2048}}
