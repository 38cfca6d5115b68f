"""JSON in one spelling: arguments are compared by what they say, since clients write them anew.

Keys are sorted, space is left out, and numbers are equal where their values are: `1.0`, `1` and `1e0`.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

_MOST_DIGITS = 400
_encode = msgspec.json.Encoder(order="sorted").encode


def canonical(arguments: str) -> str:
    """Return arguments as JSON in one spelling; text that is no JSON stays as it is, and null says nothing."""
    if not arguments or arguments == "{}":
        return "{}"
    try:
        value = _decode(arguments)
        return "{}" if value is None else _encode(value).decode()
    except (ValueError, OverflowError, msgspec.MsgspecError, RecursionError):
        return _slowly(arguments)


def _slowly(arguments: str) -> str:
    """Return arguments whose numbers are too large for the usual way."""
    try:
        value = json.loads(arguments, parse_int=_number, parse_float=_number, parse_constant=_constant)
        return _encode(value).decode()
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
