"""Values that are kept by their keys: the newest, in a bounded number and a bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class _Switch:
    """Whether anything is kept in this process."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


_SWITCH = _Switch()


def is_on() -> bool:
    """Whether anything is kept of earlier requests."""
    return _SWITCH.on


def turn(on: bool) -> None:
    """Keep what may be kept from now on, or nothing. To be said where a process begins; what is kept already is not found while off."""
    _SWITCH.on = on


class Memory(Generic[Value]):
    """The values that were asked for last: at most `most` of them, of at most `most_size` together. Threads may share one.

    A key must say all that its value follows from, and nobody may change a value.
    """

    __slots__ = ("_kept", "_lock", "_most", "_most_size", "_size")

    def __init__(self, most: int, most_size: int = 0) -> None:
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._most, self._most_size, self._size = most, most_size, 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Hashable) -> Value | None:
        """Return what is kept under a key; None where nothing is."""
        if not _SWITCH.on:
            return None
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, value: Value, size: int = 0) -> Value:
        """Keep a value, and forget what was not asked for longest where there is too much. Return what is kept under the key now."""
        if not _SWITCH.on or (self._most_size and size > self._most_size):
            return value
        with self._lock:
            before = self._kept.pop(key, None)
            self._size += size - (0 if before is None else before[1])
            self._kept[key] = value, size
            while len(self._kept) > self._most or (self._most_size and self._size > self._most_size):
                self._size -= self._kept.popitem(last=False)[1][1]
        return value

    def of(self, key: Hashable, make: Callable[[], Value], size: int = 0) -> Value:
        """Return what is kept under a key, or what `make` returns, which is kept then. Raises what `make` raises."""
        found = self.find(key)
        return self.keep(key, make(), size) if found is None else found
