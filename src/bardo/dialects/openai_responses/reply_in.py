"""A provider's reply to events: whole bodies and streams through one path.

A whole body is the `response` object that also ends every stream, so its items are read by the same code. Plain deltas, which are nearly
all frames, are decoded to one small struct and given on at once; everything else takes the slow path.

The frame of a reply: who sent it, how it ended, what it used, and the fields bardo has no word for.

The items of a reply, found by whatever a server says of them: an index, an id, or only a kind.

A reply whose first frame tells which of OpenAI's two languages it is in.

Hosts of Responses answer for some models, and on some routes, in Chat Completions all the same (Bedrock's mantle, xAI).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
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
    text_of,
    words_of,
)
from bardo.dialects.openai_responses.usage import decode_usage
from bardo.dialects.openai_responses.wire import FORMAT, NAME
from bardo.dialects.shared.dialect import PlainReplyDecoder, ReplyDecoder
from bardo.dialects.shared.json_values import as_text, decode_leniently
from bardo.dialects.shared.tools import CallsInFrames
from bardo.dialects.shared.usage import token_count, tools_of_response
from bardo.streams.frames import Frame
from bardo.values.blocks import has_no_arguments
from bardo.values.errors import BrokenStream, MalformedReply
from bardo.values.events import Degraded, Event, Failed, Finish, FinishReason, ReplyFields, ReplyStart, UsageUpdate

LENGTH_WORDS = frozenset({"max_output_tokens", "max_tokens", "max_messages"})
REFUSAL_WORDS = frozenset({"content_filter"})


class ReplyFrame:
    """Collects the `response` objects of a reply. The first id stays: Copilot sends another one each time."""

    def __init__(self, row: ProviderRow) -> None:
        self._excludes_reasoning = row.quirks.output_excludes_reasoning
        self._start = ReplyStart()
        self._response: dict[str, Any] = {}
        self._fields_given = False

    def take(self, response: dict[str, Any], out: list[Event]) -> None:
        """Take a `response` object; what it says first, or says newly, is told."""
        self._response = response
        created = response.get("created_at")
        start = ReplyStart(
            id=self._start.id or _as_text(response.get("id")),
            model=_as_text(response.get("model")) or self._start.model,
            created=token_count(created) if self._start.created is None else self._start.created,
        )
        if start != self._start:
            self._start = start
            out.append(start)

    def end(
        self,
        status: str,
        additional: dict[str, Any],
        *,
        called: bool,
        others: Sequence[dict[str, Any]] = (),
        out: list[Event],
    ) -> None:
        """Take the end of the reply: fields, usage, and Finish or Failed. `others` are the items of the provider's own tools."""
        self.give_fields(out, additional)
        usage = self._response.get("usage")
        if usage is not None:
            tier, tools = self._response.get("service_tier"), tools_of_response(self._response, others)
            counts, doubts = decode_usage(fields_of(usage), self._excludes_reasoning, tier, tools)
            out.append(UsageUpdate(counts))
            out.extend(Degraded(doubt) for doubt in doubts)
        if status == "failed":
            out.append(Failed(refusal_in_reply(self._response.get("error"))))
        else:
            out.append(_finish(status, _incomplete_reason(self._response), called=called))

    def give_fields(self, out: list[Event], additional: dict[str, Any] | None = None) -> None:
        """Tell the reply's own fields, once: they are repeated and completed by each `response` object."""
        if self._fields_given or not self._response:
            return
        self._fields_given = True
        fields = {name: value for name, value in self._response.items() if name not in _READ}
        if isinstance(fields.get("reasoning"), str):
            # mistral.rs writes the thinking itself here; it was read as such.
            del fields["reasoning"]
        if _incomplete_reason(self._response) not in LENGTH_WORDS | REFUSAL_WORDS | {""}:
            fields["incomplete_details"] = self._response["incomplete_details"]
        out.append(ReplyFields(NAME, {**fields, **(additional or {})}))


_READ = frozenset(
    {"id", "object", "created_at", "model", "output", "output_text", "usage", "status", "error", "incomplete_details"}
)
"""`output_text` is a copy that some servers add."""


def _finish(status: str, why: str, *, called: bool) -> Finish:
    if status == "completed":
        return Finish("tool_calls" if called else "stop", status)
    reason: FinishReason = "length" if why in LENGTH_WORDS else "refusal" if why in REFUSAL_WORDS else "unknown"
    return Finish(reason if status == "incomplete" else "unknown", (status == "incomplete" and why) or status)


def _incomplete_reason(response: dict[str, Any]) -> str:
    details = response.get("incomplete_details")
    return _as_text(details.get("reason")) if isinstance(details, dict) else ""


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


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


