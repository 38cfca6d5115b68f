"""Gemini's generateContent, as its official reference says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from bardo.operators.conform.checked_server import Frame, ReceivedReply
from bardo.operators.conform.reading import ANSWER_SCHEMA, TOOL, TOOL_SCHEMA, Reading, ToolUse, read_frames

_REFUSALS = frozenset({"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"})


class Gemini:
    """Gemini's generateContent."""

    counts_thinking = True
    names_calls = False
    limits = frozenset({"MAX_TOKENS"})
    key_statuses = frozenset({400, 401, 403})

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path below the base URL."""
        return f"models/{quote(model, safe='/')}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers of a key."""
        return {"x-goog-api-key": key}

    def question(self, model: str, text: str, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]:
        """Return a request; the model and the stream stand in the path."""
        return {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "generationConfig": {"maxOutputTokens": limit},
        }

    def with_thinking(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for thinking."""
        config = {**body["generationConfig"], "thinkingConfig": {"includeThoughts": True}}
        return {**body, "generationConfig": config}

    def with_tool(self, body: dict[str, Any], *, forced: bool) -> dict[str, Any]:
        """Offer the tool."""
        declared = {"name": TOOL, "description": "The weather of a city.", "parameters": TOOL_SCHEMA}
        mode = {"mode": "ANY", "allowedFunctionNames": [TOOL]} if forced else {"mode": "AUTO"}
        tools = [{"functionDeclarations": [declared]}]
        return {**body, "tools": tools, "toolConfig": {"functionCallingConfig": mode}}

    def with_schema(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for an answer in the schema."""
        asked = {"responseMimeType": "application/json", "responseJsonSchema": ANSWER_SCHEMA}
        return {**body, "generationConfig": {**body["generationConfig"], **asked}}

    def with_result(self, body: dict[str, Any], reply: Any, calls: Sequence[ToolUse]) -> dict[str, Any]:
        """Return the next turn: the content as it came, and the results."""
        results = []
        for call in calls:
            answer: dict[str, Any] = {"name": call.name, "response": {"output": "18 °C, sunny"}}
            results.append({"functionResponse": {**answer, "id": call.id} if call.id else answer})
        turns = [reply["candidates"][0]["content"], {"role": "user", "parts": results}]
        mode = {"functionCallingConfig": {"mode": "AUTO"}}
        return {**body, "contents": [*body["contents"], *turns], "toolConfig": mode}

    def wrong_value(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with a value of the wrong type."""
        return {**body, "contents": 5}

    def read_whole(self, reply: Any) -> Reading:
        """Read a whole reply."""
        reading = Reading(ended=True)
        _response(reading, reply)
        reading.require(bool(reading.finish), "the candidate has no finishReason")
        return reading

    def read_stream(self, frames: Sequence[Frame]) -> Reading:
        """Read a stream."""
        reading = Reading()

        def take(_: Frame, value: dict[str, Any]) -> None:
            if "error" in value:
                reading.error = json.dumps(value["error"])[:200]
                return
            _response(reading, value)

        reading.require(
            not any(frame.data.strip() == "[DONE]" for frame in frames),
            "the stream has a [DONE], which this API has not",
        )
        read_frames([frame for frame in frames if frame.data.strip() != "[DONE]"], reading, take)
        reading.ended = bool(reading.finish) and not reading.error
        reading.require(reading.ended or bool(reading.error), "no event has a finishReason")
        return reading

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return what is wrong with the form of an error."""
        reading = Reading()
        error = reading.field(reply.json, "error", dict, "body")
        if error is not None:
            reading.field(error, "message", str, "error")
            reading.field(error, "status", str, "error")
            reading.require(
                error.get("code") == reply.status, f"error.code is {error.get('code')!r}, the status {reply.status}"
            )
        return reading.faults

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return b"exceeds the maximum number of tokens allowed" in reply.body


def _response(reading: Reading, value: Any) -> None:
    candidates = reading.field(value, "candidates", list, "response") or []
    for candidate in candidates[:1]:
        content = candidate.get("content") if isinstance(candidate, dict) else None
        for part in (content or {}).get("parts") or []:
            _part(reading, part)
        finish = candidate.get("finishReason")
        if finish is not None:
            reading.require(isinstance(finish, str) and finish.isupper(), f"finishReason is {finish!r}")
            reading.finish = str(finish)
            reading.refused = reading.finish in _REFUSALS
    usage = value.get("usageMetadata") if isinstance(value, dict) else None
    if isinstance(usage, dict):
        reading.input_tokens = reading.field(usage, "promptTokenCount", int, "usageMetadata")
        # What a search brought is counted apart from the prompt, and in the total (recorded of gemini-2.5-flash).
        brought = usage.get("toolUsePromptTokenCount")
        if reading.input_tokens is not None and isinstance(brought, int):
            reading.input_tokens += brought
        reading.total_tokens = reading.field(usage, "totalTokenCount", int, "usageMetadata")
        thought, answered = usage.get("thoughtsTokenCount"), usage.get("candidatesTokenCount")
        reading.thinking_tokens = thought if isinstance(thought, int) else None
        reading.output_tokens = (
            (answered or 0) + (thought or 0) if answered is not None or thought is not None else None
        )


def _part(reading: Reading, part: Any) -> None:
    if not isinstance(part, dict):
        reading.wrong("a part is no object")
        return
    reading.hidden_thinking = reading.hidden_thinking or "thoughtSignature" in part
    if isinstance(part.get("text"), str):
        if part.get("thought"):
            reading.thinking += part["text"]
        else:
            reading.text += part["text"]
    if "functionCall" in part:
        call = part["functionCall"]
        name = reading.field(call, "name", str, "functionCall") or ""
        arguments = call.get("args", {}) if isinstance(call, dict) else None
        reading.require(isinstance(arguments, dict), "functionCall.args is no object")
        reading.calls.append(ToolUse(id=str(call.get("id") or ""), name=name, arguments=json.dumps(arguments)))
