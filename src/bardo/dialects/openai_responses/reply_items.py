"""The output items of a reply, as they arrive.

An item is told in up to four ways: `output_item.added`, its deltas, `output_item.done`, and the finished response. Any of them may be
missing, and none of them may add the same thing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from bardo.dialects.lenient import as_text
from bardo.dialects.openai_responses.reply_parts import (
    ArgumentsPart,
    Part,
    SummaryPart,
    ThoughtPart,
    list_of,
    text_of,
)
from bardo.dialects.openai_responses.state import FORMAT, NAME, is_made
from bardo.values.blocks import Opaque
from bardo.values.events import (
    BlockFields,
    Event,
    OpaqueState,
    ThinkEnd,
    ThinkStart,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)

# A finished item with one part of a kind has few parts of other kinds.
_LOOKED_AT = 8


class Item:
    """One output item. `numbers` gives the next block number of the reply, `style` is whose reasoning it holds."""

    kinds: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, numbers: Iterator[int], style: str = FORMAT) -> None:
        self.numbers = numbers
        self.style = style
        self.parts: dict[tuple[str, int], Part] = {}
        self.id = ""
        self.type = ""
        self.done = False
        self.by_id: dict[tuple[type[Item], str], Item] = {}
        """Shared by all items of a reply: the first of its type with an id is found by it."""

    def open(self, item: dict[str, Any], out: list[Event]) -> None:
        """Take the item as it was announced. The first id stays: Copilot sends another one each time."""
        self.type = self.type or str(item.get("type") or "")
        if not self.id and (found := _id_of(item)):
            self.id = found
            self.by_id.setdefault((type(self), found), self)

    def part(self, kind: str, index: int, out: list[Event]) -> Part:
        """Return the part, begun where it is new."""
        raise NotImplementedError

    def complete(self, item: dict[str, Any], out: list[Event]) -> None:
        """Take the finished item. May be called again, with the item as the finished response has it."""
        raise NotImplementedError

    def close(self, out: list[Event], *, complete: bool = True) -> None:
        """The reply ends, whether or not the item was finished. `complete` False: it broke off, and no call is ended."""

    def place(self, kind: str, index: int, count: int) -> int:
        """Return where the finished item's part `index`, one of `count` of its kind, was streamed.

        Bedrock streams the only part of a message under index 1 and then lists it first.
        """
        if count != 1:
            return index
        known = [number for held, number in islice(self.parts, _LOOKED_AT) if held == kind]
        return known[0] if len(known) == 1 and len(self.parts) <= _LOOKED_AT else index


class ReasoningItem(Item):
    """A reasoning item: full text, summary parts, ciphertext."""

    kinds = frozenset({"reasoning_text", "summary_text"})

    def __init__(self, numbers: Iterator[int], style: str = FORMAT) -> None:
        super().__init__(numbers, style)
        self._block = -1
        self._encrypted = False

    def open(self, item: dict[str, Any], out: list[Event]) -> None:
        if self._block < 0:
            self._block = next(self.numbers)
            out.append(ThinkStart(self._block, self.style))
        before = self.id
        super().open(item, out)
        if self.id and not before:
            out.append(OpaqueState(self._block, Opaque("id", self.id, self.style)))

    def part(self, kind: str, index: int, out: list[Event]) -> Part:
        part = self.parts.get((kind, index))
        if part is None:
            if self._block < 0:
                self.open({}, out)
            part = (SummaryPart if kind == "summary_text" else ThoughtPart)(self._block, index)
            self.parts[kind, index] = part
        return part

    def complete(self, item: dict[str, Any], out: list[Event]) -> None:
        self.open(item, out)
        for name, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
            self._complete_texts(kind, list_of(item.get(name)), out)
        if not self.done and (fields := {**carried_fields(item, _REASONING), **carried_status(item, usual=None)}):
            out.append(BlockFields(self._block, NAME, fields))
        # The ciphertext of `output_item.done` stays: the one announced before was provisional, the one repeated after is another.
        encrypted = item.get("encrypted_content")
        if isinstance(encrypted, str) and encrypted and not self._encrypted:
            self._encrypted = True
            own = item.get("format")
            state = Opaque("encrypted", encrypted, own if isinstance(own, str) and own else self.style)
            out.append(OpaqueState(self._block, state))
        self.close(out)

    def _complete_texts(self, kind: str, parts: list[Any], out: list[Event]) -> None:
        for index, raw in enumerate(parts):
            part = self.part(kind, self.place(kind, index, len(parts)), out)
            part.settle(raw if isinstance(raw, str) else text_of(raw), out)
            if kind == "summary_text" and not part.said:
                part.add("", out)

    def close(self, out: list[Event], *, complete: bool = True) -> None:
        if not self.done and self._block >= 0:
            out.append(ThinkEnd(self._block))
        self.done = True


class CallItem(Item):
    """A function call."""

    kinds = frozenset({"arguments"})

    def __init__(self, numbers: Iterator[int], style: str = FORMAT) -> None:
        super().__init__(numbers, style)
        self._arguments: ArgumentsPart | None = None

    def open(self, item: dict[str, Any], out: list[Event]) -> None:
        super().open(item, out)
        if item.get("name") and item.get("call_id"):
            self._begin(item, out)

    def part(self, kind: str, index: int, out: list[Event]) -> ArgumentsPart:
        if self._arguments is None:
            self._arguments = ArgumentsPart(next(self.numbers), 0)
        return self._arguments

    def complete(self, item: dict[str, Any], out: list[Event]) -> None:
        super().open(item, out)
        part = self._begin(item, out)
        part.settle(as_text(item.get("arguments")), out)
        if not self.done and (fields := {**carried_fields(item, _CALL), **carried_status(item)}):
            out.append(BlockFields(part.block, NAME, fields))
        self._end(out, complete=item.get("status") != "incomplete")

    def _begin(self, item: dict[str, Any], out: list[Event]) -> Part:
        part = self.part("arguments", 0, out)
        if not part.named:
            call_id = item.get("call_id") or item.get("id")
            out.append(ToolCallStart(part.block, str(call_id or ""), str(item.get("name") or "")))
            if self.id:
                out.append(BlockFields(part.block, NAME, {"id": self.id}))
            part.name(out)
        return part

    def _end(self, out: list[Event], *, complete: bool) -> None:
        if complete and not self.done and self._arguments is not None:
            out.append(ToolCallEnd(self._arguments.block))
        self.done = True

    def close(self, out: list[Event], *, complete: bool = True) -> None:
        if self._arguments is not None and not self._arguments.named:
            self._begin({}, out)
        self._end(out, complete=complete)


class OtherItem(Item):
    """An item bardo has no word for: a server tool's call or result. It is passed on whole, as it was when finished."""

    def __init__(self, numbers: Iterator[int], style: str = FORMAT) -> None:
        super().__init__(numbers, style)
        self.announced: dict[str, Any] = {}

    def open(self, item: dict[str, Any], out: list[Event]) -> None:
        super().open(item, out)
        self.announced = item

    def complete(self, item: dict[str, Any], out: list[Event]) -> None:
        if not self.done:
            super().open(item, out)
            self.announced = item
            self.close(out)

    def close(self, out: list[Event], *, complete: bool = True) -> None:
        # A call of a tool that only this dialect has is a call too: nobody may execute what no more came of.
        if not self.done and (complete or not self.type.endswith("_call")):
            out.append(UnknownContent(next(self.numbers), NAME, self.announced))
        self.done = True


_REASONING = frozenset({"type", "summary", "content", "encrypted_content", "status", "id"})
_CALL = frozenset({"type", "call_id", "name", "arguments", "status", "id"})


def carried_fields(item: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return what the item says beside the fields that are read."""
    return {name: value for name, value in item.items() if name not in known and value is not None}


def carried_status(item: dict[str, Any], usual: str | None = "completed") -> dict[str, Any]:
    """Return the status of a finished item where it is not the usual one: OpenAI's reasoning items have none."""
    status = item.get("status")
    return {} if status in (None, usual) else {"status": status}


def _id_of(item: dict[str, Any]) -> str:
    found = item.get("id")
    return found if isinstance(found, str) and not is_made(found) else ""
