"""Reading JSON from providers, which is not always quite JSON.

Seen in replies: lone surrogates, control characters inside strings, NaN, bytes that are no UTF-8. They are mended so that the rest of the
reply survives; what is beyond that is no JSON.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from bardo.dialects.bounded_json import decode_bounded
from bardo.values.degradation import Degradation
from bardo.values.events import Degraded, Event

REPAIRED = Degraded(Degradation("reply.bytes", why="the provider sent JSON that strict readers refuse; it was mended"))

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode


def decode_leniently(data: bytes, report: list[Event] | None = None) -> Any:
    """Return the JSON value of `data`; `report` takes the event that tells of mending.

    Raises ValueError where there is none, too deep nesting included.
    """
    mended = False

    def decode(part: bytes) -> Any:
        nonlocal mended
        try:
            return _decode(part)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            mended = True
            text = part.decode("utf-8", "replace")
            value = json.loads(text, strict=False, parse_constant=_no_number, parse_float=_finite, parse_int=_whole)
            return without_surrogates(value)

    try:
        value = decode_bounded(data, decode=decode)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if mended and report is not None:
        report.append(REPAIRED)
    return value


def _no_number(constant: str) -> None:
    """NaN and the infinities, which some servers write for scores, are no values."""


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _whole(digits: str) -> int | float | None:
    return int(digits) if len(digits) < 4000 else _finite(digits)


def without_surrogates(value: Any) -> Any:
    """Return a JSON value that can be written as UTF-8."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
    return value


def excerpt(data: bytes, limit: int = 300) -> str:
    """Return the beginning of `data` as one line of text, for an error message."""
    text = " ".join(data[: limit * 4].decode("utf-8", "replace").split())
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return text if len(text) <= limit else text[:limit] + "…"


def as_text(value: Any) -> str:
    """Return a string as it is, nothing for null, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
