"""The tool calls of one choice, from the pieces they come in, and which of its blocks is being written.

Pieces of one call share an `index`, where the host gives one. Some hosts give every call the index 0, or none, or no id; some send
arguments as an object instead of text. A call starts once its id and name are known, or once there is nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from bardo.dialects.openai_chat.wire import NAME, ReplyCall, ReplyCustom, ReplyFunction, ReplyMessage, decode_states
from bardo.dialects.shared.json_values import JsonObject, as_text
from bardo.dialects.shared.reply_structs import held
from bardo.dialects.shared.structs import carried_fields
from bardo.values.events import (
    BlockFields,
    Event,
    OpaqueState,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)

Kind = Literal["", "text", "think", "refusal"]


class BlockChanges:
    """Counts how often a block of a reply began or ended. `tells_calls`: some frame had an entry for a call, be it an empty one."""

    __slots__ = ("count", "tells_calls")

    def __init__(self) -> None:
        self.count = 0
        self.tells_calls = False


class OpenBlock:
    """The block that further pieces of its kind continue. Numbers are given in order of first appearance.

    `changes` are told whenever a block begins or ends.
    """

    __slots__ = ("_next", "changes", "choice", "kind", "number")

    def __init__(self, choice: int, changes: BlockChanges) -> None:
        self.choice = choice
        self.kind: Kind = ""
        self.number = -1
        self.changes = changes
        self._next = 0

    def fresh(self) -> int:
        """Return the number of a block that is never the open one."""
        self._next += 1
        self.changes.count += 1
        return self._next - 1

    def enter(self, kind: Kind) -> list[Event]:
        """Make a block of this kind the open one; what was open is over."""
        if self.kind == kind:
            return []
        events = self.leave()
        self.kind, self.number = kind, self.fresh()
        return events

    def begin_thinking(self, style: str) -> list[Event]:
        """Begin a new stretch of thinking, even right after another."""
        events = self.leave()
        self.kind, self.number = "think", self.fresh()
        return [*events, ThinkStart(self.number, style, self.choice)]

    def leave(self) -> list[Event]:
        """Close the open parts."""
        was, self.kind = self.kind, ""
        if was:
            self.changes.count += 1
        return [ThinkEnd(self.number, self.choice)] if was == "think" else []


class RepeatedArguments:
    """Gives each piece once. `pieces` are the pieces so far; whichever field is ahead adds to them, the other repeats them."""

    __slots__ = ("_pieces", "_places", "_strays")

    def __init__(self, pieces: list[str], first: str) -> None:
        self._pieces = pieces
        # Where each field stands in `pieces`, as a piece and a place in it; None at the end.
        self._places: dict[str, tuple[int, int] | None] = {first: None}
        self._strays: set[str] = set()

    def take(self, field: str, text: str) -> str:
        """Return what of `text` has not been given yet. A field that says something else is not listened to any more."""
        if field in self._strays or not text:
            return ""
        place = self._places.get(field, (0, 0))
        rest: str | None = text
        if place is not None:
            rest, place = self._beyond(text, *place)
        if rest is None:
            self._strays.add(field)
            return ""
        self._places[field] = place
        if rest:
            end = (len(self._pieces), 0)
            self._places = {name: end if at is None and name != field else at for name, at in self._places.items()}
            self._places[field] = None
        return rest

    def _beyond(self, text: str, piece: int, begin: int) -> tuple[str | None, tuple[int, int] | None]:
        """Return what `text` has beyond the pieces from this place on, and where it ends, or None if it differs from them."""
        at = 0
        while piece < len(self._pieces) and at < len(text):
            held = self._pieces[piece]
            size = min(len(held) - begin, len(text) - at)
            if held[begin : begin + size] != text[at : at + size]:
                return None, None
            at, begin = at + size, begin + size
            if begin == len(held):
                piece, begin = piece + 1, 0
        return text[at:], (piece, begin)


_OLDER, _NEWER = "function_call", "tool_calls"


class CallReader:
    """Reads the calls; `open_block` is shared with whatever reads the rest of the choice."""

    __slots__ = ("_calls", "_older", "_open", "_slots", "lacks_ids", "waiting")

    def __init__(self, open_block: OpenBlock) -> None:
        self._open = open_block
        self._slots: dict[int | str, _Call] = {}
        self._calls: dict[int, _Call] = {}
        # The call that has not started for want of its id or name.
        self.waiting: _Call | None = None
        # Whether an entry of `tool_calls` came without its id; the older `function_call` has none.
        self.lacks_ids = False
        self._older: _Call | None = None

    @property
    def any(self) -> bool:
        """Whether the model called a tool."""
        return bool(self._calls)

    def take(self, delta: ReplyMessage) -> list[Event]:
        """Take the calls of one delta or message."""
        self._open.changes.tells_calls = True
        events: list[Event] = []
        for position, call in enumerate(delta.tool_calls or ()):
            if call is not None:
                events += self._take(_Piece(call), position if call.index is None else call.index)
        older = delta.function_call
        if older is not None and says_something(older):
            events += self._take_older(_Piece(ReplyCall(function=older)))
        if self._older is not None and self._older.said_twice is not None:
            # A frame that looks like the last may say nothing new.
            self._open.changes.count += 1
        return events

    def settle(self) -> list[Event]:
        """Start the waiting call, if there is one, with its known fields."""
        call, self.waiting = self.waiting, None
        if call is None:
            return []
        self._open.changes.count += 1
        return self._start(call)

    def close(self, *, complete: bool) -> list[Event]:
        """Begin the call that waits, and end every call of a reply that is `complete`."""
        events = [] if self.waiting is None else self.settle()
        for call in self._calls.values() if complete else ():
            if not call.ended:
                call.ended = True
                events.append(ToolCallEnd(call.block, self._open.choice))
        return events

    def listener(self, block: int) -> Callable[[str], None]:
        """Return what must hear of arguments that were read elsewhere."""
        return self._calls[block].arguments.append

    def _take_older(self, piece: _Piece) -> list[Event]:
        """Take a `function_call`: some servers write each call there too (llama-cpp-python), whole, in pieces, before or after."""
        call = self._older
        if call is None or (piece.name and call.name not in ("", piece.name)):
            same = (call for call in self._calls.values() if call.said_twice is None and piece.name in ("", call.name))
            call = next(same, None)
            if call is not None:
                call.said_twice = RepeatedArguments(call.arguments, _NEWER)
        if call is None or call.said_twice is None:
            events = self._take(piece, _OLDER)
            self._older = self._slots.get(_OLDER)
            return events
        self._older = call
        call.name = call.name or piece.name
        return self._add(call, piece, _OLDER)

    def _said_before(self, piece: _Piece) -> _Call | None:
        """Return the call that `function_call` has told of and `tool_calls` tells of now."""
        older = self._slots.get(_OLDER)
        if older is None or older.said_twice is not None or (piece.name and older.name not in ("", piece.name)):
            return None
        older.said_twice = RepeatedArguments(older.arguments, _OLDER)
        return older

    def _take(self, piece: _Piece, slot: int | str) -> list[Event]:
        call = self._slots.get(slot)
        events: list[Event] = []
        if call is None and slot != _OLDER and (call := self._said_before(piece)) is not None:
            self._slots[slot] = call
        elif call is None or piece.begins_after(call):
            if piece.empty:
                return []
            events += [*self.settle(), *self._end_whole(), *self._open.leave()]
            call = self._slots[slot] = _Call(self._open.fresh())
            self._calls[call.block] = call
        call.id, call.name = call.id or piece.id, call.name or piece.name
        if not call.started:
            self._open.changes.count += 1
            if self.waiting is None and not (call.id and call.name):
                self.waiting = call
            else:
                self.waiting = None
                events += self._start(call, signed=bool(piece.states))
        return [*events, *self._add(call, piece, _OLDER if slot == _OLDER else _NEWER)]

    def _start(self, call: _Call, *, signed: bool = False) -> list[Event]:
        call.started = True
        self.lacks_ids |= not call.id and self._slots.get(_OLDER) is not call
        pending, call.pending = call.pending, []
        signed = type(pending[0]) is OpaqueState if pending else signed
        return [ToolCallStart(call.block, call.id, call.name, self._open.choice, signed), *pending]

    def _add(self, call: _Call, piece: _Piece, field: str) -> list[Event]:
        choice = self._open.choice
        events: list[Event] = [OpaqueState(call.block, state, choice) for state in piece.states]
        arguments = piece.arguments if call.said_twice is None else call.said_twice.take(field, piece.arguments)
        if arguments:
            call.arguments.append(arguments)
            events.append(ToolCallChunk(call.block, arguments, choice))
        fresh = {name: value for name, value in piece.rest.items() if call.said.get(name) != value}
        if fresh:
            call.said.update(fresh)
            events.append(BlockFields(call.block, NAME, fresh, choice))
        if call.started:
            return events
        call.pending += events
        return []

    def _end_whole(self) -> list[Event]:
        """End the latest call when another begins, if nothing can follow in its arguments."""
        latest = next(reversed(self._calls.values()), None)
        if latest is None or latest.ended or not _is_whole("".join(latest.arguments)):
            return []
        latest.ended = True
        return [ToolCallEnd(latest.block, self._open.choice)]


def says_something(function: ReplyFunction | ReplyCustom) -> bool:
    """Whether any of its fields does: Go clients write all fields of their structs."""
    has_value = any(getattr(function, name) for name in function.__struct_fields__ if name != "others")
    return has_value or any((function.others or {}).values())


class _Call:
    """A call that is still arriving."""

    __slots__ = ("arguments", "block", "ended", "id", "name", "pending", "said", "said_twice", "started")

    def __init__(self, block: int) -> None:
        self.block = block
        self.id = self.name = ""
        self.arguments: list[str] = []
        self.pending: list[Event] = []
        self.said: JsonObject = {}
        self.said_twice: RepeatedArguments | None = None
        self.started = self.ended = False


class _Piece:
    """One entry of `tool_calls`."""

    __slots__ = ("arguments", "id", "name", "rest", "states")

    def __init__(self, call: ReplyCall) -> None:
        source: ReplyFunction | ReplyCustom = call.function or _NO_FUNCTION
        text = "arguments"
        if call.custom is not None and says_something(call.custom) and not says_something(source):
            source, text = call.custom, "input"
        self.name, self.arguments = as_text(held(source, "name")), as_text(held(source, text))
        self.id = as_text(held(call, "id"))
        self.states, extra = decode_states(call.extra_content)
        self.rest = {name: value for name, value in (carried_fields(call) or {}).items() if name not in _READ}
        more = {name: value for name, value in (carried_fields(source) or {}).items() if name not in ("name", text)}
        if more:
            self.rest["function"] = more
        if extra:
            self.rest["extra_content"] = extra
        kind = held(call, "type")
        if kind not in (None, "", "function"):
            self.rest["type"] = kind

    @property
    def empty(self) -> bool:
        """Whether there is nothing here (Go clients write all fields of their structs)."""
        return not (self.id or self.name or self.arguments or self.states or self.rest)

    def begins_after(self, call: _Call) -> bool:
        """Whether this is the first piece of another call in the place of `call`."""
        if not self.name:
            return False
        if self.id and call.id:
            return self.id != call.id
        before = call.arguments[-1] if call.arguments else ""
        return not (self.id or call.id) and before.endswith("}") and self.arguments.startswith("{")


_NO_FUNCTION = ReplyFunction()
# Also where they are of another type than their own.
_READ = frozenset({"index", "id", "function", "type", "custom", "extra_content"})


def _is_whole(text: str) -> bool:
    if not text.endswith(("}", "]", '"')):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True
