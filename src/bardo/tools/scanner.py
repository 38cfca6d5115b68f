"""The text of a reply as grammars read it, and the steps that the parts of a row are compiled into.

A grammar is a generator: it pauses where the text ends for now, and goes on when more has come, so it is written as if all of the reply
were there. What it decides depends on the text alone and never on where the text was cut. Of two markers the one that begins first counts,
and of two that begin together, the longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec

from bardo.tools.formats import ToolCallFormat
from bardo.values.errors import InvalidRequest

NOWHERE = re.compile(r"(?!)")


class Markers(msgspec.Struct, frozen=True):
    """Two ways to look for the same markers."""

    growing: re.Pattern[str]
    """Finds a marker (with a group), or the beginning of one at the end of the text (without)."""
    final: re.Pattern[str]
    """Finds a marker, with a group, in text that will not grow."""


@lru_cache(maxsize=1024)
def markers(words: tuple[str, ...]) -> Markers:
    """Return the finder of these words; of none, one that finds nothing."""
    longest_first = sorted({word for word in words if word}, key=len, reverse=True)
    if not longest_first:
        return Markers(NOWHERE, NOWHERE)
    return Markers(
        re.compile("|".join(map(_growing, longest_first))),
        re.compile("(" + "|".join(map(re.escape, longest_first)) + ")"),
    )


@lru_cache(maxsize=1024)
def _first_characters(words: tuple[str, ...]) -> tuple[int, frozenset[str]]:
    """Return how long the longest of some words is, and what they begin with."""
    return max(map(len, words), default=0), frozenset(word[:1] for word in words)


def begins_one(text: str, words: Iterable[str]) -> bool:
    """Say whether `text` is the beginning, but not the whole, of one of the words."""
    return any(len(word) > len(text) and word.startswith(text) for word in words)


def _growing(word: str) -> str:
    # The longer word stands first, so its beginning at the end of the text goes before a shorter word that is complete there.
    pattern = "()"
    for character in reversed(word[1:]):
        pattern = rf"(?:{re.escape(character)}{pattern}|\Z)"
    return re.escape(word[0]) + pattern


Answer = TypeVar("Answer")
Reading = Generator[None, None, Answer]
Give = Callable[[str], None]

TOO_LONG = "it is not decided within the length that may be held"
BLANK = re.compile(r"[ \t\r\n]*")


class Malformed(Exception):
    """The text does not fit the format. Never leaves this package."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Scanner:
    """The unread text of one reply.

    From `mark` on, the text that is read is remembered, so that it can be given back when it turns out to be no call. No more than `hold`
    characters are remembered: the grammar that would need more gets Malformed, at the same place wherever the text was cut.
    """

    __slots__ = ("_at", "_hold", "_record", "_recorded", "_text", "ended")

    def __init__(self, hold: int) -> None:
        self._text = ""
        self._at = 0
        self._hold = hold
        self._record: list[str] | None = None
        self._recorded = 0
        self.ended = False

    @property
    def unread(self) -> str:
        """The text that has come and is not read yet."""
        return self._text[self._at :]

    @property
    def untouched(self) -> bool:
        """Whether nothing was read since the mark."""
        return self._record is not None and self._recorded == 0

    def feed(self, text: str) -> None:
        """Add text."""
        self._text = self._text[self._at :] + text
        self._at = 0

    def mark(self) -> None:
        """Record the text read from here on."""
        self._record = []
        self._recorded = 0

    def release(self) -> str:
        """Stop remembering; return what was read since the mark."""
        read = "".join(self._record or ())
        self._record = None
        return read

    def more(self) -> Reading[bool]:
        """Wait for text beyond the visible part, and return False if the reply is over."""
        if self._record is not None and self._recorded + self._end() - self._at >= self._hold:
            raise Malformed(TOO_LONG)
        length = len(self._text) - self._at
        while not self.ended:
            yield
            if len(self._text) - self._at > length:
                return True
        return False

    def peek(self) -> Reading[str]:
        """Return the next character, or nothing at the end of the reply."""
        while self._at >= self._end():
            if not (yield from self.more()):
                return ""
        return self._text[self._at]

    def ahead(self, count: int) -> Reading[str]:
        """Return the next `count` characters without reading them; fewer where the reply ends before."""
        while self._end() - self._at < count:
            if not (yield from self.more()):
                break
        return self._text[self._at : min(self._end(), self._at + count)]

    def skip(self, count: int = 1) -> str:
        """Read characters that were looked at."""
        return self._take(self._at + count)

    def visible(self, pattern: re.Pattern[str]) -> str:
        """Return what `pattern` matches here, in the text that has come."""
        match = pattern.match(self._text, self._at, self._end())
        return match.group() if match else ""

    def blank(self, give: Give | None = None) -> Reading[None]:
        """Read white space."""
        yield from self.run(BLANK, give)

    def run(self, pattern: re.Pattern[str], give: Give | None = None) -> Reading[None]:
        """Read characters for as long as `pattern`, which is one class repeated, goes on."""
        while True:
            match = pattern.match(self._text, self._at, self._end())
            if match and match.end() > self._at:
                piece = self._take(match.end())
                if give is not None:
                    give(piece)
            if self._at < self._end() or not (yield from self.more()):
                return

    def word(self, pattern: re.Pattern[str], *, limit: int) -> Reading[str]:
        """Read and return a run of `pattern`, of which no more than `limit` characters are read."""
        word = ""
        while len(word) < limit:
            match = pattern.match(self._text, self._at, min(self._end(), self._at + limit - len(word)))
            if match:
                word += self._take(match.end())
            if self._at < self._end() or not (yield from self.more()):
                break
        return word

    def stands(self, options: Iterable[str]) -> Reading[str]:
        """Return which of the options stands here, the longest, or nothing."""
        words = tuple(options)
        longest, first = _first_characters(words)
        while True:
            if self._at < self._end() and self._text[self._at] not in first:
                return ""
            rest = self._text[self._at : min(self._end(), self._at + longest)]
            if begins_one(rest, words) and (yield from self.more()):
                continue
            return max((word for word in words if rest.startswith(word)), key=len, default="")

    def choose(self, options: Iterable[str]) -> Reading[str]:
        """Read which of the options stands here, the longest, or nothing."""
        option = yield from self.stands(options)
        self._take(self._at + len(option))
        return option

    def expect(self, text: str) -> Reading[None]:
        """Read `text`, after white space. Raises Malformed where something else stands."""
        yield from self.blank()
        if not (yield from self.choose((text,))):
            raise Malformed(f"{text!r} is missing")

    def pass_until(self, words: tuple[str, ...], give: Give | None = None) -> Reading[str]:
        """Read up to the first of the words, which is returned and not read; nothing where the reply ends before one."""
        return (yield from self.pass_to(markers(words), give))

    def pass_to(self, finder: Markers, give: Give | None = None) -> Reading[str]:
        """Do what `pass_until` does, with markers found before."""
        while True:
            end = self._end()
            final = self.ended and end == len(self._text)
            match = (finder.final if final else finder.growing).search(self._text, self._at, end)
            stop = match.start() if match else end
            if stop > self._at:
                piece = self._take(stop)
                if give is not None:
                    give(piece)
            if match and match.lastindex:
                return match.group()
            if not (yield from self.more()) and self._at >= self._end():
                return ""

    def _end(self) -> int:
        if self._record is None:
            return len(self._text)
        return min(len(self._text), self._at + self._hold - self._recorded)

    def _take(self, until: int) -> str:
        piece = self._text[self._at : until]
        self._at = until
        if self._record is not None:
            self._record.append(piece)
            self._recorded += len(piece)
        return piece


