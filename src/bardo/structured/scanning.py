"""Find the values that stand in a text, in order: JSON as it is where possible, read leniently where not.

What stands inside another value is not found by itself: a member of a broken object is not the answer. The work is counted and bounded,
because a text of opening brackets would otherwise be read once for each of them, and one of a million small values judged for seconds.
"""

from __future__ import annotations

import json

import msgspec

from bardo.structured.bounds import MAX_WORK
from bardo.structured.extraction import Json
from bardo.structured.reading import CALL, NotData, ParsedValue, read_value
from bardo.values.once import pattern

_BRACKET = pattern(r"[{\[(}\])]")
_OPENER = pattern(r"[{\[｛［]")
_STARTS = pattern(rf"[{{\[｛［]|(?:(?<=\n)|\A)[ \t]{{0,20}}(?:print|return|=)?\s{{0,5}}(?P<call>{CALL.pattern})")
# What a try costs that is not JSON, in the steps of MAX_WORK: to begin it, and for how many characters each further step is.
_TRY = 16
_STRIDE = 8
# Brackets that began nothing: only the first are kept.
_KEPT_FAILURES = 16
# An escape that the text ended in.
_CUT_ESCAPE = pattern(r"\\?u?[0-9a-fA-F]{0,4}")


def _null(_: str) -> None:
    """JSON has no word for NaN and the infinities."""


_DECODER = json.JSONDecoder(parse_constant=_null)
# Raw line breaks and control characters inside strings say what they mean.
_LAX = json.JSONDecoder(parse_constant=_null, strict=False)


def strict_values(text: str) -> list[ParsedValue] | None:
    """Return the JSON values in a text, or None if a bracket begins something that is not JSON, so that only a closer look can tell.

    None, too, where there are too many.
    """
    values: list[ParsedValue] = []
    position = 0
    while (opener := _OPENER.search(text, position)) is not None:
        value = _strict(text, opener.start())
        if isinstance(value, int) or len(values) > MAX_WORK:
            return None
        values.append(value)
        position = value.end
    return values


def sound_spans(text: str) -> list[tuple[int, int]]:
    """Return where sound JSON objects and arrays stand in a text; what comes after more work than it is worth is not looked at."""
    spans: list[tuple[int, int]] = []
    position, work = 0, 0
    while work <= MAX_WORK and (opener := _OPENER.search(text, position)) is not None:
        value = _strict(text, opener.start())
        if isinstance(value, ParsedValue):
            spans.append((value.start, value.end))
            work += 1
            position = value.end
        else:
            work += _cost(opener.start(), value)
            position = opener.end()
    return spans


def _strict(text: str, start: int) -> ParsedValue | int:
    """Return the JSON value at `start`, or how far it could be read."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as problem:
        return problem.pos
    except (ValueError, RecursionError):
        return len(text)
    return ParsedValue(value, start, end, strict=True)


class Scan(msgspec.Struct, frozen=True):
    """The result of a scan: values in order, the last one perhaps cut, and the brackets that began nothing readable.

    `exhausted`: the text asked for more work than it is worth, so that not all of it was seen.
    """

    found: tuple[ParsedValue, ...]
    failed: tuple[int, ...]
    exhausted: bool = False


def scan(text: str) -> Scan:
    """Find the values in a text. Stops after MAX_WORK steps."""
    values: list[ParsedValue] = []
    failed: list[int] = []
    position, work = 0, 0
    while (begin := _STARTS.search(text, position)) is not None:
        if work > MAX_WORK:
            return Scan(tuple(values), tuple(failed), exhausted=True)
        start = begin.start("call") if begin.group("call") else begin.start()
        value = _value(text, start)
        if isinstance(value, ParsedValue):
            values.append(value)
            work += 1 if value.strict else _cost(start, value.end)
            position = max(value.end, start + 1)
        else:
            if len(failed) < _KEPT_FAILURES:
                failed.append(start)
            work += _cost(start, value)
            position = begin.end() if begin.group("call") else start + 1
    return Scan(tuple(values), tuple(failed))


def _cost(start: int, end: int) -> int:
    return _TRY + (end - start) // _STRIDE


def _value(text: str, start: int) -> ParsedValue | int:
    strict = _strict(text, start)
    if isinstance(strict, ParsedValue):
        return strict
    try:
        value, end = _LAX.raw_decode(text, start)
        return ParsedValue(value, start, end)
    except (ValueError, RecursionError):
        return _read_candidate(text, start, strict)


def read_until(text: str, start: int) -> int:
    """Return how far the text is JSON from `start` on: its end where it ends inside a value that is sound so far."""
    try:
        return _LAX.raw_decode(text, start)[1]
    except json.JSONDecodeError as problem:
        escaped = problem.msg.startswith("Invalid \\uXXXX") and _CUT_ESCAPE.fullmatch(text, problem.pos)
        return len(text) if escaped or problem.msg.startswith("Unterminated string") else problem.pos
    except (ValueError, RecursionError):
        return start


def _read_candidate(text: str, start: int, strict: int) -> ParsedValue | int:
    reading: ParsedValue | int
    try:
        reading = read_value(text, start)
    except NotData as problem:
        reading = max(strict, problem.position)
    except RecursionError:
        reading = len(text)
    if isinstance(reading, ParsedValue) and (reading.cut or not reading.unsure):
        return reading
    if read_until(text, start) < len(text):
        return reading
    # Sound JSON up to the end of the text, as in {"a": "b", "} with its key open: what stands inside it is not the answer.
    value = reading.value if isinstance(reading, ParsedValue) else [] if text[start] in "[［" else {}
    return ParsedValue(value, start, len(text), cut="scalar")


def depth_of(text: str) -> int:
    """Return how deep the brackets of a text nest, whatever stands between them."""
    deepest = depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket.group() in "{[(" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def loads(text: str) -> Json:
    """Decode a text that is one JSON value. Raises ValueError."""
    try:
        return json.loads(text, parse_constant=_null)
    except RecursionError as problem:
        raise ValueError("nested too deep") from problem
