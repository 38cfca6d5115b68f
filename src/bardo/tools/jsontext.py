"""Pass JSON text on as it arrives, verbatim, and know where its value ends and whether it is JSON.

A value that breaks the rules is followed by its brackets and quotes alone, so that its end is still found where it can be.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class ValueEnd:
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
    return _decoded("".join(parts))


def read_value(scanner: Scanner) -> Reading[str]:
    """Read a JSON value and return its text. Raises Malformed where none stands here."""
    parts: list[str] = []
    ended = yield from _Scan(scanner, parts.append).strictly()
    if ended is None or not ended.complete:
        raise Malformed(NOT_JSON)
    return "".join(parts)


def _decoded(literal: str) -> str:
    try:
        decoded = json.loads(literal, strict=False)
    except ValueError as error:
        raise Malformed(NOT_JSON) from error
    return decoded if isinstance(decoded, str) else literal


class _Scan:
    """One value: the brackets that are open, and what may come next."""

    def __init__(self, scanner: Scanner, give: Give) -> None:
        self._scanner = scanner
        self._give = give
        self._open: list[str] = []
        self._expects: Expects = "value"
        self._controls = False

    def strictly(self) -> Reading[ValueEnd | None]:
        """Read for as long as this is JSON; None where it is not."""
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
            found = yield from self._scanner.pass_until(marks, self._give)
            if not found:
                return ValueEnd(False, CUT_OFF)
            if found in stops:
                return ValueEnd(False, NOT_JSON)
            if found == '"':
                if not (yield from _pass_string(self._scanner, self._give)):
                    return ValueEnd(False, CUT_OFF)
            elif found in _OPENS:
                self._enter(found)
            elif self._open[-1] != _CLOSES[found]:
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
