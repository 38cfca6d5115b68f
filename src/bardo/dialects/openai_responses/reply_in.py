"""A provider's reply to events: whole bodies and streams through one path.

A whole body is the `response` object that also ends every stream, so its items are read by the same code. Plain deltas, which are nearly
all frames, are one decode each. Hosts of Responses answer for some models, and on some routes, in Chat Completions all the same (Bedrock's
mantle, xAI): the first frame of a reply tells which language it is in.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.openai_responses import wire
from bardo.dialects.openai_responses.errors import refusal_in_reply
from bardo.dialects.openai_responses.reply_items import (
    DELTA_KINDS,
    DONE_KINDS,
    PART_EVENTS,
    CallItem,
    Item,
    MessageItem,
    OtherItem,
    Part,
    ReasoningItem,
    WrongFrame,
    fields_of,
    kind_of,
    list_of,
    read,
    text_of,
    text_or_none,
    words_of,
)
from bardo.dialects.openai_responses.usage import decode_usage
from bardo.dialects.openai_responses.wire import FORMAT, NAME
from bardo.dialects.shared.dialect import PlainReplyDecoder, ReplyDecoder
from bardo.dialects.shared.json_values import JsonObject, as_text, decode_leniently
from bardo.dialects.shared.tools import CallsInFrames
from bardo.dialects.shared.usage import token_count, tools_of_response
from bardo.streams.frames import Frame
from bardo.values.blocks import has_no_arguments
from bardo.values.errors import BrokenStream, MalformedReply
from bardo.values.events import Degraded, Event, Failed, Finish, FinishReason, ReplyFields, ReplyStart, UsageUpdate

LENGTH_WORDS = frozenset({"max_output_tokens", "max_tokens", "max_messages"})
REFUSAL_WORDS = frozenset({"content_filter"})
_ENDINGS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_ENVELOPE = frozenset({"type", "sequence_number", "response"})
_DONE_FIELDS = {"refusal": "refusal", "arguments": "arguments"}
_READ = frozenset(
    {"id", "object", "created_at", "model", "output", "output_text", "usage", "status", "error", "incomplete_details"}
)
"""The fields of a response that are not carried. `output_text` is a copy that some servers add."""
_DELTA = msgspec.json.Decoder(wire.Delta)


class _Live(NamedTuple):
    """The part that the last delta was of, and what the next delta says if it is of the same."""

    part: Part
    type: str
    output_index: int
    content_index: int
    summary_index: int


class OutputDecoder(PlainReplyDecoder):
    """Reads one reply."""

    def __init__(self, row: ProviderRow) -> None:
        self._excludes_reasoning = row.quirks.output_excludes_reasoning
        self._items = ItemTable(row.quirks.reasoning_format)
        self._live: _Live | None = None
        self._start = ReplyStart()
        self._response: JsonObject = {}
        self._why = ""
        self._fields_given = False
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._over

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._over

    def feed(self, item: Frame) -> Sequence[Event]:
        """Take one frame. Never raises: what cannot be read ends the reply with Failed."""
        if item.data is None or self._over:
            return ()
        plain = self.read_plain_frame(item)
        if plain is not None:
            return plain
        out: list[Event] = []
        try:
            if item.data.strip() not in (b"", b"[DONE]"):
                self._take(fields_of(decode_leniently(item.data, out)), out)
        except ValueError as problem:
            if item.complete:
                self._break_off(Failed(MalformedReply(f"the reply is not valid JSON: {problem}")), out)
        except WrongFrame as problem:
            if item.complete:
                self._break_off(Failed(MalformedReply(f"the reply is not of the Responses dialect: {problem}")), out)
        return out

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the event of a delta that continues the same part as the one before; None for any other frame."""
        live = self._live
        if live is None or self._over:
            return None
        try:
            delta = _DELTA.decode(item.data or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if (
            delta.type != live.type
            or delta.output_index != live.output_index
            or delta.content_index != live.content_index
            or delta.summary_index != live.summary_index
        ):
            return None
        live.part.streamed.add(delta.delta)
        return (live.part.event(delta.delta),)

    def finish(self) -> Sequence[Event]:
        """The bytes are over: a reply without its end is broken."""
        out: list[Event] = []
        if not self._over:
            self._break_off(Failed(BrokenStream("the stream ended before the reply was complete")), out)
        return out

    def _break_off(self, failed: Failed, out: list[Event]) -> None:
        self._over = True
        for item in self._items.all():
            item.close(out, complete=False)
        self._give_fields({}, out)
        out.append(failed)

    def _take(self, frame: JsonObject, out: list[Event]) -> None:
        name = frame.get("type")
        if isinstance(name, str) and name in _TAKE:
            _TAKE[name](self, frame, out)
        elif frame.get("object") == "response" or isinstance(frame.get("output"), list):
            self._end(frame, "", {}, out)
        elif frame.get("error") or isinstance(frame.get("detail"), str):
            self._take_error(frame, out)
        elif not isinstance(name, str):
            if not frame.get("usage"):
                raise WrongFrame("neither an event nor a response")
            self._end(frame, None, {}, out)
        # Events of a server tool's progress say nothing that its finished item does not.

    def _take_opening(self, frame: JsonObject, out: list[Event]) -> None:
        response = fields_of(frame.get("response"))
        self._learn(response, read(response, wire.OutputResponse), out)

    def _take_ending(self, frame: JsonObject, out: list[Event]) -> None:
        beside = {name: value for name, value in frame.items() if name not in _ENVELOPE}
        self._end(fields_of(frame.get("response") or {}), frame["type"].rpartition(".")[2], beside, out)

    def _learn(self, response: JsonObject, told: wire.OutputResponse, out: list[Event]) -> None:
        """Take a `response` object; what it says first, or says newly, is told. The first id stays: Copilot sends another one each time."""
        self._response = response
        self._why = (told.incomplete_details.reason if told.incomplete_details is not None else None) or ""
        start = ReplyStart(
            id=self._start.id or told.id or "",
            model=told.model or self._start.model,
            created=token_count(told.created_at) if self._start.created is None else self._start.created,
        )
        if start != self._start:
            self._start = start
            out.append(start)

    def _end(self, response: JsonObject, word: str | None, beside: JsonObject, out: list[Event]) -> None:
        """Take the finished response: its items, its fields and those `beside` it, usage, and how it ended.

        `word` is that of its event, empty for a whole body, or None if nothing says that it is a response.
        """
        told = read(response, wire.OutputResponse)
        self._learn(response, told, out)
        if isinstance(told.reasoning, str) and told.reasoning and not self._items.holds(ReasoningItem):
            # mistral.rs writes the thinking itself here.
            self._items.add_reasoning().complete({"content": [told.reasoning]}, out)
        for index, raw in enumerate(list_of(told.output)):
            item = fields_of(raw)
            self._items.finished(index, item).complete(item, out)
        # A whole body has only its status; in a stream, a status may not have been brought up to date.
        status = told.status
        if word is None:
            status = ""
        elif not status or (status == "in_progress" and word):
            status = word if word in _ENDINGS else "completed"
        for held in self._items.all():
            held.close(out, complete=status in ("completed", "incomplete"))
        self._give_fields(beside, out)
        if told.usage is not None:
            tools = tools_of_response(response, self._items.others())
            counts, doubts = decode_usage(fields_of(told.usage), self._excludes_reasoning, told.service_tier, tools)
            out.append(UsageUpdate(counts))
            out.extend(Degraded(doubt) for doubt in doubts)
        if status == "failed":
            out.append(Failed(refusal_in_reply(told.error)))
        elif status == "completed":
            out.append(Finish("tool_calls" if self._items.holds(CallItem) else "stop", status))
        elif status == "incomplete":
            why = self._why
            reason: FinishReason = "length" if why in LENGTH_WORDS else "refusal" if why in REFUSAL_WORDS else "unknown"
            out.append(Finish(reason, why or status))
        else:
            out.append(Finish("unknown", status))
        self._over = True

    def _give_fields(self, beside: JsonObject, out: list[Event]) -> None:
        """Tell the reply's own fields, once: they are repeated and completed by each `response` object."""
        if self._fields_given or not self._response:
            return
        self._fields_given = True
        fields = {name: value for name, value in self._response.items() if name not in _READ}
        if isinstance(fields.get("reasoning"), str):
            del fields["reasoning"]
        if self._why and self._why not in LENGTH_WORDS and self._why not in REFUSAL_WORDS:
            fields["incomplete_details"] = self._response["incomplete_details"]
        out.append(ReplyFields(NAME, {**fields, **beside}))

    def _take_thought(self, frame: JsonObject, out: list[Event]) -> None:
        thought = frame.get("thought")
        if isinstance(thought, str) and thought:
            self._items.add_reasoning().complete({"content": [thought + "\n\n"]}, out)

    def _take_added(self, frame: JsonObject, out: list[Event]) -> None:
        # Some servers announce an item without saying which.
        if frame.get("item") is not None:
            item = fields_of(frame["item"])
            self._items.item(read(frame, wire.Place).output_index, item).open(item, out)

    def _take_done(self, frame: JsonObject, out: list[Event]) -> None:
        if frame.get("item") is not None:
            item = fields_of(frame["item"])
            self._items.item(read(frame, wire.Place).output_index, item).complete(item, out)

    def _take_delta(self, frame: JsonObject, out: list[Event]) -> None:
        name, place = frame["type"], read(frame, wire.Place)
        index, live = place.output_index, self._live
        if live is not None and live[1:] == (name, index, place.content_index, place.summary_index):
            part = live.part
        else:
            part = self._part(DELTA_KINDS[name], place, out)
        part.add(words_of(frame.get("delta")), out)
        followed = part.said and index is not None
        self._live = _Live(part, name, index or 0, place.content_index, place.summary_index) if followed else None

    def _take_text_done(self, frame: JsonObject, out: list[Event]) -> None:
        kind = DONE_KINDS[frame["type"]]
        full = words_of(frame.get(_DONE_FIELDS.get(kind, "text")))
        if full:
            self._part(kind, read(frame, wire.Place), out).settle(full, out)

    def _take_part(self, frame: JsonObject, out: list[Event]) -> None:
        part = fields_of(frame.get("part"))
        kind, full = kind_of(part), text_of(part)
        if kind is not None and full:
            self._part(kind, read(frame, wire.Place), out).settle(full, out)

    def _take_annotation(self, frame: JsonObject, out: list[Event]) -> None:
        place = read(frame, wire.Place)
        item = self._items.holder("output_text", place, out)
        if isinstance(item, MessageItem):
            item.annotate(place.content_index, frame.get("annotation"), out)

    def _take_error(self, frame: JsonObject, out: list[Event]) -> None:
        self._break_off(Failed(refusal_in_reply(frame.get("error") or frame)), out)

    def _part(self, kind: str, place: wire.Place, out: list[Event]) -> Part:
        index = place.summary_index if kind == "summary_text" else place.content_index
        return self._items.holder(kind, place, out).part(kind, index, out)


_TAKE: dict[str, Callable[[OutputDecoder, JsonObject, list[Event]], None]] = {
    "error": OutputDecoder._take_error,
    "response.output_item.added": OutputDecoder._take_added,
    "response.output_item.done": OutputDecoder._take_done,
    "response.output_text.annotation.added": OutputDecoder._take_annotation,
    **dict.fromkeys(("response.created", "response.queued", "response.in_progress"), OutputDecoder._take_opening),
    **dict.fromkeys(
        ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"),
        OutputDecoder._take_ending,
    ),
    # What an agent of Perplexity thinks at each of its steps: perplexityai 0.46.1, types/response_stream_chunk.py.
    **dict.fromkeys(
        (
            "response.reasoning.started",
            "response.reasoning.search_queries",
            "response.reasoning.search_results",
            "response.reasoning.fetch_url_queries",
            "response.reasoning.fetch_url_results",
            "response.reasoning.stopped",
        ),
        OutputDecoder._take_thought,
    ),
    **dict.fromkeys(DELTA_KINDS, OutputDecoder._take_delta),
    **dict.fromkeys(DONE_KINDS, OutputDecoder._take_text_done),
    **dict.fromkeys(PART_EVENTS, OutputDecoder._take_part),
}

_ITEMS: dict[str, type[Item]] = {"message": MessageItem, "reasoning": ReasoningItem, "function_call": CallItem}


class ItemTable:
    """The items of one reply, found by whatever a server says of them: an index, an id, or only a kind.

    They stand by their output index; an item whose index is not known has a negative one. `style` is whose reasoning they hold.
    """

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

    def others(self) -> list[JsonObject]:
        """Return the items that bardo has no word for, as they were told last."""
        return [item.announced for item in self._items.values() if isinstance(item, OtherItem)]

    def add_reasoning(self) -> Item:
        """Return a new reasoning item that stands in no list."""
        return self._add(None, ReasoningItem)

    def holder(self, kind: str, place: wire.Place, out: list[Event]) -> Item:
        """Return the item a text belongs to: by index, by id, else the latest that can hold it, else a new one."""
        index = place.output_index
        item = None if index is None else self._items.get(index)
        if item is not None and kind in item.kinds:
            return item
        able = next(item for item in _ITEMS.values() if kind in item.kinds)
        holder = self._with_id(able, place.item_id)
        if holder is None and index is None:
            holder = self._latest.get(kind)
        if holder is None:
            holder = self._add(index, able)
            holder.open({"id": place.item_id}, out)
        return holder

    def item(self, index: int | None, raw: JsonObject) -> Item:
        """Return the item an event of items is about, begun where it is new."""
        kind = _kind(raw)
        if index is not None:
            item = self._items.get(index)
        else:
            waiting = self._unfinished_of.get(kind)
            while waiting and waiting[0].done:
                waiting.popleft()
            item = self._with_id(kind, text_or_none(raw.get("id"))) or (waiting[0] if waiting else None)
        if item is None or type(item) is not kind or (kind is OtherItem and item.type != _type(raw)):
            item = self._add(index, kind)
        return item

    def finished(self, index: int, raw: JsonObject) -> Item:
        """Return the item that the finished response lists at `index`."""
        kind = _kind(raw)
        held = self._in_order[index : index + 1]
        unnumbered = next((item for key, item in held if key < 0 and type(item) is kind), None)
        return self._with_id(kind, text_or_none(raw.get("id"))) or unnumbered or self.item(index, raw)

    def _with_id(self, kind: type[Item], item_id: str | None) -> Item | None:
        return self._by_id.get((kind, item_id)) if item_id else None

    def _add(self, index: int | None, kind: type[Item]) -> Item:
        item = kind(self._numbers, self._style)
        item.by_id = self._by_id
        key = index if index is not None and index not in self._items else -1 - len(self._items)
        self._items[key] = item
        self._in_order.append((key, item))
        self._unfinished_of.setdefault(kind, deque()).append(item)
        self._latest.update(dict.fromkeys(kind.kinds, item))
        return item


def _kind(raw: JsonObject) -> type[Item]:
    return _ITEMS.get(_type(raw), OtherItem)


def _type(raw: JsonObject) -> str:
    return text_or_none(raw.get("type")) or ""


def _calls(payload: JsonObject) -> Iterator[tuple[int, JsonObject, str]]:
    """Yield the calls of a frame, of a response or of an event about one, with their places and the name of their id."""
    response = payload.get("response", payload)
    output = response.get("output") if isinstance(response, dict) else None
    numbered = (
        enumerate(output) if isinstance(output, list) else iter([(payload.get("output_index"), payload.get("item"))])
    )
    for place, item in numbered:
        if isinstance(place, int) and isinstance(item, dict) and item.get("type") in _CALLED:
            yield place, item, "call_id"


_CALLED = ("function_call", "custom_tool_call")
CALLS = CallsInFrames(b'_call"', _calls)


def tells_call(frame: bytes) -> bool:
    """Whether a frame tells all arguments of a call: before the item of the call ends, or as an item that is called incomplete itself."""
    told = _TELLS_ARGUMENTS.search(frame)
    return told is not None and (told[1] != b"output_item" or _IS_CALL.search(frame) is not None)


# Quotes of what the model says are escaped.
_TELLS_ARGUMENTS = re.compile(rb'"type"\s*:\s*"response\.(output_item|\w+_arguments)\.done"')
_IS_CALL = re.compile(rb'"type"\s*:\s*"\w+_call"')


def with_broken_calls(data: bytes) -> bytes:
    """Return the data of the frame that ends a reply which broke off inside a call: an incomplete call is marked so in its output.

    That is a call whose arguments are no whole object, and the last item if it is a call that says nothing, or free text.
    """
    event = decode_leniently(data)
    response = event.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    broken = []
    for item in items:
        arguments = as_text(item.get("arguments")).strip()
        says_nothing = has_no_arguments(arguments) or arguments == "{}"
        if item.get("type") in _CALLED and (item is items[-1] if says_nothing else not _is_object(arguments)):
            broken.append(item)
    if all(item.get("status") == "incomplete" for item in broken):
        return data
    for item in broken:
        item["status"] = "incomplete"
    return msgspec.json.encode(event)


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


class DetectedDialectReply(PlainReplyDecoder):
    """Reads one reply in the language it turns out to be in."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._reader: ReplyDecoder | None = None

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._reader is not None and self._reader.over

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._reader is not None and self._reader.complete

    def feed(self, item: Frame) -> Sequence[Event]:
        """Return what the frame says."""
        if self._reader is None:
            if item.data is None:
                return ()
            self._reader = self._choose(item.data)
        return self._reader.feed(item)

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the event of a frame that only continues what the one before said."""
        reader = self._reader
        return reader.read_plain_frame(item) if type(reader) is OutputDecoder else None

    def finish(self) -> Sequence[Event]:
        """Close the reply."""
        return (self._reader or OutputDecoder(self._row)).finish()

    def _choose(self, data: bytes) -> ReplyDecoder:
        return dialect("openai_chat").open_decoder(self._row) if _is_chat(data) else OutputDecoder(self._row)


def _is_chat(data: bytes) -> bool:
    if b'"choices"' not in data:
        return False
    try:
        body = decode_leniently(data)
    except ValueError:
        return False
    return isinstance(body, dict) and isinstance(body.get("choices"), list) and "output" not in body
