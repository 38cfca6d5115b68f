"""Read the parts of a body that a dialect reads one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bardo.values.request import Message

T = TypeVar("T")


def read_messages(values: list[Any], at: str, dialect: str, read: Callable[[Any, str], Message]) -> list[Message]:
    """Return the messages that `read` gives for a list, each item with its place. Raises what `read` raises."""
    return [read(value, f"{at}[{place}]") for place, value in enumerate(values)]


def without_own(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a body without bardo's own: what a provider of its dialect may get."""
    return {name: value for name, value in fields.items() if name != "bardo"} if "bardo" in fields else fields


def read_once(fields: dict[str, Any], field: str, what: str, read: Callable[[], T]) -> T:
    """Return what `read` gives."""
    return read()
