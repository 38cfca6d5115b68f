"""Requests as clients of four dialects write them: what they ask of thinking, a turn of tools that is sent back, and a typed answer."""

from __future__ import annotations

from typing import Any, Literal

CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")
LIMIT = 40_000
"""The output's limit in every request."""
QUESTION, THOUGHT, SIGNATURE = "What is it like in Ulm?", "I look it up first.", "c2lnbmF0dXJlLW9mLXRoZS10aG91Z2h0"
CALL_ID, RESULT = "call_1234567890", "It is 21 degrees."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
Asked = Literal["off"] | str | int
"""Thinking off, a level, or a budget in tokens."""


def plain(client: str, model: str) -> dict[str, Any]:
    """Return a request that asks nothing of thinking."""
    user = {"role": "user", "content": QUESTION}
    if client == "openai_chat":
        return {"model": model, "messages": [user], "max_completion_tokens": LIMIT}
    if client == "openai_responses":
        return {"model": model, "input": [user], "max_output_tokens": LIMIT}
    if client == "anthropic_messages":
        return {"model": model, "messages": [user], "max_tokens": LIMIT}
    turn = {"role": "user", "parts": [{"text": QUESTION}]}
    return {"model": model, "contents": [turn], "generationConfig": {"maxOutputTokens": LIMIT}}


def with_thinking(client: str, model: str, asked: Asked) -> dict[str, Any] | None:
    """Return a request that asks for this thinking; None where the client's dialect has no field for it."""
    body = plain(client, model)
    fields = _FIELDS[client](asked)
    if fields is None:
        return None
    config = fields.pop("generationConfig", {})
    return {**body, **fields, **({"generationConfig": {**body["generationConfig"], **config}} if config else {})}


def _chat_fields(asked: Asked) -> dict[str, Any] | None:
    if isinstance(asked, int):
        return {"bardo": {"reasoning": asked}}
    return {"reasoning_effort": "none" if asked == "off" else asked}


def _responses_fields(asked: Asked) -> dict[str, Any] | None:
    if isinstance(asked, int):
        return {"bardo": {"reasoning": asked}}
    return {"reasoning": {"effort": "none" if asked == "off" else asked}}


def _messages_fields(asked: Asked) -> dict[str, Any] | None:
    if isinstance(asked, int):
        return {"thinking": {"type": "enabled", "budget_tokens": asked}}
    if asked == "off":
        return {"thinking": {"type": "disabled"}}
    return None if asked == "minimal" else {"thinking": {"type": "adaptive"}, "output_config": {"effort": asked}}


def _gemini_fields(asked: Asked) -> dict[str, Any] | None:
    if isinstance(asked, int) or asked == "off":
        return {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0 if asked == "off" else asked}}}
    return None if asked == "max" else {"generationConfig": {"thinkingConfig": {"thinkingLevel": asked.upper()}}}


_FIELDS = {
    "openai_chat": _chat_fields,
    "openai_responses": _responses_fields,
    "anthropic_messages": _messages_fields,
    "gemini": _gemini_fields,
}


def tool_turn(client: str, model: str) -> dict[str, Any]:
    """Return the second request of a loop over tools: the thought, its signature where the dialect has one, the call and its result."""
    return {**plain(client, model), **_TURNS[client]()}


def _chat_turn() -> dict[str, Any]:
    call = {"id": CALL_ID, "type": "function", "function": {"name": "weather", "arguments": '{"city":"Ulm"}'}}
    assistant = {"role": "assistant", "content": None, "reasoning_content": THOUGHT, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT}
    tool = {"type": "function", "function": {"name": "weather", "parameters": _PARAMETERS}}
    return {"messages": [{"role": "user", "content": QUESTION}, assistant, result], "tools": [tool]}


def _responses_turn() -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": THOUGHT}]
    items = [
        {"role": "user", "content": QUESTION},
        {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SIGNATURE},
        {"type": "function_call", "call_id": CALL_ID, "name": "weather", "arguments": '{"city":"Ulm"}'},
        {"type": "function_call_output", "call_id": CALL_ID, "output": RESULT},
    ]
    return {
        "input": items,
        "store": False,
        "tools": [{"type": "function", "name": "weather", "parameters": _PARAMETERS}],
    }


def _messages_turn() -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
    call = {"type": "tool_use", "id": CALL_ID, "name": "weather", "input": {"city": "Ulm"}}
    result = {"type": "tool_result", "tool_use_id": CALL_ID, "content": RESULT}
    messages = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [result]},
    ]
    return {"messages": messages, "tools": [{"name": "weather", "input_schema": _PARAMETERS}]}


def _gemini_turn() -> dict[str, Any]:
    call = {"functionCall": {"name": "weather", "args": {"city": "Ulm"}}, "thoughtSignature": SIGNATURE}
    result = {"functionResponse": {"name": "weather", "response": {"result": RESULT}}}
    contents = [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"text": THOUGHT, "thought": True}, call]},
        {"role": "user", "parts": [result]},
    ]
    declared = {"name": "weather", "parametersJsonSchema": _PARAMETERS}
    return {"contents": contents, "tools": [{"functionDeclarations": [declared]}]}


_TURNS = {
    "openai_chat": _chat_turn,
    "openai_responses": _responses_turn,
    "anthropic_messages": _messages_turn,
    "gemini": _gemini_turn,
}


def with_schema(client: str, model: str) -> dict[str, Any]:
    """Return a request for a typed answer."""
    body = plain(client, model)
    if client == "openai_chat":
        form = {"name": "weather", "strict": True, "schema": SCHEMA}
        return {**body, "response_format": {"type": "json_schema", "json_schema": form}}
    if client == "openai_responses":
        return {
            **body,
            "text": {"format": {"type": "json_schema", "name": "weather", "strict": True, "schema": SCHEMA}},
        }
    if client == "anthropic_messages":
        return {**body, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    form = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    return {**body, "generationConfig": {**body["generationConfig"], **form}}
