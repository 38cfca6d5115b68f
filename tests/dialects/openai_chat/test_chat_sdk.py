"""OpenAI's own library reads what bardo writes, and what it collects can be sent back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest

from bardo.dialects.openai_chat import DIALECT
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream, InvalidRequest
from bardo.values.events import (
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.usage import Usage
from bardo.values.wire import Arrival
from dialects.openai_chat.chat import REQUEST, written

pytestmark = pytest.mark.each_python

CLAUDE, OPENAI = "anthropic-claude-v1", "openai-responses-v1"
SIGNED, SEALED = Opaque("signature", "sig", CLAUDE), Opaque("encrypted", "cipher", OPENAI)
GEMINI = Opaque("signature", "gem", "google-gemini-v1")
ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}

EVERYTHING: list[Event] = [
    ReplyStart(id="r", model="m", created=7),
    ReplyFields("openai_chat", {"citations": [{"url": "u"}]}),
    ThinkStart(0, CLAUDE),
    ThinkChunk(0, "pl"),
    ThinkChunk(0, "an"),
    OpaqueState(0, SIGNED),
    ThinkEnd(0),
    ThinkStart(1, OPENAI),
    OpaqueState(1, Opaque("id", "rs", OPENAI)),
    OpaqueState(1, Opaque("encrypted", "provisional", OPENAI)),
    ThinkChunk(1, "fir", 0),
    ThinkChunk(1, "st", 0),
    OpaqueState(1, SEALED),
    ThinkEnd(1),
    ContentChunk(2, "Hel"),
    ContentChunk(2, "lo"),
    UnknownContent(3, "openai_chat", {"type": "map"}),
    UnknownContent(4, "openai_chat", {"type": "graph"}),
    ToolCallStart(5, "c", "f"),
    ToolCallChunk(5, '{"x":'),
    ToolCallChunk(5, "1}"),
    OpaqueState(5, GEMINI),
    OpaqueState(5, Opaque("id", "fc", OPENAI)),
    ToolCallEnd(5),
    ToolCallStart(6, "d", "g"),
    ToolCallChunk(6, "{}"),
    ToolCallEnd(6),
    UsageUpdate(Usage(input_tokens=3, output_tokens=9, reasoning_tokens=4)),
    Extension({"receipt": {"intent": "low"}}),
    Finish("tool_calls", "tool_use"),
]


@contextmanager
def answering(body: bytes, kind: str, status: int = 200) -> Iterator[openai.OpenAI]:
    """Return a client whose server answers with `body`."""
    answer = httpx2.MockTransport(lambda _: httpx2.Response(status, content=body, headers={"content-type": kind}))
    with (
        httpx2.Client(transport=answer) as http,
        openai.OpenAI(api_key="k", base_url="http://bardo.test/v1", http_client=http, max_retries=0) as client,
    ):
        yield client


def collected(said: Sequence[Event]) -> Any:
    """Return the message the library's own helper collects from a stream."""
    with (
        answering(written(said), "text/event-stream") as client,
        client.chat.completions.stream(**ASKED, stream_options={"include_usage": True}) as stream,
    ):
        return stream.get_final_completion()


def whole(said: Sequence[Event]) -> Any:
    with answering(DIALECT.encode_response(fold(said), REQUEST), "application/json") as client:
        return client.chat.completions.create(**ASKED)


@pytest.mark.parametrize("reader", [whole, collected])
def test_the_library_reads_everything(reader: Any) -> None:
    completion = reader(EVERYTHING)
    [choice] = completion.choices
    assert (completion.id, completion.model, completion.created, choice.finish_reason) == ("r", "m", 7, "tool_calls")
    assert choice.message.content == "Hello"
    assert [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls] == [
        ("c", "f", '{"x":1}'),
        ("d", "g", "{}"),
    ]
    assert choice.message.role == "assistant"
    assert choice.message.reasoning_content.replace("\n\n", "") == "planfirst"
    assert completion.usage.completion_tokens_details.reasoning_tokens == 4


@pytest.mark.parametrize("reader", [whole, collected])
def test_what_the_library_collected_comes_back_whole(reader: Any) -> None:
    message = reader(EVERYTHING).choices[0].message.model_dump(exclude_none=True)
    body = json.dumps({"model": "m", "messages": [message]}).encode()
    [read] = DIALECT.decode_request(body, Arrival()).messages
    thoughts = [block for block in read.blocks if isinstance(block, ReasoningBlock)]
    assert thoughts == [
        ReasoningBlock(text="plan", format=CLAUDE, opaque=(SIGNED,)),
        ReasoningBlock(summary=("first",), format=OPENAI, opaque=(Opaque("id", "rs", OPENAI), SEALED)),
    ]
    calls = [block for block in read.blocks if isinstance(block, ToolCallBlock)]
    assert [(call.id, call.arguments) for call in calls] == [("c", '{"x":1}'), ("d", "{}")]
    assert calls[0].opaque == (GEMINI, Opaque("id", "fc", OPENAI))
    assert [block.text for block in read.blocks if isinstance(block, TextBlock)] == ["Hello"]


def test_every_chunk_is_one_the_library_knows() -> None:
    with answering(written(EVERYTHING), "text/event-stream") as client:
        chunks = list(client.chat.completions.create(**ASKED, stream=True))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk.id for chunk in chunks} == {"r"}
    assert chunks[-1].model_dump()["bardo"] == {"receipt": {"intent": "low"}}
    assert [chunk.model_dump().get("citations") for chunk in chunks].count([{"url": "u"}]) == 1


@pytest.mark.parametrize("reader", [whole, collected])
def test_the_library_reads_a_refusal(reader: Any) -> None:
    completion = reader([ReplyStart(id="r"), RefusalChunk(0, "No"), RefusalChunk(0, "."), Finish("refusal")])
    assert completion.choices[0].message.refusal == "No."
    assert not completion.choices[0].message.content


def test_the_library_raises_the_error_of_a_stream() -> None:
    said: list[Event] = [ReplyStart(id="r"), ContentChunk(0, "a"), Failed(BrokenStream("it broke"))]
    with answering(written(said), "text/event-stream") as client:
        stream = client.chat.completions.create(**ASKED, stream=True)
        with pytest.raises(openai.APIError, match="it broke") as problem:
            list(stream)
    assert problem.value.code == "broken_stream"


def test_the_library_raises_the_error_of_an_answer() -> None:
    error = InvalidRequest("n must be at least 1", hint="leave it out", param="n")
    with (
        answering(DIALECT.encode_error(error), "application/json", 400) as client,
        pytest.raises(openai.BadRequestError, match="leave it out") as problem,
    ):
        client.chat.completions.create(**ASKED)
    assert (problem.value.param, problem.value.code, problem.value.type) == (
        "n",
        "invalid_request",
        "invalid_request_error",
    )


def test_what_the_library_sends_is_read() -> None:
    seen: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        return httpx2.Response(200, content=DIALECT.encode_response(fold(EVERYTHING), REQUEST))

    with (
        httpx2.Client(transport=httpx2.MockTransport(answer)) as http,
        openai.OpenAI(api_key="k", base_url="http://bardo.test/v1", http_client=http) as client,
    ):
        client.chat.completions.create(
            **ASKED, reasoning_effort="low", max_completion_tokens=9, parallel_tool_calls=False
        )
    request = DIALECT.decode_request(seen[0], Arrival())
    assert request.reasoning is not None
    assert (request.reasoning.effort, request.max_output_tokens, request.extra) == ("low", 9, {})
