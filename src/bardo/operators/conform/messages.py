"""Anthropic's Messages, as its official reference says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.operators.conform.checked_server import Frame, ReceivedReply
from bardo.operators.conform.reading import ANSWER_SCHEMA, TOOL, TOOL_SCHEMA, Reading, ToolUse, read_frames

_STOPS = frozenset(
    {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"}
)
_ERRORS = frozenset(
    {
        "invalid_request_error",
        "authentication_error",
        "billing_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "rate_limit_error",
        "timeout_error",
        "api_error",
        "overloaded_error",
    }
)
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The block to which a delta belongs, and its field."""
_OTHERS_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
"""Blocks whose arguments come in the same pieces, and which the provider answers itself (recorded of claude-sonnet-4-0, 2025)."""


class Messages:
    """Messages."""

    counts_thinking = False
    names_calls = True
    limits = frozenset({"max_tokens"})
    key_statuses = frozenset({401, 403})

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path below the base URL."""
        return "messages"

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers of a key."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def question(self, model: str, text: str, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]:
        """Return a request."""
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": limit}
        return {**body, "stream": True} if stream else body

    def with_thinking(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for thinking."""
        return {**body, "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}

    def with_tool(self, body: dict[str, Any], *, forced: bool) -> dict[str, Any]:
        """Offer the tool."""
        tool = {"name": TOOL, "description": "The weather of a city.", "input_schema": TOOL_SCHEMA}
        return {**body, "tools": [tool], "tool_choice": {"type": "tool", "name": TOOL} if forced else {"type": "auto"}}

    def with_schema(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for an answer in the schema."""
        return {**body, "output_config": {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}}}

    def with_result(self, body: dict[str, Any], reply: Any, calls: Sequence[ToolUse]) -> dict[str, Any]:
        """Return the next turn: the blocks as they came, and the results."""
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "18 °C, sunny"} for call in calls]
        turns = [{"role": "assistant", "content": reply["content"]}, {"role": "user", "content": results}]
        return {**body, "messages": [*body["messages"], *turns], "tool_choice": {"type": "auto"}}

    def wrong_value(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with a value of the wrong type."""
        return {**body, "messages": "none"}

    def read_whole(self, reply: Any) -> Reading:
        """Read a whole reply."""
        reading = Reading(ended=True)
        _head(reading, reply)
        for block in reading.field(reply, "content", list, "message") or []:
            _block(reading, block)
        _stop(reading, reply.get("stop_reason") if isinstance(reply, dict) else None)
        _usage(reading, reply.get("usage") if isinstance(reply, dict) else None)
        return reading

    def read_stream(self, frames: Sequence[Frame]) -> Reading:
        """Read a stream."""
        return _Stream().read(frames)

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return what is wrong with the form of an error."""
        reading, value = Reading(), reply.json
        reading.require(isinstance(value, dict) and value.get("type") == "error", "body.type is not error")
        error = reading.field(value, "error", dict, "body")
        if error is not None:
            reading.field(error, "message", str, "error")
            reading.require(error.get("type") in _ERRORS, f"error.type is {error.get('type')!r}")
        return reading.faults

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return b"prompt is too long" in reply.body


class _Stream:
    """Reads one stream: blocks open and close one after the other, by their index."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._open: dict[str, Any] | None = None
        self._next = 0

    def read(self, frames: Sequence[Frame]) -> Reading:
        """Return what the events say."""
        reading = self._reading
        read_frames(frames, reading, self._take)
        kinds = [frame.json.get("type") for frame in frames if isinstance(frame.json, dict)]
        kinds = [kind for kind in kinds if kind != "ping"]
        reading.require(kinds[:1] in (["message_start"], ["error"]), "the first event is not message_start")
        reading.ended = kinds.count("message_stop") == 1 and kinds[-1] == "message_stop"
        reading.require(reading.ended or bool(reading.error), "the stream does not end with one message_stop")
        reading.require(bool(reading.finish) or bool(reading.error), "no message_delta has a stop_reason")
        reading.require(self._open is None or bool(reading.error), "a block was started and never stopped")
        return reading

    def _take(self, frame: Frame, event: dict[str, Any]) -> None:
        reading, kind = self._reading, event.get("type")
        reading.require(frame.name == kind, f"the event is named {frame.name!r}, and its type is {kind!r}")
        match kind:
            case "message_start":
                _head(reading, event.get("message"))
                _usage(reading, (event.get("message") or {}).get("usage"))
            case "content_block_start":
                self._start(event)
            case "content_block_delta":
                self._piece(event)
            case "content_block_stop":
                self._stop(event)
            case "message_delta":
                _stop(reading, (event.get("delta") or {}).get("stop_reason"))
                _usage(reading, event.get("usage"), later=True)
            case "error":
                reading.error = json.dumps(event.get("error"))[:200]

    def _start(self, event: dict[str, Any]) -> None:
        reading = self._reading
        reading.require(self._open is None, "a block was started while another was open")
        reading.require(event.get("index") == self._next, "the index of a block does not count by one")
        self._open = dict(event.get("content_block") or {})
        if self._open.get("type") == "tool_use":
            reading.calls.append(ToolUse(id=str(self._open.get("id") or ""), name=str(self._open.get("name") or "")))
        elif self._open.get("type") == "redacted_thinking":
            reading.hidden_thinking = True

    def _piece(self, event: dict[str, Any]) -> None:
        reading, delta = self._reading, event.get("delta") or {}
        block, field = _DELTAS.get(str(delta.get("type")), ("", ""))
        if self._open is None or event.get("index") != self._next:
            reading.wrong("a delta belongs to no open block")
            return
        if not block:
            return
        within = self._open.get("type")
        if block == "tool_use" and within in _OTHERS_CALLS:
            return
        reading.require(within == block, f"a {delta.get('type')} in a block of {within}")
        said = reading.field(delta, field, str, str(delta.get("type"))) or ""
        match field:
            case "text":
                reading.text += said
            case "thinking":
                reading.thinking += said
            case "partial_json" if reading.calls:
                reading.calls[-1].arguments += said

    def _stop(self, event: dict[str, Any]) -> None:
        self._reading.require(
            self._open is not None and event.get("index") == self._next, "a block is stopped that is not open"
        )
        self._open = None
        self._next += 1


def _head(reading: Reading, message: Any) -> None:
    reading.field(message, "id", str, "message")
    reading.field(message, "model", str, "message")
    reading.require(isinstance(message, dict) and message.get("type") == "message", "message.type is not message")
    reading.require(isinstance(message, dict) and message.get("role") == "assistant", "message.role is not assistant")


def _block(reading: Reading, block: Any) -> None:
    match reading.field(block, "type", str, "content[]"):
        case "text":
            reading.text += reading.field(block, "text", str, "text block") or ""
        case "thinking":
            reading.thinking += reading.field(block, "thinking", str, "thinking block") or ""
            reading.field(block, "signature", str, "thinking block")
        case "redacted_thinking":
            reading.hidden_thinking = True
        case "tool_use":
            arguments = reading.field(block, "input", dict, "tool_use block")
            identity = reading.field(block, "id", str, "tool_use block") or ""
            name = reading.field(block, "name", str, "tool_use block") or ""
            reading.calls.append(ToolUse(id=identity, name=name, arguments=json.dumps(arguments)))


def _stop(reading: Reading, reason: Any) -> None:
    reading.finish = reason if isinstance(reason, str) else ""
    reading.refused = reading.finish == "refusal"
    reading.require(reading.finish in _STOPS, f"stop_reason is {reason!r}")


def _usage(reading: Reading, usage: Any, *, later: bool = False) -> None:
    if not isinstance(usage, dict):
        reading.wrong("usage is missing")
        return
    if not later or "input_tokens" in usage:
        reading.input_tokens = reading.field(usage, "input_tokens", int, "usage")
    reading.output_tokens = reading.field(usage, "output_tokens", int, "usage")
