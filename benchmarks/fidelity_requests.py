"""Requests as clients of four dialects write them: what they ask of thinking, a turn of tools that is sent back, and a typed answer."""

from __future__ import annotations

from typing import Any, Literal

CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")
LIMIT = 40_000
"""The output's limit in every request."""
QUESTION, THOUGHT, SIGNATURE = "What is it like in Ulm?", "I look it up first.", "c2lnbmF0dXJlLW9mLXRoZS10aG91Z2h0"
CALL_ID, RESULT, BEFORE = "call_1234567890", "It is 21 degrees.", "One moment."
REDACTED = "cmVkYWN0ZWQtdGhpbmtpbmctb2YtQ2xhdWRl"
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


TURNS = ("plain", "two calls", "text before the call", "two rounds", "redacted")
"""What a turn of tools is like. Only Anthropic's clients have redacted thinking."""


def tool_turn(client: str, model: str, kind: str = "plain") -> dict[str, Any] | None:
    """Return a later request of a loop over tools: thoughts, signatures where the dialect has them, calls, results; None without such."""
    if kind == "redacted" and client != "anthropic_messages":
        return None
    return {**plain(client, model), **_TURNS[client](kind)}


def _calls(kind: str) -> tuple[str, ...]:
    return (CALL_ID, f"{CALL_ID}b") if kind == "two calls" else (CALL_ID,)


def _rounds(kind: str) -> int:
    return 2 if kind == "two rounds" else 1


def _chat_turn(kind: str) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "weather", "parameters": _PARAMETERS}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for number in range(_rounds(kind)):
        ids = [f"{one}{number or ''}" for one in _calls(kind)]
        calls = [
            {"id": one, "type": "function", "function": {"name": "weather", "arguments": '{"city":"Ulm"}'}}
            for one in ids
        ]
        text = BEFORE if kind == "text before the call" else None
        messages.append({"role": "assistant", "content": text, "reasoning_content": THOUGHT, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": one, "content": RESULT} for one in ids]
    return {"messages": messages, "tools": [tool]}


def _responses_turn(kind: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for number in range(_rounds(kind)):
        ids = [f"{one}{number or ''}" for one in _calls(kind)]
        summary = [{"type": "summary_text", "text": THOUGHT}]
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": SIGNATURE})
        if kind == "text before the call":
            said = [{"type": "output_text", "text": BEFORE, "annotations": []}]
            items.append(
                {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": said}
            )
        items += [
            {"type": "function_call", "call_id": one, "name": "weather", "arguments": '{"city":"Ulm"}'} for one in ids
        ]
        items += [{"type": "function_call_output", "call_id": one, "output": RESULT} for one in ids]
    return {
        "input": items,
        "store": False,
        "tools": [{"type": "function", "name": "weather", "parameters": _PARAMETERS}],
    }


def _messages_turn(kind: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for number in range(_rounds(kind)):
        ids = [f"{one}{number or ''}" for one in _calls(kind)]
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}]
        if kind == "redacted":
            blocks.append({"type": "redacted_thinking", "data": REDACTED})
        if kind == "text before the call":
            blocks.append({"type": "text", "text": BEFORE})
        blocks += [{"type": "tool_use", "id": one, "name": "weather", "input": {"city": "Ulm"}} for one in ids]
        messages.append({"role": "assistant", "content": blocks})
        results = [{"type": "tool_result", "tool_use_id": one, "content": RESULT} for one in ids]
        messages.append({"role": "user", "content": results})
    return {"messages": messages, "tools": [{"name": "weather", "input_schema": _PARAMETERS}]}


def _gemini_turn(kind: str) -> dict[str, Any]:
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    for _ in range(_rounds(kind)):
        parts: list[dict[str, Any]] = [{"text": THOUGHT, "thought": True}]
        if kind == "text before the call":
            parts.append({"text": BEFORE})
        # Of calls side by side only the first has a signature.
        calls = [{"functionCall": {"name": "weather", "args": {"city": "Ulm"}}} for _ in _calls(kind)]
        calls[0]["thoughtSignature"] = SIGNATURE  # type: ignore[assignment]
        contents.append({"role": "model", "parts": [*parts, *calls]})
        result = {"functionResponse": {"name": "weather", "response": {"result": RESULT}}}
        contents.append({"role": "user", "parts": [result for _ in calls]})
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
