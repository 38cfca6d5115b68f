"""Responses, as its official reference says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.operators.conform.chat import error_faults, is_overflow
from bardo.operators.conform.checked_server import Frame, ReceivedReply
from bardo.operators.conform.reading import ANSWER_SCHEMA, TOOL, TOOL_SCHEMA, Reading, ToolUse, read_frames

_STATUSES = frozenset({"completed", "incomplete"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class Responses:
    """Responses."""

    counts_thinking = True
    names_calls = True
    limits = frozenset({"max_output_tokens"})
    key_statuses = frozenset({401, 403})

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path below the base URL."""
        return "responses"

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers of a key."""
        return {"authorization": f"Bearer {key}"}

    def question(self, model: str, text: str, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]:
        """Return a request that keeps nothing at the server."""
        items = [{"type": "message", "role": "user", "content": text}]
        body: dict[str, Any] = {"model": model, "input": items, "max_output_tokens": limit, "store": False}
        return {**body, "stream": True} if stream else body

    def with_thinking(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for thinking."""
        return {**body, "reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}

    def with_tool(self, body: dict[str, Any], *, forced: bool) -> dict[str, Any]:
        """Offer the tool."""
        tool = {"type": "function", "name": TOOL, "description": "The weather of a city.", "parameters": TOOL_SCHEMA}
        return {**body, "tools": [tool], "tool_choice": {"type": "function", "name": TOOL} if forced else "auto"}

    def with_schema(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for an answer in the schema."""
        written = {"type": "json_schema", "name": "answer", "strict": True, "schema": ANSWER_SCHEMA}
        return {**body, "text": {"format": written}}

    def with_result(self, body: dict[str, Any], reply: Any, calls: Sequence[ToolUse]) -> dict[str, Any]:
        """Return the next turn: the items as they came, and the results."""
        results = [{"type": "function_call_output", "call_id": call.id, "output": "18 °C, sunny"} for call in calls]
        return {**body, "input": [*body["input"], *reply["output"], *results], "tool_choice": "auto"}

    def wrong_value(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with a value of the wrong type."""
        return {**body, "input": 5}

    def read_whole(self, reply: Any) -> Reading:
        """Read a whole reply."""
        reading = Reading(ended=True)
        _response(reading, reply)
        return reading

    def read_stream(self, frames: Sequence[Frame]) -> Reading:
        """Read a stream."""
        return _Stream().read([frame for frame in frames if frame.data.strip() != "[DONE]"])

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return what is wrong with the form of an error."""
        return error_faults(reply)

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return is_overflow(reply)


class _Stream:
    """Reads one stream: its events in their order, and what was said in pieces against what is said at the end."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._number: int | None = None
        self._open: dict[Any, dict[str, Any]] = {}
        self._texts: dict[tuple[Any, Any], str] = {}
        self._arguments: dict[Any, str] = {}

    def read(self, frames: Sequence[Frame]) -> Reading:
        """Return what the events say."""
        reading = self._reading
        read_frames(frames, reading, self._take)
        kinds = [frame.json.get("type") for frame in frames if isinstance(frame.json, dict)]
        reading.require(
            kinds[:1] == ["response.created"] or kinds[:1] == ["error"], "the first event is not response.created"
        )
        ends = [kind for kind in kinds if kind in _ENDS]
        reading.ended = len(ends) == 1 and kinds[-1] in _ENDS and ends != ["response.failed"]
        reading.require(reading.ended or bool(reading.error), "the stream does not end with one response.completed")
        reading.require(not self._open or bool(reading.error), "an item was added and never done")
        return reading

    def _take(self, frame: Frame, event: dict[str, Any]) -> None:
        reading, kind = self._reading, event.get("type")
        reading.require(frame.name in ("", kind), f"the event is named {frame.name!r}, and its type is {kind!r}")
        self._count(event.get("sequence_number"))
        match kind:
            case "error" | "response.failed":
                reading.error = json.dumps(event)[:200]
            case "response.output_item.added":
                self._open[event.get("output_index")] = event.get("item") or {}
            case "response.output_item.done":
                reading.require(event.get("output_index") in self._open, "an item is done that was not added")
                self._open.pop(event.get("output_index"), None)
            case "response.output_text.delta":
                place = (event.get("output_index"), event.get("content_index"))
                self._texts[place] = self._texts.get(place, "") + str(event.get("delta"))
            case "response.output_text.done":
                place = (event.get("output_index"), event.get("content_index"))
                reading.require(
                    self._texts.get(place, "") == event.get("text"), "the pieces of a text are not its whole"
                )
            case "response.function_call_arguments.delta":
                item = event.get("output_index")
                self._arguments[item] = self._arguments.get(item, "") + str(event.get("delta"))
            case "response.function_call_arguments.done":
                said = self._arguments.get(event.get("output_index"), "")
                reading.require(said == event.get("arguments"), "the pieces of arguments are not their whole")
            case _ if kind in _ENDS:
                _response(reading, event.get("response"))

    def _count(self, number: Any) -> None:
        if not isinstance(number, int):
            self._reading.wrong("an event has no sequence_number")
        elif self._number is not None and number != self._number + 1:
            self._reading.wrong("sequence_number does not count by one")
        self._number = number if isinstance(number, int) else self._number


def _response(reading: Reading, response: Any) -> None:
    reading.field(response, "id", str, "response")
    reading.field(response, "model", str, "response")
    reading.require(
        isinstance(response, dict) and response.get("object") == "response", "response.object is not response"
    )
    status = reading.field(response, "status", str, "response")
    reading.require(status in _STATUSES, f"response.status is {status!r}")
    details = response.get("incomplete_details") if isinstance(response, dict) else None
    reading.finish = str(details.get("reason")) if isinstance(details, dict) else str(status)
    reading.refused = reading.finish == "content_filter"
    for item in reading.field(response, "output", list, "response") or []:
        _item(reading, item)
    usage = response.get("usage") if isinstance(response, dict) else None
    if isinstance(usage, dict):
        reading.input_tokens = reading.field(usage, "input_tokens", int, "usage")
        reading.output_tokens = reading.field(usage, "output_tokens", int, "usage")
        reading.total_tokens = reading.field(usage, "total_tokens", int, "usage")
        thought = (usage.get("output_tokens_details") or {}).get("reasoning_tokens")
        reading.thinking_tokens = thought if isinstance(thought, int) else None


def _item(reading: Reading, item: Any) -> None:
    kind = reading.field(item, "type", str, "output[]")
    match kind:
        case "message":
            for part in reading.field(item, "content", list, "message") or []:
                reading.refused |= isinstance(part, dict) and part.get("type") == "refusal"
                if isinstance(part, dict) and part.get("type") == "output_text":
                    reading.text += reading.field(part, "text", str, "output_text") or ""
                    reading.field(part, "annotations", list, "output_text")
        case "reasoning":
            parts = [*(reading.field(item, "summary", list, "reasoning") or []), *(item.get("content") or [])]
            reading.thinking += "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
            reading.hidden_thinking = reading.hidden_thinking or not reading.thinking
        case "function_call":
            reading.calls.append(
                ToolUse(
                    id=reading.field(item, "call_id", str, "function_call") or "",
                    name=reading.field(item, "name", str, "function_call") or "",
                    arguments=reading.field(item, "arguments", str, "function_call") or "",
                )
            )
