"""The pieces that a reader makes of a reply: text, and calls with their arguments as they arrive."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Text(msgspec.Struct, frozen=True, gc=False):
    """Text outside calls, verbatim."""

    text: str


class CallStart(msgspec.Struct, frozen=True, gc=False):
    """A call begins. `index` numbers the calls of one reader from 0."""

    index: int
    id: str
    name: str


class CallArguments(msgspec.Struct, frozen=True, gc=False):
    """A piece of the open call's arguments: JSON text, cut anywhere."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True, gc=False):
    """The call is over."""

    index: int


class Note(msgspec.Struct, frozen=True, gc=False):
    """Something was not as the format says.

    `raw` is text of the model that stands nowhere else, or, where all was given back as text, the beginning of that text.
    `index` is the call it is about, or None if there was none.
    """

    why: str
    raw: str = ""
    index: int | None = None


Piece = Text | CallStart | CallArguments | CallEnd | Note


class Pieces:
    """Collects pieces in order, and joins neighbours of one kind. At most one call is open."""

    __slots__ = ("_done", "_index", "_make", "_parts", "open")

    def __init__(self) -> None:
        self._done: list[Piece] = []
        self._parts: list[str] = []
        self._make: Callable[[str], Piece] = Text
        self._index = -1
        self.open = False

    @property
    def index(self) -> int:
        """The number of the latest call; -1 before the first."""
        return self._index

    def text(self, text: str) -> None:
        """Return text that stands outside calls."""
        self._add(Text, text)

    def start(self, id: str, name: str) -> None:  # noqa: A002
        """Begin a call."""
        self._index += 1
        self.open = True
        self._add_piece(CallStart(self._index, id, name))

    def arguments(self, text: str) -> None:
        """Return a piece of the open call's arguments."""
        self._add(self._arguments, text)

    def end(self) -> None:
        """End the open call."""
        self.open = False
        self._add_piece(CallEnd(self._index))

    def note(self, why: str, raw: str = "", *, index: int | None = None) -> None:
        """Say what was not as it should be."""
        self._add_piece(Note(why, raw, index))

    def take(self) -> list[Piece]:
        """Return what was collected since the last time."""
        self._end_run()
        done, self._done = self._done, []
        return done

    def _arguments(self, text: str) -> Piece:
        return CallArguments(self._index, text)

    def _add(self, make: Callable[[str], Piece], text: str) -> None:
        if not text:
            return
        if make != self._make:
            self._end_run()
            self._make = make
        self._parts.append(text)

    def _add_piece(self, piece: Piece) -> None:
        self._end_run()
        self._done.append(piece)

    def _end_run(self) -> None:
        if self._parts:
            self._done.append(self._make("".join(self._parts)))
            self._parts = []
