"""What the official libraries of AWS, Cohere, Ollama and Google (Interactions) make of a reply, whole and streamed.

None of them puts a stream together, so each reader here does it as the library's documentation shows: pieces of one block are joined.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import cohere
import httpx
import ollama
from botocore import eventstream, parsers, session  # type: ignore[import-untyped]
from google import genai
from google.genai import types

from conformance.heard import answer, http, plain

Message = dict[str, Any]
Read = Callable[[bytes], Message]


def _json(text: str) -> Any:
    return json.loads(text) if text.strip() else {}


@cache
def _shape(operation: str) -> Any:
    return session.get_session().get_service_model("bedrock-runtime").operation_model(operation).output_shape


def converse_whole(body: bytes) -> Message:
    """Converse, by botocore's parser."""
    given = {"status_code": 200, "headers": {"content-type": "application/json"}, "body": body}
    reply = parsers.RestJSONParser().parse(given, _shape("Converse"))
    blocks = [_converse_block(block) for block in reply["output"]["message"]["content"]]
    return {"content": blocks, "usage": reply["usage"], **_converse_stop(reply)}


def _converse_stop(reply: Message) -> Message:
    names = ("stopReason", "additionalModelResponseFields", "trace", "performanceConfig")
    return {name: reply.get(name) for name in names}


def _converse_block(block: Message) -> Message:
    if "citationsContent" in block:
        cited = block["citationsContent"]
        return {
            "text": "".join(one.get("text", "") for one in cited.get("content", ())),
            "citations": cited.get("citations", []),
        }
    if "reasoningContent" in block:
        thought = block["reasoningContent"]
        spoken = thought.get("reasoningText", {})
        data = {"redactedContent": thought["redactedContent"]} if "redactedContent" in thought else {}
        return {"text": spoken.get("text", ""), "signature": spoken.get("signature", ""), **data, "thought": True}
    return block if "text" not in block else {"text": block["text"], "citations": []}


def converse_streamed(body: bytes) -> Message:
    """ConverseStream, by botocore's decoder and parser."""
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(body)
    shape = _shape("ConverseStream").members["stream"]
    events = [parsers.EventStreamJSONParser().parse(event.to_response_dict(), shape) for event in buffer]
    blocks: dict[int, Message] = {}
    reply: Message = {}
    for event in events:
        [(name, value)] = event.items()
        if name == "contentBlockStart":
            blocks[value["contentBlockIndex"]] = {key: dict(item) for key, item in value["start"].items()}
        elif name == "contentBlockDelta":
            _grow_converse(blocks.setdefault(value["contentBlockIndex"], {}), value["delta"])
        elif name in ("messageStop", "metadata"):
            reply |= value
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = _json(block["toolUse"].get("input", ""))
    return {"content": list(blocks.values()), "usage": reply["usage"], **_converse_stop(reply)}


def _grow_converse(block: Message, delta: Message) -> None:
    for name, piece in delta.items():
        if name == "text":
            block["text"] = block.get("text", "") + piece
            block.setdefault("citations", [])
        elif name == "citation":
            block.setdefault("text", "")
            block.setdefault("citations", []).append(piece)
        elif name == "reasoningContent":
            block.setdefault("text", "")
            block.setdefault("signature", "")
            block["thought"] = True
            for key, item in piece.items():
                block[key] = block[key] + item if key in block else item
        elif name == "toolUse":
            block[name]["input"] = block[name].get("input", "") + piece["input"]
        elif name == "toolResult":
            block[name].setdefault("content", []).extend(piece)
        else:
            block[name] = piece


class _Server:
    """Answers every request with one body, for libraries on the older HTTP library."""

    def __init__(self) -> None:
        self.body, self.kind = b"", ""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": self.kind}, content=self.body)


_SERVER = _Server()
_ASKED: Message = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def _answer(body: bytes, kind: str) -> None:
    _SERVER.body, _SERVER.kind = body, kind


@cache
def _cohere() -> cohere.ClientV2:
    transport = httpx.Client(transport=httpx.MockTransport(_SERVER))
    return cohere.ClientV2(api_key="k", base_url="http://test", httpx_client=transport)


def cohere_whole(body: bytes) -> Message:
    """Cohere's chat, by its library."""
    _answer(body, "application/json")
    reply = _cohere().chat(**_ASKED)
    message = reply.message
    return {
        "id": reply.id,
        "content": [one.model_dump(exclude_none=True) for one in message.content or ()],
        "tool_plan": message.tool_plan or "",
        "calls": [one.model_dump(exclude_none=True) for one in message.tool_calls or ()],
        "citations": [one.model_dump(exclude_none=True) for one in message.citations or ()],
        "finish_reason": reply.finish_reason,
        "usage": reply.usage,
    }


