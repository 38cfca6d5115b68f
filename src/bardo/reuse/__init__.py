"""All that is kept of earlier requests, so that a later one need not do the same work: nothing outside this package keeps any.

A stored value follows from its key alone, so that a request is answered with the same bytes whether anything is kept or not, and
`BARDO_REUSE=off` keeps nothing. All memories of a process share one budget in bytes (`[gateway] max_reuse_bytes`), and each has a line
in the benchmarks (`python -m benchmarks reuse`) with what it saves on growing conversations, sixty of them interleaved; one that saves less
than 15 % of its step there is deleted.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

Value = TypeVar("Value")

MOST_BYTES = 32 * 1024 * 1024
"""The size that all memories of a process may have together by default."""
ENTRY_BYTES = 512
"""The size of an entry beside its key and its value: its place in the memory, its tuples, and the allocator's own."""


class _Budget:
    """The size of all memories of this process together, in bytes, its limit, and whether anything is stored at all."""

    __slots__ = ("held", "lock", "memories", "most", "on")

    def __init__(self) -> None:
        self.on = True
        self.held, self.most = 0, MOST_BYTES
        self.memories: WeakSet[Memory[object]] = WeakSet()
        self.lock = Lock()

    def shrink(self) -> None:
        """Forget what was not asked for longest, of the memory that holds most: a flood in one memory takes nothing of the others."""
        sizes = {memory: memory.held for memory in self.memories}
        self.held = sum(sizes.values())
        while self.held > self.most:
            largest = max(sizes, key=sizes.__getitem__)
            freed = largest.forget_oldest()
            sizes[largest] -= freed
            self.held -= freed


_BUDGET = _Budget()


def is_on() -> bool:
    """Whether anything is kept of earlier requests."""
    return _BUDGET.on


def turn(on: bool) -> None:
    """Keep what may be kept from now on, or nothing. To be said where a process begins; stored values are not found while off."""
    _BUDGET.on = on


def limit(most: int) -> None:
    """Let all memories of this process hold so many bytes together from now on."""
    with _BUDGET.lock:
        _BUDGET.most = most
        _BUDGET.shrink()


def held_bytes() -> int:
    """Return what all memories of this process hold together, as of the last value that was kept."""
    return _BUDGET.held


def most_bytes() -> int:
    """Return what all memories of this process may hold together."""
    return _BUDGET.most


def size_of(value: object) -> int:
    """Return about how many bytes a value takes: with all that mappings, lists, tuples and msgspec's structs in it hold, each once."""
    size, seen, waiting = 0, set[int](), [value]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        size += sys.getsizeof(node)
        if isinstance(node, Mapping):
            waiting += node.keys()
            waiting += node.values()
        elif isinstance(node, list | tuple | set | frozenset):
            waiting += node
        else:
            waiting += [getattr(node, name) for name in getattr(node, "__struct_fields__", ())]
    return size


class Memory(Generic[Value]):
    """The values that were asked for last. Threads may share one.

    A key must say all that its value follows from, and a value may not be changed. All memories of a process share one budget in bytes, so
    whoever keeps a value says what it takes.
    """

    __slots__ = ("__weakref__", "_kept", "held")

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self.held = 0
        """The bytes that are stored here."""
        with _BUDGET.lock:
            _BUDGET.memories.add(self)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Hashable) -> Value | None:
        """Return the value stored under a key, or None if there is none."""
        if not _BUDGET.on:
            return None
        with _BUDGET.lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._kept.move_to_end(key)
            return entry[0]

    def keep(self, key: Hashable, value: Value, size: int) -> Value:
        """Keep a value that takes so many bytes with its key, and forget others where the process has too many. Return the value."""
        size += ENTRY_BYTES
        if not _BUDGET.on or size > _BUDGET.most:
            return value
        with _BUDGET.lock:
            before = self._kept.pop(key, None)
            self.held += size - (0 if before is None else before[1])
            self._kept[key] = value, size
            _BUDGET.shrink()
        return value

    def forget_oldest(self) -> int:
        """Forget what was not asked for longest, and return the bytes of it. Whoever calls this has the budget's lock."""
        size = self._kept.popitem(last=False)[1][1]
        self.held -= size
        return size

    def of(self, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """Return the value stored under a key, or that of `make`, which is then stored with its `size`. Raises what `make` raises."""
        value = self.find(key)
        if value is not None:
            return value
        made = make()
        return self.keep(key, made, size(made)) if _BUDGET.on else made


CHECKERS: Memory[Any] = Memory()
"""Compiled schemas of answers, by the JSON of the schema."""
ANSWER_PLANS: Memory[Any] = Memory()
"""How answers in a schema are asked for, and how a schema is written for a target, by the compiled schema and the target."""
TOOL_SCHEMAS: Memory[Any] = Memory()
"""The tools of a request in the keywords that a target knows, by the tools and what the target demands."""
