"""The objects of output items that a whole reply and a stream both write, and fields that grow as a reply comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def reasoning_item(item_id: str, summary: Iterable[str], text: str) -> dict[str, Any]:
    """Return a reasoning item: the parts of its summary, and its full text."""
    parts = [{"type": "summary_text", "text": part} for part in summary]
    item: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": parts}
    if text:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    return item


def call_item(item_id: str, status: str, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a function call."""
    fixed = {"type": "function_call", "id": item_id, "status": status}
    return {**fixed, "arguments": arguments, "call_id": call_id, "name": name}


class MergedFields(dict[str, Any]):
    """Fields to which more are added: lists are appended to, as in a Response. What was given first is never changed."""

    __slots__ = ("_own_lists",)

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._own_lists: set[str] = set()

    def merge(self, fields: dict[str, Any]) -> None:
        """Add fields."""
        for name, value in fields.items():
            before = self.get(name)
            if not isinstance(before, list) or not isinstance(value, list):
                self[name] = value
                self._own_lists.discard(name)
            elif name in self._own_lists:
                before.extend(value)
            else:
                self[name] = [*before, *value]
                self._own_lists.add(name)
