"""Separate what stands inside the content of a reply: a stage over events, made of whatever reads the text.

Each text block has a reader of its own. Blocks are numbered anew, because one block of content may become several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from bardo.values.events import BREAKS_OFF, ContentChunk, Event, Failed, Finish
from bardo.values.runs import texts_of

Piece = TypeVar("Piece")
Read = TypeVar("Read", covariant=True)


class BlockReader(Protocol[Read]):
    """Reads the text of one block while it arrives. One may have `passing`: the text without which the next pieces are passed on."""

    def feed(self, text: str, /) -> Sequence[Read]: ...

    def finish(self) -> Sequence[Read]: ...


class SeparatedChoice(ABC, Generic[Piece]):
    """The state of one choice: which block is being read, and what each is called outside."""

    def __init__(self, index: int) -> None:
        self._index = index
        self.numbers: dict[int, int] = {}
        self._read: set[int] = set()
        self._next = 0
        self.reader: BlockReader[Piece] | None = None
        self._reading = -1

    @abstractmethod
    def _open(self) -> BlockReader[Piece]:
        """Return the reader of a block that begins."""

    @abstractmethod
    def _events(self, pieces: Sequence[Piece]) -> list[Event]:
        """Tell what was read."""

    @abstractmethod
    def _close(self) -> list[Event]:
        """Tell what is left to tell of the block that ends."""

    def _finish(self, item: Finish) -> Finish:
        """Mend the end of the choice."""
        return item

    def content(self, item: ContentChunk) -> Sequence[Event]:
        """Read a piece of content."""
        begun: list[Event] = []
        if item.block != self._reading:
            begun = self.flush()
            if item.block not in self._read:
                self._read.add(item.block)
                self.reader, self._reading = self._open(), item.block
        if self.reader is None or item.block != self._reading:
            return [*begun, ContentChunk(self._number(item.block), item.text, self._index)]
        return begun + self._events(self.reader.feed(item.text))

    def other(self, item: Event) -> Sequence[Event]:
        """Pass on an event that is not content, its block renumbered."""
        block = getattr(item, "block", None)
        if block is None:
            if type(item) is not Finish:
                return (item,)
            held = self.break_off() if item.reason in BREAKS_OFF else self.flush()
            return [*held, self._finish(item)]
        held = self.flush() if block != self._reading else []
        number = self._number(block)
        return [*held, item if number == block else msgspec.structs.replace(item, block=number)]

    def break_off(self) -> list[Event]:
        """Return what the reader held, of a reply that ends in the middle of what the model was saying."""
        return self.flush()

    def flush(self) -> list[Event]:
        """Return what the reader held; the block it read is over."""
        reader, self.reader = self.reader, None
        if reader is None:
            return []
        events = self._events(reader.finish()) + self._close()
        self._reading = -1
        return events

    def _number(self, block: int) -> int:
        number = self.numbers.get(block)
        if number is None:
            number = self.numbers[block] = self._fresh()
        return number

    def _fresh(self) -> int:
        self._next += 1
        return self._next - 1


class Separation(Generic[Piece]):
    """Separates the content of one reply; `begin` makes the state of a choice from its number."""

    def __init__(self, begin: Callable[[int], SeparatedChoice[Piece]]) -> None:
        self._begin = begin
        self._choices: dict[int, SeparatedChoice[Piece]] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on every event, content separated."""
        index = getattr(item, "choice", None)
        if index is None:
            if type(item) is not Failed:
                return (item,)
            return [*(event for choice in self._choices.values() for event in choice.break_off()), item]
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = self._begin(index)
        return choice.content(item) if type(item) is ContentChunk else choice.other(item)

    def passes_run(self, pieces: Sequence[Any]) -> bool:
        """Whether further pieces of a block, the first of which was passed on, pass as they are: nothing in them must be read."""
        block, choice = pieces[0].block, self._choices[pieces[0].choice]
        if choice.numbers.get(block) != block:
            return False
        if choice.reader is None:
            return True
        passing: str = getattr(choice.reader, "passing", "")
        return passing != "" and all(texts := texts_of(pieces)) and passing not in "".join(texts)

    def finish(self) -> Sequence[Event]:
        """Return what the readers held."""
        return [event for choice in self._choices.values() for event in choice.flush()]
