"""Reading JSON from providers, which is not always quite JSON.

Seen in replies: lone surrogates, control characters inside strings, NaN, bytes that are no UTF-8. They are mended so that the rest of the
reply survives; what is beyond that is no JSON.
"""

from __future__ import annotations

import json
import math
import re
from itertools import chain, compress, repeat
from operator import is_
from typing import Any

import msgspec

from bardo.values.degradation import Degradation
from bardo.values.events import Degraded, Event

REPAIRED = Degraded(Degradation("reply.bytes", why="the provider sent JSON that strict readers refuse; it was mended"))

# Far more than any reply has, and far less than Python's stack: whatever is read here may be compared, copied and written.
MAX_DEPTH = 200
# Bytes from which on counting brackets takes longer than looking at a few parts.
_LONG = 16_384
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode


def decode_leniently(data: bytes, report: list[Event] | None = None) -> Any:
    """Return the JSON value of `data`; `report` takes the event that tells of mending.

    Raises ValueError where there is none, too deep nesting included.
    """
    try:
        return _checked(_decode(data), data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = without_surrogates(_checked(_mend(data), data))
    if report is not None:
        report.append(REPAIRED)
    return value


def _mend(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False, parse_constant=_no_number, parse_float=_finite, parse_int=_whole)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _checked(value: Any, data: bytes) -> Any:
    if too_deep(value, data):
        raise ValueError("nested too deeply")
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


def too_deep(value: Any, data: bytes, levels: int = MAX_DEPTH) -> bool:
    """Whether the value of `data`, as a JSON decoder made it, has more than so many levels."""
    size = len(data)
    # A quick look is enough for all but a few: at a few parts of one that is long, where counting brackets takes longer, else at brackets.
    if size <= levels or (size > _LONG and _has_few_parts(value, levels)) or has_few_brackets(data, levels):
        return False
    layer = [value]
    for _ in range(levels + 1):
        # Without a step of Python for each value: a schema has thousands.
        objects = [*compress(layer, map(is_, map(type, layer), repeat(dict)))]
        arrays = [*compress(layer, map(is_, map(type, layer), repeat(list)))]
        if not objects and not arrays:
            return False
        layer = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(arrays)]
    return True


def has_few_brackets(data: bytes, levels: int = MAX_DEPTH) -> bool:
    """Whether so few objects and arrays begin in JSON that it has at most so many levels."""
    # `replace` finds a byte with `memchr`, and takes a third to a tenth of the time of `count`, which compares one byte after the other.
    without = data.replace(b"[", b"", levels + 1).replace(b"{", b"", levels + 1)
    return len(data) - len(without) <= levels


def _has_few_parts(value: Any, levels: int) -> bool:
    """Whether a value holds so few others that they cannot have more levels: a long text is one part."""
    waiting, left = [value], levels - 1
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            left -= len(item)
            if left < 0:
                return False
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return True


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
