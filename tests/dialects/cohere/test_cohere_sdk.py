"""Cohere's own library reads what bardo writes, and is understood when it writes."""

from __future__ import annotations

from typing import Any

import cohere
import httpx
import pytest

from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import BrokenStream, InvalidRequest
from bardo.values.events import ContentChunk, Failed
from bardo.values.fold import fold
from dialects.cohere.replies import ARRIVAL, DIALECT, REQUEST, events_of, payloads, write_stream
from dialects.cohere.test_cohere_encode_reply import FOREIGN, GEMINI, GPT
from dialects.cohere.test_cohere_recordings import GOOD
from recordings import Recording, each_recording

pytestmark = pytest.mark.each_python

ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Server:
    """Answers every request with one body, and keeps what it was sent."""

    def __init__(self, body: bytes, *, content_type: str = "application/json", status: int = 200) -> None:
        self._answer = (status, {"content-type": content_type}, body)
        self.received = b""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.received = request.read()
        assert request.url.path == "/v2/chat"
        status, headers, body = self._answer
        return httpx.Response(status, headers=headers, content=body)

    def client(self) -> cohere.ClientV2:
        transport = httpx.Client(transport=httpx.MockTransport(self))
        return cohere.ClientV2(api_key="k", base_url="http://test", httpx_client=transport)


def whole_message(body: bytes) -> Any:
    with Server(body).client() as client:
        return client.chat(**ASKED)


def streamed_message(body: bytes) -> dict[str, Any]:
    """Put a stream together from the library's events, as its documentation shows."""
    content: dict[int, list[str]] = {}
    calls: dict[int, dict[str, Any]] = {}
    message: dict[str, Any] = {"tool_plan": "", "citations": []}
    with Server(body, content_type="text/event-stream").client() as client:
        for event in client.chat_stream(**ASKED):
            delta: Any = getattr(event, "delta", None)
            match event.type:
                case "content-start":
                    content[event.index or 0] = [delta.message.content.type, ""]
                case "content-delta":
                    piece = delta.message.content
                    content[event.index or 0][1] += piece.text or piece.thinking or ""
                case "tool-plan-delta":
                    message["tool_plan"] += delta.message.tool_plan
                case "tool-call-start":
                    call = delta.message.tool_calls
                    calls[event.index or 0] = {"id": call.id, "name": call.function.name, "arguments": ""}
                case "tool-call-delta":
                    function = delta.message.tool_calls.function
                    calls[event.index or 0]["arguments"] += function.arguments if function else ""
                case "citation-start":
                    message["citations"].append((delta.message.citations.start, delta.message.citations.text))
                case "message-end":
                    message |= {"finish_reason": delta.finish_reason, "usage": delta.usage, "error": delta.error}
    return {**message, "content": [tuple(one) for one in content.values()], "calls": list(calls.values())}


def plain(whole: Any) -> dict[str, Any]:
    message = whole.message
    return {
        "content": [(item.type, getattr(item, item.type)) for item in message.content or ()],
        "tool_plan": message.tool_plan or "",
        "calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in message.tool_calls or ()
        ],
        "citations": [(citation.start, citation.text) for citation in message.citations or ()],
        "finish_reason": whole.finish_reason,
        "usage": whole.usage,
        "error": None,
    }


@each_recording(GOOD)
def test_the_library_reads_every_recording_from_both_forms(recording: Recording) -> None:
    events = events_of(recording.body, stream=recording.stream)
    response = fold(events)
    whole = plain(whole_message(DIALECT.encode_response(response, REQUEST)))
    assert streamed_message(write_stream(events)) == whole
    assert "".join(text for kind, text in whole["content"] if kind == "text") == response.text
    thoughts = [text for kind, text in whole["content"] if kind == "thinking"]
    plans = [whole["tool_plan"]] if whole["tool_plan"] else []
    assert [*thoughts, *plans] == [block.text for block in response.reasoning_blocks]
    assert [call["arguments"] for call in whole["calls"]] == [call.raw_arguments for call in response.tool_calls]
    assert whole["finish_reason"] == response.finish.raw
    assert whole["usage"].tokens.output_tokens == response.usage.output_tokens


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_library_reads_a_foreign_reply(streamed: bool) -> None:
    message = (
        streamed_message(write_stream(FOREIGN))
        if streamed
        else plain(whole_message(DIALECT.encode_response(fold(FOREIGN), REQUEST)))
    )
    assert message["content"] == [("thinking", "first\n\nthen"), ("text", "Let me look.")]
    assert message["calls"] == [{"id": "call_1", "name": "look", "arguments": '{"where":"there"}'}]
    assert message["finish_reason"] == "TOOL_CALL"
    assert (message["usage"].tokens.input_tokens, message["usage"].cached_tokens) == (12, 2)


