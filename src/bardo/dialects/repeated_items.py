"""The parts of a body that came before: a client sends the history of a conversation again with every turn, a few items longer, and the
schema of its answers with every call.

A part whose bytes came before is neither parsed nor read a second time. What was read of it is shared between requests, and is never
changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

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
_SCHEMA_FIELDS = ("response_format", "text", "output_config", "output_format")
_LEAST_SCHEMA = 1024
T = TypeVar("T")
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_parse_item = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_NONE = msgspec.Raw(b"[]")
_LIST_BEGINS = ord("[")


class Item:
    """One part of a body: its value, about how many bytes are held for it, and what each dialect reads in it."""

    __slots__ = ("read", "size", "value")

    def __init__(self, value: Any, size: int) -> None:
        self.value, self.size = value, size
        self.read: dict[str, Any] = {}


class KnownItems(list[Any]):
    """The values of a history, and what is kept of each."""

    __slots__ = ("items",)

    def __init__(self, items: list[Item]) -> None:
        super().__init__([item.value for item in items])
        self.items = items


class KnownObject(dict[str, Any]):
    """The value of a field that may hold a schema, and what is kept of it."""

    __slots__ = ("item",)

    def __init__(self, item: Item) -> None:
        super().__init__(item.value)
        self.item = item


class RepeatedItems:
    """The parts that were sent last, by their bytes, in two halves: where the newer is full, what was not asked for since is forgotten."""

    def __init__(self, most_bytes: int = MOST_BYTES_KEPT) -> None:
        self._newer: dict[bytes, Item] = {}
        self._older: dict[bytes, Item] = {}
        self._bytes = 0
        self._half = most_bytes // 2
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def decode(self, body: bytes, parse: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
        """Return what `parse` reads in a body: a history of some length as KnownItems, a schema of some length in a KnownObject.

        Raises what `parse` raises.
        """
        if len(body) < LEAST_BYTES:
            return parse(body)
        try:
            values = _split(body)
            known = {**self._history(values), **self._schemas(values)}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, _TooDeep):
            known = {}
        # What is wrong is told of the body as it came.
        if not known:
            return parse(body)
        # Each in its place, since the order of a body's fields is its client's.
        return parse(_encode({**values, **dict.fromkeys(known, _NONE)})) | known

    def _history(self, values: dict[str, msgspec.Raw]) -> dict[str, KnownItems]:
        """Return the history of a body, under its name."""
        for name in _LISTS:
            raw = values.get(name)
            if raw is not None and memoryview(raw)[0] == _LIST_BEGINS:
                raws = _split_list(raw)
                if len(raws) >= LEAST_ITEMS:
                    return {name: KnownItems([self._item(bytes(each)) for each in raws])}
        return {}

    def _schemas(self, values: dict[str, msgspec.Raw]) -> dict[str, KnownObject]:
        """Return the fields of a body that hold a schema of some length."""
        found = {}
        for name in _SCHEMA_FIELDS:
            raw = values.get(name)
            if raw is not None and memoryview(raw).nbytes >= _LEAST_SCHEMA:
                item = self._item(bytes(raw))
                if isinstance(item.value, dict):
                    found[name] = KnownObject(item)
        return found

    def _item(self, raw: bytes) -> Item:
        """Return a part, new or kept. Raises what msgspec raises, and _TooDeep."""
        item = self._newer.get(raw)
        if item is not None:
            return item
        item = self._older.get(raw)
        if item is None:
            value = _parse_item(raw)
            # The items of a history stand two levels down.
            if too_deep(value, raw, MAX_DEPTH - 2):
                raise _TooDeep
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


class _TooDeep(Exception):
    """A part nests more deeply than a body may."""


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


def read_once(value: Any, name: str, read: Callable[[], T]) -> T:
    """Return what `read` gives for the value of a field; of one that came before what it gave then. `name` says what is read."""
    if type(value) is not KnownObject:
        return read()
    known = value.item.read
    if name not in known:
        known[name] = read()
    found: T = known[name]
    return found


REPEATED_ITEMS = RepeatedItems()
"""Those of this process."""
