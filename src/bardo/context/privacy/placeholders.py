"""What stands for values in a call, such as `<EMAIL_1>`: equal values share one, in the order in which they first appear.

The same conversation gives the same placeholders in each of its turns, since its beginning stays the same; so nothing has to be kept, and
prompt caches hold. A number that the client's own text uses in such a form is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bardo.context.privacy.known_values import KnownValues, Pieces
from bardo.context.privacy.patterns import WORD

_CLIENT_WORDS = re.compile(r"([A-Za-z]{2,14})\\?[_ -]([0-9]{1,6})")


class Placeholders:
    """The placeholders of one call. Values are added by `take`; what stands for what never reaches a log, a receipt or an error."""

    def __init__(self) -> None:
        self._by_value: dict[str, str] = {}
        self._known = KnownValues()
        self._next: dict[str, int] = {}
        self._used: set[tuple[str, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._by_value)

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of the placeholders that there are."""
        return tuple(sorted(self._next))

    @property
    def values(self) -> dict[str, str]:
        """The values by the inner part of their placeholders: `EMAIL_1`."""
        return {placeholder[1:-1]: value for value, placeholder in self._by_value.items()}

    def avoid(self, text: str, labels: Iterable[str]) -> None:
        """Pass over the numbers that a text of the client uses with one of these words, also within a word: what is beside it may go."""
        known = set(labels)
        for placeholder in _CLIENT_WORDS.finditer(text):
            word, digits = placeholder.group(1).upper(), placeholder.group(2)
            for label in known.intersection(word[start:] for start in range(len(word) - 1)):
                self._used.update((label, int(digits[:length])) for length in range(1, len(digits) + 1))

    def take(self, value: str, label: str, *, in_word: bool = False) -> None:
        """Add a value, unless it is there. `in_word` says that it was found where a word goes on: then it is masked there too."""
        self._known.add(value, in_word=in_word)
        if value in self._by_value:
            return
        number = self._next.get(label, 0) + 1
        while (label, number) in self._used:
            number += 1
        self._next[label] = number
        self._by_value[value] = f"<{label}_{number}>"

    def kept(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the values with their placeholders, and whether each is masked in words too."""
        return tuple([(value, name, self._known.found_in_words(value)) for value, name in self._by_value.items()])

    @classmethod
    def of_kept(cls, kept: Iterable[tuple[str, str, bool]]) -> Placeholders:
        """Return the placeholders that `kept` returned."""
        made = cls()
        for value, placeholder, is_in_words in kept:
            label, _, number = placeholder[1:-1].rpartition("_")
            made._by_value[value] = placeholder
            made._known.add(value, in_word=is_in_words)
            made._next[label] = max(int(number), made._next.get(label, 0))
        return made

    def masked(self, text: str) -> str:
        """Return a text with placeholders for all values, the longest first, wherever no word goes on beside them or they were found so."""
        return self.in_place(text, self._known.pieces(text))

    def in_place(self, text: str, pieces: Pieces) -> str:
        """Return a text, cut at its values, with placeholders for them."""
        if len(pieces) == 1 and not pieces[0][1]:
            return text
        return "".join([self._by_value[part] if is_value else part for part, is_value in pieces])

    def of(self, value: str) -> str | None:
        """Return what stands for a whole value."""
        return self._by_value.get(value)


_Part = str | tuple[str, ...]
"""A part of a placeholder: an expression, or the words of which one stands there."""


class PlaceholderForms:
    """How the placeholders of one call may come back: `whole` finds one, and `begun` one that may have begun at the end of a text.

    Models escape for Markdown, HTML and JSON, change case, and leave out the brackets. Without brackets only capitals are read.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        opening, closing = ("<", "\\<", "&lt;", "\\u003c"), (">", "\\>", "&gt;", "\\u003e")
        joints = ("_", "\\_", "-", " ")
        names = tuple(sorted(labels))
        in_brackets: list[_Part] = [opening, _SPACE, names, joints, _NUMBER, _SPACE, closing]
        alone: list[_Part] = [names, joints[:2], _NUMBER]
        bare = rf"(?<![{WORD}])(?P<bare>{_chain(alone)})(?![{WORD}])"
        self.whole = re.compile(rf"(?i:(?P<framed>{_chain(in_brackets)}))|{bare}")
        self.begun = re.compile(rf"(?:(?i:{_begun(in_brackets)})|(?<![{WORD}])(?:{_begun(alone)}|{_chain(alone)}))\Z")
        self.longest = sum(_longest(part) for part in in_brackets)


_SPACE, _NUMBER = " ?", "[0-9]{1,6}"
_FOUND = re.compile(r"([A-Za-z]{1,99})[^A-Za-z0-9]{1,9}([0-9]{1,9})")


def inner_of(placeholder: str) -> str:
    """Return the inner part of a placeholder in any of its forms: `EMAIL_1`."""
    plain = re.sub(r"(?i)&lt;|&gt;|\\u003[ce]", "", placeholder)
    part = _FOUND.search(plain)
    return f"{part.group(1).upper()}_{part.group(2)}" if part else ""


def _chain(parts: Sequence[_Part]) -> str:
    return "".join(part if isinstance(part, str) else f"(?:{'|'.join(map(re.escape, part))})" for part in parts)


def _begun(parts: Sequence[_Part]) -> str:
    """Return what matches each beginning of a chain that is shorter than it."""
    forms = []
    for place, part in enumerate(parts):
        before = _chain(parts[:place])
        if isinstance(part, tuple):
            beginnings = sorted(
                {word[:length] for word in part for length in range(1, len(word))}, key=len, reverse=True
            )
            forms += [f"{before}(?:{'|'.join(map(re.escape, beginnings))})"] if beginnings else []
        if place:
            forms.append(before)
    return f"(?:{'|'.join(forms)})"


def _longest(part: _Part) -> int:
    return max(map(len, part)) if isinstance(part, tuple) else 1 if part == _SPACE else 6
