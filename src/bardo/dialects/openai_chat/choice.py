"""One choice of a chat reply: its deltas to events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.lenient import as_text
from bardo.dialects.openai_chat.details import format_of, opaque_of, readable
from bardo.dialects.openai_chat.errors import error_in_choice
from bardo.values.blocks import Opaque
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    Finish,
    FinishReason,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)

NAME = "openai_chat"
GEMINI = "google-gemini-v1"

_READ_OF_CHOICE = frozenset({"index", "delta", "message", "finish_reason", "error", "usage"})
_READ_OF_DELTA = frozenset(
    {"role", "content", "reasoning_content", "reasoning", "reasoning_details", "tool_calls", "function_call", "refusal"}
    | {"content_blocks", "extra_content"}
)
_READ_OF_CALL = frozenset({"index", "id", "function", "type"})

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "sensitive": "refusal",
    "error": "error",
    "insufficient_system_resource": "error",
    "network_error": "error",
}


class ChoiceReader:
    """Reads the deltas of one choice, in order."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._next = 0
        self._open = ""
        self._block = -1
        self._source = ""
        self._details: dict[Any, int] = {}
        self._calls: dict[int, _Call] = {}
        self._said: dict[str, Any] = {}
        self._finish: Finish | None = None

    @property
    def finished(self) -> bool:
        """Whether a finish reason has come."""
        return self._finish is not None

    def plain(self, reasoning_content: str | None, reasoning: str | None, content: str | None) -> Sequence[Event]:
        """Take a delta that holds nothing but text: the usual case, and the hot one."""
        if not (reasoning_content or reasoning):
            if not content:
                return ()
            if self._open == "text":
                return (ContentChunk(self._block, content, self._index),)
            return self._content(content)
        events = self._fields_of_thinking(reasoning_content, reasoning)
        return [*events, *self._content(content)] if content else events

    def take(self, choice: dict[str, Any], delta: dict[str, Any]) -> list[Event]:
        """Take a whole choice object."""
        events: list[Event] = []
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            events += self._take_details(details)
        elif isinstance(details, str) and details:
            events += self._thinking(details, "reasoning_details", "reasoning_details")
        events += self._fields_of_thinking(delta.get("reasoning_content"), delta.get("reasoning"))
        events += self._take_content(delta.get("content"))
        for block in delta.get("content_blocks") or ():
            events += self._unknown(block)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            events += self._enter("refusal")
            events.append(RefusalChunk(self._block, refusal, self._index))
        signature = thought_signature(delta.get("extra_content"))
        if signature:
            events += self._enter("text")
            events.append(OpaqueState(self._block, Opaque("signature", signature, GEMINI), self._index))
        events += self._take_calls(delta)
        events += self._take_rest(choice, delta)
        events += self._take_finish(choice)
        return events

    def close(self, *, settle: bool) -> list[Event]:
        """Close what is open. `settle` gives a choice without a finish reason an unknown one."""
        events = self._leave()
        for call in self._calls.values():
            if not call.ended:
                call.ended = True
                events.append(ToolCallEnd(call.block, self._index))
        if settle and self._finish is None:
            events.append(Finish("unknown", choice=self._index))
        return events

    def _fresh(self) -> int:
        self._next += 1
        return self._next - 1

    def _enter(self, kind: str) -> list[Event]:
        """Make a block of `kind` the open one."""
        if self._open == kind:
            return []
        events = self._leave()
        self._open, self._block = kind, self._fresh()
        return events

    def _leave(self) -> list[Event]:
        was, self._open = self._open, ""
        return [ThinkEnd(self._block, self._index)] if was == "think" else []

    def _content(self, text: str) -> list[Event]:
        return [*self._enter("text"), ContentChunk(self._block, text, self._index)]

    def _thinking(self, text: str, source: str, style: str, part: int | None = None) -> list[Event]:
        if self._source not in ("", source):
            return []
        self._source = source
        if self._open == "think":
            return [ThinkChunk(self._block, text, part, self._index)]
        events = self._enter("think")
        return [
            *events,
            ThinkStart(self._block, style, self._index),
            ThinkChunk(self._block, text, part, self._index),
        ]

    def _fields_of_thinking(self, reasoning_content: Any, reasoning: Any) -> list[Event]:
        # vLLM of some versions sends both with the same text; the choice stays with the one that came first.
        for name, value in (("reasoning_content", reasoning_content), ("reasoning", reasoning)):
            if isinstance(value, str) and value:
                return self._thinking(value, name, name)
        return []

    def _take_details(self, details: list[Any]) -> list[Event]:
        events: list[Event] = []
        for position, detail in enumerate(details):
            if isinstance(detail, dict):
                events += self._take_detail(detail, position)
        return events

    def _take_detail(self, detail: dict[str, Any], position: int) -> list[Event]:
        text, is_summary = readable(detail)
        states = opaque_of(detail)
        if self._source not in ("", "details"):
            text = ""
        if not text and not states:
            return []
        events, block = self._block_of_detail(detail, position, text)
        if text:
            self._source = "details"
            events.append(ThinkChunk(block, text, 0 if is_summary else None, self._index))
        events += [OpaqueState(block, state, self._index) for state in states]
        return events

    def _block_of_detail(self, detail: dict[str, Any], position: int, text: str) -> tuple[list[Event], int]:
        index = detail.get("index", position)
        key = index if isinstance(index, int | str) else position
        known = self._details.get(key)
        if known is not None and (not text or self._open == "think"):
            return [], known
        if not text and self._open == "think" and not self._details:
            # The plain field was read; the details only add the signature to it.
            self._details[key] = self._block
            return [], self._block
        if text:
            events = self._leave()
            self._open, self._block = "think", self._fresh()
            self._details[key] = self._block
            return [*events, ThinkStart(self._block, format_of(detail), self._index)], self._block
        late = self._details[key] = self._fresh()
        return [ThinkStart(late, format_of(detail), self._index), ThinkEnd(late, self._index)], late

    def _take_content(self, content: Any) -> list[Event]:
        if isinstance(content, str):
            return self._content(content) if content else []
        events: list[Event] = []
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "thinking":
                events += self._thinking_part(part)
            elif kind in ("text", "output_text") and isinstance(part.get("text"), str):
                events += self._content(part["text"]) if part["text"] else []
            elif isinstance(part, str):
                events += self._content(part) if part else []
            else:
                events += self._unknown(part)
        return events

    def _thinking_part(self, part: dict[str, Any]) -> list[Event]:
        """Read Mistral's and Cohere's thinking parts: a list of texts, or a string."""
        inner = part.get("thinking")
        pieces = inner if isinstance(inner, list) else [inner]
        events: list[Event] = []
        for piece in pieces:
            text = piece.get("text") if isinstance(piece, dict) else piece
            if isinstance(text, str) and text:
                events += self._thinking(text, "content", "content_list")
            elif isinstance(piece, dict) and piece.get("type") != "text":
                events += self._unknown(piece)
        signature = part.get("signature")
        if isinstance(signature, str) and signature and self._open == "think":
            events.append(OpaqueState(self._block, Opaque("signature", signature, "content_list"), self._index))
        return events

    def _unknown(self, value: Any) -> list[Event]:
        events = self._leave()
        return [*events, UnknownContent(self._fresh(), NAME, value, self._index)]

    def _take_calls(self, delta: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                events += self._take_call(call, position)
        older = delta.get("function_call")
        if isinstance(older, dict):
            events += self._take_call({"index": 0, "function": older}, 0)
        return events

    def _take_call(self, call: dict[str, Any], position: int) -> list[Event]:
        wire = call.get("index")
        slot = wire if isinstance(wire, int) else position
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        identity, name = as_text(call.get("id")), as_text(function.get("name"))
        events: list[Event] = []
        open_call = self._calls.get(slot)
        # Some hosts give every parallel call the index 0: another id with a name is another call.
        if open_call is None or (identity and name and open_call.id and identity != open_call.id):
            if open_call is not None:
                events.append(ToolCallEnd(open_call.block, self._index))
            events += self._leave()
            open_call = self._calls[slot] = _Call(self._fresh(), identity)
            events.append(ToolCallStart(open_call.block, identity, name, self._index))
        arguments = as_text(function.get("arguments"))
        if arguments:
            events.append(ToolCallChunk(open_call.block, arguments, self._index))
        return events + self._decorations(call, open_call.block)

    def _decorations(self, call: dict[str, Any], block: int) -> list[Event]:
        rest = {name: value for name, value in call.items() if name not in _READ_OF_CALL}
        kind = call.get("type")
        if kind not in (None, "", "function"):
            rest["type"] = kind
        events: list[Event] = []
        signature = thought_signature(rest.get("extra_content"))
        if signature:
            del rest["extra_content"]
            events.append(OpaqueState(block, Opaque("signature", signature, GEMINI), self._index))
        if rest:
            events.append(BlockFields(block, NAME, rest, self._index))
        return events

    def _take_rest(self, choice: dict[str, Any], delta: dict[str, Any]) -> list[Event]:
        """Carry what has no word here, each value when it is new."""
        rest = {name: value for name, value in choice.items() if name not in _READ_OF_CHOICE}
        rest |= {f"message.{name}": value for name, value in delta.items() if name not in _READ_OF_DELTA}
        logprobs = rest.pop("logprobs", None)
        if isinstance(logprobs, dict):
            rest |= {f"logprobs.{name}": value for name, value in logprobs.items()}
        new = {}
        for name, value in rest.items():
            if value is not None and (isinstance(value, list) or self._said.get(name) != value):
                new[name] = self._said[name] = value
        return [ReplyFields(NAME, new, self._index)] if new else []

    def _take_finish(self, choice: dict[str, Any]) -> list[Event]:
        error = error_in_choice(choice)
        if error is not None:
            return [*self.close(settle=False), Failed(error)]
        raw = choice.get("finish_reason")
        if not isinstance(raw, str) or not raw:
            return []
        finish = Finish(_FINISH.get(raw, "unknown"), raw, choice=self._index)
        if finish == self._finish:
            return []
        self._finish = finish
        return [finish]


class _Call:
    __slots__ = ("block", "ended", "id")

    def __init__(self, block: int, identity: str) -> None:
        self.block = block
        self.id = identity
        self.ended = False


def thought_signature(extra: Any) -> str:
    """Return Gemini's signature from `extra_content`, empty where there is none."""
    google = extra.get("google") if isinstance(extra, dict) else None
    signature = google.get("thought_signature") if isinstance(google, dict) else None
    return signature if isinstance(signature, str) else ""
