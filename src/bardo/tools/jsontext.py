"""JSON and what resembles it in the text of a model's calls: objects, Python's literals, and values without quotes."""

from __future__ import annotations

import json
import math
import re
from typing import Literal, NamedTuple

import msgspec

from bardo.tools.scanner import Give, Malformed, Reading, Scanner

Expects = Literal["value", "value or end", "key", "key or end", "colon", "comma or end"]

CUT_OFF = "the reply ended inside the arguments"
UNBALANCED = "the arguments' brackets do not match"
NOT_JSON = "the arguments are not valid JSON"
TOO_DEEP = "the arguments are nested too deep"

DEPTH_LIMIT = 500
SCALAR_LIMIT = 1000
_SCALAR = re.compile(r"[-+.\w]*")
_VALID_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null", re.ASCII)
_PLAIN = re.compile(r'[^"\\]*')
_CONTROL = re.compile(r"[\x00-\x1f]")
_OPENS = "{["
_CLOSES = {"}": "{", "]": "["}


class ValueEnd(msgspec.Struct, frozen=True):
    """How a value ended: at its own end or not, and what was wrong with it."""

    complete: bool
    why: str = ""


def escape(text: str) -> str:
    """Return text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def pass_value(scanner: Scanner, give: Give, stops: tuple[str, ...]) -> Reading[ValueEnd]:
    """Pass on the value that begins here. Where its end is lost, it ends before the first of `stops`, or with the reply."""
    scan = _Scan(scanner, give)
    ended = yield from scan.strictly()
    if ended is None:
        ended = yield from scan.loosely(stops)
    return ended


def read_string(scanner: Scanner) -> Reading[str]:
    """Read a JSON string and return what it says. Raises Malformed where none stands here."""
    parts: list[str] = []
    if (yield from scanner.peek()) != '"':
        raise Malformed("a string is missing")
    if not (yield from _pass_string(scanner, parts.append)):
        raise Malformed(CUT_OFF)
    literal = "".join(parts)
    try:
        decoded = json.loads(literal, strict=False)
    except ValueError as error:
        raise Malformed(NOT_JSON) from error
    return decoded if isinstance(decoded, str) else literal


def read_value(scanner: Scanner) -> Reading[str]:
    """Read a JSON value and return its text. Raises Malformed where none stands here."""
    parts: list[str] = []
    ended = yield from _Scan(scanner, parts.append).strictly()
    if ended is None or not ended.complete:
        raise Malformed(NOT_JSON)
    return "".join(parts)


class _Scan:
    """One value: the brackets that are open, and what may come next."""

    def __init__(self, scanner: Scanner, give: Give) -> None:
        self._scanner = scanner
        self._give = give
        self._open: list[str] = []
        self._expects: Expects = "value"
        self._controls = False

    def strictly(self) -> Reading[ValueEnd | None]:
        """Read for as long as this is JSON, or None if it is not."""
        while True:
            yield from self._scanner.blank(self._give if self._open else None)
            character = yield from self._scanner.peek()
            if not character:
                return ValueEnd(False, CUT_OFF)
            if len(self._open) > DEPTH_LIMIT:
                return None
            if not (yield from self._step(character)):
                return None
            if not self._open and self._expects == "comma or end":
                return ValueEnd(True, NOT_JSON if self._controls else "")

    def loosely(self, stops: tuple[str, ...]) -> Reading[ValueEnd]:
        """Read on by brackets and quotes."""
        marks = ('"', "{", "}", "[", "]", *stops)
        while self._open and len(self._open) <= DEPTH_LIMIT:
            mark = yield from self._scanner.pass_until(marks, self._give)
            if not mark:
                return ValueEnd(False, CUT_OFF)
            if mark in stops:
                return ValueEnd(False, NOT_JSON)
            if mark == '"':
                if not (yield from _pass_string(self._scanner, self._give)):
                    return ValueEnd(False, CUT_OFF)
            elif mark in _OPENS:
                self._enter(mark)
            elif self._open[-1] != _CLOSES[mark]:
                return ValueEnd(False, UNBALANCED)
            else:
                self._leave()
        return ValueEnd(False, TOO_DEEP) if self._open else ValueEnd(True, NOT_JSON)

    def _step(self, character: str) -> Reading[bool]:
        """Read one token; False where it may not stand here."""
        expects = self._expects
        if character == '"' and expects not in ("colon", "comma or end"):
            self._expects = "colon" if expects in ("key", "key or end") else "comma or end"
            return (yield from self._string())
        if character in _OPENS and expects in ("value", "value or end"):
            self._enter(character)
            return True
        if character in _CLOSES:
            return self._close(character)
        if character == "," and expects == "comma or end" and self._open:
            self._expects = "key" if self._open[-1] == "{" else "value"
            self._give(self._scanner.skip())
            return True
        if character == ":" and expects == "colon":
            self._expects = "value"
            self._give(self._scanner.skip())
            return True
        return expects in ("value", "value or end") and (yield from self._scalar())

    def _string(self) -> Reading[bool]:
        def check(piece: str) -> None:
            self._controls = self._controls or _CONTROL.search(piece) is not None
            self._give(piece)

        return (yield from _pass_string(self._scanner, check))

    def _scalar(self) -> Reading[bool]:
        self._expects = "comma or end"
        word = yield from self._scanner.word(_SCALAR, limit=SCALAR_LIMIT)
        self._give(word)
        return _VALID_SCALAR.fullmatch(word) is not None

    def _close(self, character: str) -> bool:
        if not self._open or self._open[-1] != _CLOSES[character]:
            return False
        if self._expects not in ("comma or end", "key or end", "value or end"):
            return False
        self._leave()
        return True

    def _enter(self, character: str) -> None:
        self._open.append(character)
        self._expects = "key or end" if character == "{" else "value or end"
        self._give(self._scanner.skip())

    def _leave(self) -> None:
        self._open.pop()
        self._expects = "comma or end"
        self._give(self._scanner.skip())


def _pass_string(scanner: Scanner, give: Give) -> Reading[bool]:
    """Pass on the string that begins here; False where the reply ends inside it."""
    give(scanner.skip())
    while True:
        yield from scanner.run(_PLAIN, give)
        character = yield from scanner.peek()
        if not character:
            return False
        give(scanner.skip())
        if character == '"':
            return True
        if not (yield from scanner.peek()):
            return False
        give(scanner.skip())


WRONG = "a value is not what the format says"
LITERAL_DEPTH_LIMIT = 100
WORD_LIMIT = 400
_WORD = re.compile(r"[^\s,:=<>\[\](){}'\"]*")
_DIGITS = re.compile(r"[0-9a-fA-F]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_CODES = {"x": 2, "u": 4, "U": 8}


class Following(NamedTuple):
    """The text that must follow a string that is an argument, so that a quote before anything else is a part of it.

    `whole` matches what ends the string, and `partly` what may still become that when more has come.
    """

    whole: re.Pattern[str]
    partly: re.Pattern[str]


_PARTLY = re.compile(r"\s*(?:\)\s*|\]\s*|,\s*(?:\w+\s*=?)?)?")
ARGUMENT = Following(re.compile(r"\s*(?:\)|\]\s*<|,\s*(?:\)|\w+\s*=[^=]))"), _PARTLY)
LISTED_ARGUMENT = Following(re.compile(r"\s*(?:\)\s*[\],]|\)\s*<|\]\s*<|,\s*(?:\)|\w+\s*=[^=]))"), _PARTLY)
"""The same for a call in a list, behind which `]` or the next call must stand: run(command="python -c "print("x")"")."""
_LONGEST_FOLLOWING = 300


class Notation(msgspec.Struct, frozen=True):
    """How values are written: what quotes strings, whether backslashes escape in them, and whether keys may stand bare.

    `followers`: the characters that may follow a string; a quote before anything else is a part of the string. Empty where any quote
    ends it.
    """

    quotes: tuple[str, ...]
    escapes: bool
    bare: bool = False
    followers: str = ""


# Models do not escape the quotes of a command that they quote themselves: bash(command='sed -n '1,9p' a.py').
PYTHON = Notation(quotes=('"', "'", '"""', "'''"), escapes=True, followers=",)]}:")
NOTATIONS = {"python": PYTHON, "gemma": Notation(quotes=('<|"|>', "<escape>", '"'), escapes=False, bare=True)}


