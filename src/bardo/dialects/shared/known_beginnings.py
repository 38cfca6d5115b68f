"""Read histories in dialects in which one item can be read only behind those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class KnownBeginnings(Generic[R]):
    """Reads histories."""

    def read(self, values: list[Any], begin: Callable[[], R], take: Callable[[R, Any, int], object]) -> R:
        """Return a reader that has read all values: `take` gives it each, with its place. Raises what `take` raises."""
        reader = begin()
        for place, value in enumerate(values):
            take(reader, value, place)
        return reader
