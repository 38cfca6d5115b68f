"""Formats that a class of the user's own reads, for text that no row can describe.

Such a class has the two methods of `ReplyParser`; a subclass of `ReasoningParser` has them already. Where it also has the attribute
`starts_inside`, it is told whether the reply begins inside a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.splitter import Segment

METHODS = ("parse_reasoning_streaming_incremental", "finish")


class ParsedChunk(Protocol):
    """The parts that a chunk added to the answer and to the reasoning, which is taken to come before it."""

    @property
    def normal_text(self) -> str: ...

    @property
    def reasoning_text(self) -> str: ...


class ReplyParser(Protocol):
    """Reads one reply."""

    def parse_reasoning_streaming_incremental(self, chunk: str, /) -> ParsedChunk: ...

    def finish(self) -> ParsedChunk: ...


class ClassFormat(ReasoningFormat, frozen=True, kw_only=True):
    """A format without delimiters: `creator` returns a new ReplyParser at every call."""

    creator: Callable[[], Any]

    def open(self, starts_inside: bool | None = None) -> Any:
        """Return a parser for one reply."""
        parser = self.creator()
        if starts_inside is not None and hasattr(parser, "starts_inside"):
            parser.starts_inside = starts_inside
            parser.reset()
        return parser


class ClassSplitter:
    """Reads segments with a ReplyParser."""

    def __init__(self, parser: ReplyParser) -> None:
        self._parser = parser
        self._inside = False

    @property
    def inside(self) -> bool:
        """Whether reasoning was read and no answer after it."""
        return self._inside

    def feed(self, item: str) -> Sequence[Segment]:
        return self._segments(self._parser.parse_reasoning_streaming_incremental(item))

    def finish(self) -> Sequence[Segment]:
        segments = self._segments(self._parser.finish())
        if self._inside:
            self._inside = False
            segments.append(Segment(True, "", True))
        return segments

    def _segments(self, parsed: ParsedChunk) -> list[Segment]:
        segments = []
        self._inside = self._inside or bool(parsed.reasoning_text)
        closes = self._inside and bool(parsed.normal_text)
        if parsed.reasoning_text or closes:
            segments.append(Segment(True, parsed.reasoning_text, closes))
        if parsed.normal_text:
            self._inside = False
            segments.append(Segment(False, parsed.normal_text))
        return segments
