"""The items of a reply, found by whatever a server says of them: an index, an id, or only a kind."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Any

from bardo.dialects.openai_responses.reply_items import CallItem, Item, OtherItem, ReasoningItem
from bardo.dialects.openai_responses.reply_message import MessageItem
from bardo.dialects.openai_responses.state import FORMAT
from bardo.values.events import Event

_ITEMS: dict[str, type[Item]] = {"message": MessageItem, "reasoning": ReasoningItem, "function_call": CallItem}


class ItemTable:
    """All items of one reply, by their output index; an item whose index is not known has a negative one. `style` is whose they are."""

    def __init__(self, style: str = "") -> None:
        self._style = style or FORMAT
        self._items: dict[int, Item] = {}
        self._in_order: list[tuple[int, Item]] = []
        self._by_id: dict[tuple[type[Item], str], Item] = {}
        self._latest: dict[str, Item] = {}
        self._unfinished_of: dict[type[Item], deque[Item]] = {}
        self._numbers = itertools.count()

    def all(self) -> Iterable[Item]:
        """Return the items, in order of appearance."""
        return self._items.values()

    def holds(self, kind: type[Item]) -> bool:
        """Whether an item of this kind has appeared."""
        return any(isinstance(item, kind) for item in self._items.values())

    def others(self) -> list[dict[str, Any]]:
        """Return the items that bardo has no word for, as they were told last."""
        return [item.announced for item in self._items.values() if isinstance(item, OtherItem)]

    def add_reasoning(self) -> Item:
        """Return a new reasoning item that stands in no list."""
        return self._add(None, self._make_item(ReasoningItem))

    def holder(self, kind: str, value: dict[str, Any], out: list[Event]) -> Item:
        """Return the item a text belongs to: by index, by id, else the latest that can hold it, else a new one."""
        item = self._items.get(index_of(value, -1))
        if item is not None and kind in item.kinds:
            return item
        able = next(one for one in _ITEMS.values() if kind in one.kinds)
        found = self._with_id(able, value.get("item_id"))
        if found is None and index_of(value) is None:
            found = self._latest.get(kind)
        if found is not None:
            return found
        item = self._make_item(able)
        item.open({"id": value.get("item_id")}, out)
        return self._add(index_of(value), item)

    def item(self, index: int | None, raw: dict[str, Any]) -> Item:
        """Return the item an event of items is about, begun where it is new."""
        kind = _ITEMS.get(type_of(raw), OtherItem)
        item = (self._item_of(raw) or self._unfinished(kind)) if index is None else self._items.get(index)
        if item is None or type(item) is not kind or (kind is OtherItem and item.type != type_of(raw)):
            item = self._add(index, self._make_item(kind))
        return item

    def finished(self, index: int, raw: dict[str, Any]) -> Item:
        """Return the item that the finished response lists at `index`."""
        return self._item_of(raw) or self._unnumbered(index, raw) or self.item(index, raw)

    def _unfinished(self, kind: type[Item]) -> Item | None:
        waiting = self._unfinished_of.get(kind)
        while waiting and waiting[0].done:
            waiting.popleft()
        return waiting[0] if waiting else None

    def _unnumbered(self, index: int, raw: dict[str, Any]) -> Item | None:
        kind = _ITEMS.get(type_of(raw), OtherItem)
        held = self._in_order[index : index + 1]
        return next((item for key, item in held if key < 0 and type(item) is kind), None)

    def _item_of(self, raw: dict[str, Any]) -> Item | None:
        return self._with_id(_ITEMS.get(type_of(raw), OtherItem), raw.get("id"))

    def _with_id(self, kind: type[Item], item_id: Any) -> Item | None:
        return self._by_id.get((kind, item_id)) if isinstance(item_id, str) and item_id else None

    def _make_item(self, kind: type[Item]) -> Item:
        item = kind(self._numbers, self._style)
        item.by_id = self._by_id
        return item

    def _add(self, index: int | None, item: Item) -> Item:
        key = index if index is not None and index not in self._items else -1 - len(self._items)
        self._items[key] = item
        self._in_order.append((key, item))
        self._unfinished_of.setdefault(type(item), deque()).append(item)
        for kind in item.kinds:
            self._latest[kind] = item
        return item


def index_of(value: dict[str, Any], otherwise: int | None = None) -> Any:
    """Return the output index of an event, or `otherwise` where it has none."""
    found = value.get("output_index")
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else otherwise


def type_of(raw: dict[str, Any]) -> str:
    """Return the type of an item, empty where it is not told."""
    name = raw.get("type")
    return name if isinstance(name, str) else ""
