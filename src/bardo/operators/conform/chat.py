"""Chat Completions, as its official reference says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.operators.conform.checked_server import Frame, ReceivedReply
from bardo.operators.conform.reading import ANSWER_SCHEMA, TOOL, TOOL_SCHEMA, Reading, ToolUse, read_frames

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_THINKING = ("reasoning_content", "reasoning")


class Chat:
    """Chat Completions."""

    counts_thinking = True
    names_calls = True
    limits = frozenset({"length"})
    key_statuses = frozenset({401, 403})

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path below the base URL."""
        return "chat/completions"

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers of a key."""
        return {"authorization": f"Bearer {key}"}

    def question(self, model: str, text: str, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]:
        """Return a request."""
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": limit}
        return {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body

    def with_thinking(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for thinking."""
        return {**body, "reasoning_effort": "low"}

    def with_tool(self, body: dict[str, Any], *, forced: bool) -> dict[str, Any]:
        """Offer the tool."""
        function = {"name": TOOL, "description": "The weather of a city.", "parameters": TOOL_SCHEMA}
        choice = {"type": "function", "function": {"name": TOOL}} if forced else "auto"
        return {**body, "tools": [{"type": "function", "function": function}], "tool_choice": choice}

    def with_schema(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for an answer in the schema."""
        schema = {"name": "answer", "strict": True, "schema": ANSWER_SCHEMA}
        return {**body, "response_format": {"type": "json_schema", "json_schema": schema}}

    def with_result(self, body: dict[str, Any], reply: Any, calls: Sequence[ToolUse]) -> dict[str, Any]:
        """Return the next turn: the message as it came, and the results."""
        results = [{"role": "tool", "tool_call_id": call.id, "content": "18 °C, sunny"} for call in calls]
        return {
            **body,
            "messages": [*body["messages"], reply["choices"][0]["message"], *results],
            "tool_choice": "auto",
        }

    def wrong_value(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with a value of the wrong type."""
        return {**body, "messages": "none"}

    def read_whole(self, reply: Any) -> Reading:
        """Read a whole reply."""
        reading = Reading()
        reading.field(reply, "id", str, "reply")
        reading.field(reply, "model", str, "reply")
        reading.field(reply, "created", int, "reply")
        reading.require(
            isinstance(reply, dict) and reply.get("object") == "chat.completion", "reply.object is not chat.completion"
        )
        choices = reading.field(reply, "choices", list, "reply") or []
        reading.require(bool(choices), "reply.choices is empty")
        for choice in choices[:1]:
            message = reading.field(choice, "message", dict, "choices[0]") or {}
            reading.require(message.get("role") == "assistant", "message.role is not assistant")
            content = message.get("content")
            reading.require(content is None or isinstance(content, str), "message.content is no text")
            reading.text = content if isinstance(content, str) else ""
            reading.thinking = _thinking(message)
            reading.refused = bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter"
            for call in message.get("tool_calls") or []:
                reading.calls.append(_whole_call(call, reading))
            _finish(reading, choice.get("finish_reason"))
        _usage(reading, reply.get("usage") if isinstance(reply, dict) else None)
        reading.ended = True
        _check_calls(reading)
        return reading

    def read_stream(self, frames: Sequence[Frame]) -> Reading:
        """Read a stream."""
        reading = Reading()
        ends = [place for place, frame in enumerate(frames) if frame.data.strip() == "[DONE]"]
        reading.ended = ends == [len(frames) - 1] and bool(frames)
        reading.require(len(ends) <= 1, "[DONE] came more than once")
        reading.require(not ends or ends[-1] == len(frames) - 1, "something came after [DONE]")
        ids: set[Any] = set()

        def take(_: Frame, chunk: dict[str, Any]) -> None:
            if chunk.get("error"):
                reading.error = json.dumps(chunk["error"])[:200]
                return
            if not chunk.get("id") and "prompt_filter_results" in chunk:
                # Azure tells what its filter found before the reply begins (recorded of o4-mini).
                return
            ids.add(chunk.get("id"))
            reading.require(chunk.get("object") == "chat.completion.chunk", "chunk.object is not chat.completion.chunk")
            for choice in reading.field(chunk, "choices", list, "chunk") or []:
                _choice(reading, choice)
            if chunk.get("usage") is not None:
                _usage(reading, chunk["usage"])

        read_frames([frame for frame in frames if frame.data.strip() != "[DONE]"], reading, take)
        reading.require(len(ids) <= 1, "chunks of one reply have different ids")
        reading.require(bool(reading.finish) or bool(reading.error), "no chunk has a finish_reason")
        reading.require(reading.ended or bool(reading.error), "the stream does not end with [DONE]")
        _check_calls(reading)
        return reading

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return what is wrong with the form of an error."""
        return error_faults(reply)

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return is_overflow(reply)


def error_faults(reply: ReceivedReply) -> list[str]:
    """Return what is wrong with an error in OpenAI's form."""
    reading = Reading()
    error = reading.field(reply.json, "error", dict, "body")
    if error is not None:
        reading.field(error, "message", str, "error")
        reading.field(error, "type", str, "error")
        reading.require("code" in error, "error.code is missing")
        reading.require("param" in error, "error.param is missing")
    return reading.faults


def is_overflow(reply: ReceivedReply) -> bool:
    """Return whether an error of OpenAI's form says that the prompt is too long."""
    value = reply.json
    error = value.get("error") if isinstance(value, dict) else None
    return isinstance(error, dict) and error.get("code") == "context_length_exceeded"


def _thinking(message: dict[str, Any]) -> str:
    return "".join(value for name in _THINKING[:1] if isinstance(value := message.get(name), str)) or next(
        (value for name in _THINKING[1:] if isinstance(value := message.get(name), str)), ""
    )


def _whole_call(call: Any, reading: Reading) -> ToolUse:
    function = reading.field(call, "function", dict, "tool_calls[]") or {}
    return ToolUse(
        id=reading.field(call, "id", str, "tool_calls[]") or "",
        name=reading.field(function, "name", str, "function") or "",
        arguments=reading.field(function, "arguments", str, "function") or "",
    )


def _choice(reading: Reading, choice: Any) -> None:
    delta = reading.field(choice, "delta", dict, "choices[]") or {}
    said = [*(delta.get("tool_calls") or []), delta.get("content"), _thinking(delta)]
    reading.require(not reading.finish or not any(said), "content came after the finish_reason")
    if isinstance(delta.get("content"), str):
        reading.text += delta["content"]
    reading.thinking += _thinking(delta)
    reading.refused |= bool(delta.get("refusal")) or choice.get("finish_reason") == "content_filter"
    for piece in delta.get("tool_calls") or []:
        _call_piece(reading, piece)
    if choice.get("finish_reason") is not None:
        reading.require(not reading.finish, "finish_reason came more than once")
        _finish(reading, choice["finish_reason"])


def _call_piece(reading: Reading, piece: Any) -> None:
    index = reading.field(piece, "index", int, "tool_calls[]")
    function = piece.get("function") if isinstance(piece, dict) else None
    if index is None or not isinstance(function, dict):
        return
    if index == len(reading.calls):
        reading.require(bool(piece.get("id")), "the first piece of a call has no id")
        reading.require(bool(function.get("name")), "the first piece of a call has no name")
        reading.calls.append(ToolUse(id=str(piece.get("id") or ""), name=str(function.get("name") or "")))
    elif index > len(reading.calls):
        reading.wrong("the index of a call skips one")
        return
    elif piece.get("id") and piece["id"] != reading.calls[index].id:
        reading.wrong("pieces of one call have different ids")
    reading.calls[index].arguments += str(function.get("arguments") or "")


def _check_calls(reading: Reading) -> None:
    if reading.calls and not reading.error:
        # OpenAI ends the call of a function that was forced by its name with stop (2026-11).
        reading.require(
            reading.finish in ("tool_calls", "stop", "length"),
            f"a reply with calls ends with {reading.finish!r}, not tool_calls",
        )


def _finish(reading: Reading, finish: Any) -> None:
    reading.finish = finish if isinstance(finish, str) else ""
    reading.require(reading.finish in _FINISHES, f"finish_reason is {finish!r}")


def _usage(reading: Reading, usage: Any) -> None:
    if not isinstance(usage, dict):
        return
    reading.input_tokens = reading.field(usage, "prompt_tokens", int, "usage")
    reading.output_tokens = reading.field(usage, "completion_tokens", int, "usage")
    reading.total_tokens = reading.field(usage, "total_tokens", int, "usage")
    details = usage.get("completion_tokens_details")
    thought = details.get("reasoning_tokens") if isinstance(details, dict) else None
    reading.thinking_tokens = thought if isinstance(thought, int) else None
