"""LogRow to column values and back: what goes in comes out, or is visibly mended.

Mended are what one of the two engines cannot hold (lone surrogates, NUL, absurd token counts, infinities in a cost)
and what is longer than a log should hold. Everything else survives exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.edge.log.row import LogRow

LONGEST_NAME = 500
LONGEST_MESSAGE = 2_000
LONGEST_JSON = 200_000
LONGEST_CONTENT = 1_000_000
DEEPEST_JSON = 100
# What every reader of JSON holds exactly; sums of many still fit 64 bits.
LARGEST_COUNT = 2**53 - 1

_TEXTS = {
    "request_id": LONGEST_NAME,
    "client_dialect": LONGEST_NAME,
    "provider": LONGEST_NAME,
    "provider_dialect": LONGEST_NAME,
    "model_asked": LONGEST_NAME,
    "model": LONGEST_NAME,
    "tenant": LONGEST_NAME,
    "error_class": LONGEST_NAME,
    "error_message": LONGEST_MESSAGE,
    "finish_reason": LONGEST_NAME,
    "finish_raw": LONGEST_NAME,
    "visibility": LONGEST_NAME,
    "reasoning_intent": LONGEST_NAME,
    "reasoning_emitted": LONGEST_NAME,
    "reasoning_layer": LONGEST_NAME,
    "reasoning_verdict": LONGEST_NAME,
    "request_content": LONGEST_CONTENT,
    "reply_content": LONGEST_CONTENT,
}
# Counts come from providers, so any number may arrive.
_COUNTS = (
    "status",
    "attempts",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
)
_JSON = ("usage_raw", "cost_by_cause", "degraded", "receipt")
_CONTENTS = ("request_content", "reply_content")
_SURROGATES = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: mended_text(repr(value), LONGEST_MESSAGE))


def to_columns(row: LogRow, *, keep_content: bool) -> dict[str, Any]:
    """Return the values of one row by column name, ready for either engine."""
    values = msgspec.structs.asdict(row)
    if not keep_content:
        values.update(dict.fromkeys(_CONTENTS))
    for name, longest in _TEXTS.items():
        if (text := values[name]) is not None:
            values[name] = mended_text(text, longest)
    for name in _COUNTS:
        if (count := values[name]) is not None:
            values[name] = max(-LARGEST_COUNT, min(count, LARGEST_COUNT))
    for name in _JSON:
        if (value := values[name]) is not None:
            values[name] = to_json(value)
    if (cost := values["cost_usd"]) is not None and not math.isfinite(cost):
        values["cost_usd"] = None
    return values


def from_columns(values: Mapping[str, Any]) -> LogRow:
    """Return the row that column values were made from."""
    known = {name: values[name] for name in LogRow.__struct_fields__}
    known["degraded"] = tuple(known["degraded"])
    return LogRow(**known)


def mended_text(text: str, longest: int) -> str:
    """Return `text` as both engines can hold it, with a mark where something is missing."""
    if len(text) > longest:
        text = _cut(text, longest)
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
    if not text or text.count("[") + text.count("{") > DEEPEST_JSON:
        text = _ENCODER.encode(_mended(value, DEEPEST_JSON)).decode()
    return text if len(text) <= LONGEST_JSON else _shortened(value, text)


def from_json(text: str | bytes) -> Any:
    """Read a JSON column."""
    return msgspec.json.decode(text)


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _cut(text: str, longest: int) -> str:
    kept = longest - 40  # Leaves room for the mark.
    return f"{text[:kept]}… [{len(text) - kept} more characters]"


def _shortened(value: Any, text: str) -> str:
    """Keep the column's shape, an object or an array of objects, so that readers need no special case."""
    note = {"shortened": f"{len(text)} characters", "beginning": text[: LONGEST_JSON // 4]}
    return _ENCODER.encode([note] if isinstance(value, list | tuple) else note).decode()


def _mended(value: Any, depth: int) -> Any:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, str):
        return _without_surrogates(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == 0:
        return "… [nested too deeply]"
    if isinstance(value, dict):
        return {_without_surrogates(str(key)): _mended(item, depth - 1) for key, item in value.items()}
    return [_mended(item, depth - 1) for item in value]
