"""Clients of four dialects in a tool loop, which give back all of a reply, or leave its thinking or its signatures out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from surfaces.gateway.replay_loops import QUESTION, TOOL

Drops = Literal["nothing", "thinking", "signatures"]
Body = dict[str, Any]
_SCHEMA = TOOL["function"]["parameters"]  # type: ignore[index]


@dataclass
class Client:
    """One client: `path` and `ask` are what it sends, `take` keeps of a reply what it keeps, and returns its text and whether it called."""

    path: str
    ask: Callable[[list[Any]], Body]
    take: Callable[[Body, list[Any], Drops], tuple[str, bool]]
    history: list[Any] = field(default_factory=list)


def _chat_take(reply: Body, history: list[Any], drops: Drops) -> tuple[str, bool]:
    message = reply["choices"][0]["message"]
    if drops != "nothing":
        message = {name: message[name] for name in ("role", "content", "tool_calls") if name in message}
    calls = message.get("tool_calls") or []
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
    history += [message, *results]
    return message.get("content") or "", bool(calls)


def _messages_take(reply: Body, history: list[Any], drops: Drops) -> tuple[str, bool]:
    blocks = reply["content"]
    if drops == "thinking":
        blocks = [one for one in blocks if one["type"] not in ("thinking", "redacted_thinking")]
    if drops == "signatures":
        blocks = [{name: value for name, value in one.items() if name != "signature"} for one in blocks]
    calls = [one for one in blocks if one["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one["id"], "content": "sunny"} for one in calls]
    history += [{"role": "assistant", "content": blocks}, *([{"role": "user", "content": results}] if results else ())]
    return "".join(one.get("text", "") for one in blocks if one["type"] == "text"), bool(calls)


def _responses_take(reply: Body, history: list[Any], drops: Drops) -> tuple[str, bool]:
    items = [one for one in reply["output"] if drops == "nothing" or one["type"] != "reasoning"]
    calls = [one for one in items if one["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": one["call_id"], "output": "sunny"} for one in calls]
    history += [*items, *results]
    said = [part.get("text", "") for one in items if one["type"] == "message" for part in one["content"]]
    return "".join(said), bool(calls)


def _gemini_take(reply: Body, history: list[Any], drops: Drops) -> tuple[str, bool]:
    parts = reply["candidates"][0]["content"]["parts"]
    if drops != "nothing":
        parts = [{name: value for name, value in one.items() if name != "thoughtSignature"} for one in parts]
    if drops == "thinking":
        parts = [one for one in parts if not one.get("thought")]
    calls = [one["functionCall"] for one in parts if "functionCall" in one]
    answers = [{**call, "response": {"output": "sunny"}} for call in calls]
    results = [{"functionResponse": {name: one[name] for name in one if name != "args"}} for one in answers]
    history += [{"role": "model", "parts": parts}, *([{"role": "user", "parts": results}] if results else ())]
    return "".join(one.get("text", "") for one in parts if not one.get("thought")), bool(calls)


def open_client(dialect: str, model: str) -> Client:
    """Return a client that asks `model` with thinking, at the beginning of a conversation."""
    question = QUESTION["content"]
    match dialect:
        case "chat":
            fixed: Body = {"model": model, "tools": [TOOL], "reasoning_effort": "low"}
            return Client(
                "/v1/chat/completions", lambda said: {**fixed, "messages": said}, _chat_take, [dict(QUESTION)]
            )
        case "messages":
            thinking = {"type": "enabled", "budget_tokens": 2000}
            tools = [{"name": "weather", "input_schema": _SCHEMA}]
            fixed = {"model": model, "max_tokens": 6000, "thinking": thinking, "tools": tools}
            return Client("/v1/messages", lambda said: {**fixed, "messages": said}, _messages_take, [dict(QUESTION)])
        case "responses":
            tools = [{"type": "function", "name": "weather", "parameters": _SCHEMA}]
            state: Body = {"store": False, "include": ["reasoning.encrypted_content"]}
            fixed = {"model": model, "reasoning": {"effort": "low", "summary": "auto"}, "tools": tools, **state}
            return Client("/v1/responses", lambda said: {**fixed, "input": said}, _responses_take, [dict(QUESTION)])
        case _:
            path = f"/v1beta/models/{model}:generateContent"
            thinking = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000}}
            declared = [{"functionDeclarations": [{"name": "weather", "parameters": _SCHEMA}]}]
            fixed = {"tools": declared, "generationConfig": thinking}
            asked = [{"role": "user", "parts": [{"text": question}]}]
            return Client(path, lambda said: {**fixed, "contents": said}, _gemini_take, asked)
