"""Find the splitter that reads a format, and split a whole reply with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bardo.reasoning.classes import ClassFormat, ClassSplitter
from bardo.reasoning.formats import Machine, ReasoningFormat
from bardo.reasoning.mentions import opens_block
from bardo.reasoning.registry import find_format
from bardo.reasoning.splitter import Segment, Splitter


class RestoredOpener:
    """Reads one reply. An opener that the reply begins with is not doubled; a reply without text stays empty."""

    def __init__(self, format: ReasoningFormat, starts_inside: bool | None = None) -> None:  # noqa: A002
        inside = format.starts_inside is True if starts_inside is None else starts_inside
        self.notes: list[str] = []
        self._opener = format.restores if inside else ""
        self._held = ""

    @property
    def inside(self) -> bool:
        """Never, as nothing is separated."""
        return False

    def feed(self, item: str) -> Sequence[Segment]:
        if not self._opener:
            return (Segment(False, item),) if item else ()
        self._held += item
        if len(self._held) < len(self._opener) and self._opener.startswith(self._held):
            return ()
        return self.finish()

    def finish(self) -> Sequence[Segment]:
        """Return what was held until it was known whether it is the opener."""
        held, opener = self._held, self._opener
        self._held = self._opener = ""
        if not held:
            return ()
        return (Segment(False, held if held.startswith(opener) else opener + held),)


class ReplySplitter(Protocol):
    """A stage from the text of one reply to its segments."""

    @property
    def inside(self) -> bool: ...

    def feed(self, item: str) -> Sequence[Segment]: ...

    def finish(self) -> Sequence[Segment]: ...


Opener = Callable[[ReasoningFormat, bool | None], ReplySplitter]


def _by_phases(row: ReasoningFormat, starts_inside: bool | None) -> ReplySplitter:
    return Splitter(row, starts_inside=starts_inside)


MACHINES: Mapping[Machine, Opener] = {
    "delimiters": _by_phases,
    "harmony": _by_phases,
    "spaced_harmony": _by_phases,
    "muse": _by_phases,
    "muse_glimmer": _by_phases,
    "inkling": _by_phases,
    "suffixed": _by_phases,
    "restored": RestoredOpener,
}


def splitter_for(row: ReasoningFormat, *, starts_inside: bool | None = None) -> ReplySplitter:
    """Return a splitter for one reply in this format."""
    if isinstance(row, ClassFormat):
        return ClassSplitter(row.open(starts_inside))
    return MACHINES[row.machine](row, starts_inside)


def split(
    text: str,
    format: ReasoningFormat | str,  # noqa: A002
    *,
    starts_inside: bool | None = None,
) -> tuple[str, str]:
    """Split a whole reply; return its reasoning and its answer."""
    row = find_format(format) if isinstance(format, str) else format
    splitter = splitter_for(row, starts_inside=starts_inside)
    segments = [*splitter.feed(text), *splitter.finish()]
    reasoning = "".join(segment.text for segment in segments if segment.reasoning)
    return reasoning, "".join(segment.text for segment in segments if not segment.reasoning)


def lacks_opener(text: str, row: ReasoningFormat) -> bool:
    """Say whether a whole reply closes a block that it never opened, so that it must have begun inside one.

    A stream cannot know this in time; it is for whole replies of which the prompt is not known.
    """
    ends = [text.find(end) for end in row.ends if end in text]
    if not ends or row.stray_end == "text":
        return False
    return not opens_block(text[: min(ends)], row.starts, at_line=row.starts_inside is True)
