"""Clean what an error, or any text that bardo did not write, may show: no secret, no control of a terminal, no excess."""

from __future__ import annotations

import json
import math
import re
from email.utils import parsedate_to_datetime
from typing import Any
from unicodedata import category, normalize

import msgspec

from bardo.values.errors import BardoError, InvalidRequest, UpstreamRefused
from bardo.values.secrets import NO_SECRETS, Secrets

MAX_MESSAGE = 2_000
"""Characters of an error's message, and of its hint."""
MAX_WORD = 200
"""Characters of a code, a type or the name of a parameter."""
MAX_DETAIL_BYTES = 16_000
"""Of a longer error object nothing is kept but what was read of it."""
MAX_RETRY_SECONDS = 7 * 24 * 3600
"""Who asks to wait longer is not believed."""

_SECONDS = re.compile(r"\s*([0-9]{1,9})(\.[0-9]{1,9})?\s*")
_LONGEST_DATE = 64
_CHAIN = 8


def clean_error(error: BardoError, secrets: Secrets = NO_SECRETS, *, now: float | None = None) -> BardoError:
    """Take secrets and excess out of an error and of what it was raised from, in place. Returns the error.

    `now` is Unix time, by which a date to retry at becomes seconds; without it a date is dropped.

    Every error that holds text from outside passes here once, where it becomes an error of a reply.
    """
    one: BaseException | None = error
    for _ in range(_CHAIN):
        if isinstance(one, BardoError):
            _clean(one, secrets, now)
        one = None if one is None else one.__cause__ or one.__context__
    return error


def _clean(error: BardoError, secrets: Secrets, now: float | None) -> None:
    error.message = cleaned_text(error.message, secrets, MAX_MESSAGE)
    error.hint = cleaned_text(error.hint, secrets, MAX_MESSAGE)
    error.args = (error.message,)
    if isinstance(error, InvalidRequest) and error.param:
        error.param = cleaned_text(error.param, secrets, MAX_WORD)
    if not isinstance(error, UpstreamRefused):
        return
    error.upstream_code = _clean_text(error.upstream_code, secrets)
    error.upstream_type = _clean_text(error.upstream_type, secrets)
    error.param = _clean_text(error.param, secrets)
    error.retry_after = parse_retry_after(error.retry_after, now)
    error.passed_headers = tuple(header for header in error.passed_headers if secrets.in_text(header[1]) == header[1])
    error.detail = _detail(error.detail, secrets)


def cleaned_text(text: str, secrets: Secrets, longest: int) -> str:
    """Return text without secrets, cut where it is too long."""
    if len(text) <= longest:
        found = secrets.in_text(text)
        return found if len(found) <= longest else found[:longest] + "…"
    margin = secrets.longest + 400
    found = secrets.in_text(text[: 2 * longest + margin])
    # A secret that was cut in two at the end is not found: its beginning goes with the margin.
    kept = found[:-margin] if len(text) > 2 * longest + margin else found
    return kept[:longest] + "…"


def parse_retry_after(value: str | None, now: float | None = None) -> str | None:
    """Return whole seconds to wait, of a number of seconds or an HTTP date; None for anything else, and for what nobody would wait."""
    if not value or len(value) > _LONGEST_DATE or not value.isascii():
        return None
    found = _SECONDS.fullmatch(value)
    seconds = math.ceil(float(value)) if found else _until(value, now)
    return str(seconds) if seconds is not None and 0 <= seconds <= MAX_RETRY_SECONDS else None


def _until(date: str, now: float | None) -> int | None:
    if now is None:
        return None
    try:
        return max(0, math.ceil(parsedate_to_datetime(date).timestamp() - now))
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _clean_text(word: str | None, secrets: Secrets) -> str | None:
    return None if word is None else cleaned_text(word, secrets, MAX_WORD)


def _detail(detail: Any, secrets: Secrets) -> Any:
    try:
        size = len(msgspec.json.encode(detail))
    except (TypeError, ValueError, RecursionError):
        return None
    return secrets.in_value(detail) if size <= MAX_DETAIL_BYTES else None


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
