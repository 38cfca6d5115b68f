"""Pieces of one text that follow each other in a reply: what is done once for all of them costs next to nothing for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ToolCallChunk

MANY = 8
"""So many events are worth a look for runs of pieces."""
_MOST_APART = 32
_PLACES: dict[type, Callable[[Any], object]] = {
    ContentChunk: attrgetter("choice", "block"),
    RefusalChunk: attrgetter("choice", "block"),
    ThinkChunk: attrgetter("choice", "block", "part"),
    ToolCallChunk: attrgetter("choice", "block"),
}
_text_of: Callable[[Any], str] = attrgetter("text")
_arguments_of: Callable[[Any], str] = attrgetter("arguments")


def runs_of(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Yield the events in order: pieces that differ in their text only together, all others alone."""
    for kind, alike in groupby(events, type):
        place = _PLACES.get(kind)
        if place is None:
            for event in alike:
                yield (event,)
        else:
            for _, pieces in groupby(alike, place):
                yield (*pieces,)


def texts_of(pieces: Sequence[Event]) -> list[str]:
    """Return the texts of pieces of one run."""
    return [*map(_arguments_of if type(pieces[0]) is ToolCallChunk else _text_of, pieces)]


class JoinedText(msgspec.Struct, eq=False):
    """A text that arrives in pieces. Few of them are held apart: texts of a few letters take ten times the memory of one text."""

    _joined: list[str] = []
    _pieces: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._pieces or self._joined)

    def add(self, piece: str) -> None:
        """Take a piece."""
        self._pieces.append(piece)
        if len(self._pieces) >= _MOST_APART:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    def text(self) -> str:
        """Return the text so far."""
        return "".join((*self._joined, *self._pieces))