_HOLE = re.compile(r"\{(\w+)\}")
CALL_HOLES = {
    "name",
    "id",
    "recipient",
    "identifier",
    "word",
    "named",
    "arguments",
    "parameters",
    "empty",
    "elements",
    "json",
    "objects",
    "python",
    "call",
    "gemma",
}
PARAMETER_HOLES = {"key", "value", "string", "type"}


class ShapeStep(msgspec.Struct, frozen=True):
    """One thing to read: a `literal` with its text, an `optional` group, or the hole that `kind` names."""

    kind: str
    text: str = ""
    group: tuple[ShapeStep, ...] = ()
    until: tuple[str, ...] = ()
    """For a hole: what may follow it in the shape."""


Shape = tuple[ShapeStep, ...]


class Shapes(msgspec.Struct, frozen=True):
    """A row, ready to read calls by."""

    calls: tuple[Shape, ...]
    parameters: tuple[Shape, ...]
    firsts: tuple[str, ...]
    """The literals that calls begin with."""
    openers: tuple[str, ...]
    """All that may begin a section or a call outside one."""
    parameter_firsts: tuple[str, ...]
    borders: tuple[str, ...]
    """All that may not stand inside a call's loose end: section ends and openers."""


@lru_cache(maxsize=256)
def shapes_of(row: ToolCallFormat) -> Shapes:
    """Return the steps of a format. They are immutable, and shared by all replies in this row. Raises InvalidRequest."""
    calls = tuple(_compiled(parts, CALL_HOLES, row.name) for parts in row.shapes)
    parameters = tuple(_compiled(parts, PARAMETER_HOLES, row.name) for parts in row.parameters)
    return Shapes(
        calls=calls,
        parameters=parameters,
        firsts=_firsts(calls),
        openers=row.begin,
        parameter_firsts=_firsts(parameters),
        borders=(*row.end, *row.begin),
    )


def _firsts(shapes: Sequence[Shape]) -> tuple[str, ...]:
    return tuple(shape[0].text for shape in shapes if shape[0].kind == "literal")


def _compiled(parts: Sequence[str], holes: set[str], name: str) -> Shape:
    steps = [step for part in parts for step in _part(part, holes, name)]
    if not steps:
        raise InvalidRequest(f"tool-call format {name!r} has an empty shape", hint="give it at least one part")
    return _with_what_follows(steps, ())


def _part(part: str, holes: set[str], name: str) -> list[ShapeStep]:
    pieces = _HOLE.split(part.removeprefix("?"))
    steps = [
        ShapeStep(piece) if at % 2 else ShapeStep("literal", text=piece) for at, piece in enumerate(pieces) if piece
    ]
    if unknown := {step.kind for step in steps} - holes - {"literal"}:
        raise InvalidRequest(
            f"tool-call format {name!r} has a hole {unknown.pop()!r}", hint=f"known: {', '.join(sorted(holes))}"
        )
    if not part.startswith("?"):
        return steps
    if steps[0].kind != "literal":
        raise InvalidRequest(
            f"tool-call format {name!r}: a part that may be missing begins with a hole", hint="begin it with text"
        )
    return [ShapeStep("optional", group=tuple(steps))]


def _with_what_follows(steps: Sequence[ShapeStep], after: tuple[str, ...]) -> Shape:
    done: list[ShapeStep] = []
    for step in reversed(steps):
        if step.kind == "literal":
            after = (step.text,)
        elif step.kind == "optional":
            step = ShapeStep("optional", group=_with_what_follows(step.group, after))
            after = (step.group[0].text, *after)
        else:
            step = ShapeStep(step.kind, until=after)
            after = ()
        done.append(step)
    return tuple(reversed(done))
