"""Histories that a client sends again, in dialects in which one item can be read only behind those before it.

What a reader has read of a whole history is kept. The next turn of the conversation begins with the same items, and only what is new in it
is read then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import is_
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from bardo.dialects.shared.known_items import Item, KnownItems

MOST_BEGINNINGS = 64
MOST_BYTES = 8 * 1_048_576
"""Of the items of all that is kept."""


class HistoryReader(Protocol):
    """Reads the items of one history, one after the other."""

    def copy(self) -> Self:
        """Return a reader that has read the same, and goes on by itself."""


R = TypeVar("R", bound=HistoryReader)


class _Beginning(NamedTuple):
    items: list[Item]
    reader: Any
    size: int


class KnownBeginnings(Generic[R]):
    """The histories that were read last, each by its last item."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._kept: dict[int, _Beginning] = {}
        self._bytes = 0
        self._most_bytes = most_bytes
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def read(self, values: list[Any], begin: Callable[[], R], take: Callable[[R, Any, int], object]) -> R:
        """Return a reader that has read all values: `take` gives it each that is new, with its place. Raises what `take` raises."""
        items = values.items if type(values) is KnownItems else []
        reader, known = self._find(items) or (begin(), 0)
        for place in range(known, len(values)):
            take(reader, values[place], place)
        if items and known < len(items):
            self._keep(items, reader.copy())
        return reader

    def _find(self, items: list[Item]) -> tuple[R, int] | None:
        """Return a reader of the longest beginning that is known, and how many items it has."""
        for place in range(len(items) - 1, -1, -1):
            found = self._kept.get(id(items[place]))
            if found is not None and len(found.items) == place + 1 and all(map(is_, found.items, items)):
                return found.reader.copy(), place + 1
        return None

    def _keep(self, items: list[Item], reader: R) -> None:
        """Keep a history, and forget the oldest where there are too many."""
        size = sum([item.size for item in items])
        if size > self._most_bytes // 4:
            return
        last = id(items[-1])
        with self._lock:
            self._forget(last)
            self._kept[last] = _Beginning(items, reader, size)
            self._bytes += size
            while self._bytes > self._most_bytes or len(self._kept) > MOST_BEGINNINGS:
                self._forget(next(iter(self._kept)))

    def _forget(self, last: int) -> None:
        found = self._kept.pop(last, None)
        self._bytes -= found.size if found is not None else 0
