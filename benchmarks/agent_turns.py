"""A turn of an agent: a system prompt, tools, and a history of tool calls, as a Chat or an Anthropic client sends it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from benchmarks.contestants import Lane
from benchmarks.load import Asked

TOOLS = 12
_SYSTEM = "You are an agent that mends programs. " * 100
_PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_SAYS = "Does one thing with a file, and says what came of it. " * 4


def agent_turn(lane: Lane, model: str, calls: int) -> Asked:
    """Return a request with so many tool calls behind it, each with some thinking before it and 800 bytes of a result."""
    plain = lane.asked(model)
    fields = json.loads(plain.body)
    written = _messages(calls) if lane.dialect == "anthropic_messages" else _chat(calls)
    return msgspec.structs.replace(plain, body=json.dumps({**fields, **written}))


def _chat(calls: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": "Mend it."}]
    for place in range(calls):
        call_id = _call_id(place)
        function = {"name": _name(place), "arguments": json.dumps(_arguments(place))}
        call = {"id": call_id, "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "reasoning_content": _thought(place), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": _result(place)},
        ]
    tools = [{"name": _name(place), "description": _SAYS, "parameters": _PATH} for place in range(TOOLS)]
    return {"messages": messages, "tools": [{"type": "function", "function": tool} for tool in tools]}


def _messages(calls: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend it."}]
    for place in range(calls):
        call_id = _call_id(place)
        messages += [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": _thought(place), "signature": ""},
                    {"type": "tool_use", "id": call_id, "name": _name(place), "input": _arguments(place)},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call_id, "content": _result(place)}],
            },
        ]
    tools = [{"name": _name(place), "description": _SAYS, "input_schema": _PATH} for place in range(TOOLS)]
    return {"system": _SYSTEM, "messages": messages, "tools": tools}


def _call_id(place: int) -> str:
    return f"call_8f2KzPq{place:03d}Ab"


def _name(place: int) -> str:
    return f"tool_{place % TOOLS}"


def _arguments(place: int) -> dict[str, str]:
    return {"path": f"src/part_{place}.py"}


def _thought(place: int) -> str:
    return f"What part {place} does is not clear yet, so I look into it before I change it. " * 3


def _result(place: int) -> str:
    return (f"line {place}: nothing is wrong here\n" * 40)[:800]
