"""Pass a literal of a model's own notation on as JSON, while it arrives: Python's, or Gemma's with its quoting marks.

When Malformed is raised, all that was read has been passed on, what was wrong as it stood.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from bardo.tools.jsontext import escape
from bardo.tools.scanner import Give, Malformed, Reading, Scanner

WRONG = "a value is not what the format says"
DEPTH_LIMIT = 100
WORD_LIMIT = 400
_WORD = re.compile(r"[^\s,:=<>\[\](){}'\"]*")
_DIGITS = re.compile(r"[0-9a-fA-F]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_CODES = {"x": 2, "u": 4, "U": 8}


class Following(NamedTuple):
    """What must follow a string that is an argument, so that a quote before anything else is a part of it.

    `whole` matches what ends the string, and `partly` what may still become that when more has come.
    """

    whole: re.Pattern[str]
    partly: re.Pattern[str]


_PARTLY = re.compile(r"\s*(?:\)\s*|\]\s*|,\s*(?:\w+\s*=?)?)?")
ARGUMENT = Following(re.compile(r"\s*(?:\)|\]\s*<|,\s*(?:\)|\w+\s*=[^=]))"), _PARTLY)
LISTED_ARGUMENT = Following(re.compile(r"\s*(?:\)\s*[\],]|\)\s*<|\]\s*<|,\s*(?:\)|\w+\s*=[^=]))"), _PARTLY)
"""The same for a call in a list, behind which `]` or the next call must stand: run(command="python -c "print("x")"")."""
_LONGEST_FOLLOWING = 300


@dataclass(frozen=True, slots=True)
class Notation:
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
    if depth > DEPTH_LIMIT:
        raise Malformed("the arguments are nested too deep")
    yield from scanner.blank()
    if quote := (yield from scanner.choose(notation.quotes)):
        yield from _string(scanner, give, quote, notation, following)
        return
    character = yield from scanner.peek()
    if character == "{":
        yield from _mapping(scanner, give, notation, depth)
    elif character in ("[", "("):
        yield from _sequence(scanner, give, notation, depth)
    else:
        yield from _scalar(scanner, give, notation)


def _sequence(scanner: Scanner, give: Give, notation: Notation, depth: int) -> Reading[None]:
    closer = "]" if scanner.skip() == "[" else ")"
    give("[")
    yield from _members(scanner, give, notation, depth, closer=closer, lead="")


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
    yield from _entries(scanner, give, notation, depth)


def _entries(scanner: Scanner, give: Give, notation: Notation, depth: int) -> Reading[None]:
    """Pass on the rest of a mapping behind its first key."""
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
        found = yield from scanner.pass_until(stops, plain)
        if not found:
            raise Malformed("the reply ended inside the arguments")
        yield from scanner.choose((found,))
        if found != quote:
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
        give(_coded(character, digits))
    elif character in _ESCAPES:
        give(escape(_ESCAPES[character]))
    else:
        # An escape Python does not know keeps its backslash; escaped quotes and backslashes lose it.
        give(escape(character if character in "\"'\\" else "\\" + character))


def _coded(kind: str, digits: str) -> str:
    code = int(digits, 16) if len(digits) == _CODES[kind] else -1
    if not 0 <= code <= 0x10FFFF:
        return escape(f"\\{kind}{digits}")
    # Written as JSON's own escape, so that a pair of surrogates becomes one character again.
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF else escape(chr(code))


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
        return _python_float(word)


def _python_float(word: str) -> str:
    try:
        number = float(word)
    except ValueError:
        return ""
    return json.dumps(number) if math.isfinite(number) else ""
