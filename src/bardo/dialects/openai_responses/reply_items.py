"""The output items of a reply, as they arrive.

An item is told in up to four ways: `output_item.added`, its deltas, `output_item.done`, and the finished response. Any of them may be
missing, and none of them may add the same thing twice: of a text that is told again, only what had been missing becomes an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import ClassVar, TypeVar

import msgspec

from bardo.dialects.openai_responses import wire
from bardo.dialects.openai_responses.wire import FORMAT, NAME, is_made
from bardo.dialects.shared.json_values import JsonObject, JsonValue, as_text
from bardo.values.blocks import Opaque
from bardo.values.degradation import Degradation
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    OpaqueState,
    RefusalChunk,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)
from bardo.values.runs import JoinedText

DELTA_KINDS = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_text",
    "response.reasoning.delta": "reasoning_text",
    "response.reasoning_summary_text.delta": "summary_text",
    "response.reasoning_summary.delta": "summary_text",
    "response.function_call_arguments.delta": "arguments",
}
DONE_KINDS = {name.removesuffix("delta") + "done": kind for name, kind in DELTA_KINDS.items()}
PART_EVENTS = frozenset(
    f"response.{part}.{state}"
    for part in ("content_part", "reasoning_part", "reasoning_summary_part")
    for state in ("added", "done")
)
# Some servers say `text` where OpenAI says `output_text`, or `reasoning_text` within a reasoning item.
PART_KINDS = {
    "output_text": "output_text",
    "text": "output_text",
    "refusal": "refusal",
    "reasoning_text": "reasoning_text",
    "summary_text": "summary_text",
}


class WrongFrame(Exception):
    """A frame is not what the dialect says."""


S = TypeVar("S", bound=msgspec.Struct)


def read(value: JsonObject, kind: type[S]) -> S:
    """Return the fields of an object that a server wrote, and of those of a wrong type the meaningful ones. Raises WrongFrame."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return kind(**{name: read_field(value.get(name)) for name, read_field in _TOLERANT[kind].items()})


def words_of(value: JsonValue) -> str:
    """Return a text that may be absent, or wrapped as older documents have it. Raises WrongFrame."""
    if isinstance(value, dict):
        value = value.get("text")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongFrame(f"a text is {type(value).__name__}, not a string")
    return value


def fields_of(value: JsonValue) -> JsonObject:
    """Return an object. Raises WrongFrame."""
    if not isinstance(value, dict):
        raise WrongFrame(f"an object was expected, not {type(value).__name__}")
    return value


def text_or_none(value: JsonValue) -> str | None:
    """Return a text, or None if it is none."""
    return value if isinstance(value, str) else None


