"""Cohere's replies to events.

A stream is `message-start`, then blocks of content, a plan and calls, each with a start, deltas and an end (the plan has only deltas), and
`message-end` with the finish reason and the totals. A whole reply is the same said at once, and takes the same functions. Plain deltas are
decoded into typed structs; everything rarer goes a generic way.

Read the blocks of a streamed reply: Cohere's content, plan and calls to our numbered events.

Content and calls are each counted from 0 on the wire; the plan has no number, and goes on until something else is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.cohere.errors import refusal
from bardo.dialects.cohere.fast import ContentFrame, PlanFrame, decode_delta
from bardo.dialects.cohere.usage import decode_usage
from bardo.dialects.cohere.wire import NAME, PLAN, REASONS, THINKING
from bardo.dialects.shared.blocks import OpenBlock, add_piece, add_states
from bardo.dialects.shared.json_values import WrongShape, as_text, decode_leniently, excerpt, kind_of, want, without
from bardo.dialects.shared.states import unseal
from bardo.dialects.shared.tools import CallsInFrames
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)

Kind = Literal["text", "thinking", "call", "unknown"]


Block: TypeAlias = OpenBlock[Kind]


class Content:
    """The blocks of one reply. `open_blocks` and `calls` hold those not yet closed, by Cohere's index."""

    def __init__(self) -> None:
        self.open_blocks: dict[int, Block] = {}
        self.calls: dict[int, Block] = {}
        self.plan: int | None = None
        self._count = 0
        self._numbers: dict[int, int] = {}
        self._texts: list[int] = []
        self._plans: list[int] = []

    def open(self, index: int, item: dict[str, Any], out: list[Event]) -> None:
        """Begin a block of content with whatever it already holds."""
        self.close(index, out)
        self.end_plan(out)
        kind = _kind(item)
        block = self.open_blocks[index] = OpenBlock(self._fresh(), kind)
        self._numbers[index] = block.number
        if kind == "unknown":
            block.value = dict(item)
            return
        if kind == "thinking":
            out.append(ThinkStart(block.number, THINKING))
        else:
            self._texts.append(block.number)
        self.add(index, item, out)

    def add(self, index: int, item: dict[str, Any], out: list[Event]) -> None:
        """Add a piece of content; one that fits no open block begins its own."""
        block = self.open_blocks.get(index)
        kind = _kind(item, block)
        if block is None or block.kind != kind:
            self.open(index, {"type": kind, **item}, out)
            return
        if kind == "unknown":
            add_piece(block.value, item)
            return
        text = as_text(item.get(kind))
        if text:
            block.has_content = True
            out.append(ThinkChunk(block.number, text) if kind == "thinking" else ContentChunk(block.number, text))
        _add_fields(block.number, without(item, "type", kind), out)

    def close(self, index: int, out: list[Event]) -> None:
        """End a block of content, if it is open."""
        block = self.open_blocks.pop(index, None)
        if block is None:
            return
        if block.kind == "unknown":
            out.append(UnknownContent(block.number, NAME, block.value))
        elif block.kind == "thinking":
            out.append(ThinkEnd(block.number))
        elif not block.has_content:
            out.append(ContentChunk(block.number, ""))

    def add_plan(self, text: str, out: list[Event]) -> None:
        """Add a piece of the plan."""
        if self.plan is None:
            self.plan = self._fresh()
            self._plans.append(self.plan)
            out.append(ThinkStart(self.plan, PLAN))
        out.append(ThinkChunk(self.plan, text))

    def end_plan(self, out: list[Event]) -> None:
        """End the plan, if one goes on."""
        if self.plan is not None:
            out.append(ThinkEnd(self.plan))
            self.plan = None

    def open_call(self, index: int, call: dict[str, Any], out: list[Event]) -> None:
        """Begin a call."""
        self.close_call(index, out)
        self.end_plan(out)
        block = self.calls[index] = OpenBlock(self._fresh(), "call")
        function = fields_of(call.get("function") or {}, "function")
        out.append(ToolCallStart(block.number, as_text(call.get("id")), as_text(function.get("name"))))
        self.add_call(index, {**without(call, "id", "type"), "function": without(function, "name")}, out)

    def add_call(self, index: int, call: dict[str, Any], out: list[Event]) -> None:
        """Add a piece of a call. Raises WrongShape for one that nobody began."""
        if index not in self.calls:
            raise WrongShape(f"a piece of call {index}, which did not begin")
        block = self.calls[index]
        function = fields_of(call.get("function") or {}, "function")
        if arguments := as_text(function.get("arguments")):
            block.has_content = True
            out.append(ToolCallChunk(block.number, arguments))
        rest = without(function, "arguments")
        _add_fields(block.number, {**without(call, "function"), **({"function": rest} if rest else {})}, out)

    def close_call(self, index: int, out: list[Event]) -> None:
        """End a call, if it is open."""
        block = self.calls.pop(index, None)
        if block is None:
            return
        if not block.has_content:
            out.append(ToolCallChunk(block.number, "{}"))
        out.append(ToolCallEnd(block.number))

    def cite(self, citation: Any, out: list[Event]) -> None:
        """Add a citation to the block it is about: the plan, the content it counts to, else the last text."""
        fields = citation if isinstance(citation, dict) else {}
        index = fields.get("content_index")
        number = self._numbers.get(index) if isinstance(index, int) else None
        if fields.get("type") == "PLAN" and self._plans:
            number = self._plans[-1]
        if number is None and self._texts:
            number = self._texts[-1]
        if number is None:
            out.append(ReplyFields(NAME, {"citations": [citation]}, choice=0))
        else:
            out.append(BlockFields(number, NAME, {"citations": [citation]}))

    def close_all(self, out: list[Event], *, complete: bool = True) -> None:
        """End all blocks that are open. `complete` False: the reply broke off, and no call is ended."""
        self.end_plan(out)
        for index in sorted(self.open_blocks):
            self.close(index, out)
        for index in sorted(self.calls) if complete else ():
            self.close_call(index, out)

    def flush(self, out: list[Event]) -> None:
        """Return what is held of blocks that will not be finished, without saying that they are."""
        for block in self.open_blocks.values():
            if block.kind == "unknown":
                out.append(UnknownContent(block.number, NAME, block.value))
        self.open_blocks.clear()

    def _fresh(self) -> int:
        self._count += 1
        return self._count - 1


