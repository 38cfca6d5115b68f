"""What the official client libraries make of a reply that may break off: the calls that their users would run, and how the reply ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from support.further_sdks import FURTHER_SDKS, StreamError
from support.sdk import SDKS
from support.talk import SCHEMA

CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama", "cohere", "bedrock_converse")
NAMES = ("first", "second")


@dataclass
class HeardCalls:
    """One reply. `calls` are those that a program may run, with the text or the object of their arguments; `failure` is the error."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    finish: str = ""
    failure: Exception | None = None


class Listener:
    """The library of one client, which asks a gateway."""

    def __init__(self, client: str, address: str) -> None:
        self._sdk = {**SDKS, **FURTHER_SDKS}[client](address)
        self._asked = _ASKED[client]

    def ask(self, model: str, *, stream: bool) -> HeardCalls:
        """Return what is heard of a reply."""
        heard = HeardCalls()
        try:
            self._asked(self._sdk.client, model, stream, heard)
        except Exception as problem:  # noqa: BLE001
            # What it holds of the library must not outlive the call.
            heard.failure = problem.with_traceback(None)
        return heard

    def close(self) -> None:
        """Close its connections."""
        self._sdk.close()


def _chat(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    asked = {"model": model, "messages": [{"role": "user", "content": "go"}], "tools": tools, "reasoning_effort": "low"}
    if not stream:
        _chat_choice(library.chat.completions.create(**asked).choices[0], heard)
        return
    pieces: dict[int, list[str]] = {}
    with library.chat.completions.create(**asked, stream=True) as chunks:
        for choice in (choice for chunk in chunks for choice in chunk.choices):
            for call in choice.delta.tool_calls or ():
                held = pieces.setdefault(call.index, [call.function.name or "", ""])
                held[1] += call.function.arguments or ""
            if choice.finish_reason:
                heard.finish = choice.finish_reason
                if choice.finish_reason != "length":
                    heard.calls += [(name, arguments) for name, arguments in pieces.values()]


def _chat_choice(choice: Any, heard: HeardCalls) -> None:
    heard.finish = choice.finish_reason
    if choice.finish_reason != "length":
        heard.calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]


def _responses(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    tools = [{"type": "function", "name": name, "parameters": SCHEMA} for name in NAMES]
    asked = {"model": model, "input": "go", "tools": tools, "store": False, "reasoning": {"effort": "low"}}
    if not stream:
        whole = library.responses.create(**asked)
        heard.finish = whole.status
        _items(whole.output, heard)
        return
    with library.responses.stream(**asked) as events:
        for event in events:
            if event.type == "response.output_item.done":
                _items([event.item], heard)
            elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                heard.finish = event.response.status
                heard.calls = []
                _items(event.response.output, heard)
            elif event.type == "error":
                raise StreamError(event.message)
    if heard.finish == "failed":
        raise StreamError("the response failed")


def _items(items: Any, heard: HeardCalls) -> None:
    heard.calls += [
        (item.name, item.arguments) for item in items if item.type == "function_call" and item.status != "incomplete"
    ]


def _messages(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    tools = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
    asked: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "go"}], "tools": tools}
    asked |= {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 2048}}
    if not stream:
        whole = library.messages.create(**asked)
        heard.finish = whole.stop_reason
        heard.calls = [(block.name, block.input) for block in whole.content if block.type == "tool_use"]
        return
    with library.messages.stream(**asked) as events:
        for event in events:
            if event.type == "content_block_stop" and event.content_block.type == "tool_use":
                heard.calls.append((event.content_block.name, event.content_block.input))
        whole = events.get_final_message()
        heard.finish = whole.stop_reason or ""
        heard.calls = [(block.name, block.input) for block in whole.content if block.type == "tool_use"]