def list_of(value: JsonValue) -> list[JsonValue]:
    """Return an array, empty where it is absent. Raises WrongFrame."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise WrongFrame(f"an array was expected, not {type(value).__name__}")
    return value


def _as_it_is(value: JsonValue) -> JsonValue:
    """Return a value that is looked at where it is used: `words_of`, `list_of` and `fields_of` refuse it there."""
    return value


_TOLERANT: dict[type[msgspec.Struct], dict[str, Callable[[JsonValue], JsonValue]]] = {
    wire.Place: {
        "output_index": lambda value: value if type(value) is int and value >= 0 else None,
        "item_id": text_or_none,
        "content_index": lambda value: int(value) if isinstance(value, int) else 0,
        "summary_index": lambda value: int(value) if isinstance(value, int) else 0,
    },
    wire.OutputMessage: {"content": _as_it_is},
    wire.OutputPart: {"type": text_or_none, "text": _as_it_is, "refusal": _as_it_is, "annotations": _as_it_is},
    wire.OutputReasoning: {
        "summary": _as_it_is,
        "content": _as_it_is,
        "encrypted_content": text_or_none,
        "format": text_or_none,
    },
    wire.OutputCall: {
        "call_id": lambda value: str(value or ""),
        "name": lambda value: str(value or ""),
        "arguments": as_text,
    },
    wire.IncompleteDetails: {"reason": text_or_none},
    wire.OutputResponse: {
        "id": text_or_none,
        "model": text_or_none,
        "created_at": _as_it_is,
        "status": text_or_none,
        "output": _as_it_is,
        "usage": _as_it_is,
        "error": _as_it_is,
        "incomplete_details": lambda value: read(value, wire.IncompleteDetails) if isinstance(value, dict) else None,
        "service_tier": _as_it_is,
        "reasoning": _as_it_is,
    },
}
"""How fields are read of an object in which one has not the type that the dialect demands."""


class Part:
    """One text of a reply, as it arrives. `event` makes the event of a piece of it."""

    __slots__ = ("block", "disputed", "event", "said", "streamed")

    def __init__(self, block: int, event: Callable[[str], Event]) -> None:
        self.block = block
        self.event = event
        self.streamed = JoinedText()
        self.said = False
        self.disputed = False

    def add(self, text: str, out: list[Event]) -> None:
        """Take a delta."""
        self.streamed.add(text)
        self.said = True
        out.append(self.event(text))

    def settle(self, full: str, out: list[Event]) -> None:
        """Take the whole text as it is said again: emit what is missing, and keep what was streamed where the two contradict."""
        streamed = self.streamed.text()
        if full == streamed or not full:
            return
        if full.startswith(streamed):
            self.add(full[len(streamed) :], out)
        elif not self.disputed:
            self.disputed = True
            why = "the finished text contradicts what was streamed, which was kept"
            asked, sent = f"{len(full)} characters", f"{len(streamed)} characters"
            out.append(Degraded(Degradation("text", asked=asked, sent=sent, why=why)))


class ArgumentsPart(Part):
    """Arguments of a call. Nothing is said before the call has its name."""

    __slots__ = ("named",)

    def __init__(self, block: int) -> None:
        super().__init__(block, partial(ToolCallChunk, block))
        self.named = False

    def add(self, text: str, out: list[Event]) -> None:
        if self.named:
            super().add(text, out)
        else:
            self.streamed.add(text)

    def name(self, out: list[Event]) -> None:
        """The call has begun: say what was held."""
        self.named = True
        held, self.streamed = self.streamed.text(), JoinedText()
        if held:
            self.add(held, out)


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

    def open(self, item: JsonObject, out: list[Event]) -> None:
        """Take the item as it was announced. The first id stays: Copilot sends another one each time."""
        self.type = self.type or str(item.get("type") or "")
        if not self.id and (item_id := _id_of(item)):
            self.id = item_id
            self.by_id.setdefault((type(self), item_id), self)

    def part(self, kind: str, index: int, out: list[Event]) -> Part:
        """Return the part, begun where it is new."""
        raise NotImplementedError

    def complete(self, item: JsonObject, out: list[Event]) -> None:
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
        places = [number for held, number in islice(self.parts, _LOOKED_AT) if held == kind]
        return places[0] if len(places) == 1 and len(self.parts) <= _LOOKED_AT else index


class ReasoningItem(Item):
    """A reasoning item: full text, summary parts, ciphertext."""

    kinds = frozenset({"reasoning_text", "summary_text"})

    def __init__(self, numbers: Iterator[int], style: str = FORMAT) -> None:
        super().__init__(numbers, style)
        self._block = -1
        self._encrypted = False

    def open(self, item: JsonObject, out: list[Event]) -> None:
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
            number = index if kind == "summary_text" else None
            part = Part(self._block, partial(ThinkChunk, self._block, part=number))
            self.parts[kind, index] = part
        return part

    def complete(self, item: JsonObject, out: list[Event]) -> None:
        self.open(item, out)
        told = read(item, wire.OutputReasoning)
        self._complete_texts("summary_text", list_of(told.summary), out)
        self._complete_texts("reasoning_text", list_of(told.content), out)
        if not self.done and (fields := {**carried_fields(item, _REASONING), **carried_status(item, usual=None)}):
            out.append(BlockFields(self._block, NAME, fields))
        # The ciphertext of `output_item.done` stays: the one announced before was provisional, the one repeated after is another.
        if told.encrypted_content and not self._encrypted:
            self._encrypted = True
            out.append(OpaqueState(self._block, Opaque("encrypted", told.encrypted_content, told.format or self.style)))
        self.close(out)

    def _complete_texts(self, kind: str, pieces: list[JsonObject | str], out: list[Event]) -> None:
        for index, piece in enumerate(pieces):
            part = self.part(kind, self.place(kind, index, len(pieces)), out)
            part.settle(piece if isinstance(piece, str) else text_of(fields_of(piece)), out)
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

    def open(self, item: JsonObject, out: list[Event]) -> None:
        super().open(item, out)
        if item.get("name") and item.get("call_id"):
            self._begin(item, out)

    def part(self, kind: str, index: int, out: list[Event]) -> ArgumentsPart:
        if self._arguments is None:
            self._arguments = ArgumentsPart(next(self.numbers))
        return self._arguments

    def complete(self, item: JsonObject, out: list[Event]) -> None:
        super().open(item, out)
        part = self._begin(item, out)
        part.settle(read(item, wire.OutputCall).arguments, out)
        if not self.done and (fields := {**carried_fields(item, _CALL), **carried_status(item)}):
            out.append(BlockFields(part.block, NAME, fields))
        self._end(out, complete=item.get("status") != "incomplete")

    def _begin(self, item: JsonObject, out: list[Event]) -> Part:
        part = self.part("arguments", 0, out)
        if not part.named:
            call = read(item, wire.OutputCall)
            out.append(ToolCallStart(part.block, call.call_id or str(item.get("id") or ""), call.name))
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
        self.announced: JsonObject = {}

    def open(self, item: JsonObject, out: list[Event]) -> None:
        super().open(item, out)
        self.announced = item

    def complete(self, item: JsonObject, out: list[Event]) -> None:
        if not self.done:
            super().open(item, out)
            self.announced = item
            self.close(out)

    def close(self, out: list[Event], *, complete: bool = True) -> None:
        # A call of a tool that only this dialect has is a call too: no client may execute an unfinished one.
        if not self.done and (complete or not self.type.endswith("_call")):
            out.append(UnknownContent(next(self.numbers), NAME, self.announced))
        self.done = True


_REASONING = frozenset({"type", "summary", "content", "encrypted_content", "status", "id"})
_CALL = frozenset({"type", "call_id", "name", "arguments", "status", "id"})


def carried_fields(item: JsonObject, known: frozenset[str]) -> JsonObject:
    """Return what the item says beside the fields that are read."""
    return {name: value for name, value in item.items() if name not in known and value is not None}


def carried_status(item: JsonObject, usual: str | None = "completed") -> JsonObject:
    """Return the status of a finished item where it is not the usual one: OpenAI's reasoning items have none."""
    status = item.get("status")
    return {} if status in (None, usual) else {"status": status}


