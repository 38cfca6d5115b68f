"""Which values of a request are masked: those that are found, and those that show once these are masked.

A value that is glued to another is found no pattern's way: `536-90-4399.00:1B:44:11:3A:B7` is one device's address with a number before it.
So texts are searched again without what was found in them, until nothing more shows.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from bardo.context.layer import Effect
from bardo.context.privacy.detect import Span
from bardo.context.privacy.known_values import HOLE, KnownValues, Pieces, in_word, is_glued, with_holes
from bardo.values.errors import InvalidRequest

_MOST_ROUNDS = 16
MOST_VALUES = 100_000
"""Different values of one request. One with more is a table of people, and no text."""


class FindPersonalData(Effect, frozen=True):
    """Search texts for personal data; the result is a list of spans for each of them, in order."""

    texts: tuple[str, ...]


class DetectedValue(NamedTuple):
    """A value of a text: what it is, the word for its placeholder, and whether a word goes on beside it."""

    value: str
    entity: str
    label: str
    in_word: bool


class DetectedValues(NamedTuple):
    """The values of a request, and its texts, cut at them.

    They are in the order of the texts, and in each of them as they stand there, those last that only showed without the others: so a
    later turn changes no placeholder.
    """

    values: Sequence[DetectedValue]
    pieces: dict[str, Pieces]


Found = Sequence[Sequence[Span]]


def find_values(texts: Sequence[str], found: Found) -> Generator[FindPersonalData, Found, DetectedValues]:
    """Return the values of some texts, of which `found` shows without a second look. Raises InvalidRequest where they do not end."""
    repeated, by_text = KnownValues(), [_values(text, spans) for text, spans in zip(texts, found, strict=True)]
    for _ in range(_MOST_ROUNDS):
        for values in by_text:
            for value in values:
                repeated.add(value.value, in_word=value.in_word)
        if len(repeated) > MOST_VALUES:
            raise InvalidRequest(
                f"the request holds more than {MOST_VALUES:,} different personal values, too many to mask",
                hint="send it in parts",
            )
        pieces = {text: repeated.pieces(text) for text in texts} if repeated else {}
        glued = [
            (place, holes)
            for place, text in enumerate(texts)
            if text in pieces and is_glued(holes := with_holes(pieces[text]))
        ]
        if not glued:
            return DetectedValues([value for values in by_text for value in values], pieces)
        more = yield FindPersonalData(tuple(holes for _, holes in glued))
        shown = [(place, _shown(holes, spans, repeated)) for (place, holes), spans in zip(glued, more, strict=True)]
        if not any(values for _, values in shown):
            return DetectedValues([value for values in by_text for value in values], pieces)
        for place, values in shown:
            by_text[place] += values
    raise InvalidRequest(
        "personal data in the request runs on without a break, and cannot be masked",
        hint="put spaces between the values",
    )


def _values(text: str, spans: Sequence[Span]) -> list[DetectedValue]:
    return [
        DetectedValue(text[span.start : span.end], span.entity, span.label, in_word(text, span.start, span.end))
        for span in spans
    ]


def _shown(holes: str, spans: Sequence[Span], repeated_values: KnownValues) -> list[DetectedValue]:
    """Return what shows in a text without its values. A value that is known, and stands there yet, is masked in words too."""
    searched = [value for value in _values(holes, spans) if HOLE not in value.value]
    repeated = [value._replace(in_word=True) for value in searched if value.value in repeated_values]
    return [*repeated, *(value for value in searched if value.value not in repeated_values)]
