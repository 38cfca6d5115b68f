"""A provider's reply to events: whole bodies and streams through one path.

A whole body is the `response` object that also ends every stream, so its items are read by the same code. Plain deltas, which are nearly
all frames, are decoded to one small struct and given on at once; everything else takes the slow path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bardo.catalog.rows import ProviderRow
from bardo.dialects.base import PlainReplyDecoder
from bardo.dialects.call_ids import CallsInFrames
from bardo.dialects.lenient import as_text, decode_leniently
from bardo.dialects.openai_responses.errors import refusal_in_reply
from bardo.dialects.openai_responses.reply_end import ReplyFrame
from bardo.dialects.openai_responses.reply_items import CallItem, ReasoningItem
from bardo.dialects.openai_responses.reply_message import MessageItem
from bardo.dialects.openai_responses.reply_parts import (
    DELTA_KINDS,
    DONE_KINDS,
    PART_EVENTS,
    Part,
    WrongFrame,
    fields_of,
    kind_of,
    list_of,
    text_of,
    words_of,
)
from bardo.dialects.openai_responses.reply_table import ItemTable, index_of
from bardo.streams.frames import Frame
from bardo.values.blocks import has_no_arguments
from bardo.values.errors import BrokenStream, MalformedReply
from bardo.values.events import Event, Failed


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
