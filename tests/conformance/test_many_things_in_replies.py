"""A reply with thousands of anything takes time in proportion, from its provider's bytes to the bytes that a client of any dialect gets.

A new kind of thing is one line of the table of its dialect. `test_hostile_replies.py` does the same for events of every kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.replies.citations import citations_between, cited_pages
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.replies.translation_stages import ForeignContent, logprobs_between, refusal_stages
from bardo.streams.stage import Stage
from bardo.surfaces.library.decoding import provider_row
from bardo.values.events import Event
from bardo.values.request import Request
from bardo.values.wire import Arrival
from conformance.test_hostile_replies import PROVIDERS
from support.growth import check_growth
from support.sampling import sample
from support.upstream_replies import REPLIES

FEW, MANY, BELOW = 200, 2_000, 30
BY_DAY = 3
Body = dict[str, Any]
Kinds = dict[str, Callable[[int], Body]]
WEB = "https://example.com/"
TOKEN = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}


def each(count: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(number) for number in range(count)]


def with_changes(provider: str, **changes: Any) -> Body:
    whole: Body = json.loads(REPLIES[provider].whole)
    return {**whole, **changes}


def chat(message: Body, *, choice: Body | None = None, **changes: Any) -> Body:
    said = {"role": "assistant", "content": "hello", **message}
    choices = [{"index": 0, "message": said, "finish_reason": "stop", **(choice or {})}]
    return with_changes("openai_chat", **{"choices": choices, **changes})


def page(number: int) -> Body:
    return {"url": f"{WEB}{number}", "title": "t", "start_index": 0, "end_index": 5}


def call(number: int, arguments: str = '{"a":1}') -> Body:
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": arguments}}


def detail(kind: str, **fields: Any) -> Callable[[int], Body]:
    return lambda n: chat({"reasoning_details": each(n, lambda i: {"type": kind, "index": i, **fields})})


CHAT: Kinds = {
    "annotations": lambda n: chat(
        {"annotations": each(n, lambda i: {"type": "url_citation", "url_citation": page(i)})}
    ),
    "annotations of an unknown type": lambda n: chat({"annotations": each(n, lambda i: {"type": f"t{i}"})}),
    "annotations of many texts": lambda n: chat(
        {
            "content": [{"type": "text", "text": "x"}] * n,
            "annotations": each(n, lambda i: {"type": "url_citation", **page(i)}),
        }
    ),
    "calls": lambda n: chat({"tool_calls": each(n, call)}),
    "calls without arguments": lambda n: chat({"tool_calls": each(n, lambda i: call(i, ""))}),
    "calls of one id": lambda n: chat({"tool_calls": [call(0)] * n}),
    "torn calls": lambda n: chat({"tool_calls": each(n, lambda i: call(i, '{"a'))}, choice={"finish_reason": "length"}),
    "texts": lambda n: chat({"content": [{"type": "text", "text": "x"}] * n}),
    "unknown parts": lambda n: chat({"content": each(n, lambda i: {"type": f"t{i}"})}),
    "thinking of many texts": detail("reasoning.text", text="t", signature="s", format="anthropic-claude-v1"),
    "thinking of many summaries": detail("reasoning.summary", summary="t", format="openai-responses-v1"),
    "thinking of many ciphertexts": detail("reasoning.encrypted", data="ZQ==", format="openai-responses-v1"),
    "unknown thinking": detail("reasoning.other"),
    "thinking blocks": lambda n: chat(
        {"thinking_blocks": each(n, lambda i: {"type": "thinking", "thinking": "t", "signature": f"s{i}"})}
    ),
    "choices": lambda n: chat(
        {}, choices=each(n, lambda i: {"index": i, "message": {"content": "x"}, "finish_reason": "stop"})
    ),
    "log probabilities": lambda n: chat({}, choice={"logprobs": {"content": [TOKEN] * n}}),
    "pictures": lambda n: chat(
        {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}] * n}
    ),
    "search results": lambda n: chat({}, search_results=each(n, page), citations=each(n, lambda i: f"{WEB}{i}")),
    "unknown fields of the message": lambda n: chat({f"f{i}": 1 for i in range(n)}),
    "unknown fields of the reply": lambda n: {**chat({}), **{f"f{i}": 1 for i in range(n)}},
    "counts": lambda n: chat({}, usage={"prompt_tokens": 1, "completion_tokens": 1, **{f"c{i}": 1 for i in range(n)}}),
}


def response(*items: Body) -> Body:
    return with_changes("openai_responses", output=list(items))


def answer(*parts: Body) -> Body:
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": list(parts)}


def part(**fields: Any) -> Body:
    return {"type": "output_text", "text": "hello", "annotations": [], **fields}


def annotation(number: int) -> Body:
    return {"type": "url_citation", **page(number)}


def reasoning(number: int, parts: int = 1) -> Body:
    summary = [{"type": "summary_text", "text": "t"}] * parts
    return {"type": "reasoning", "id": f"r{number}", "summary": summary, "encrypted_content": "ZQ=="}


def function_call(number: int) -> Body:
    return {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


RESPONSES: Kinds = {
    "annotations": lambda n: response(answer(part(annotations=each(n, annotation)))),
    "annotations of many texts": lambda n: response(answer(*each(n, lambda i: part(annotations=[annotation(i)])))),
    "texts": lambda n: response(answer(*[part()] * n)),
    "messages": lambda n: response(*each(n, lambda i: {**answer(part()), "id": f"m{i}"})),
    "calls": lambda n: response(*each(n, function_call)),
    "reasoning": lambda n: response(*each(n, reasoning)),
    "parts of a summary": lambda n: response(reasoning(0, n)),
    "log probabilities": lambda n: response(answer(part(logprobs=[TOKEN] * n))),
    "unknown items": lambda n: response(*each(n, lambda i: {"type": f"x{i}", "id": f"x{i}"})),
    "unknown parts": lambda n: response(answer(*each(n, lambda i: {"type": f"x{i}"}))),
    "searches": lambda n: response(
        *each(n, lambda i: {"type": "web_search_call", "id": f"w{i}", "action": {"type": "search", "query": "q"}})
    ),
}


def message(*blocks: Body) -> Body:
    return with_changes("anthropic_messages", content=list(blocks))


def location(number: int) -> Body:
    named = {"url": f"{WEB}{number}", "title": "t", "encrypted_index": "e", "cited_text": "x"}
    return {"type": "web_search_result_location", **named}


def text(**fields: Any) -> Body:
    return {"type": "text", "text": "hello", **fields}


FOUND = {"type": "web_search_result", "url": WEB, "title": "t", "encrypted_content": "e"}
MESSAGES: Kinds = {
    "citations": lambda n: message(text(citations=each(n, location))),
    "citations of many texts": lambda n: message(*each(n, lambda i: text(citations=[location(i)]))),
    "texts": lambda n: message(*[text()] * n),
    "calls": lambda n: message(*each(n, lambda i: {"type": "tool_use", "id": f"c{i}", "name": "f", "input": {}})),
    "thinking": lambda n: message(
        *each(n, lambda i: {"type": "thinking", "thinking": "t", "signature": f"s{i}"}), text()
    ),
    "redacted thinking": lambda n: message(*each(n, lambda i: {"type": "redacted_thinking", "data": f"d{i}"}), text()),
    "unknown blocks": lambda n: message(*each(n, lambda i: {"type": f"x{i}"})),
    "search results": lambda n: message(
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [FOUND] * n},
        text(),
    ),
}


def candidates(*parts: Body, **fields: Any) -> Body:
    content = {"role": "model", "parts": list(parts)}
    return with_changes("gemini", candidates=[{"index": 0, "content": content, "finishReason": "STOP", **fields}])


def grounding(count: int) -> Body:
    segment = {"startIndex": 0, "endIndex": 5, "text": "hello"}
    return {
        "groundingChunks": each(count, lambda i: {"web": {"uri": f"{WEB}{i}", "title": "t"}}),
        "groundingSupports": each(count, lambda i: {"segment": segment, "groundingChunkIndices": [i]}),
    }


GEMINI: Kinds = {
    "calls": lambda n: candidates(*[{"functionCall": {"name": "f", "args": {}}}] * n),
    "signed calls": lambda n: candidates(
        *[{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}] * n
    ),
    "signed texts": lambda n: candidates(*[{"text": "x", "thoughtSignature": "c2ln"}] * n),
    "thoughts and texts": lambda n: candidates(*each(n, lambda i: {"text": "x", "thought": i % 2 == 0})),
    "unknown parts": lambda n: candidates(*each(n, lambda i: {f"x{i}": {}})),
    "pictures": lambda n: candidates(*[{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}] * n),
    "grounding": lambda n: candidates({"text": "hello"}, groundingMetadata=grounding(n)),
    "unknown fields": lambda n: candidates({"text": "x"}, **{f"f{i}": 1 for i in range(n)}),
}
OLLAMA: Kinds = {
    "calls": lambda n: with_changes(
        "ollama", message={"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * n}
    ),
    "log probabilities": lambda n: with_changes("ollama", logprobs=[TOKEN] * n),
    "unknown fields": lambda n: with_changes("ollama", **{f"f{i}": 1 for i in range(n)}),
}


def cohere(**fields: Any) -> Body:
    said = {"role": "assistant", "content": [{"type": "text", "text": "hello"}], **fields}
    return with_changes("cohere", message=said)


def source(number: int) -> Body:
    return {"type": "document", "id": f"d{number}", "document": {"url": f"{WEB}{number}", "title": "t"}}


COHERE: Kinds = {
    "calls": lambda n: cohere(tool_calls=each(n, call)),
    "citations": lambda n: cohere(
        citations=each(n, lambda i: {"start": 0, "end": 5, "text": "hello", "sources": [source(i)]})
    ),
    "sources": lambda n: cohere(citations=[{"start": 0, "end": 5, "text": "hello", "sources": each(n, source)}]),
    "texts": lambda n: cohere(content=[text()] * n),
    "unknown blocks": lambda n: cohere(content=each(n, lambda i: {"type": f"x{i}"})),
}


def converse(*blocks: Body) -> Body:
    return with_changes("bedrock_converse", output={"message": {"role": "assistant", "content": list(blocks)}})


CONVERSE: Kinds = {
    "calls": lambda n: converse(*each(n, lambda i: {"toolUse": {"toolUseId": f"c{i}", "name": "f", "input": {}}})),
    "texts": lambda n: converse(*[{"text": "x"}] * n),
    "thinking": lambda n: converse(*[{"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}}] * n),
    "unknown blocks": lambda n: converse(*each(n, lambda i: {f"x{i}": {}})),
}
REPLIES_OF_MANY: dict[str, Kinds] = {
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "anthropic_messages": MESSAGES,
    "gemini": GEMINI,
    "ollama": OLLAMA,
    "cohere": COHERE,
    "bedrock_converse": CONVERSE,
}


def translated(body: bytes, provider: str, client: str) -> None:
    """Read a whole reply as the reader of its provider does, and write it for a client, whole and as a stream."""
    stages: list[Stage[Event, Event]] = [
        *cited_pages(provider, client, ("search_results", "citations")),
        *citations_between(provider, client),
        *logprobs_between(provider, client),
        *refusal_stages(provider, client),
        ForeignContent(client),
    ]
    reader = row_reader(
        provider_row(PROVIDERS[provider]), streamed=False, model="m", handling=ReplyHandling(stages=stages)
    )
    events, _ = reader.read_whole(body)
    asked = Request(model="m", messages=(), dialect=client)
    dialect(client).encode_response(reader.fold.response(), asked)
    encoder = dialect(client).open_encoder(asked, Arrival())
    for event in events:
        encoder.feed(event)
    encoder.finish()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("provider", REPLIES_OF_MANY)
def test_a_reply_of_many_things_takes_time_in_proportion(provider: str) -> None:
    cells = [f"{kind} for {client}" for kind in REPLIES_OF_MANY[provider] for client in PROVIDERS]
    for cell in sample(cells, BY_DAY, law=f"many things {provider}"):
        kind, _, client = cell.partition(" for ")
        few, many = (json.dumps(REPLIES_OF_MANY[provider][kind](count)).encode() for count in (FEW, MANY))

        def translate(body: bytes, client: str = client) -> None:
            translated(body, provider, client)

        try:
            check_growth(translate, few, many, below=BELOW)
        except AssertionError as problem:
            raise AssertionError(f"{cell}: {problem}") from problem
