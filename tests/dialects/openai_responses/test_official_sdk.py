"""OpenAI's own SDK reads what bardo writes, and is understood when it writes."""

from __future__ import annotations

from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import (
    Response as SdkResponse,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseReasoningItem,
)

from bardo.dialects.openai_responses import DIALECT
from bardo.dialects.openai_responses.wire import SealContent, opened
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import BrokenStream, InvalidRequest
from bardo.values.events import (
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
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
from dialects.openai_responses.replies import ARRIVAL, REQUEST, write_stream

pytestmark = pytest.mark.each_python

CLAUDE = Opaque("signature", "SIGNED", "anthropic-claude-v1")
GEMINI = Opaque("signature", "G", "google-gemini-v1")
FOREIGN: list[Event] = [
    ReplyStart(id="msg_9", model="claude-sonnet-5", created=7),
    ThinkStart(0, "anthropic-claude-v1"),
    ThinkChunk(0, "Let me "),
    ThinkChunk(0, "think."),
    OpaqueState(0, CLAUDE),
    ThinkEnd(0),
    ContentChunk(1, "I will "),
    ContentChunk(1, "look."),
    ToolCallStart(2, "toolu_1", "look"),
    ToolCallChunk(2, '{"where":'),
    ToolCallChunk(2, '"there"}'),
    OpaqueState(2, GEMINI),
    ToolCallEnd(2),
    UsageUpdate(Usage(input_tokens=12, output_tokens=9, reasoning_tokens=4, cached_input_tokens=2)),
    Finish("tool_calls", "tool_use"),
    Extension({"receipt": {"intent": "low"}}),
]


def client(body: bytes, status: int = 200, seen: list[bytes] | None = None) -> openai.OpenAI:
    """Return the SDK's client, answered with `body`."""
    kind = "text/event-stream" if body.startswith(b"event:") else "application/json"

    def answer(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request.read())
        return httpx2.Response(status, content=body, headers={"content-type": kind})

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="k", base_url="http://bardo.test/v1", http_client=transport, max_retries=0)


def streamed(body: bytes) -> SdkResponse:
    """Return what the SDK's own accumulator makes of a stream."""
    with client(body) as sdk, sdk.responses.stream(model="m", input="hi") as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def whole(body: bytes) -> SdkResponse:
    """Return what the SDK makes of a whole reply."""
    with client(body) as sdk:
        return sdk.responses.create(model="m", input="hi")


def both(events: list[Event], request: Request = REQUEST) -> list[SdkResponse]:
    return [streamed(write_stream(events, request)), whole(DIALECT.encode_response(fold(events), request))]


def test_the_sdk_reads_everything_of_a_foreign_reply() -> None:
    for response in both(FOREIGN):
        thought, message, call, rider = response.output
        assert isinstance(thought, ResponseReasoningItem)
        assert thought.content is not None
        assert thought.content[0].text == "Let me think."
        assert opened(thought.encrypted_content or "") == SealContent((CLAUDE,), text="Let me think.")
        assert isinstance(message, ResponseOutputMessage)
        assert response.output_text == "I will look."
        assert isinstance(call, ResponseFunctionToolCall)
        assert (call.call_id, call.name, call.arguments) == ("toolu_1", "look", '{"where":"there"}')
        assert isinstance(rider, ResponseReasoningItem)
        assert response.usage is not None
        assert response.usage.output_tokens_details.reasoning_tokens == 4
        assert response.usage.input_tokens_details.cached_tokens == 2
        assert (response.model_extra or {})["bardo"] == {"receipt": {"intent": "low"}}
        assert (response.status, response.tools, response.tool_choice) == ("completed", [], "auto")


def test_the_sdk_gives_back_what_it_got_and_nothing_is_lost() -> None:
    for response in both(FOREIGN):
        seen: list[bytes] = []
        result = {"type": "function_call_output", "call_id": "toolu_1", "output": "nothing"}
        with client(b"{}", seen=seen) as sdk:
            sdk.responses.create(model="m", input=[*response.output, result])  # type: ignore[list-item]
        turn, results = DIALECT.decode_request(seen[0], ARRIVAL).messages
        assert turn.blocks[0] == ReasoningBlock(text="Let me think.", format="anthropic-claude-v1", opaque=(CLAUDE,))
        assert isinstance(turn.blocks[1], TextBlock)
        assert turn.blocks[1].text == "I will look."
        assert isinstance(turn.blocks[2], ToolCallBlock)
        assert turn.blocks[2].opaque == (GEMINI,)
        assert results.blocks == (ToolResultBlock(call_id="toolu_1", name="look", content=(TextBlock("nothing"),)),)


def test_the_sdk_reads_summaries_and_refusals() -> None:
    events: list[Event] = [
        ReplyStart(id="r", model="m"),
        ThinkStart(0, "openai-responses-v1"),
        ThinkChunk(0, "one", 0),
        ThinkChunk(0, "two", 1),
        OpaqueState(0, Opaque("encrypted", "CIPHER", "openai-responses-v1")),
        RefusalChunk(1, "I "),
        RefusalChunk(1, "cannot"),
        Finish("stop"),
    ]
    for response in both(events):
        thought, message = response.output
        assert isinstance(thought, ResponseReasoningItem)
        assert [part.text for part in thought.summary] == ["one", "two"]
        assert thought.encrypted_content == "CIPHER"
        assert isinstance(message, ResponseOutputMessage)
        assert message.content[0].to_dict() == {"type": "refusal", "refusal": "I cannot"}


def test_the_sdk_raises_the_error_of_a_stream() -> None:
    body = write_stream([*FOREIGN[:4], Failed(BrokenStream("the provider went away"))])
    with pytest.raises(openai.APIError, match="the provider went away"):
        streamed(body)


def test_the_sdk_raises_the_error_of_a_refused_request() -> None:
    body = DIALECT.encode_error(InvalidRequest("input is required", param="input"))
    with client(body, 400) as sdk, pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model="m", input="hi")
    assert caught.value.param == "input"
    assert caught.value.code == "invalid_request"
    assert caught.value.type == "invalid_request_error"


def test_a_request_of_the_sdk_is_understood() -> None:
    seen: list[bytes] = []
    tools: Any = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}]
    with client(b"{}", seen=seen) as sdk:
        sdk.responses.create(
            model="m", input="hi", instructions="Be brief", tools=tools, reasoning={"effort": "low", "summary": "auto"}
        )
    request = DIALECT.decode_request(seen[0], ARRIVAL)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.tools[0].strict is True
    assert request.reasoning is not None
    assert (request.reasoning.effort, request.reasoning.visible) == ("low", True)