def cohere_streamed(body: bytes) -> Message:
    """Cohere's stream, put together from the library's events."""
    _answer(body, "text/event-stream")
    content: dict[int, Message] = {}
    calls: dict[int, Message] = {}
    message: Message = {"id": None, "tool_plan": "", "citations": []}
    for event in _cohere().chat_stream(**_ASKED):
        delta: Any = getattr(event, "delta", None)
        index: Any = getattr(event, "index", None) or 0
        match event.type:
            case "message-start":
                message["id"] = event.id
            case "content-start":
                content[index] = delta.message.content.model_dump(exclude_none=True)
            case "content-delta":
                for name, piece in delta.message.content.model_dump(exclude_none=True).items():
                    held = content[index].get(name)
                    content[index][name] = held + piece if isinstance(held, str) else piece
            case "tool-plan-delta":
                message["tool_plan"] += delta.message.tool_plan
            case "tool-call-start":
                calls[index] = delta.message.tool_calls.model_dump(exclude_none=True)
            case "tool-call-delta":
                call = delta.message.tool_calls.model_dump(exclude_none=True)
                calls[index]["function"]["arguments"] += call.pop("function", {}).get("arguments", "")
                calls[index] |= call
            case "citation-start":
                message["citations"].append(delta.message.citations.model_dump(exclude_none=True))
            case "message-end":
                message |= {"finish_reason": delta.finish_reason, "usage": delta.usage}
    return {**message, "content": list(content.values()), "calls": list(calls.values())}


@cache
def _ollama() -> ollama.Client:
    return ollama.Client(host="http://test", transport=httpx.MockTransport(_SERVER))


_TOTALS = ("model", "created_at", "done", "done_reason", "prompt_eval_count", "eval_count", "total_duration")


def ollama_whole(body: bytes) -> Message:
    """Ollama's chat, by its library."""
    _answer(body, "application/json")
    return _lines([_ollama().chat(**_ASKED)])


def ollama_streamed(body: bytes) -> Message:
    """Ollama's stream, its lines put together."""
    _answer(body, "application/x-ndjson")
    return _lines(list(_ollama().chat(**_ASKED, stream=True)))


def _lines(parts: list[Any]) -> Message:
    return {
        "content": "".join(part.message.content or "" for part in parts),
        "thinking": "".join(part.message.thinking or "" for part in parts),
        "calls": [call.model_dump() for part in parts for call in part.message.tool_calls or ()],
        "images": [image for part in parts for image in part.message.images or ()],
        "logprobs": [one.model_dump() for part in parts for one in part.logprobs or ()],
        **{name: getattr(parts[-1], name) for name in _TOTALS},
    }


@cache
def _google() -> genai.Client:
    options = types.HttpOptions(base_url="http://bardo.test", httpx_client=http())
    return genai.Client(api_key="k", vertexai=False, http_options=options)


def interactions_whole(body: bytes) -> Message:
    """An interaction, by Google's library."""
    answer(body, stream=False, status=200)
    reply: Any = _google().interactions.create(model="m", input="hi")
    return _interaction(reply, [plain(step, by_alias=True) for step in reply.steps or ()])


def interactions_streamed(body: bytes) -> Message:
    """The stream of an interaction, put together from the library's events."""
    answer(body, stream=True, status=200)
    steps: dict[int, Message] = {}
    last: Any = None
    stream: Any = _google().interactions.create(model="m", input="hi", stream=True)
    for event in stream:
        if event.event_type == "step.start":
            steps[event.index] = plain(event.step, by_alias=True)
        elif event.event_type == "step.delta":
            _grow_step(steps[event.index], plain(event.delta, by_alias=True))
        elif event.event_type == "interaction.completed":
            last = event.interaction
    for step in steps.values():
        if isinstance(step.get("arguments"), str):
            step["arguments"] = _json(step["arguments"])
    return _interaction(last, list(steps.values()))


def _interaction(reply: Any, steps: list[Message]) -> Message:
    usage = plain(reply.usage, by_alias=True) if reply.usage else {}
    # The library's whole object has a count of its own.
    usage.pop("initial_input_tokens", None)
    return {"id": reply.id, "model": reply.model, "status": reply.status, "usage": usage, "steps": steps}


def _grow_step(step: Message, delta: Message) -> None:
    kind = delta.pop("type")
    if kind == "text":
        content = step.setdefault("content", [])
        if not content or content[-1].get("type") != "text":
            content.append({"type": "text", "text": ""})
        content[-1]["text"] += delta.pop("text", "")
        content[-1].update(delta)
    elif kind == "text_annotation_delta":
        content = step.setdefault("content", []) or [{"type": "text", "text": ""}]
        content[-1].setdefault("annotations", []).extend(delta["annotations"])
    elif kind == "thought_summary":
        if delta.get("continues"):
            step["summary"][-1]["text"] += delta["content"]["text"]
        else:
            step.setdefault("summary", []).append(delta["content"])
    elif kind == "thought_signature":
        step["signature"] = delta["signature"]
    elif kind == "arguments_delta":
        held = step["arguments"] if isinstance(step.get("arguments"), str) else ""
        step["arguments"] = held + delta["arguments"]
    else:
        step.setdefault("content", []).append({"type": kind, **delta})


BLOCK_CLIENTS: dict[str, tuple[Read, Read]] = {
    "bedrock_converse": (converse_whole, converse_streamed),
    "cohere": (cohere_whole, cohere_streamed),
    "ollama": (ollama_whole, ollama_streamed),
    "gemini_interactions": (interactions_whole, interactions_streamed),
}
