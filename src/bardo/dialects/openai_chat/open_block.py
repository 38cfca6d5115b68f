"""Which block of a choice is being written, and the numbers its blocks get."""

from __future__ import annotations

from typing import Literal

from bardo.values.events import Event, ThinkEnd, ThinkStart

Kind = Literal["", "text", "think", "refusal"]


class OpenBlock:
    """The block that further pieces of its kind continue. Numbers are given in order of first appearance."""

    __slots__ = ("_next", "choice", "kind", "number")

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.kind: Kind = ""
        self.number = -1
        self._next = 0

    def fresh(self) -> int:
        """Return the number of a block that is never the open one."""
        self._next += 1
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
        """Close what is open."""
        was, self.kind = self.kind, ""
        return [ThinkEnd(self.number, self.choice)] if was == "think" else []
