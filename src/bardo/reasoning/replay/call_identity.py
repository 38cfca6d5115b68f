"""The identity of a tool call: an id that only one call can have, and its arguments in one canonical spelling.

Providers make ids of random characters (`call_8f2KzP…`, `toolu_01A09q…`, UUIDs) or count (`functions.get_weather:0`, `call_0`, `0`).
Only the form of an id is known here, so it has to show that it was drawn at random: a long run of letters and digits in which digits,
small and capital letters follow each other without order. Numbers alone may be a counter or a time, words alone may be a name.

Arguments are compared by their meaning, since clients rewrite them: keys are sorted, space is left out, and numbers are equal where their
values are: `1.0`, `1` and `1e0`.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from operator import ne
from string import ascii_letters, digits
from typing import Any

import msgspec

from bardo.values.blocks import ToolCallBlock

# No shorter one has 48 random bits.
_RUN = re.compile(r"[A-Za-z0-9]{9,}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]?[a-z]{3,}")
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_KINDS = bytes.maketrans((digits + ascii_letters).encode(), b"0" * 10 + b"a" * 26 + b"A" * 26)
"""A character of each kind in place of digits, small letters and capitals."""
_BITS = 48
_ALTERNATIONS = 3
_DISTINCT = 7
_LETTERS = 3
_WORDY = 0.7


def may_be_unique(call_id: str, name: str = "") -> bool:
    """Whether an id may be globally unique, for ids that are only looked for: told in a fifth of the time, and true of each that is."""
    if call_id.count("-") >= 4:
        return True
    for run in _RUN.findall(call_id.replace(name, " ") if name else call_id):  # noqa: SIM110 - asked of each call of a history.
        if not run.isalpha():
            return True
    return False


def is_globally_unique(call_id: str, name: str = "") -> bool:
    """Whether an id has enough randomness to be the only one of its kind. `name`, the tool's, counts for nothing."""
    if len(call_id) > 512:
        return False
    text = call_id.replace(name, " ") if name else call_id
    if text.count("-") >= 4:
        text = _UUID.sub(lambda match: match.group().replace("-", ""), text)
    for run in _RUN.findall(text):
        # Words and counters have few changes between digits, small letters and capitals; random text has one every second character.
        kinds = run.encode().translate(_KINDS)
        length = len(run)
        letters = length - kinds.count(b"0")
        if letters == length or sum(map(ne, kinds, kinds[1:])) < max(_ALTERNATIONS, length // 5):
            continue
        # Dates have a letter or two; names with numbers in them (`step1call2`) are words for the most part.
        if letters < _LETTERS or len({*run}) < _DISTINCT:
            continue
        if letters > length * _WORDY and sum(map(len, _WORDS.findall(run))) > length * _WORDY:
            continue
        # Four bits a character, of hexadecimal digits, are the least.
        drawn_from = 10 + 26 * (b"a" in kinds) + 26 * (b"A" in kinds)
        if length * 4 >= _BITS or (not _HEX.fullmatch(run) and length * math.log2(drawn_from) >= _BITS):
            return True
    return False


def stated_id(call: ToolCallBlock) -> str:
    """Return a call's id as its client says it; empty where bardo only numbered it, since the client's dialect gave none.

    Dialects whose calls may be without ids (Gemini, Ollama) carry a null then.
    """
    if call.carried is None:
        return call.id
    fields = call.carried.fields
    inside = fields.get("functionCall")
    places = (fields, inside) if isinstance(inside, dict) else (fields,)
    return "" if any("id" in place and place["id"] is None for place in places) else call.id


_MOST_DIGITS = 400
_MOST_PARSED = 256 * 1024
"""Characters of arguments that are parsed. A million fields would hold the interpreter for more than a second."""
_encode = msgspec.json.Encoder(order="sorted").encode


def canonical(arguments: str) -> str:
    """Return arguments as JSON in one spelling; text that is no JSON stays as it is, and null says nothing.

    Very long arguments are not parsed: they are the same where they differ in white space alone.
    """
    if not arguments or arguments == "{}":
        return "{}"
    if len(arguments) > _MOST_PARSED:
        return arguments.encode("utf-8", "surrogatepass").translate(None, b" \t\r\n").decode("utf-8", "surrogatepass")
    try:
        value = _decode(arguments)
        return "{}" if value is None else _encode(value).decode()
    except (ValueError, OverflowError, msgspec.MsgspecError, RecursionError):
        return _slowly(arguments)


def _slowly(arguments: str) -> str:
    """Return arguments whose numbers are too large for the usual way."""
    try:
        return _encode(json.loads(arguments, parse_int=_number, parse_float=_number, parse_constant=_constant)).decode()
    except (ValueError, OverflowError, msgspec.MsgspecError, RecursionError):
        return arguments


def _number(text: str) -> Any:
    """Return a number such that equal values are equal: a whole one as int, others as they are written shortest."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return {"number": text}
    if value == 0:
        return 0
    plain = value.normalize()
    exponent = plain.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= 0 and plain.adjusted() < _MOST_DIGITS:
        return int(plain)
    # A value that no JSON number of the encoder can hold exactly, under a key of its own, so that it is no string's equal.
    return {"number": str(plain)}


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_decode = msgspec.json.Decoder(float_hook=_number).decode
