"""The values of a server's answer, read without trusting its shape.

Where a list is expected and something else stands, the answer is malformed; a strange row of a list only says nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from bardo.values.request import EFFORTS, Effort

Answers = Mapping[str, Any]
"""Parsed bodies by the names of their questions."""


class NotAnAnswer(ValueError):
    """The server answered something else than it was asked."""


def fields(value: Any) -> dict[str, Any]:
    """Return the object, or an empty one."""
    return value if isinstance(value, dict) else {}


def inside(value: Any, *path: str) -> Any:
    """Return the value at a path of names in nested objects, or None if there is none."""
    for name in path:
        value = fields(value).get(name)
    return value


def lowered_strings(value: Any) -> tuple[str, ...]:
    """Return the strings of a list, in lower case."""
    return tuple(item.lower() for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def flag(value: Any) -> bool | None:
    """Return true or false, said plainly or as `supported` in an object, or None if neither is said."""
    value = value.get("supported") if isinstance(value, dict) else value
    return value if isinstance(value, bool) else None


def text(value: Any) -> str | None:
    """Return a string that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """Return a whole number above zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def day(value: Any) -> datetime.date | None:
    """Return the day of a date, or of a date and time, as ISO 8601 writes it; None for anything else."""
    try:
        return datetime.date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def levels(value: Any) -> tuple[Effort, ...]:
    """Return the levels that a list of words holds, in rising order."""
    words = lowered_strings(value)
    return tuple(effort for effort in EFFORTS if effort in words)


def level(value: Any) -> Effort | None:
    """Return the word where it is a level."""
    return next((effort for effort in EFFORTS if effort == value), None)


def listed(body: Any, *places: str) -> list[dict[str, Any]]:
    """Return the rows of the list at the first of `places` that is one. Raises NotAnAnswer where none is."""
    for place in places:
        rows = fields(body).get(place)
        if isinstance(rows, list):
            return [row for row in rows if isinstance(row, dict)]
    raise NotAnAnswer(f"there is no list of {' or '.join(places)} in it")


def rows_by_id(rows: list[dict[str, Any]], *names: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows with each of the ids they go by: the fields called `names`, which may hold lists."""
    for row in rows:
        for name in names:
            value = row.get(name)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str) and each:
                    yield each, row
