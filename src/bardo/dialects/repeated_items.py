"""The history of a conversation that came before: a client sends all of it again with every turn, a few items longer.

An item whose bytes came before is neither parsed nor read a second time. What was read of it is shared between requests, and is never
changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from bardo.dialects.lenient import MAX_DEPTH, too_deep
from bardo.values.request import Message

LEAST_BYTES, LEAST_ITEMS = 2048, 3
"""How long a body, and its history, is that is looked up: of a first question nothing came before."""
LONGEST_ITEM = 65_536
"""Bytes of an item that is kept. One that is longer holds a file or a picture, whose reading costs little beside its bytes."""
MOST_BYTES_KEPT = 8 * 1_048_576
"""Clients choose their conversations, so neither the number nor the size of what is kept may grow with them."""
_ITEM_BYTES = 1024
"""About what is held of an item beside its text."""
_LISTS = ("messages", "input", "contents")
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_parse_item = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_NONE = msgspec.Raw(b"[]")
_LIST_BEGINS = ord("[")


class Item:
    """One item of a history: its value, about how many bytes are held for it, and the message that each dialect reads in it."""

    __slots__ = ("read", "size", "value")

    def __init__(self, value: Any, size: int) -> None:
        self.value, self.size = value, size
        self.read: dict[str, Message] = {}


class KnownItems(list[Any]):
    """The values of a history, and what is kept of each."""

    __slots__ = ("items",)

    def __init__(self, items: list[Item]) -> None:
        super().__init__([item.value for item in items])
        self.items = items


class RepeatedItems:
    """The items that were sent last, by their bytes, in two halves: where the newer is full, what was not asked for since is forgotten."""

    def __init__(self, most_bytes: int = MOST_BYTES_KEPT) -> None:
        self._newer: dict[bytes, Item] = {}
        self._older: dict[bytes, Item] = {}
        self._bytes = 0
        self._half = most_bytes // 2
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def decode(self, body: bytes, parse: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
        """Return what `parse` reads in a body, its history as KnownItems where that has some length. Raises what `parse` raises."""
        if len(body) < LEAST_BYTES:
            return parse(body)
        try:
            found = self._split(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            found = None
        # What is wrong is told of the body as it came.
        if found is None:
            return parse(body)
        name, items, rest = found
        fields = parse(rest)
        fields[name] = KnownItems(items)
        return fields

    def _split(self, body: bytes) -> tuple[str, list[Item], bytes] | None:
        """Return the name of a body's history, its items, and the body without them; None where it has none, or it nests too deeply."""
        values = _split(body)
        for name in _LISTS:
            raw = values.get(name)
            if raw is not None and memoryview(raw)[0] == _LIST_BEGINS:
                break
        else:
            return None
        raws = _split_list(raw)
        if len(raws) < LEAST_ITEMS:
            return None
        items: list[Item] = []
        for each in raws:
            item = self._item(bytes(each))
            if item is None:
                return None
            items.append(item)
        values[name] = _NONE
        return name, items, _encode(values)

    def _item(self, raw: bytes) -> Item | None:
        """Return an item, new or kept; None for one that nests too deeply. Raises what msgspec raises."""
        item = self._newer.get(raw)
        if item is not None:
            return item
        item = self._older.get(raw)
        if item is None:
            value = _parse_item(raw)
            # The item stands two levels down.
            if too_deep(value, raw, MAX_DEPTH - 2):
                return None
            item = Item(value, len(raw) + _ITEM_BYTES)
        if len(raw) <= LONGEST_ITEM:
            self._keep(raw, item)
        return item

    def _keep(self, raw: bytes, item: Item) -> None:
        with self._lock:
            self._newer[raw] = item
            self._bytes += item.size
            if self._bytes > self._half:
                self._older, self._newer, self._bytes = self._newer, {}, 0


def read_messages(values: list[Any], at: str, dialect: str, read: Callable[[Any, str], Message]) -> list[Message]:
    """Return the messages of a dialect that `read` gives for a list, each item with its place: the same message for one that came before.

    Raises what `read` raises.
    """
    if type(values) is not KnownItems:
        return [read(value, f"{at}[{place}]") for place, value in enumerate(values)]
    messages = []
    for place, item in enumerate(values.items):
        message = item.read.get(dialect)
        if message is None:
            message = item.read[dialect] = read(item.value, f"{at}[{place}]")
        messages.append(message)
    return messages


REPEATED_ITEMS = RepeatedItems()
"""Those of this process."""