def pass_literal(
    scanner: Scanner, give: Give, notation: Notation, depth: int = 0, *, following: Following | None = None
) -> Reading[None]:
    """Pass on the literal that begins here, as JSON. `following` is what must stand behind it if it is a string. Raises Malformed."""
    if depth > LITERAL_DEPTH_LIMIT:
        raise Malformed("the arguments are nested too deep")
    yield from scanner.blank()
    if quote := (yield from scanner.choose(notation.quotes)):
        yield from _string(scanner, give, quote, notation, following)
        return
    character = yield from scanner.peek()
    if character == "{":
        yield from _mapping(scanner, give, notation, depth)
    elif character in ("[", "("):
        closer = "]" if scanner.skip() == "[" else ")"
        give("[")
        yield from _members(scanner, give, notation, depth, closer=closer, lead="")
    else:
        yield from _scalar(scanner, give, notation)


def _members(scanner: Scanner, give: Give, notation: Notation, depth: int, *, closer: str, lead: str) -> Reading[None]:
    while not (yield from _read_closer(scanner, closer)):
        give(lead)
        yield from pass_literal(scanner, give, notation, depth + 1)
        yield from _comma(scanner, closer)
        lead = ", "
    give("]")


def _mapping(scanner: Scanner, give: Give, notation: Notation, depth: int) -> Reading[None]:
    """Pass on a mapping; a set, which shows behind its first member, is a list in JSON."""
    scanner.skip()
    if (yield from _read_closer(scanner, "}")):
        give("{}")
        return
    first: list[str] = []
    try:
        yield from _key(scanner, first.append, notation)
        yield from scanner.blank()
        listed = bool((yield from scanner.stands((",", "}"))))
    except Malformed:
        give("".join(("{", *first)))
        raise
    give("".join(("[" if listed else "{", *first)))
    if listed:
        yield from _comma(scanner, "}")
        yield from _members(scanner, give, notation, depth, closer="}", lead=", ")
        return
    # Pass on the rest of a mapping behind its first key.
    while True:
        yield from scanner.expect(":")
        give(": ")
        yield from pass_literal(scanner, give, notation, depth + 1)
        yield from _comma(scanner, "}")
        if (yield from _read_closer(scanner, "}")):
            break
        give(", ")
        yield from _key(scanner, give, notation)
    give("}")


