"""Text that bardo did not write, made safe for a terminal."""

from __future__ import annotations

import json
from unicodedata import category, normalize

_REPLACED = "�"
_ASCII = {number: _REPLACED for number in (*range(32), 127) if chr(number) not in "\n\t"}
_MARKS = ("Mn", "Me")
# More than any script puts on one letter.
_MOST_MARKS = 8
_JOINERS = "\u200c\u200d"
_WIDE_SPACE = "\u3000"
# Letters by their category, and blank: fillers of Hangul.
_UNSEEN = "\u115f\u1160\u3164\uffa0"

# What makes a program for tables take a text for a formula.
_FORMULAS = frozenset("=+-@")


def printable(text: str, *, prose: bool = False) -> str:
    """Return text that can do nothing to a terminal but be shown. What it might have done is shown as `�`, so that nothing goes unseen.

    `prose`: the text is an answer or thinking and not a name, so that it keeps the joiners that its script or its emoji need.
    """
    if text.isascii() and text.isprintable():
        return text
    cleaner = PrintableText(prose=prose)
    return cleaner.feed(text) + cleaner.finish()


def table_cell(text: str) -> str:
    """Return text for a cell of a file that programs for tables open: it can do nothing to a terminal, and is no formula.

    One that such a program would take for a formula, also behind spaces and in the wide letters that some take for the same, begins with
    an apostrophe. A tab, which some take for the next cell, is a space.
    """
    shown = printable(text, prose=True).replace("\t", " ")
    first = normalize("NFKC", shown.lstrip("\n '\"\ufeff")[:1])
    return f"'{shown}" if first in _FORMULAS and shown else shown


def escaped_json(encoded: str) -> str:
    """Return a line of JSON that can do nothing to a terminal: what could is escaped as JSON does it, which changes no value."""
    if encoded.isprintable():
        return encoded
    # Only texts hold such characters; JSON has no others outside of them.
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in encoded)


class PrintableText:
    """Text for a terminal, made safe piece by piece: where it is cut changes nothing.

    Line breaks and tabs remain. Control characters, characters that turn the direction of text or that cannot be seen, and characters that
    Unicode has not assigned become `�`; spaces of every kind become plain ones. So many marks remain on one letter as scripts need, and in
    prose the two joiners that scripts and emoji are written with, behind characters that are not ASCII.
    """

    def __init__(self, *, prose: bool = False) -> None:
        self._joiners = _JOINERS if prose else ""
        self._held = ""
        self._last = ""
        self._marks = 0

    def feed(self, item: str) -> str:
        """Return the next piece as it may be shown. A carriage return at its end is held: a line break may follow."""
        text = self._held + item
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r").replace("\r\n", "\n")
        if not text:
            return ""
        if text.isascii():
            self._last, self._marks = text[-1], 0
            return text.translate(_ASCII)
        return "".join(map(self._visible_letter, text))

    def finish(self) -> str:
        """Return what was held."""
        rest, self._held = self._held, ""
        return rest.translate(_ASCII)

    def _visible_letter(self, letter: str) -> str:
        kind = category(letter)
        self._marks = self._marks + 1 if kind in _MARKS else 0
        joins = letter in self._joiners and self._last.isprintable() and not self._last.isascii()
        self._last = letter
        if kind == "Zs":
            return "  " if letter == _WIDE_SPACE else " "
        seen = letter.isprintable() or letter in "\n\t" or joins
        return letter if seen and self._marks <= _MOST_MARKS and letter not in _UNSEEN else _REPLACED
