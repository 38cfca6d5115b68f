"""Reading JSON from providers, which is not always quite JSON.

Seen in replies: lone surrogates, control characters inside strings, NaN, bytes that are no UTF-8. They are mended so that the rest of the
reply survives; what is beyond that is `None`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode


def decode_leniently(data: bytes) -> Any:
    """Return the JSON value of `data`. Raises ValueError where there is none, too deep nesting included."""
    try:
        return _decode(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
        return _mend(data)


def _mend(data: bytes) -> Any:
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _without_surrogates(value)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    return value


def excerpt(data: bytes, limit: int = 300) -> str:
    """Return the beginning of `data` as one line of text, for an error message."""
    text = " ".join(data[: limit * 4].decode("utf-8", "replace").split())
    return text if len(text) <= limit else text[:limit] + "…"


def as_text(value: Any) -> str:
    """Return a string as it is, nothing for null, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
