"""One candidate of a reply, read part by part into events.

Thought and text parts of later chunks are pieces of the block that is open; two thought parts within one chunk are two parts of a
summary. A part that carries a signature, or any field beside its text, stands alone, since Google asks that signed parts are never
merged with others. A signed thought part, which only bardo writes, closes the thinking it ends.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any, Literal

import msgspec

from bardo.dialects.gemini.constants import FORMAT, NAME, RAW_ARGUMENTS
from bardo.dialects.lenient import decode_leniently
from bardo.values.blocks import Opaque
from bardo.values.errors import MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    OpaqueState,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)

Kind = Literal["", "text", "thought"]

# Lists inside these belong to stretches of the text; all other fields describe the candidate as it stands.
_GROWING = ("logprobsResult", "citationMetadata")


class Candidate:
    """One candidate, as far as it has come. `kind` and `block` say which block further text continues."""

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.kind: Kind = ""
        self.block = -1
        self.part = 0
        self.calls = 0
        self.finish = ""
        self.fields: dict[str, Any] = {}
        self._next = 0
        self._thought_in_chunk = False

    def read(self, candidate: dict[str, Any], events: list[Event]) -> None:
        """Add what one chunk says of this candidate to `events`. Raises MalformedReply."""
        self._thought_in_chunk = False
        before = len(events)
        self._decode_content(candidate.get("content"), events)
        # STOP also comes in mid-stream, after a tool the provider ran: what follows it must come to an end of its own.
        earlier = "" if len(events) > before else self.finish
        self.finish = checked(candidate.get("finishReason"), str, "finishReason") or earlier
        for name, value in _other_fields(candidate, "content", "finishReason", "index").items():
            merge_field(self.fields, name, value)

    def close(self, events: list[Event]) -> None:
        """End the open block."""
        if self.kind == "thought":
            events.append(ThinkEnd(self.block, self.choice))
        self.kind = ""

    def _decode_content(self, value: Any, events: list[Event]) -> None:
        content = checked(value, dict, "content") or {}
        for part in checked(content.get("parts"), list, "parts") or ():
            self._decode_part(checked(part, dict, "parts[]") or {}, events)
        other_fields = {name: field for name, field in content.items() if name not in ("parts", "role")}
        if other_fields:
            merge_field(self.fields, "content", other_fields)

    def _decode_part(self, part: dict[str, Any], events: list[Event]) -> None:
        if _is_whole_call(part):
            self._decode_call(part, part["functionCall"], events)
        elif checked(part.get("text"), str, "text") is not None:
            self._decode_text(part, events)
        elif part:
            self._begin("", events)
            events.append(UnknownContent(self.block, NAME, part, self.choice))

    def _decode_text(self, part: dict[str, Any], events: list[Event]) -> None:
        signature = checked(part.get("thoughtSignature"), str, "thoughtSignature") or ""
        other_fields = _other_fields(part, "text", "thought", "thoughtSignature")
        alone = bool(signature or other_fields)
        if checked(part.get("thought"), bool, "thought"):
            self._think(part["text"], alone, events)
        elif alone:
            self._begin("text", events)
            # The block begins before its state, and its text follows: who writes Gemini again knows both at once.
            events.append(ContentChunk(self.block, "", self.choice))
        elif part["text"] and self.kind != "text":
            self._begin("text", events)
        self._decorate(signature, other_fields, events)
        if self.kind == "text" and part["text"]:
            events.append(ContentChunk(self.block, part["text"], self.choice))
        if alone:
            self.close(events)

    def _think(self, text: str, alone: bool, events: list[Event]) -> None:
        further = self.kind == "thought" and self._thought_in_chunk
        if self.kind != "thought":
            if not text and not alone:
                return
            self._begin("thought", events)
            self.part = 0
            events.append(ThinkStart(self.block, FORMAT, self.choice))
        self._thought_in_chunk = True
        self.part += further
        if text or further:
            events.append(ThinkChunk(self.block, text, self.part, self.choice))

    def _decode_call(self, part: dict[str, Any], call: dict[str, Any], events: list[Event]) -> None:
        name = checked(call.get("name"), str, "functionCall.name")
        if not name:
            raise MalformedReply("a function call without a name")
        own_id = checked(call.get("id"), str, "functionCall.id")
        self._begin("", events)
        signature = checked(part.get("thoughtSignature"), str, "thoughtSignature") or ""
        events.append(ToolCallStart(self.block, own_id or "", name, self.choice, bool(signature)))
        self.calls += 1
        inside = _other_fields(call, "name", "args", "id") | ({} if own_id else {"id": None})
        other_fields = _other_fields(part, "functionCall", "thoughtSignature") | (
            {"functionCall": inside} if inside else {}
        )
        self._decorate(signature, other_fields, events)
        arguments = arguments_text(checked(call.get("args"), dict, "functionCall.args") or {})
        events.append(ToolCallChunk(self.block, arguments, self.choice))
        events.append(ToolCallEnd(self.block, self.choice))

    def _decorate(self, signature: str, other_fields: dict[str, Any], events: list[Event]) -> None:
        if other_fields:
            events.append(BlockFields(self.block, NAME, other_fields, self.choice))
        if signature:
            events.append(OpaqueState(self.block, Opaque("signature", signature, FORMAT), self.choice))

    def _begin(self, kind: Kind, events: list[Event]) -> None:
        self.close(events)
        self.kind, self.block = kind, self._next
        self._next += 1


def arguments_text(args: dict[str, Any]) -> str:
    """Return the arguments as JSON text, or as the raw text that could not be put in an object."""
    raw = args.get(RAW_ARGUMENTS)
    if len(args) == 1 and isinstance(raw, str):
        return raw
    return msgspec.json.encode(args).decode()


def merge_field(earlier: dict[str, Any], name: str, value: Any) -> None:
    """Take a field that a later chunk says again, in part, or empty: what was said before stays unless it is replaced."""
    before = earlier.get(name)
    if before is None:
        earlier[name] = value
    elif isinstance(before, dict) and isinstance(value, dict):
        earlier[name] = _grown(before, value) if name in _GROWING else {**before, **value}
    elif value not in (None, [], {}, ""):
        earlier[name] = value


def checked(value: Any, kind: type, what: str) -> Any:
    """Return a value of the kind, or None. Raises MalformedReply naming the field."""
    if value is None or type(value) is kind:
        return value
    raise MalformedReply(f"`{what}` is not what the Gemini API says it is")


def _grown(before: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    for name, later in value.items():
        earlier = before.get(name)
        # Some fields are repeated from the start, some continued.
        if isinstance(earlier, list) and isinstance(later, list) and later[: len(earlier)] != earlier:
            earlier.extend(later)
        else:
            before[name] = later
    return before


def _is_whole_call(part: dict[str, Any]) -> bool:
    """Whether a part is a call with all its arguments, and no piece of one. Raises MalformedReply."""
    call = part.get("functionCall")
    return call is not None and "partialArgs" not in (checked(call, dict, "functionCall") or ())


def without_calls(data: bytes, places: Collection[int]) -> bytes:
    """Return a chunk without the calls at these places, counted over all its candidates."""
    payload = decode_leniently(data)
    found = count()
    for chunk in payload if isinstance(payload, list) else [payload]:
        for candidate in chunk.get("candidates") or ():
            content = (candidate or {}).get("content") or {}
            if parts := content.get("parts"):
                content["parts"] = [
                    part for part in parts if not (_is_whole_call(part or {}) and next(found) in places)
                ]
    return msgspec.json.encode(payload)


def _other_fields(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
