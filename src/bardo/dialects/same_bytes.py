"""A body written anew as its client wrote it: the bytes that head a prompt are those of every turn, and a provider's cache holds for them.

Providers bill a prompt anew from its first changed byte on. The order of keys in a tool, a schema or a message says nothing, and stays.
"""

from __future__ import annotations

from typing import Any

_SAYS_NOTHING = {"is_error": False}
"""Fields that mean the same at this value as left out, and that agents write."""


def with_original_form(body: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """Return a body with its fields in the form that its client gave them."""
    try:
        return {
            name: as_first_written(value, original[name]) if name in original else value for name, value in body.items()
        }
    except RecursionError:
        return body  # It cannot be written either.


def as_first_written(written: Any, original: Any) -> Any:
    """Return what was written anew in the form of the original: its order of keys, and text as a list of one part where it was one."""
    if isinstance(written, dict) and isinstance(original, dict):
        kept = {name: value for name, value in original.items() if _SAYS_NOTHING.get(name, _NEVER) == value} | written
        ordered = {name: as_first_written(kept[name], original[name]) for name in original if name in kept}
        return ordered | {name: value for name, value in written.items() if name not in ordered}
    if isinstance(written, list) and isinstance(original, list):
        aligned = [as_first_written(one, first) for one, first in zip(written, original, strict=False)]
        return aligned + written[len(aligned) :]
    if isinstance(written, str) and isinstance(original, list) and _text_of(original) == written:
        return original
    return written


_NEVER = object()


def _text_of(parts: list[Any]) -> Any:
    """Return the text of a list of one part that is nothing but text."""
    only = parts[0] if len(parts) == 1 else None
    return only["text"] if isinstance(only, dict) and only.keys() == {"type", "text"} else None