def _add_fields(number: int, fields: dict[str, Any], out: list[Event]) -> None:
    """Add fields that decorate a block; opaque state that bardo sealed is opened."""
    signature = fields.get("signature")
    states = unseal(signature) if isinstance(signature, str) else None
    if states is not None:
        add_states(number, states, out)
        fields = without(fields, "signature")
    if fields:
        out.append(BlockFields(number, NAME, fields))


def fields_of(value: Any, what: str) -> dict[str, Any]:
    """Return an object; where a list stands with just one in it, that one. Raises WrongShape."""
    return want(value[0] if isinstance(value, list) and len(value) == 1 else value, dict, what)


def _kind(item: dict[str, Any], block: Block | None = None) -> Kind:
    """Return what kind of content a block or a piece of one is; a piece says it only by its names."""
    named_kind = item.get("type")
    if named_kind is None:
        known = block.kind if block is not None else "unknown"
        if known == "unknown" and block is not None:
            return known
        named: list[Kind] = [kind for kind in ("text", "thinking") if isinstance(item.get(kind), str)]
        return known if known in named or not named else named[0]
    return named_kind if named_kind in ("text", "thinking") else "unknown"


_STATUSES = {"TIMEOUT": 504}
_MESSAGE = ("role", "content", "tool_plan", "tool_calls", "citations")


