"""Read JSON whose shape is not trusted.

A request is somebody's JSON: every look into it names the type hoped for and gets an empty value where it is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Fields: TypeAlias = dict[str, object]
"""A JSON object whose values are not looked at yet."""


def at(value: object, path: str) -> object:
    """Return the value at a dotted path through nested objects, or None if there is none."""
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def fields(value: object) -> Fields:
    """Return the object, or an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[Fields]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return the string, or an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int | None:
    """Return the whole number; true and false are not numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def joined_text(content: object) -> str:
    """Join the text of a message's content, whether it is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(text(part.get("text")) for part in rows(content))


def last_text(messages: Sequence[Fields], name: str, value: str) -> str:
    """Return the text of the last message that has any, of those with `value` in the field `name`."""
    texts = (joined_text(message.get("content")) for message in reversed(messages) if message.get(name) == value)
    return next(filter(None, texts), "")


def without(value: Fields, names: Iterable[str]) -> Fields:
    """Copy an object, leaving out some of its names."""
    dropped = frozenset(names)
    return {name: item for name, item in value.items() if name not in dropped}


def compact(value: object) -> bytes:
    """Write JSON as most providers do: no spaces, letters as they are."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def pretty(value: object) -> bytes:
    """Write JSON over several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
