"""What is kept of the parts of bodies: `repeated_items.py` finds them again."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec

_ITEM_BYTES = 4096
"""About what is held of an item beside its text: what was read of it, and what follows from that."""


class Item:
    """One part of a body: its JSON and its value, about how many bytes are held for it, and what each dialect reads in it."""

    __slots__ = ("raw", "read", "size", "value")

    def __init__(self, raw: bytes, value: Any) -> None:
        self.raw, self.value, self.size = raw, value, 2 * len(raw) + _ITEM_BYTES
        self.read: dict[str, Any] = {}


value_of, read_of = attrgetter("value"), attrgetter("read")
"""What a list of items is asked by, without a step of Python for each."""


class KnownItems(list[Any]):
    """The values of a history, and what is kept of each."""

    __slots__ = ("items",)

    def __init__(self, items: list[Item]) -> None:
        super().__init__(map(value_of, items))
        self.items = items


class KnownFields(dict[str, Any]):
    """The fields of a body, what is kept of those that are read once, and the JSON of each."""

    __slots__ = ("parts", "raws")

    def __init__(self, fields: dict[str, Any], parts: dict[str, Item], raws: dict[str, msgspec.Raw]) -> None:
        super().__init__(fields)
        self.parts, self.raws = parts, raws