class Decoder:
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._content = Content()
        self._called = False
        self._begun = False
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._over

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._over

    def feed(self, item: Frame) -> list[Event]:
        """Return what the frame says. Never raises: what cannot be read ends the reply with Failed."""
        data = item.data
        if data is None or self._over:
            return []
        try:
            frame = decode_delta(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._feed_rare(item, data)
        content = self._content
        if isinstance(frame, ContentFrame):
            block = content.open_blocks.get(frame.index)
            piece = frame.delta.message.content
            if block is not None and block.kind == "text" and piece.text and piece.thinking is None:
                block.has_content = True
                return [ContentChunk(block.number, piece.text)]
            if block is not None and block.kind == "thinking" and piece.thinking and piece.text is None:
                return [ThinkChunk(block.number, piece.thinking)]
        elif isinstance(frame, PlanFrame):
            if content.plan is not None:
                return [ThinkChunk(content.plan, frame.delta.message.tool_plan)]
        elif (call := content.calls.get(frame.index)) is not None:
            call.has_content = True
            return [ToolCallChunk(call.number, frame.delta.message.tool_calls.function.arguments)]
        return self._feed_rare(item, data)

    def finish(self) -> list[Event]:
        """Close the reply. One that has not come to its end is broken."""
        if self._over:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._row.id))

    def _feed_rare(self, item: Frame, data: bytes) -> list[Event]:
        out: list[Event] = []
        try:
            payload = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # Half a frame at the end of a stream says nothing; `[DONE]` comes after the end.
            if not item.complete or data.strip() in (b"", b"[DONE]"):
                return []
            return self._malformed(out, f"no JSON: {excerpt(data, 80)}")
        if not isinstance(payload, dict):
            return self._malformed(out, f"it is {kind_of(payload)}")
        try:
            self._read(payload, item.event, out)
        except WrongShape as problem:
            return self._malformed(out, str(problem))
        return out

    def _read(self, payload: dict[str, Any], event: str, out: list[Event]) -> None:
        kind = as_text(payload.get("type")) or event
        delta = fields_of(payload.get("delta") or {}, "delta")
        if not kind and isinstance(payload.get("message"), dict):
            self._whole(payload, out)
        elif not kind and not payload.get("message") and payload.get("usage") and not payload.get("error"):
            # A body without a message holds nothing, however it says that it ended; it was billed all the same.
            self._whole({**without(payload, "finish_reason"), "message": {}}, out)
        elif kind == "error" or payload.get("error") or (not kind and "message" in payload):
            self._fail(out, refusal(payload, provider=self._row.id))
        elif kind == "message-start":
            self._start(payload, out)
            self._message(_inner(delta, "message"), out)
        elif kind == "message-end":
            self._carry(without(payload, "type", "id", "delta"), out)
            self._carry(_inner(delta, "message"), out, choice=0)
            self._end(delta, out)
        elif kind:
            self._piece(kind, payload, _inner(delta, "message"), out)
        else:
            raise WrongShape("it has neither a type nor a message")

    def _piece(self, kind: str, payload: dict[str, Any], message: dict[str, Any], out: list[Event]) -> None:
        content, index = self._content, payload.get("index")
        place = index if isinstance(index, int) else 0
        rest = without(payload, "type", "index", "delta")
        # A score goes with the piece it is of, and may stand for many tokens.
        if (score := rest.pop("logprobs", None)) is not None:
            self._carry({"logprobs": score if isinstance(score, list) else [score]}, out)
        if kind in ("content-start", "content-delta"):
            for piece in _pieces(message.get("content")):
                (content.open if kind == "content-start" else content.add)(place, piece, out)
        elif kind == "content-end":
            content.close(place, out)
        elif kind == "tool-plan-delta":
            content.add_plan(as_text(message.get("tool_plan")), out)
        elif kind == "tool-call-start":
            self._called = True
            content.open_call(place, fields_of(message.get("tool_calls"), "tool_calls"), out)
        elif kind == "tool-call-delta":
            content.add_call(place, fields_of(message.get("tool_calls"), "tool_calls"), out)
        elif kind == "tool-call-end":
            content.close_call(place, out)
        elif kind == "citation-start":
            for citation in _as_list(message.get("citations")):
                content.cite(citation, out)
        elif kind != "citation-end":
            rest = {kind: [without(payload, "type")]}
        self._carry(rest, out)

    def _start(self, payload: dict[str, Any], out: list[Event]) -> None:
        self._begun = True
        out.append(ReplyStart(id=as_text(payload.get("id")), model=as_text(payload.get("model"))))
        self._carry(without(payload, "type", "id", "model", "delta"), out)

    def _message(self, message: dict[str, Any], out: list[Event]) -> None:
        """Read a message, or what of one stands in its start: the thinking, the plan that follows it, the rest, and calls."""
        content = self._content
        items = _pieces(message.get("content"))
        thought = len(list(takewhile(lambda item: item.get("type") == "thinking", items)))
        for index, item in enumerate(items):
            if index == thought:
                self._plan(message, out)
            content.open(index, item, out)
            content.close(index, out)
        if thought == len(items):
            self._plan(message, out)
        for index, call in enumerate(_as_list(message.get("tool_calls"))):
            self._called = True
            content.open_call(index, fields_of(call, "a call"), out)
            content.close_call(index, out)
        for citation in _as_list(message.get("citations")):
            content.cite(citation, out)
        self._carry(without(message, *_MESSAGE), out, choice=0)

    def _plan(self, message: dict[str, Any], out: list[Event]) -> None:
        if plan := as_text(message.get("tool_plan")):
            self._content.add_plan(plan, out)
            self._content.end_plan(out)

    def _whole(self, payload: dict[str, Any], out: list[Event]) -> None:
        ends = ("finish_reason", "usage", "error", "error_type")
        head = {name: value for name, value in payload.items() if name not in (*ends, "message")}
        self._start(head, out)
        self._message(payload["message"], out)
        self._end({name: payload[name] for name in ends if name in payload}, out)

    def _end(self, delta: dict[str, Any], out: list[Event]) -> None:
        word = as_text(delta.get("finish_reason"))
        reason = REASONS.get(word, "unknown") if word else "tool_calls" if self._called else "unknown"
        broke = reason == "error" or bool(delta.get("error"))
        self._content.close_all(out, complete=not broke)
        self._over = True
        usage = delta.get("usage")
        if isinstance(usage, dict) and usage:
            counted, doubts = decode_usage(usage, excludes_reasoning=self._row.quirks.output_excludes_reasoning)
            out.append(UsageUpdate(counted))
            out.extend(Degraded(doubt) for doubt in doubts)
        self._carry(without(delta, "finish_reason", "usage", "error", "error_type", "code", "message"), out)
        if word and word not in REASONS:
            self._carry({"finish_reason": word}, out)
        out.append(Finish(reason, word))
        if broke:
            value = delta if delta.get("error") else {"error": f"the reply ended with {word}"}
            status = _STATUSES.get(word, 502)
            out.append(Failed(refusal(value, provider=self._row.id, status=status)))

    @staticmethod
    def _carry(fields: dict[str, Any], out: list[Event], *, choice: int | None = None) -> None:
        if fields:
            out.append(ReplyFields(NAME, fields, choice))

    def _malformed(self, out: list[Event], problem: str) -> list[Event]:
        return self._fail(out, MalformedReply(f"the reply is not a Cohere message: {problem}", provider=self._row.id))

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._content.flush(out)
        self._over = True
        out.append(Failed(error))
        return out


def _inner(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return {} if value is None else fields_of(value, name)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _pieces(content: Any) -> list[dict[str, Any]]:
    """Return the items of content: a list of them, one alone, or plain text. Text beside thinking is two."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    items = [fields_of(item, "content") for item in _as_list(content)]
    return [piece for item in items for piece in _parted(item)]


def _parted(item: dict[str, Any]) -> list[dict[str, Any]]:
    if "type" in item or not (item.get("text") and item.get("thinking")):
        return [item]
    return [{"thinking": item["thinking"]}, without(item, "thinking")]


def _calls(payload: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the calls of a reply or of an event that begins one, with their places and the name of their id."""
    holder = payload.get("delta", payload)
    message = holder.get("message") if isinstance(holder, dict) else None
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    begins = payload.get("type") == "tool-call-start"
    for place, call in (
        enumerate(calls) if isinstance(calls, list) else [(payload.get("index"), calls)] if begins else ()
    ):
        if isinstance(place, int) and isinstance(call, dict):
            yield place, call, "id"


CALLS = CallsInFrames(b'"tool_calls"', _calls)
