"""What an encoder holds of a reply until it can be said: calls until their arguments are complete, opaque state until the last line."""

from __future__ import annotations

from typing import Any

from bardo.dialects.ollama.sealed import Owned, seal_owned, stretch
from bardo.dialects.ollama.words import NAME
from bardo.values.blocks import Carried, Opaque, ToolCallBlock


class HeldCall:
    """A call that is arriving. `place` is its place among the calls of the message."""

    __slots__ = ("fields", "id", "name", "pieces", "place", "written")

    def __init__(self, place: int) -> None:
        self.place = place
        self.id = self.name = ""
        self.pieces: list[str] = []
        self.fields: dict[str, Any] = {}
        self.written = False

    @property
    def block(self) -> ToolCallBlock:
        """The call as a value."""
        carried = Carried(NAME, self.fields) if self.fields else None
        return ToolCallBlock(id=self.id, name=self.name, arguments="".join(self.pieces), carried=carried)


class HeldStates:
    """Opaque states by block, and where each stretch of thinking stands in the message's one text."""

    def __init__(self) -> None:
        self._states: dict[int, list[Opaque]] = {}
        self._edges: dict[int, tuple[int, int]] = {}
        self._length = 0

    def begin_thinking(self, block: int) -> None:
        """Note a stretch, which may stay without text."""
        self._edges.setdefault(block, (self._length, self._length))

    def add_thinking(self, block: int, gap: str, text: str) -> None:
        """Note a piece of it, and what was put before the piece."""
        begin, end = self._edges.get(block, (0, 0))
        if begin == end:
            begin = self._length + len(gap)
        self._length += len(gap) + len(text)
        self._edges[block] = (begin, self._length)

    def add(self, block: int, state: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces it."""
        held = self._states.setdefault(block, [])
        held[:] = [one for one in held if one.kind != state.kind or one.kind == "redacted"]
        held.append(state)

    def signature(self, calls: dict[int, HeldCall]) -> str:
        """Return the seal of all of it, "" where there is none."""
        thinking: list[Owned] = []
        if any(block in self._states for block in self._edges):
            # All stretches are named, so that the text can be cut where they begin.
            thinking = [stretch(*edges, self._states.get(block, ())) for block, edges in self._edges.items()]
        others = {block: states for block, states in self._states.items() if block not in self._edges}
        called = [Owned(f"call:{calls[block].place}", tuple(held)) for block, held in others.items() if block in calls]
        texts = [state for block, held in others.items() if block not in calls for state in held]
        return seal_owned([*thinking, *called, *([Owned("text", tuple(texts))] if texts else ())])
