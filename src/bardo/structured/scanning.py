"""Find the values that stand in a text, in order: JSON as it is where possible, read leniently where not.

What stands inside another value is not found by itself: a member of a broken object is not the answer. The work is counted, because a
text of opening brackets would otherwise be read once for each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bardo.structured.bounds import MAX_READ
from bardo.structured.extraction import Json
from bardo.structured.reading import CALL, Found, NotData, read_value

_OPENER = re.compile(r"[{\[｛［]")
_STARTS = re.compile(rf"[{{\[｛［]|(?:(?<=\n)|\A)[ \t]{{0,20}}(?:print|return|=)?\s{{0,5}}(?P<call>{CALL.pattern})")
_WORK = 4 * MAX_READ
# Brackets that began nothing: only the first are kept, and after many of them the text is not looked through further.
_KEPT_FAILURES = 16
_MAX_FAILURES = 1000


def _null(_: str) -> None:
    """JSON has no word for NaN and the infinities."""


_DECODER = json.JSONDecoder(parse_constant=_null)
# Raw line breaks and control characters inside strings say what they mean.
_LAX = json.JSONDecoder(parse_constant=_null, strict=False)


def strict_values(text: str) -> list[Found] | None:
    """Return the JSON values in a text; None where a bracket begins something that is not JSON, so that only a closer look can tell."""
    found: list[Found] = []
    position = 0
    while (opener := _OPENER.search(text, position)) is not None:
        one = _strict(text, opener.start())
        if isinstance(one, int):
            return None
        found.append(one)
        position = one.end
    return found


def sound_spans(text: str) -> list[tuple[int, int]]:
    """Return where sound JSON objects and arrays stand in a text; what comes after more work than it is worth is not looked at."""
    spans: list[tuple[int, int]] = []
    position, work = 0, 0
    while work <= _WORK and (opener := _OPENER.search(text, position)) is not None:
        one = _strict(text, opener.start())
        if isinstance(one, Found):
            spans.append((one.start, one.end))
            position = one.end
        else:
            work += one - opener.start()
            position = opener.end()
    return spans


def _strict(text: str, start: int) -> Found | int:
    """Return the JSON value at `start`, or how far it could be read."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as problem:
        return problem.pos
    except (ValueError, RecursionError):
        return len(text)
    return Found(value, start, end, strict=True)


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text holds: values in order, the last one perhaps cut, and the brackets that began nothing readable."""

    found: tuple[Found, ...]
    failed: tuple[int, ...]


def scan(text: str) -> Scan:
    """Find the values in a text. Stops where the text asks for more work than it is worth."""
    found: list[Found] = []
    failed: list[int] = []
    for start, one in _each(text):
        if isinstance(one, Found):
            found.append(one)
        else:
            failed.append(start)
            if len(failed) > _MAX_FAILURES:
                break
    return Scan(tuple(found), tuple(failed[:_KEPT_FAILURES]))


def _each(text: str) -> Iterator[tuple[int, Found | int]]:
    position, work = 0, 0
    while work <= _WORK and (begin := _STARTS.search(text, position)) is not None:
        start = begin.start("call") if begin.group("call") else begin.start()
        one = _value(text, start)
        yield start, one
        if isinstance(one, Found):
            position = max(one.end, start + 1)
        else:
            work += one - start
            position = begin.end() if begin.group("call") else start + 1


def _value(text: str, start: int) -> Found | int:
    strict = _strict(text, start)
    if isinstance(strict, Found):
        return strict
    try:
        value, end = _LAX.raw_decode(text, start)
        return Found(value, start, end)
    except (ValueError, RecursionError):
        return _read(text, start, strict)


def _read(text: str, start: int, strict: int) -> Found | int:
    try:
        return read_value(text, start)
    except NotData as problem:
        return max(strict, problem.position)
    except RecursionError:
        return len(text)


def depth_of(text: str) -> int:
    """Return how deep the brackets of a text nest, whatever stands between them."""
    deepest = depth = 0
    for bracket in re.finditer(r"[{\[(}\])]", text):
        depth = depth + 1 if bracket.group() in "{[(" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def loads(text: str) -> Json:
    """Decode a text that is one JSON value. Raises ValueError."""
    try:
        return json.loads(text, parse_constant=_null)
    except RecursionError as problem:
        raise ValueError("nested too deep") from problem
