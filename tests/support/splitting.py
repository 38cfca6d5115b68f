"""Replies written with their reasoning in ‹ ›, the ways to cut them, and what cutting must not change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from bardo.reasoning import ReasoningFormat, Segment, splitter_for


def render(segments: Iterable[Segment]) -> str:
    """Write segments as one text, and check that every block begins and ends once."""
    out, inside = "", False
    for segment in segments:
        assert segment.reasoning or (segment.text and not inside and not segment.closes)
        out += "‹" * (segment.reasoning and not inside) + segment.text + "›" * segment.closes
        inside = segment.reasoning and not segment.closes
    assert not inside
    return out


def read(row: ReasoningFormat, pieces: Iterable[str], *, inside: bool | None = None) -> str:
    """Read a reply that arrives in pieces."""
    splitter = splitter_for(row, starts_inside=inside)
    fed = [segment for piece in pieces for segment in splitter.feed(piece)]
    return render([*fed, *splitter.finish()])


def notes(row: ReasoningFormat, pieces: Iterable[str], *, inside: bool | None = None) -> list[str]:
    """Return what a splitter notes of a reply."""
    splitter = splitter_for(row, starts_inside=inside)
    for piece in pieces:
        splitter.feed(piece)
    splitter.finish()
    return list(getattr(splitter, "notes", ()))


def cuts(text: str) -> Iterator[list[str]]:
    """Every cut in two, and one character at a time."""
    yield from ([text[:at], text[at:]] for at in range(len(text) + 1))
    yield list(text)


def pieces_of(data: st.DataObject, text: str) -> list[str]:
    """Cut a text at random places."""
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[begin:end] for begin, end in zip([0, *places], [*places, len(text)], strict=True)]


def is_what_deleting_leaves(
    rest: str, text: str, markers: Sequence[str], header: re.Pattern[str] | None = None
) -> bool:
    """Whether deleting some occurrences of the markers, and of what the header fits, leaves `rest`."""
    reached: list[set[int]] = [{0}, *(set[int]() for _ in text)]
    for at, character in enumerate(text):
        reached[at + 1] |= {done + 1 for done in reached[at] if rest[done : done + 1] == character}
        for marker in markers:
            if text.startswith(marker, at):
                reached[at + len(marker)] |= reached[at]
        if header is not None and (found := header.match(text, at)):
            reached[found.end()] |= reached[at]
    return len(rest) in reached[-1]
