"""Read one JSON string while it arrives, from behind its opening quote to its closing one."""

from __future__ import annotations

import re

from bardo.structured.lexemes import without_surrogates

_PLAIN = re.compile(r'[^"\\]*')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class StringReader:
    """Holds an escape until it is whole; both halves of a surrogate pair are one, and a half alone is U+FFFD."""

    def __init__(self) -> None:
        self.closed = False
        self.broken = False
        self._pieces: list[str] = []
        self._held = ""

    @property
    def said(self) -> str:
        """The text so far, without an escape that is not whole yet."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def feed(self, text: str, at: int) -> int:
        """Take text from `at` on, and return how far: behind the closing quote, or to the end."""
        while at < len(text) and not (self.closed or self.broken):
            at = self._escape(text, at) if self._held else self._plain(text, at)
        return at

    def _plain(self, text: str, at: int) -> int:
        plain = _PLAIN.match(text, at)
        assert plain is not None
        if plain.group():
            self._pieces.append(without_surrogates(plain.group()))
        at = plain.end()
        if at < len(text):
            self.closed = text[at] == '"'
            self._held = "" if self.closed else "\\"
        return min(at + 1, len(text))

    def _escape(self, text: str, at: int) -> int:
        held = self._held = self._held + text[at]
        if len(held) == 7 and held[6] != "\\":
            return self._settle("\ufffd", at)
        if len(held) == 8 and held[7] != "u":
            self._settle("\ufffd", at)
            self._held = "\\"
            return at
        if len(held) == 2 and held[1] != "u":
            return self._settle(_ESCAPES.get(held[1], held[1]), at + 1)
        return self._code_points(held, at) if len(held) in (6, 12) else at + 1

    def _code_points(self, held: str, at: int) -> int:
        try:
            said = "".join(chr(int(held[place : place + 4], 16)) for place in range(2, len(held), 6))
        except ValueError:
            self.broken = True
            return at
        if len(held) == 6 and "\ud800" <= said <= "\udbff":
            return at + 1
        return self._settle(without_surrogates(said), at + 1)

    def _settle(self, said: str, at: int) -> int:
        self._pieces.append(said)
        self._held = ""
        return at
