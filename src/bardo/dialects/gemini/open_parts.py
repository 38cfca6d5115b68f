"""The parts of one candidate while it is being written.

Text and thoughts go out as they come. A function call goes out whole, after it ended, and what began after it waits for it. State and
fields go out with the part they belong to, or, when that has gone already, on an empty part right after it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.gemini.constants import FORMAT, NAME, is_native
from bardo.dialects.gemini.encode_parts import Part, call_part, is_malformed, text_part
from bardo.values.blocks import Opaque, ToolCallBlock
from bardo.values.collected import CarriedFields, OpaqueStates
from bardo.values.events import Finish


class _PendingFields:
    """State and fields of a block which are not written yet."""

    def __init__(self) -> None:
        self.opaque = OpaqueStates()
        self.carried = CarriedFields()

    def __bool__(self) -> bool:
        return bool(self.opaque) or bool(self.carried)

    @property
    def own(self) -> bool:
        """Whether all of it is Gemini's, and so belongs to the very next text of the block."""
        return bool(self) and all(map(is_native, self.opaque.states()))

    def add(self, state: Opaque | dict[str, Any]) -> None:
        if isinstance(state, dict):
            self.carried.merge(NAME, state)
        else:
            self.opaque.add(state)

    def part(self, text: str, *, thought: bool) -> Part:
        fields = self.carried.fields if self.carried else None
        return text_part(text, thought=thought, fields=fields, opaque=self.opaque.states())


class _Call:
    """A function call whose arguments are still coming."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.pieces: list[str] = []
        self.ended = False
        self.waiting = _PendingFields()
        self.behind: list[Part] = []

    def block(self) -> ToolCallBlock:
        return ToolCallBlock(
            id=self.id,
            name=self.name,
            arguments="".join(self.pieces),
            opaque=self.waiting.opaque.states(),
            carried=self.waiting.carried.carried(),
        )


class OpenParts:
    """What of one candidate is open. Every method returns the parts that can be written now."""

    def __init__(self) -> None:
        self.block = -1
        self.thought = False
        self.finish: Finish | None = None
        self.carried = CarriedFields()
        self.malformed: list[ToolCallBlock] = []
        self.began = False
        self._own = False
        self._part: int | None = None
        self._waiting = _PendingFields()
        self._early: dict[int, _PendingFields] = {}
        self._calls: dict[int, _Call] = {}
        self._kinds: dict[int, bool] = {}

    @property
    def plain(self) -> bool:
        """Whether the next text of the open block can be written as it is: all that waits is for its end."""
        return self.block >= 0 and not self._calls and (self.thought or not self._waiting.own)

    def text(self, block: int, text: str) -> list[Part]:
        """Answer text; empty text begins a block whose state comes first."""
        parts = self._enter(block, thought=False)
        if not text:
            return self._behind_calls(parts)
        if not self._waiting.own:
            return self._behind_calls([*parts, text_part(text)])
        waiting, self._waiting = self._waiting, _PendingFields()
        return self._behind_calls([*parts, waiting.part(text, thought=False)])

    def think_start(self, block: int, format_name: str) -> list[Part]:
        """Thinking begins."""
        parts = self._enter(block, thought=True)
        self._own = format_name == FORMAT
        return self._behind_calls(parts)

    def think(self, block: int, text: str, part: int | None) -> list[Part]:
        """Thinking. A new part of a summary is told by an empty part before it, or by a blank line where it is not Gemini's."""
        parts = self._enter(block, thought=True)
        further = self._part is not None and part != self._part
        self._part = part if part is not None else self._part
        if further and self._own:
            return self._behind_calls([*parts, text_part("", thought=True), text_part(text, thought=True)])
        if further:
            text = "\n\n" + text
        return self._behind_calls([*parts, text_part(text, thought=True)] if text else parts)

    def call_start(self, block: int, call_id: str, name: str) -> list[Part]:
        """A function call begins."""
        parts = self._behind_calls(self._leave(block))
        call = self._call(block)
        call.id, call.name = call_id or call.id, name or call.name
        return parts

    def call_piece(self, block: int, arguments: str) -> list[Part]:
        """A piece of a call's arguments."""
        self._call(block).pieces.append(arguments)
        return []

    def call_end(self, block: int) -> list[Part]:
        """A call is complete. It goes out with what comes next, so that its signature can still join it."""
        self._call(block).ended = True
        return []

    def state(self, block: int, state: Opaque | dict[str, Any]) -> list[Part]:
        """Opaque state or fields, of the open block, of a call, of one to come, or of one that has gone."""
        if block in self._calls:
            self._calls[block].waiting.add(state)
        elif block == self.block:
            self._waiting.add(state)
        elif block in self._kinds:
            late = _PendingFields()
            late.add(state)
            return self._behind_calls([*self._leave(block), late.part("", thought=self._kinds[block])])
        else:
            self._early.setdefault(block, _PendingFields()).add(state)
        return []

    def unknown(self, block: int, value: Any) -> list[Part]:
        """A whole part of Gemini's that bardo has no word for."""
        self.began = True
        return self._behind_calls([*self._leave(block), value])

    def rest(self) -> list[Part]:
        """Everything that was still held, without the calls that did not end."""
        last = self._leave(-1)
        parts: list[Part] = []
        while self._calls:
            parts += self._ended_calls()
            if self._calls:
                parts += self._calls.pop(next(iter(self._calls))).behind
        parts += last
        for waiting in self._early.values():
            parts.append(waiting.part("", thought=False))
        return parts

    def drop_calls(self) -> None:
        """Forget the calls that are not written yet, and keep what waits behind them: the reply failed."""
        kept = _Call()
        kept.behind = [part for call in self._calls.values() for part in call.behind]
        self._calls = {-1: kept} if kept.behind else {}

    def _call(self, block: int) -> _Call:
        call = self._calls.get(block)
        if call is None:
            self.began = True
            call = self._calls[block] = _Call()
            call.waiting = self._early.pop(block, call.waiting)
            self._kinds[block] = False
        return call

    def _enter(self, block: int, *, thought: bool) -> list[Part]:
        if block == self.block and thought == self.thought:
            return []
        parts = self._leave(block)
        self.began = True
        self.block, self.thought = block, thought
        self._own, self._part = False, None
        self._waiting = self._early.pop(block, self._waiting)
        self._kinds[block] = thought
        return parts

    def _leave(self, block: int) -> list[Part]:
        """Return what must stand before `block`, beside the calls that began earlier."""
        if block == self.block:
            return []
        self.block = -1
        if not self._waiting:
            return []
        waiting, self._waiting = self._waiting, _PendingFields()
        return [waiting.part("", thought=self.thought)]

    def _behind_calls(self, parts: list[Part]) -> list[Part]:
        """Return the calls that are complete and these parts, which wait where a call is still open."""
        if not self._calls:
            return parts
        ended = self._ended_calls()
        if not self._calls:
            return ended + parts
        self._calls[next(reversed(self._calls))].behind += parts
        return ended

    def _ended_calls(self) -> list[Part]:
        """Return the complete calls in the order they began, up to one that is not."""
        parts, ended = [], []
        for block, open_call in self._calls.items():
            if not open_call.ended:
                break
            ended.append(block)
        for block in ended:
            open_call = self._calls.pop(block)
            call = open_call.block()
            if is_malformed(call):
                self.malformed.append(msgspec.structs.replace(call, carried=None))
            parts += [call_part(call), *open_call.behind]
        return parts
