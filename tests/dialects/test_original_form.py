"""A request that is read and written again for its own dialect: the bytes that head the prompt are the client's, by which caches hold.

The requests have the form of those that Claude Code 2.1, Codex 0.169 and clients of Chat send.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.values.wire import Arrival

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "properties": {"b": {"description": "d", "type": "string"}, "a": {"type": "number"}},
    "type": "object",
    "required": ["b"],
    "additionalProperties": False,
}
MARK = {"type": "ephemeral", "ttl": "1h"}
BODIES: dict[str, dict[str, Any]] = {
    "anthropic_messages": {
        "model": "claude-sonnet-4-5",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>"},
                    {"type": "text", "text": "q", "cache_control": MARK},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"b": "x", "a": 1}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "tool_use_id": "toolu_1",
                        "type": "tool_result",
                        "content": "r",
                        "is_error": False,
                        "cache_control": MARK,
                    }
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            {"role": "user", "content": [{"type": "text", "text": "on"}]},
        ],
        "system": [
            {"type": "text", "text": "You are an agent."},
            {"cache_control": MARK, "type": "text", "text": "Rules"},
        ],
        "tools": [
            {"name": "Bash", "description": "Runs", "input_schema": SCHEMA},
            {"input_schema": {"type": "object"}, "name": "Read", "cache_control": MARK},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
        ],
        "max_tokens": 32000,
    },
    "openai_responses": {
        "model": "gpt-5.5",
        "input": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "developer",
                "content": [{"type": "input_text", "text": "You are Codex."}],
            },
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
            },
            {"type": "function_call", "name": "exec_command", "arguments": '{"b": "x"}', "call_id": "c1"},
            {
                "type": "custom_tool_call",
                "status": "completed",
                "call_id": "c2",
                "name": "apply_patch",
                "input": "*** Begin Patch\n",
            },
            {"type": "function_call_output", "call_id": "c1", "output": "r"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        ],
        "tools": [
            {"type": "function", "name": "exec_command", "description": "Runs", "strict": False, "parameters": SCHEMA},
            {"type": "custom", "name": "apply_patch", "description": "Edits", "format": {"type": "text"}},
            {"type": "web_search", "external_web_access": False},
        ],
    },
    "openai_chat": {
        "model": "m",
        "messages": [
            {"content": [{"text": "You are an agent.", "type": "text"}], "role": "system"},
            {"role": "user", "content": [{"type": "text", "text": "q"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"arguments": '{"b": "x"}', "name": "bash"}}
                ],
            },
            {"role": "tool", "content": "r", "tool_call_id": "c"},
        ],
        "tools": [
            {"function": {"description": "Runs", "name": "bash", "parameters": SCHEMA}, "type": "function"},
            {"type": "function", "function": {"parameters": {"properties": {}, "type": "object"}, "name": "f"}},
            {"type": "function", "function": {"name": "g", "x_own": 1, "parameters": SCHEMA, "cache_control": MARK}},
        ],
    },
    "gemini": {
        "contents": [{"parts": [{"text": "q"}], "role": "user"}],
        "systemInstruction": {"parts": [{"text": "You are an agent."}], "role": "user"},
        "tools": [{"functionDeclarations": [{"description": "Runs", "name": "run", "parametersJsonSchema": SCHEMA}]}],
    },
}
HEADS = ("tools", "system", "systemInstruction", "messages", "input", "contents")


@pytest.mark.parametrize("spoken", BODIES)
def test_what_is_written_again_is_what_was_read(spoken: str) -> None:
    body = BODIES[spoken]
    row = next(row for row in builtin().providers if row.dialect == spoken)
    request = dialect(spoken).decode_request(
        json.dumps(body).encode(), Arrival(model="gemini-2.5-flash" if spoken == "gemini" else "")
    )
    wire = dialect(spoken).encode_request(msgspec.structs.replace(request, options=request.options), row)
    written = json.loads(wire.body)
    for head in HEADS:
        if head in body:
            assert json.dumps(written[head]) == json.dumps(body[head])


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize("spoken", BODIES)
def test_a_further_turn_leaves_the_bytes_before_it(source: str, spoken: str) -> None:
    body = BODIES[source]
    row = next(row for row in builtin().providers if row.dialect == spoken)
    arrival = Arrival(model="gemini-2.5-flash" if source == "gemini" else "")
    turns = next(name for name in ("messages", "input", "contents") if name in body)
    further = {**body, turns: [*body[turns], *({"role": role, **_said(source)} for role in ("user", "user"))]}
    first, second = (
        json.loads(
            dialect(spoken).encode_request(dialect(source).decode_request(json.dumps(one).encode(), arrival), row).body
        )
        for one in (body, further)
    )
    for head in HEADS:
        if head not in first:
            continue
        before = json.dumps(first[head])
        same = first[head] if head not in ("messages", "input", "contents") else first[head][:-1]
        assert json.dumps(second[head] if same is first[head] else second[head][: len(same)]) == json.dumps(same), (
            before
        )


def _said(source: str) -> dict[str, Any]:
    return {"parts": [{"text": "more"}]} if source == "gemini" else {"content": "more"}
