"""The checks of a server's replies in each dialect that a client may speak: Chat, Messages and Responses, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.operators.conform.checked_server import Frame, ReceivedReply
from bardo.operators.conform.laws import ANSWER_SCHEMA, TOOL, TOOL_SCHEMA, Reading, ToolUse, read_frames

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
                function = reading.field(call, "function", dict, "tool_calls[]") or {}
                whole_call = ToolUse(
                    id=reading.field(call, "id", str, "tool_calls[]") or "",
                    name=reading.field(function, "name", str, "function") or "",
                    arguments=reading.field(function, "arguments", str, "function") or "",
                )
                reading.calls.append(whole_call)
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
        """Return the faults of the form of an error."""
        return error_faults(reply)

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return is_overflow(reply)


def error_faults(reply: ReceivedReply) -> list[str]:
    """Return the faults of an error in OpenAI's form."""
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


def _choice(reading: Reading, choice: Any) -> None:
    delta = reading.field(choice, "delta", dict, "choices[]") or {}
    content = [*(delta.get("tool_calls") or []), delta.get("content"), _thinking(delta)]
    reading.require(not reading.finish or not any(content), "content came after the finish_reason")
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
        _messages_usage(reading, reply.get("usage") if isinstance(reply, dict) else None)
        return reading

    def read_stream(self, frames: Sequence[Frame]) -> Reading:
        """Read a stream."""
        return _Stream().read(frames)

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return the faults of the form of an error."""
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
                _messages_usage(reading, (event.get("message") or {}).get("usage"))
            case "content_block_start":
                self._start(event)
            case "content_block_delta":
                self._piece(event)
            case "content_block_stop":
                self._stop(event)
            case "message_delta":
                _stop(reading, (event.get("delta") or {}).get("stop_reason"))
                _messages_usage(reading, event.get("usage"), later=True)
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
        piece = reading.field(delta, field, str, str(delta.get("type"))) or ""
        match field:
            case "text":
                reading.text += piece
            case "thinking":
                reading.thinking += piece
            case "partial_json" if reading.calls:
                reading.calls[-1].arguments += piece

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


def _messages_usage(reading: Reading, usage: Any, *, later: bool = False) -> None:
    if not isinstance(usage, dict):
        reading.wrong("usage is missing")
        return
    if not later or "input_tokens" in usage:
        reading.input_tokens = reading.field(usage, "input_tokens", int, "usage")
    reading.output_tokens = reading.field(usage, "output_tokens", int, "usage")


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
        return _ResponsesStream().read([frame for frame in frames if frame.data.strip() != "[DONE]"])

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return the faults of the form of an error."""
        return error_faults(reply)

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return is_overflow(reply)


class _ResponsesStream:
    """Reads one stream: its events in their order, and its pieces against the whole at the end."""

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
                arguments = self._arguments.get(event.get("output_index"), "")
                reading.require(arguments == event.get("arguments"), "the pieces of arguments are not their whole")
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
