"""A message of a reply, as it arrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from bardo.dialects.openai_responses.reply_items import Item, carried_fields, carried_status
from bardo.dialects.openai_responses.reply_parts import (
    Part,
    RefusalPart,
    TextPart,
    fields_of,
    kind_of,
    list_of,
    text_of,
)
from bardo.dialects.openai_responses.state import NAME
from bardo.values.events import BlockFields, Event, RefusalChunk, UnknownContent


class MessageItem(Item):
    """A message: text and refusals, each a block. What belongs to the whole message is carried by each under `item`."""

    kinds = frozenset({"output_text", "refusal"})

    def __init__(self, numbers: Iterator[int], style: str = "") -> None:
        super().__init__(numbers, style)
        self._meta: dict[str, Any] = {}
        self._annotations: dict[int, list[Any]] = {}
        self._unknown: set[int] = set()

    def open(self, item: dict[str, Any], out: list[Event]) -> None:
        super().open(item, out)
        self._meta = {**self._meta, **carried_fields(item, _MESSAGE)} | ({"id": self.id} if self.id else {})

    def part(self, kind: str, index: int, out: list[Event]) -> Part:
        part = self.parts.get((kind, index))
        if part is None:
            part = (RefusalPart if kind == "refusal" else TextPart)(next(self.numbers), index)
            self.parts[kind, index] = part
            if kind == "refusal":
                # Fields alone would begin a text block.
                out.append(RefusalChunk(part.block, ""))
            if self._meta:
                out.append(BlockFields(part.block, NAME, {"item": self._meta}))
        return part

    def annotate(self, index: int, annotation: Any, out: list[Event]) -> None:
        """Take an annotation that came beside the text."""
        self._annotations.setdefault(index, []).append(annotation)
        out.append(BlockFields(self.part("output_text", index, out).block, NAME, {"annotations": [annotation]}))

    def complete(self, item: dict[str, Any], out: list[Event]) -> None:
        self._learn(item, out)
        content = item.get("content")
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else list_of(content)
        kinds = [kind_of(fields_of(part)) for part in parts]
        counts = Counter(kinds)
        for index, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
            if kind in self.kinds and kind is not None:
                self._complete_part(kind, self.place(kind, index, counts[kind]), part, out)
            elif index not in self._unknown:
                self._unknown.add(index)
                whole = {"type": "message", "role": "assistant", "content": [part], **self._meta}
                out.append(UnknownContent(next(self.numbers), NAME, whole))
        self.done = True

    def _learn(self, item: dict[str, Any], out: list[Event]) -> None:
        before = self._meta
        Item.open(self, item, out)
        self._meta = {**before, **carried_fields(item, _MESSAGE), **carried_status(item)} | (
            {"id": self.id} if self.id else {}
        )
        if self._meta != before:
            out.extend(BlockFields(part.block, NAME, {"item": self._meta}) for part in self.parts.values())

    def _complete_part(self, kind: str, index: int, raw: dict[str, Any], out: list[Event]) -> None:
        part = self.part(kind, index, out)
        part.settle(text_of(raw), out)
        if not part.said:
            part.add("", out)
        fields = (
            {}
            if self.done
            else {name: value for name, value in raw.items() if name not in _PART and value not in _EMPTY}
        )
        if missing := self._missing_annotations(index, list_of(raw.get("annotations"))):
            fields["annotations"] = missing
        if fields:
            out.append(BlockFields(part.block, NAME, fields))

    def _missing_annotations(self, index: int, finished: list[Any]) -> list[Any]:
        seen = self._annotations.get(index, [])
        agrees = finished[: len(seen)] == seen
        missing = finished[len(seen) :] if agrees else _unseen(seen, finished)
        self._annotations[index] = seen + missing
        return missing


def _unseen(seen: list[Any], finished: list[Any]) -> list[Any]:
    """Return those that are finished and were not seen, told apart by what they say."""
    known = set(map(_JSON.encode, seen))
    return [one for one in finished if _JSON.encode(one) not in known]


_JSON = msgspec.json.Encoder(order="deterministic")
_MESSAGE = frozenset({"type", "role", "content", "status", "id"})
_PART = frozenset({"type", "text", "refusal", "annotations"})
_EMPTY: tuple[Any, ...] = (None, [], {})