def test_foreign_reasoning_makes_the_round_through_the_library() -> None:
    message = whole_message(DIALECT.encode_response(fold(FOREIGN), REQUEST)).message
    server = Server(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    result: Any = {"role": "tool", "tool_call_id": "call_1", "content": "42"}
    with server.client() as client:
        client.chat(model="m", messages=[{"role": "user", "content": "hi"}, message, result])
    request = DIALECT.decode_request(server.received, ARRIVAL)
    assistant, tool = request.messages[1:]
    assert assistant.blocks == (
        ReasoningBlock(text="first\n\nthen", format="openai-responses-v1", opaque=(GPT,)),
        TextBlock("Let me look."),
        ToolCallBlock(id="call_1", name="look", arguments='{"where":"there"}', opaque=(GEMINI,)),
    )
    assert tool.blocks == (ToolResultBlock(call_id="call_1", name="look", content=(TextBlock("42"),)),)


def test_a_stream_that_fails_says_so_in_its_last_event() -> None:
    stream = write_stream([ContentChunk(0, "a"), Failed(BrokenStream("the reply stopped before its end"))])
    message = streamed_message(stream)
    assert (message["finish_reason"], message["error"]) == ("ERROR", "the reply stopped before its end")
    assert message["content"] == [("text", "a")]


def test_an_error_body_raises_with_its_message() -> None:
    body = DIALECT.encode_error(InvalidRequest("model is required", param="model"))
    with Server(body, status=400).client() as client, pytest.raises(cohere.BadRequestError) as caught:
        client.chat(**ASKED)
    assert caught.value.body["message"] == "model is required"


def test_the_library_and_the_decoder_agree_on_the_events() -> None:
    stream = write_stream(FOREIGN)
    with Server(stream, content_type="text/event-stream").client() as client:
        seen = [event.type for event in client.chat_stream(**ASKED)]
    assert seen == [one["type"] for one in payloads(stream)]


def test_everything_the_library_sends_is_understood() -> None:
    function: Any = {"name": "look", "description": "Look", "parameters": {"type": "object", "properties": {}}}
    server = Server(DIALECT.encode_response(fold(FOREIGN), REQUEST))
    with server.client() as client:
        client.chat(
            **ASKED,
            tools=[cohere.ToolV2(type="function", function=function)],
            strict_tools=True,
            tool_choice="REQUIRED",
            documents=[cohere.Document(data={"text": "x"}, id="d")],
            thinking=cohere.Thinking(type="enabled", token_budget=100),
            response_format=cohere.JsonObjectResponseFormatV2(json_schema={"type": "object"}),
            citation_options=cohere.CitationOptions(mode="FAST"),
            max_tokens=9,
            p=0.5,
            k=3,
            stop_sequences=["x"],
        )
    request = DIALECT.decode_request(server.received, ARRIVAL)
    assert request.stream is False
    assert request.tools[0].strict is True
    assert request.tool_choice is not None
    assert request.tool_choice.mode == "required"
    assert request.reasoning is not None
    assert (request.reasoning.budget, request.max_output_tokens) == (100, 9)
    assert (request.sampling.top_p, request.sampling.top_k, request.sampling.stop) == (0.5, 3, ("x",))
    assert sorted(request.extra) == ["citation_options", "documents"]