def _gemini(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    declared = [{"name": name, "parameters_json_schema": SCHEMA} for name in NAMES]
    config = {
        "automatic_function_calling": {"disable": True},
        "tools": [{"function_declarations": declared}],
        "thinking_config": {"include_thoughts": True},
    }
    asked = {"model": model, "contents": "go", "config": config}
    chunks = library.models.generate_content_stream(**asked) if stream else [library.models.generate_content(**asked)]
    for chunk in chunks:
        for candidate in chunk.candidates or ():
            for part in (candidate.content and candidate.content.parts) or ():
                if part.function_call:
                    heard.calls.append((part.function_call.name, part.function_call.args))
            if candidate.finish_reason:
                heard.finish = candidate.finish_reason.value


def _ollama(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    asked = {"model": model, "messages": [{"role": "user", "content": "go"}], "tools": tools, "think": True}
    for line in library.chat(**asked, stream=True) if stream else [library.chat(**asked)]:
        heard.calls += [(call.function.name, dict(call.function.arguments)) for call in line.message.tool_calls or ()]
        if line.done:
            heard.finish = line.done_reason


def _cohere(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    asked = {"model": model, "messages": [{"role": "user", "content": "go"}], "tools": tools}
    if not stream:
        whole = library.chat(**asked)
        heard.finish = whole.finish_reason
        heard.calls = [(call.function.name, call.function.arguments) for call in whole.message.tool_calls or ()]
        return
    calls: dict[int, list[str]] = {}
    for event in library.chat_stream(**asked):
        if event.type == "tool-call-start":
            call = event.delta.message.tool_calls
            calls[event.index] = [call.function.name, call.function.arguments or ""]
        elif event.type == "tool-call-delta":
            calls[event.index][1] += event.delta.message.tool_calls.function.arguments or ""
        elif event.type == "tool-call-end":
            name, arguments = calls[event.index]
            heard.calls.append((name, arguments))
        elif event.type == "message-end":
            heard.finish = event.delta.finish_reason
            if event.delta.finish_reason == "ERROR" or getattr(event.delta, "error", None):
                raise StreamError(str(event.delta.error))


def _converse(library: Any, model: str, stream: bool, heard: HeardCalls) -> None:
    tools = [{"toolSpec": {"name": name, "inputSchema": {"json": SCHEMA}}} for name in NAMES]
    asked: dict[str, Any] = {"modelId": model, "messages": [{"role": "user", "content": [{"text": "go"}]}]}
    asked |= {"inferenceConfig": {"maxTokens": 8000}, "toolConfig": {"tools": tools}}
    asked["additionalModelRequestFields"] = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    if not stream:
        whole = library.converse(**asked)
        heard.finish = whole["stopReason"]
        blocks = whole["output"]["message"]["content"]
        heard.calls = [(block["toolUse"]["name"], block["toolUse"]["input"]) for block in blocks if "toolUse" in block]
        return
    calls: dict[int, list[str]] = {}
    with closing(library.converse_stream(**asked)["stream"]) as events:
        _converse_events(events, calls, heard)


def _converse_events(events: Any, calls: dict[int, list[str]], heard: HeardCalls) -> None:
    for event in events:
        ((kind, value),) = event.items()
        if kind == "contentBlockStart" and "toolUse" in value["start"]:
            calls[value["contentBlockIndex"]] = [value["start"]["toolUse"]["name"], ""]
        elif kind == "contentBlockDelta" and "toolUse" in value["delta"]:
            calls[value["contentBlockIndex"]][1] += value["delta"]["toolUse"]["input"]
        elif kind == "contentBlockStop" and value["contentBlockIndex"] in calls:
            name, arguments = calls[value["contentBlockIndex"]]
            heard.calls.append((name, arguments))
        elif kind == "messageStop":
            heard.finish = value["stopReason"]


_ASKED: dict[str, Callable[[Any, str, bool, HeardCalls], None]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
    "gemini": _gemini,
    "ollama": _ollama,
    "cohere": _cohere,
    "bedrock_converse": _converse,
}


def arguments_of(given: Any) -> Any:
    """Return the object that a program would call a tool with, None for one that cannot be read."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given or "{}")
    except ValueError:
        return None
