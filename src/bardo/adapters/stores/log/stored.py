"""LogRow to column values and back: what goes in comes out, or is visibly mended.

Mended are what one of the two engines cannot hold (lone surrogates, NUL, absurd token counts, infinities in a cost)
and what is longer than a log should hold. Everything else survives exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bardo.adapters.stores.log.row import LogRow
from bardo.values.attempts import AttemptRecord

LONGEST_NAME = 500
LONGEST_MESSAGE = 2_000
LONGEST_JSON = 200_000
LONGEST_CONTENT = 1_000_000
DEEPEST_JSON = 100
# What every reader of JSON holds exactly; sums of many still fit 64 bits.
LARGEST_COUNT = 2**53 - 1

LONGEST_TEXTS = {
    "error_message": LONGEST_MESSAGE,
    "request_content": LONGEST_CONTENT,
    "reply_content": LONGEST_CONTENT,
    "sent_content": LONGEST_CONTENT,
}
"""Characters of the texts that are not cut at LONGEST_NAME."""
CONTENTS = ("request_content", "reply_content", "sent_content")
LISTS = ("tags", "attempt_records")
"""Lists that most rows do not have: an empty one takes no room."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: mended_text(repr(value), LONGEST_MESSAGE))


def encode_texts(values: Sequence[Any], longest: int) -> Sequence[Any]:
    """Return the texts of one column as both engines can hold them. Most need no change, and many are alike."""
    for text in {*values}:
        if text is not None and (len(text) > longest or not text.isascii() or "\0" in text):
            return [None if text is None else mended_text(text, longest) for text in values]
    return values


def encode_counts(values: Sequence[Any]) -> Sequence[Any]:
    """Return the counts of one column within what every reader holds: they come from providers, so any number may arrive."""
    for count in {*values}:
        if count is not None and not -LARGEST_COUNT <= count <= LARGEST_COUNT:
            return [None if count is None else max(-LARGEST_COUNT, min(count, LARGEST_COUNT)) for count in values]
    return values


def encode_costs(values: Sequence[Any]) -> Sequence[Any]:
    """Return the costs of one column, without those that are no number."""
    return [None if cost is None or not math.isfinite(cost) else cost for cost in values]


def encode_json(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values of one column as JSON text."""
    return [None if value is None else to_json(value) for value in values]


def encode_lists(values: Sequence[Any]) -> Sequence[Any]:
    """Return the lists of one column as JSON text, and nothing for an empty one."""
    return [to_json(value) if value else None for value in values]


def encode_nulls(values: Sequence[Any]) -> Sequence[Any]:
    """Return nothing for every value."""
    return [None] * len(values)


def from_columns(values: Mapping[str, Any]) -> LogRow:
    """Return the row that column values were made from."""
    known = {name: values[name] for name in LogRow.__struct_fields__}
    known["degraded"] = tuple(known["degraded"])
    known["tags"] = tuple(known["tags"] or ())
    known["attempt_records"] = _attempts(known["attempt_records"])
    return LogRow(**known)


def _attempts(stored: Any) -> tuple[AttemptRecord, ...]:
    """Return the attempts of a call; none where they were too many for a row."""
    try:
        return msgspec.convert(stored or (), tuple[AttemptRecord, ...])
    except msgspec.ValidationError:
        return ()


def mended_text(text: str, longest: int) -> str:
    """Return `text` as both engines can hold it, with a mark where something is missing."""
    if len(text) > longest:
        text = _truncated(text, longest)
    text = _without_surrogates(text)
    # PostgreSQL takes no NUL in a text.
    return text.replace("\0", "\N{SYMBOL FOR NULL}") if "\0" in text else text


def to_json(value: Any) -> str:
    """Write a JSON column. What JSON cannot say is written as text; what is too long keeps its beginning."""
    try:
        text = _ENCODER.encode(value).decode()
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        text = ""
    # How deep a reader can go depends on its interpreter, so what might be deep is made shallow.
    if not text or (len(text) > 2 * DEEPEST_JSON and text.count("[") + text.count("{") > DEEPEST_JSON):
        text = _ENCODER.encode(_sound(value, DEEPEST_JSON)).decode()
    return text if len(text) <= LONGEST_JSON else _shortened(value, text)


def from_json(text: str | bytes) -> Any:
    """Read a JSON column."""
    return msgspec.json.decode(text)


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _truncated(text: str, longest: int) -> str:
    kept = longest - 40  # Leaves room for the mark.
    return f"{text[:kept]}… [{len(text) - kept} more characters]"


def _shortened(value: Any, text: str) -> str:
    """Keep the column's shape, an object or an array of objects, so that readers need no special case."""
    note = {"shortened": f"{len(text)} characters", "beginning": text[: LONGEST_JSON // 4]}
    return _ENCODER.encode([note] if isinstance(value, list | tuple) else note).decode()


def _sound(value: Any, depth: int) -> Any:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, str):
        return _without_surrogates(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == 0:
        return "… [nested too deeply]"
    if isinstance(value, dict):
        return {_without_surrogates(str(key)): _sound(item, depth - 1) for key, item in value.items()}
    return [_sound(item, depth - 1) for item in value]