def _id_of(item: JsonObject) -> str:
    id_given = item.get("id")
    return id_given if isinstance(id_given, str) and not is_made(id_given) else ""


class MessageItem(Item):
    """A message: text and refusals, each a block. What belongs to the whole message is carried by each under `item`."""

    kinds = frozenset({"output_text", "refusal"})

    def __init__(self, numbers: Iterator[int], style: str = "") -> None:
        super().__init__(numbers, style)
        self._meta: JsonObject = {}
        self._annotations: dict[int, list[JsonValue]] = {}
        self._unknown: set[int] = set()

    def open(self, item: JsonObject, out: list[Event]) -> None:
        super().open(item, out)
        self._meta = {**self._meta, **carried_fields(item, _MESSAGE)} | ({"id": self.id} if self.id else {})

    def part(self, kind: str, index: int, out: list[Event]) -> Part:
        part = self.parts.get((kind, index))
        if part is None:
            block = next(self.numbers)
            part = Part(block, partial(RefusalChunk if kind == "refusal" else ContentChunk, block))
            self.parts[kind, index] = part
            if kind == "refusal":
                # Fields alone would begin a text block.
                out.append(RefusalChunk(part.block, ""))
            if self._meta:
                out.append(BlockFields(part.block, NAME, {"item": self._meta}))
        return part

    def annotate(self, index: int, annotation: JsonValue, out: list[Event]) -> None:
        """Take an annotation that came beside the text."""
        self._annotations.setdefault(index, []).append(annotation)
        out.append(BlockFields(self.part("output_text", index, out).block, NAME, {"annotations": [annotation]}))

    def complete(self, item: JsonObject, out: list[Event]) -> None:
        self._learn(item, out)
        content = read(item, wire.OutputMessage).content
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

    def _learn(self, item: JsonObject, out: list[Event]) -> None:
        before = self._meta
        Item.open(self, item, out)
        self._meta = {**before, **carried_fields(item, _MESSAGE), **carried_status(item)} | (
            {"id": self.id} if self.id else {}
        )
        if self._meta != before:
            out.extend(BlockFields(part.block, NAME, {"item": self._meta}) for part in self.parts.values())

    def _complete_part(self, kind: str, index: int, raw: JsonObject, out: list[Event]) -> None:
        part = self.part(kind, index, out)
        part.settle(text_of(raw), out)
        if not part.said:
            part.add("", out)
        fields = (
            {}
            if self.done
            else {name: value for name, value in raw.items() if name not in _PART and value not in _EMPTY}
        )
        if missing := self._missing_annotations(index, list_of(read(raw, wire.OutputPart).annotations)):
            fields["annotations"] = missing
        if fields:
            out.append(BlockFields(part.block, NAME, fields))

    def _missing_annotations(self, index: int, finished: list[JsonValue]) -> list[JsonValue]:
        seen = self._annotations.get(index, [])
        agrees = finished[: len(seen)] == seen
        missing = finished[len(seen) :] if agrees else _unseen(seen, finished)
        self._annotations[index] = seen + missing
        return missing


def _unseen(seen: list[JsonValue], finished: list[JsonValue]) -> list[JsonValue]:
    """Return those that are finished and were not seen, told apart by what they say."""
    written = set(map(_JSON.encode, seen))
    return [item for item in finished if _JSON.encode(item) not in written]


def kind_of(part: JsonObject) -> str | None:
    """Return the kind of a part, or None for one bardo has no word for."""
    name = part.get("type")
    return PART_KINDS.get(name) if isinstance(name, str) else None


def text_of(part: JsonObject) -> str:
    """Return the text of a part of a message or of thinking; a missing one is empty. Raises WrongFrame."""
    told = read(part, wire.OutputPart)
    return words_of(told.refusal if told.type == "refusal" else told.text)


_JSON = msgspec.json.Encoder(order="deterministic")
_MESSAGE = frozenset({"type", "role", "content", "status", "id"})
_PART = frozenset({"type", "text", "refusal", "annotations"})
_EMPTY: tuple[JsonValue, ...] = (None, [], {})