class _Delta(msgspec.Struct, gc=False):
    """What must be known of a delta to give it on."""

    type: str = ""
    delta: str | None = None
    output_index: int = -1
    content_index: int = 0
    summary_index: int = 0


class _PlainDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A delta with all that it may hold to be forwarded without another look. `obfuscation` is random filler."""

    type: str
    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0
    item_id: str = ""
    sequence_number: int = 0
    logprobs: Annotated[list[Any], Meta(max_length=0)] = []
    obfuscation: str = ""


_DELTA = msgspec.json.Decoder(_Delta)
_PLAIN_DELTA = msgspec.json.Decoder(_PlainDelta)
_NO_PART = Part(-1, -1)


class OutputDecoder(PlainReplyDecoder):
    """Reads one reply."""

    def __init__(self, row: ProviderRow) -> None:
        self._frame = ReplyFrame(row)
        self._items = ItemTable(row.quirks.reasoning_format)
        self._live = _NO_PART
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
        try:
            delta = _DELTA.decode(item.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._feed_slowly(item.data, item.complete)
        return self._continued(delta) or self._feed_slowly(item.data, item.complete)

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the event of a delta that continues the same part as the one before."""
        try:
            delta = _PLAIN_DELTA.decode(item.data or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return None if self._over else self._continued(delta)

    def _continued(self, delta: _Delta | _PlainDelta) -> Sequence[Event] | None:
        live = self._live
        if (
            delta.type == live.delta_type
            and delta.output_index == live.output_index
            and delta.content_index == live.content_index
            and delta.summary_index == live.summary_index
            and delta.delta is not None
        ):
            live.pieces.append(delta.delta)
            return (live.event(delta.delta),)
        return None

    def finish(self) -> Sequence[Event]:
        """The bytes are over: a reply without its end is broken."""
        if self._over:
            return ()
        out: list[Event] = []
        self._break_off(Failed(BrokenStream("the stream ended before the reply was complete")), out)
        return out

    def _feed_slowly(self, data: bytes, complete: bool) -> Sequence[Event]:
        out: list[Event] = []
        try:
            if data.strip() not in (b"", b"[DONE]"):
                self._take(fields_of(decode_leniently(data, out)), out)
        except ValueError as problem:
            if complete:
                self._break_off(Failed(MalformedReply(f"the reply is not valid JSON: {problem}")), out)
        except WrongFrame as problem:
            if complete:
                self._break_off(Failed(MalformedReply(f"the reply is not of the Responses dialect: {problem}")), out)
        return out

    def _break_off(self, failed: Failed, out: list[Event]) -> None:
        self._over = True
        for item in self._items.all():
            item.close(out, complete=False)
        self._frame.give_fields(out)
        out.append(failed)

    def _take(self, value: dict[str, Any], out: list[Event]) -> None:
        name = value.get("type")
        if isinstance(name, str) and name in _TAKE:
            _TAKE[name](self, value, out)
        elif value.get("object") == "response" or isinstance(value.get("output"), list):
            self._end(value, _status(value, ""), {}, out)
        elif value.get("error") or isinstance(value.get("detail"), str):
            self._take_error(value, out)
        elif not isinstance(name, str) and value.get("usage"):
            self._end(value, "", {}, out)
        elif not isinstance(name, str):
            raise WrongFrame("neither an event nor a response")
        # Events of a server tool's progress say nothing that its finished item does not.

    def _take_opening(self, value: dict[str, Any], out: list[Event]) -> None:
        self._frame.take(fields_of(value.get("response")), out)

    def _take_ending(self, value: dict[str, Any], out: list[Event]) -> None:
        response = fields_of(value.get("response") or {})
        additional = {name: one for name, one in value.items() if name not in _ENVELOPE}
        self._end(response, _status(response, value["type"].rpartition(".")[2]), additional, out)

    def _end(self, response: dict[str, Any], status: str, additional: dict[str, Any], out: list[Event]) -> None:
        self._frame.take(response, out)
        self._take_flat_reasoning(response.get("reasoning"), out)
        for index, raw in enumerate(list_of(response.get("output"))):
            item = fields_of(raw)
            self._items.finished(index, item).complete(item, out)
        ended = status in ("completed", "incomplete")
        for held in self._items.all():
            held.close(out, complete=ended)
        called = self._items.holds(CallItem)
        self._frame.end(status, additional, called=called, others=self._items.others(), out=out)
        self._over = True

    def _take_flat_reasoning(self, text: Any, out: list[Event]) -> None:
        if isinstance(text, str) and text and not self._items.holds(ReasoningItem):
            self._items.add_reasoning().complete({"content": [text]}, out)

    def _take_thought(self, value: dict[str, Any], out: list[Event]) -> None:
        thought = value.get("thought")
        if isinstance(thought, str) and thought:
            self._items.add_reasoning().complete({"content": [thought + "\n\n"]}, out)

    def _take_added(self, value: dict[str, Any], out: list[Event]) -> None:
        # Some servers announce an item without saying which.
        if value.get("item") is not None:
            raw = fields_of(value["item"])
            self._items.item(index_of(value), raw).open(raw, out)

    def _take_done(self, value: dict[str, Any], out: list[Event]) -> None:
        if value.get("item") is not None:
            raw = fields_of(value["item"])
            self._items.item(index_of(value), raw).complete(raw, out)

    def _take_delta(self, value: dict[str, Any], out: list[Event]) -> None:
        part = self._part(DELTA_KINDS[value["type"]], value, out)
        part.add(words_of(value.get("delta")), out)
        self._follow(part, value)

    def _follow(self, part: Part, value: dict[str, Any]) -> None:
        self._live = _NO_PART
        if part.said and index_of(value) is not None:
            part.delta_type, part.output_index = value["type"], value["output_index"]
            part.content_index, part.summary_index = value.get("content_index", 0), value.get("summary_index", 0)
            self._live = part

    def _take_text_done(self, value: dict[str, Any], out: list[Event]) -> None:
        kind = DONE_KINDS[value["type"]]
        full = words_of(value.get(_DONE_FIELDS.get(kind, "text")))
        if full:
            self._part(kind, value, out).settle(full, out)

    def _take_part(self, value: dict[str, Any], out: list[Event]) -> None:
        raw = fields_of(value.get("part"))
        kind, full = kind_of(raw), text_of(raw)
        if kind is not None and full:
            self._part(kind, value, out).settle(full, out)

    def _take_annotation(self, value: dict[str, Any], out: list[Event]) -> None:
        item = self._items.holder("output_text", value, out)
        if isinstance(item, MessageItem):
            item.annotate(_number(value, "content_index"), value.get("annotation"), out)

    def _take_error(self, value: dict[str, Any], out: list[Event]) -> None:
        self._break_off(Failed(refusal_in_reply(value.get("error") or value)), out)

    def _part(self, kind: str, value: dict[str, Any], out: list[Event]) -> Part:
        index = _number(value, "summary_index" if kind == "summary_text" else "content_index")
        return self._items.holder(kind, value, out).part(kind, index, out)


def _number(value: dict[str, Any], name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) else 0


def _status(response: dict[str, Any], word: str) -> str:
    """Return how the reply ended. A whole body has only its status; in a stream, a status may not have been brought up to date."""
    status = response.get("status")
    if isinstance(status, str) and status and (status != "in_progress" or not word):
        return status
    return word if word in _ENDINGS else "completed"


_ENDINGS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_ENVELOPE = frozenset({"type", "sequence_number", "response"})
_DONE_FIELDS = {"refusal": "refusal", "arguments": "arguments"}
_TAKE: dict[str, Callable[[OutputDecoder, dict[str, Any], list[Event]], None]] = {
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


def _calls(payload: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the calls of a frame, of a response or of an event about one, with their places and the name of their id."""
    response = payload.get("response", payload)
    output = response.get("output") if isinstance(response, dict) else None
    placed = (
        enumerate(output) if isinstance(output, list) else iter([(payload.get("output_index"), payload.get("item"))])
    )
    for place, item in placed:
        if isinstance(place, int) and isinstance(item, dict) and item.get("type") in _CALLED:
            yield place, item, "call_id"


_CALLED = ("function_call", "custom_tool_call")
CALLS = CallsInFrames(b'_call"', _calls)


def tells_call(frame: bytes) -> bool:
    """Whether a frame tells all arguments of a call: before the item of the call ends, or as an item that is called incomplete itself."""
    return b"_arguments.done" in frame or (b"output_item.done" in frame and b'_call"' in frame)


def with_broken_calls(data: bytes) -> bytes:
    """Return the data of the frame that ends a reply which broke off inside a call: what is no complete call is called so in its output.

    That is a call whose arguments are no whole object, and the last item if it is a call that says nothing, or free text.
    """
    event = decode_leniently(data)
    response = event.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    broken = []
    for item in items:
        said = as_text(item.get("arguments")).strip()
        says_nothing = has_no_arguments(said) or said == "{}"
        if item.get("type") in _CALLED and (item is items[-1] if says_nothing else not _is_object(said)):
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
