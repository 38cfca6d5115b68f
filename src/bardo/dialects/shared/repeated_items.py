"""The parts of a body that came before: a client sends the history of a conversation again with every turn, a few items longer, and the
schema of its answers with every call.

A part whose bytes came before is neither parsed nor read a second time. What was read of it is shared between requests, and is never
changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import compress, count, repeat
from operator import is_
from typing import Any, TypeVar

import msgspec

from bardo.dialects.shared import repeated_tools
from bardo.dialects.shared.bounded_json import MAX_DEPTH, decode_bounded
from bardo.dialects.shared.known_items import Item, KnownFields, KnownItems, read_of
from bardo.dialects.shared.repeated_tools import REPEATED_TOOLS, RepeatedTools
from bardo.values.request import Message

LEAST_BYTES, LEAST_ITEMS = 2048, 3
"""How long a body, and its history, is that is looked up: of a first question nothing came before."""
LONGEST_ITEM = 1_048_576
"""Bytes of an item that is kept: a picture of the screen, but no long document. Behind one that is longer, all is read anew."""
MOST_BYTES_KEPT = 16 * 1_048_576
"""Clients choose their conversations, so neither the number nor the size of what is kept may grow with them."""
_OWN = "bardo"
_LISTS = ("messages", "input", "contents")
_SCHEMA_FIELDS = frozenset({"response_format", "text", "output_config", "output_format"})
_LEAST_SCHEMA = 1024
_PROMPT_FIELDS = frozenset({"system", "instructions", "systemInstruction", "system_instruction"})
T = TypeVar("T")
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_NONE = msgspec.Raw(b"[]")
_LIST_BEGINS = ord("[")


class RepeatedItems:
    """The parts that were sent last, by their bytes, in two halves: where the newer is full, what was not asked for since is forgotten."""

    def __init__(self, most_bytes: int = MOST_BYTES_KEPT, tools: RepeatedTools = REPEATED_TOOLS) -> None:
        self._tools = tools
        self._newer: dict[bytes, Item] = {}
        self._older: dict[bytes, Item] = {}
        self._bytes = 0
        self._half = most_bytes // 2
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def decode(self, body: bytes, parse: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
        """Return what `parse` reads in a body: of one of some length as KnownFields, a history of some length in it as KnownItems.

        Raises what `parse` raises.
        """
        if len(body) < LEAST_BYTES:
            return parse(body)
        try:
            values = _split(body)
            history = self._history(values)
            tools = self._tools_of(values)
            parts = self._parts(values, with_prompt=bool(history))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return parse(body)  # What is wrong is told of the body as it came.
        known: dict[str, Any] = {**history, **tools, **{name: part.value for name, part in parts.items()}}
        if not known:
            return KnownFields(parse(body), {}, values)
        # Each in its place, since the order of a body's fields is its client's.
        return KnownFields(parse(_encode({**values, **dict.fromkeys(known, _NONE)})) | known, parts, values)

    def _history(self, values: dict[str, msgspec.Raw]) -> dict[str, KnownItems]:
        """Return the history of a body, under its name."""
        for name in _LISTS:
            raw = values.get(name)
            if raw is not None and memoryview(raw)[0] == _LIST_BEGINS:
                raws = _split_list(raw)
                if len(raws) >= LEAST_ITEMS:
                    return {name: KnownItems(self._items([*map(bytes, raws)]))}
        return {}

    def _items(self, raws: list[bytes]) -> list[Item]:
        # Without a step of Python for each that came with the last turn.
        found: list[Any] = [*map(self._newer.get, raws)]
        for place in _missing(found):
            found[place] = self._item(raws[place])
        return found

    def _tools_of(self, values: dict[str, msgspec.Raw]) -> dict[str, Any]:
        """Return the tools of a body where they have some length, under their name."""
        raw = values.get("tools")
        if raw is None or memoryview(raw).nbytes < repeated_tools.LEAST_BYTES:
            return {}
        return {"tools": self._tools.value_of(bytes(raw), _parse_part)}

    def _parts(self, values: dict[str, msgspec.Raw], *, with_prompt: bool) -> dict[str, Item]:
        """Return the fields of a body that hold a schema of some length, and the system prompt where that stands before a history."""
        found = {}
        for name in _SCHEMA_FIELDS & values.keys():
            if memoryview(values[name]).nbytes >= _LEAST_SCHEMA:
                found[name] = self._item(bytes(values[name]))
        for name in _PROMPT_FIELDS & values.keys() if with_prompt else ():
            found[name] = self._item(bytes(values[name]))
        return found

    def _item(self, raw: bytes) -> Item:
        """Return a part, new or kept. Raises what msgspec raises, and RecursionError."""
        item = self._newer.get(raw)
        if item is not None:
            return item
        item = self._older.get(raw)
        if item is None:
            item = Item(raw, _parse_part(raw))
        if len(raw) <= LONGEST_ITEM:
            self._keep(raw, item)
        return item

    def _keep(self, raw: bytes, item: Item) -> None:
        with self._lock:
            self._newer[raw] = item
            self._bytes += item.size
            if self._bytes > self._half:
                self._older, self._newer, self._bytes = self._newer, {}, 0


def _parse_part(raw: bytes) -> Any:
    """Return the value of a part. Raises what msgspec raises, and RecursionError."""
    # The items of a history stand two levels down.
    return decode_bounded(raw, MAX_DEPTH - 2)


def read_messages(values: list[Any], at: str, dialect: str, read: Callable[[Any, str], Message]) -> list[Message]:
    """Return the messages of a dialect that `read` gives for a list, each item with its place: the same message for one that came before.

    Raises what `read` raises.
    """
    if type(values) is not KnownItems:
        return [read(value, f"{at}[{place}]") for place, value in enumerate(values)]
    messages: list[Any] = [*map(dict.get, map(read_of, values.items), repeat(dialect))]
    for place in _missing(messages):
        item = values.items[place]
        messages[place] = item.read[dialect] = read(item.value, f"{at}[{place}]")
    return messages


def _missing(found: list[Any]) -> Iterator[int]:
    """Return the places of what is None, without a step of Python for each of the others. What stands at one may be set meanwhile."""
    return compress(count(), map(is_, found, repeat(None)))


def holds(body: Mapping[str, Any], raw: bytes, sought: bytes) -> bool:
    """Whether bytes stand in the history of a body whose JSON is `raw`: looked for once in each item that comes again."""
    known = next((value for value in body.values() if type(value) is KnownItems), None)
    if known is None:
        return sought in raw
    what = f"holds {sought!r}"
    found: list[bool | None] = [*map(dict.get, map(read_of, known.items), repeat(what))]
    for place in _missing(found):
        item = known.items[place]
        found[place] = item.read[what] = sought in item.raw
    return any(found)


def without_own(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a body without bardo's own: what a provider of its dialect may get."""
    return {name: value for name, value in fields.items() if name != _OWN} if _OWN in fields else fields


def read_once(fields: dict[str, Any], field: str, what: str, read: Callable[[], T]) -> T:
    """Return what `read` gives for a field of a body; of one that came before what it gave then.

    `what` says what is read, and by which dialect.
    """
    part = fields.parts.get(field) if type(fields) is KnownFields else None
    if part is None:
        return read()
    if what not in part.read:
        part.read[what] = read()
    found: T = part.read[what]
    return found


REPEATED_ITEMS = RepeatedItems()
"""Those of this process."""