def _read_closer(scanner: Scanner, closer: str) -> Reading[bool]:
    yield from scanner.blank()
    return bool((yield from scanner.choose((closer,))))


def _comma(scanner: Scanner, closer: str) -> Reading[None]:
    yield from scanner.blank()
    if not (yield from scanner.choose((",",))) and not (yield from scanner.stands((closer,))):
        raise Malformed(WRONG)


def _key(scanner: Scanner, give: Give, notation: Notation) -> Reading[None]:
    if quote := (yield from scanner.choose(notation.quotes)):
        yield from _string(scanner, give, quote, notation)
        return
    word = yield from scanner.word(_WORD, limit=WORD_LIMIT)
    if not word or not (notation.bare or _NUMBER.fullmatch(word)):
        give(word)
        raise Malformed(WRONG)
    give(f'"{escape(word)}"')


def _string(
    scanner: Scanner, give: Give, quote: str, notation: Notation, following: Following | None = None
) -> Reading[None]:
    def plain(text: str) -> None:
        give(escape(text))

    give('"')
    stops = (quote, "\\") if notation.escapes else (quote,)
    while True:
        mark = yield from scanner.pass_until(stops, plain)
        if not mark:
            raise Malformed("the reply ended inside the arguments")
        yield from scanner.choose((mark,))
        if mark != quote:
            yield from _escape(scanner, give)
        elif following is not None:
            if (yield from _is_followed(scanner, following)):
                break
            plain(quote)
        elif (yield from _ends_string(scanner, plain, quote, notation)):
            break
    give('"')


def _is_followed(scanner: Scanner, following: Following) -> Reading[bool]:
    """Return whether what must follow stands here. A reply that ends before that is known ended with the string."""
    for count in range(1, _LONGEST_FOLLOWING):
        text = yield from scanner.ahead(count)
        if following.whole.match(text):
            return True
        if not following.partly.fullmatch(text):
            return False
        if len(text) < count:
            return True
    return False


def _ends_string(scanner: Scanner, plain: Give, quote: str, notation: Notation) -> Reading[bool]:
    """Return whether the quote that was read ends its string; where it does not, pass it on as a part of it."""
    blank: list[str] = []
    if notation.followers:
        yield from scanner.blank(blank.append)
        character = yield from scanner.peek()
        if character and character not in notation.followers:
            plain("".join((quote, *blank)))
            return False
    return True


def _escape(scanner: Scanner, give: Give) -> Reading[None]:
    character = yield from scanner.peek()
    if not character:
        raise Malformed("the reply ended inside the arguments")
    scanner.skip()
    if character in _CODES:
        digits = yield from scanner.word(_DIGITS, limit=_CODES[character])
        code = int(digits, 16) if len(digits) == _CODES[character] else -1
        if not 0 <= code <= 0x10FFFF:
            coded = escape(f"\\{character}{digits}")
        else:
            # Written as JSON's own escape, so that a pair of surrogates becomes one character again.
            coded = f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF else escape(chr(code))
        give(coded)
    elif character in _ESCAPES:
        give(escape(_ESCAPES[character]))
    else:
        # An escape Python does not know keeps its backslash; escaped quotes and backslashes lose it.
        give(escape(character if character in "\"'\\" else "\\" + character))


def _scalar(scanner: Scanner, give: Give, notation: Notation) -> Reading[None]:
    word = yield from scanner.word(_WORD, limit=WORD_LIMIT)
    written = _as_json(word) or (f'"{escape(word)}"' if notation.bare and word else "")
    give(written or word)
    if not written:
        raise Malformed(WRONG)


def _as_json(word: str) -> str:
    """Return a word or a number as JSON, or nothing."""
    if _NUMBER.fullmatch(word):
        return word
    return _WORDS.get(word) or _python_number(word)


def _python_number(word: str) -> str:
    """Return a number as JSON writes it, or nothing."""
    digits = word.removeprefix("-")
    try:
        # Models pad dates with zeros, which Python does not read.
        return str(int(word, 10 if digits.isascii() and digits.isdigit() else 0))
    except ValueError:
        try:
            number = float(word)
        except ValueError:
            return ""
        return json.dumps(number) if math.isfinite(number) else ""
