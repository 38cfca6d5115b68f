"""The meaning of words, numbers and strings of JSON and almost-JSON: Python, JavaScript and Mongo write some values in other ways."""

from __future__ import annotations

import re

from bardo.structured.extraction import Json

NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LOOSE_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_BASED = re.compile(r"([+-]?)0(?:[xX]([0-9a-fA-F_]+)|[oO]([0-7_]+)|[bB]([01_]+))")
_LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None, "none": None, "nil": None, "undefined": None}
# JSON has no word for them, and nothing else can be said instead.
_NOT_FINITE = frozenset({"nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf"})
_MAX_DIGITS = 4000

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|(\r?\n)|(.))", re.S)


def number(lexeme: str) -> int | float | None:
    """Return the number a lexeme says, or None if it says none. A float may come out infinite."""
    if len(lexeme) > _MAX_DIGITS:
        return None
    if NUMBER.fullmatch(lexeme):
        return float(lexeme) if any(letter in lexeme for letter in ".eE") else int(lexeme)
    based = _BASED.fullmatch(lexeme)
    if based:
        sign, *digits = based.groups()
        base, text = next((base, text) for base, text in zip((16, 8, 2), digits, strict=True) if text)
        size = int(text.replace("_", "") or "0", base)
        return -size if sign == "-" else size
    # 007 is a code rather than a number; 1_000 and 5. and .5 are numbers elsewhere.
    if _LOOSE_NUMBER.fullmatch(lexeme) and not re.match(r"[+-]?0\d", lexeme):
        plain = lexeme.replace("_", "").lstrip("+")
        return float(plain) if any(letter in plain for letter in ".eE") else int(plain)
    return None


def scalar(lexeme: str) -> tuple[Json, bool]:
    """Return what a bare word stands for, and whether it is a literal or a number rather than a string without its quotes."""
    lowered = lexeme.lower()
    if lexeme in (lowered, lowered.upper(), lowered.capitalize()) and lowered in _LITERALS:
        return _LITERALS[lowered], True
    if lowered in _NOT_FINITE:
        return None, True
    text = number(lexeme)
    return (lexeme, False) if text is None else (text, True)


def unescaped(raw: str) -> str:
    """Return a string's text. An escape JSON does not know keeps its backslash: C:\\Users is more often a path than a mistake."""
    if "\\" not in raw:
        return raw
    return _ESCAPE.sub(_unescape, raw)


def _unescape(escape: re.Match[str]) -> str:
    four, two, braced, line_break, letter = escape.groups()
    if line_break is not None:
        return ""
    if letter is not None:
        return _ESCAPES.get(letter, escape.group())
    point = int(four or two or braced, 16)
    return chr(point) if point <= 0x10FFFF else escape.group()


def without_surrogates(text: str) -> str:
    """Join surrogate pairs, and replace those that stand alone by U+FFFD: they cannot be sent on as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_PLAIN = re.compile(r'[^"\\]*')
_JSON_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class StringReader:
    """Holds an escape until it is whole; both halves of a surrogate pair are one, and a half alone is U+FFFD."""

    def __init__(self) -> None:
        self.closed = False
        self.broken = False
        self._pieces: list[str] = []
        self._held = ""

    @property
    def value(self) -> str:
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
            return self._settle(_JSON_ESCAPES.get(held[1], held[1]), at + 1)
        return self._code_points(held, at) if len(held) in (6, 12) else at + 1

    def _code_points(self, held: str, at: int) -> int:
        try:
            text = "".join(chr(int(held[place : place + 4], 16)) for place in range(2, len(held), 6))
        except ValueError:
            self.broken = True
            return at
        if len(held) == 6 and "\ud800" <= text <= "\udbff":
            return at + 1
        return self._settle(without_surrogates(text), at + 1)

    def _settle(self, text: str, at: int) -> int:
        self._pieces.append(text)
        self._held = ""
        return at
