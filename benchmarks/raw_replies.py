"""What a reply says in Chat, Responses, Messages and Gemini, read without bardo by the names that these dialects document.

The same reading serves what a provider sent and what a client got, so that the two can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
ENDS = {
    "stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "complete": "stop", "eos_token": "stop",
    "length": "length", "max_tokens": "length", "max_output_tokens": "length", "incomplete": "length", "model_length": "length",
    "model_context_window_exceeded": "length", "tool_calls": "tool_calls", "tool_call": "tool_calls", "tool_use": "tool_calls",
    "function_call": "tool_calls", "requires_action": "tool_calls", "content_filter": "refusal", "refusal": "refusal", "safety": "refusal",
    "content_filtered": "refusal", "guardrail_intervened": "refusal",
}  # fmt: skip
"""The words of all dialects for how a reply ended; any other word is unknown."""


@dataclass
class RawCall:
    """A call of a tool: arguments are JSON text that grew, or a value."""

    name: str = ""
    arguments: Any = ""
    id: str = ""


@dataclass
class RawReply:
    """A reply. `states` are signatures and ciphertexts, `end` is one of the values of ENDS, empty where it is none of them."""

    text: str = ""
    thinking: str = ""
    calls: list[RawCall] = field(default_factory=list)
    states: set[str] = field(default_factory=set)
    end: str = ""
    error: bool = False

    def say(self, text: Any) -> None:
        self.text += text if isinstance(text, str) else ""

    def think(self, text: Any) -> None:
        self.thinking += text if isinstance(text, str) else ""

    def keep(self, *states: Any) -> None:
        self.states |= {state for state in states if isinstance(state, str) and state}

    def ended_with_calls(self) -> None:
        """Read an end with calls as one: forced calls of Chat end with `stop`, and other dialects have no word of their own for them."""
        if self.calls and self.end == "stop":
            self.end = "tool_calls"

    def finish(self, word: Any) -> None:
        self.end = ENDS.get(str(word).lower(), self.end if word is None else "")


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of parts, or of a text."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]


def chat(objects: Sequence[Json], reply: RawReply) -> None:
    fields: dict[str, str] = {"reasoning_content": "", "reasoning": "", "details": ""}
    for one in objects:
        for choice in one.get("choices") or ():
            if choice.get("index") in (0, None):
                # Some send what has grown so far as a message beside each piece.
                first, other = ("delta", "message") if len(objects) > 1 else ("message", "delta")
                _message(choice.get(first) or choice.get(other) or {}, fields, reply)
                # OpenRouter says "tool_calls" of a call that was cut, and the provider's own word beside it.
                cut = choice.get("native_finish_reason") == "max_output_tokens"
                reply.finish("length" if cut else choice.get("finish_reason"))
                reply.error = reply.error or bool(choice.get("error"))
    reply.ended_with_calls()
    # The three fields repeat one another.
    reply.think(next((text for text in fields.values() if text.strip()), ""))


def _message(message: Json, fields: dict[str, str], reply: RawReply) -> None:
    content = message.get("content")
    if isinstance(content, str | dict):
        reply.say(content if isinstance(content, str) else json.dumps(content))
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "thinking":
            reply.think("".join(texts(part.get("thinking"))))
        else:
            reply.say(part.get("text"))
    reply.say(message.get("refusal"))
    for name in ("reasoning_content", "reasoning"):
        fields[name] += message.get(name) or "" if isinstance(message.get(name) or "", str) else ""
    for detail in message.get("reasoning_details") or ():
        fields["details"] += detail.get("text") or detail.get("summary") or ""
        reply.keep(detail.get("signature"), detail.get("data"))
    # TensorZero's place for what Chat has no word for.
    for extra in message.get("tensorzero_extra_content") or ():
        fields["details"] += extra.get("text") or ""
        reply.keep(extra.get("signature"))
    for call in (*(message.get("tool_calls") or ()), *_old_call(message)):
        _grow(call, reply)


def _old_call(message: Json) -> Iterator[Json]:
    if (message.get("function_call") or {}).get("name") or (message.get("function_call") or {}).get("arguments"):
        yield {"index": 0, "function": message["function_call"]}


def _grow(call: Json, reply: RawReply) -> None:
    google = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
    reply.keep(google)
    function = call.get("function") or call.get("custom") or {}
    index, name, call_id = call.get("index"), function.get("name") or "", call.get("id") or ""
    last = reply.calls[-1] if reply.calls else None
    if index is None or index >= len(reply.calls) or (name and call_id and last is not None and call_id != last.id):
        reply.calls.append(RawCall(id=call_id))
        index = len(reply.calls) - 1
    held = reply.calls[index]
    held.name = held.name or name
    arguments = function.get("arguments") or function.get("input") or ""
    held.arguments = held.arguments + arguments if isinstance(arguments, str) else arguments


def responses(objects: Sequence[Json], reply: RawReply) -> None:
    whole = next((one["response"] for one in reversed(objects) if str(one.get("type")) in _CLOSING), None)
    whole = whole or next((one for one in objects if "output" in one), {})
    # The ciphertext of an item is the one that came with its end.
    done = [one["item"] for one in objects if one.get("type") == "response.output_item.done"]
    items = done or whole.get("output") or []
    for item in items:
        _item(item, reply)
    details = whole.get("incomplete_details") or {}
    reply.finish(details.get("reason") or whole.get("status"))
    # A custom call may be one of the provider's own tools.
    if any(item.get("type") == "function_call" for item in items):
        reply.ended_with_calls()


_CLOSING = ("response.completed", "response.incomplete", "response.failed")


def _item(item: Json, reply: RawReply) -> None:
    match item.get("type"):
        case "reasoning":
            for text in (*texts(item.get("content")), *texts(item.get("summary"))):
                reply.think(text)
            reply.keep(item.get("encrypted_content"))
        case "message":
            for part in item.get("content") or ():
                reply.say(part.get("text") or part.get("refusal"))
        case "function_call" | "custom_tool_call":
            reply.calls.append(RawCall(item.get("name", ""), item.get("arguments") or item.get("input") or ""))


def messages(objects: Iterable[Json], reply: RawReply) -> None:
    blocks: dict[int, Json] = {}
    for one in objects:
        index = one.get("index", 0)
        match one.get("type"):
            case "message":
                blocks |= dict(enumerate(one.get("content") or ()))
                reply.finish(one.get("stop_reason"))
            case "content_block_start":
                blocks[index] = dict(one["content_block"])
            case "content_block_delta":
                _grow_block(blocks[index], one["delta"])
            case "message_delta":
                reply.finish(one["delta"].get("stop_reason"))
    for _, block in sorted(blocks.items()):
        _block(block, reply)


def _grow_block(block: Json, delta: Json) -> None:
    for name in ("text", "thinking", "signature"):
        if isinstance(delta.get(name), str):
            block[name] = block.get(name, "") + delta[name]
    if isinstance(delta.get("partial_json"), str):
        before = block.get("input")
        block["input"] = (before if isinstance(before, str) else "") + delta["partial_json"]


def _block(block: Json, reply: RawReply) -> None:
    match block.get("type"):
        case "text":
            reply.say(block.get("text"))
        case "thinking":
            reply.think(block.get("thinking"))
            reply.keep(block.get("signature"))
        case "redacted_thinking":
            reply.keep(block.get("data"))
        case "tool_use":
            reply.calls.append(RawCall(block.get("name", ""), block.get("input")))


def gemini(objects: Iterable[Json], reply: RawReply) -> None:
    for one in objects:
        for candidate in one.get("candidates") or ():
            if candidate.get("index", 0):
                continue
            for part in (candidate.get("content") or {}).get("parts") or ():
                (reply.think if part.get("thought") else reply.say)(part.get("text"))
                if part.get("functionCall"):
                    called = part["functionCall"]
                    reply.calls.append(RawCall(called.get("name", ""), called.get("args") or {}))
                reply.keep(part.get("thoughtSignature"))
            reply.finish(candidate.get("finishReason"))
    reply.ended_with_calls()
