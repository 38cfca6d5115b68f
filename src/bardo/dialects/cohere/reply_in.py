"""Cohere's replies to events.

A stream is `message-start`, then blocks of content, a plan and calls, each with a start, deltas and an end (the plan has only deltas), and
`message-end` with the finish reason and the totals. A whole reply is the same said at once, and takes the same functions. What the structs
do not allow is brought into them as far as it can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.cohere import wire
from bardo.dialects.cohere.errors import refusal
from bardo.dialects.cohere.usage import decode_usage
from bardo.dialects.cohere.wire import NAME, PLAN, REASONS, THINKING, Piece
from bardo.dialects.shared.blocks import OpenBlock, add_piece, add_states
from bardo.dialects.shared.json_values import (
    JsonObject,
    WrongShape,
    as_text,
    decode_leniently,
    excerpt,
    kind_of,
    want,
    without,
)
from bardo.dialects.shared.states import unseal
from bardo.dialects.shared.structs import Others, Wire, as_it_came, carried_fields
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

_decode_frame = msgspec.json.Decoder(wire.Frame).decode
_decode_reply = msgspec.json.Decoder(wire.Reply).decode
_STATUSES = {"TIMEOUT": 504}


class Decoder:
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._content = _Content()
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
        out: list[Event] = []
        try:
            frame = _decode_frame(data) if item.event or self._begun else _decode_reply(data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self._feed_leniently(item, data, out)
        if frame.__class__ is wire.ContentDelta and frame.logprobs is None:
            # Nearly all frames are such.
            piece = frame.delta.message.content
            if piece.text is None or piece.thinking is None:
                self._content.add(frame.index, piece, out)
                return out
        try:
            self._read(frame, out)
        except WrongShape as problem:
            self._malformed(out, str(problem))
        return out

    def finish(self) -> list[Event]:
        """Close the reply. One that has not come to its end is broken."""
        if self._over:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._row.id))

    def _read(self, frame: wire.Frame | wire.Reply, out: list[Event]) -> None:
        """Add what a frame says. Raises WrongShape for a piece of a call that did not begin."""
        step = _STEPS.get(frame.__class__)
        if step is None:
            self._read_edge(frame, out)
            return
        assert isinstance(frame, wire.Step)
        if frame.logprobs is not None:
            # A score goes with the piece it is of, and may stand for many tokens.
            out.append(ReplyFields(NAME, {"logprobs": _as_list(frame.logprobs)}))
        step(self, frame, out)
        if frame.others is not None:
            self._carry(frame, out)

    def _read_edge(self, frame: wire.Frame | wire.Reply, out: list[Event]) -> None:
        """Add what the first or the last frame says, or a whole reply."""
        if isinstance(frame, wire.MessageEnd):
            self._carry(frame, out)
            self._end(frame.delta, out)
            return
        assert isinstance(frame, wire.Reply | wire.MessageStart)
        self._begun = True
        out.append(ReplyStart(id=as_text(frame.id), model=as_text(frame.model)))
        self._carry(frame, out)
        if isinstance(frame, wire.Reply):
            self._message(frame.message, out)
            self._end(wire.End(finish_reason=frame.finish_reason, usage=frame.usage), out)
        elif isinstance(frame, wire.MessageStart) and frame.delta is not None:
            self._message(frame.delta.message, out)

    def _content_start(self, frame: wire.ContentStart, out: list[Event]) -> None:
        for piece in _pieces(frame.delta.message.content):
            self._content.open(frame.index, piece, out)

    def _content_delta(self, frame: wire.ContentDelta, out: list[Event]) -> None:
        for piece in _pieces(frame.delta.message.content):
            self._content.add(frame.index, piece, out)

    def _content_end(self, frame: wire.ContentEnd, out: list[Event]) -> None:
        self._content.close(frame.index, out)

    def _tool_plan_delta(self, frame: wire.ToolPlanDelta, out: list[Event]) -> None:
        self._content.add_plan(as_text(frame.delta.message.tool_plan), out)

    def _tool_call_start(self, frame: wire.ToolCallStart, out: list[Event]) -> None:
        self._called = True
        self._content.open_call(frame.index, _call(frame.delta.message.tool_calls, "tool_calls"), out)

    def _tool_call_delta(self, frame: wire.ToolCallDelta, out: list[Event]) -> None:
        self._content.add_call(frame.index, _call(frame.delta.message.tool_calls, "tool_calls"), out)

    def _tool_call_end(self, frame: wire.ToolCallEnd, out: list[Event]) -> None:
        self._content.close_call(frame.index, out)

    def _citation_start(self, frame: wire.CitationStart, out: list[Event]) -> None:
        for citation in _as_list(frame.delta.message.citations):
            self._content.cite(citation, out)

    def _citation_end(self, frame: wire.CitationEnd, out: list[Event]) -> None:
        """A citation says all at its start."""

    def _message(self, message: wire.Answer, out: list[Event]) -> None:
        """Read a message, or what of one stands in its start: the thinking, the plan that follows it, the rest, and calls."""
        content, pieces = self._content, _pieces(message.content)
        thought = len(list(takewhile(lambda piece: piece.type == "thinking", pieces)))
        for index, piece in enumerate(pieces):
            if index == thought:
                content.add_whole_plan(message.tool_plan, out)
            content.open(index, piece, out)
            content.close(index, out)
        if thought == len(pieces):
            content.add_whole_plan(message.tool_plan, out)
        for index, call in enumerate(_as_list(message.tool_calls)):
            self._called = True
            content.open_call(index, _call(call, "a call"), out)
            content.close_call(index, out)
        for citation in _as_list(message.citations):
            content.cite(citation, out)
        self._carry(message, out, choice=0)

    def _end(self, end: wire.End, out: list[Event], told: JsonObject | None = None) -> None:
        """End the reply. `told` is an object that tells of an error."""
        word = as_text(end.finish_reason)
        reason = REASONS.get(word, "unknown") if word else "tool_calls" if self._called else "unknown"
        broke = reason == "error" or told is not None
        if end.message:
            out.append(ReplyFields(NAME, end.message, choice=0))
        self._content.close_all(out, complete=not broke)
        self._over = True
        if end.usage:
            counted, doubts = decode_usage(end.usage, excludes_reasoning=self._row.quirks.output_excludes_reasoning)
            out.append(UsageUpdate(counted))
            out.extend(Degraded(doubt) for doubt in doubts)
        self._carry(end, out)
        if word and word not in REASONS:
            out.append(ReplyFields(NAME, {"finish_reason": word}))
        out.append(Finish(reason, word))
        if broke:
            told = told or {"error": f"the reply ended with {word}"}
            out.append(Failed(refusal(told, provider=self._row.id, status=_STATUSES.get(word, 502))))

    @staticmethod
    def _carry(struct: Wire, out: list[Event], *, choice: int | None = None) -> None:
        """Add the unknown fields."""
        if fields := carried_fields(struct):
            out.append(ReplyFields(NAME, fields, choice))

    def _feed_leniently(self, item: Frame, data: bytes, out: list[Event]) -> list[Event]:
        """Read a frame that is not quite one."""
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
            self._read_leniently(payload, item.event, out)
        except WrongShape as problem:
            self._malformed(out, str(problem))
        return out

    def _read_leniently(self, payload: JsonObject, event: str, out: list[Event]) -> None:
        kind = as_text(payload.get("type")) or event
        delta = _object(payload.get("delta") or {}, "delta")
        is_refusal = kind == "error" or bool(payload.get("error")) or (not kind and "message" in payload)
        if not kind and isinstance(payload.get("message"), dict):
            self._whole(payload, payload["message"], out)
        elif not kind and not payload.get("message") and payload.get("usage") and not payload.get("error"):
            # A body without a message holds nothing, however it says that it ended; it was billed all the same.
            self._whole(without(payload, "finish_reason", "message"), {}, out)
        elif is_refusal:
            self._fail(out, refusal(payload, provider=self._row.id))
        elif kind == "message-start":
            answer = wire.Delta(message=_answer(_inner(delta)))
            start = wire.MessageStart(id=payload.get("id"), model=payload.get("model"), delta=answer)
            start.others = _others(payload, "type", "id", "model", "delta")
            self._read(start, out)
        elif kind == "message-end":
            self._carry(wire.MessageEnd(delta=wire.End(), others=_others(payload, "type", "id", "delta")), out)
            self._end(_ending(delta), out, delta if delta.get("error") else None)
        elif kind:
            self._step_leniently(kind, payload, _inner(delta), out)
        else:
            raise WrongShape("it has neither a type nor a message")

    def _whole(self, payload: JsonObject, message: JsonObject, out: list[Event]) -> None:
        ends: JsonObject = {name: payload[name] for name in _ENDS if name in payload}
        start = wire.MessageStart(id=payload.get("id"), model=payload.get("model"))
        start.others = _others(payload, "type", "id", "model", "delta", "message", *ends)
        self._read(start, out)
        self._message(_answer(message), out)
        self._end(_ending(ends), out, ends if ends.get("error") else None)

    def _step_leniently(self, kind: str, payload: JsonObject, message: JsonObject, out: list[Event]) -> None:
        index, step = payload.get("index"), _BY_TAG.get(kind)
        fields: JsonObject = {
            "index": index if isinstance(index, int) else 0,
            "logprobs": payload.get("logprobs"),
            "others": _others(payload, "type", "index", "delta", "logprobs"),
        }
        answer: Any
        if step is wire.ContentStart or step is wire.ContentDelta:
            answer = wire.ContentAnswer(content=_pieces_of(message.get("content")))  # type: ignore[arg-type]
        elif step is wire.ToolPlanDelta:
            answer = wire.PlanAnswer(tool_plan=message.get("tool_plan"))
        elif step is wire.ToolCallStart or step is wire.ToolCallDelta:
            answer = wire.CallAnswer(tool_calls=message.get("tool_calls"))  # type: ignore[arg-type]
        elif step is wire.CitationStart:
            answer = wire.CitationAnswer(citations=message.get("citations"))  # type: ignore[arg-type]
        elif step is None:
            fields["others"] = Others({kind: [without(payload, "type")]})
            self._read(wire.CitationEnd(**fields), out)
            return
        else:
            self._read(step(**fields), out)
            return
        fields["delta"] = wire.Delta(message=answer)
        self._read(step(**fields), out)

    def _malformed(self, out: list[Event], problem: str) -> list[Event]:
        return self._fail(out, MalformedReply(f"the reply is not a Cohere message: {problem}", provider=self._row.id))

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._content.flush(out)
        self._over = True
        out.append(Failed(error))
        return out


_ENDS: tuple[str, ...] = ("finish_reason", "usage", "error", "error_type")
_STEPS: dict[type, Callable[[Decoder, Any, list[Event]], None]] = {
    wire.ContentDelta: Decoder._content_delta,
    wire.ToolCallDelta: Decoder._tool_call_delta,
    wire.ToolPlanDelta: Decoder._tool_plan_delta,
    wire.ContentStart: Decoder._content_start,
    wire.ContentEnd: Decoder._content_end,
    wire.ToolCallStart: Decoder._tool_call_start,
    wire.ToolCallEnd: Decoder._tool_call_end,
    wire.CitationStart: Decoder._citation_start,
    wire.CitationEnd: Decoder._citation_end,
}
_BY_TAG: dict[str, Any] = {str(kind.__struct_config__.tag): kind for kind in wire.Step.__subclasses__()}


def _pieces(content: list[Piece] | Piece | str | None) -> list[Piece]:
    """Return the items of content: a list of them, one alone, or plain text. Text beside thinking is two."""
    if isinstance(content, Piece):
        content = [content]
    if not content:
        return []
    if isinstance(content, str):
        return [Piece(type="text", text=content)]
    pieces: list[Piece] = []
    for piece in content:
        if piece.type is None and piece.text and piece.thinking:
            pieces += [Piece(thinking=piece.thinking), msgspec.structs.replace(piece, thinking=None)]
        else:
            pieces.append(piece)
    return pieces


def _object(value: object, what: str) -> JsonObject:
    """Return an object; where a list stands with just one in it, that one. Raises WrongShape."""
    return want(value[0] if isinstance(value, list) and len(value) == 1 else value, dict, what)


def _inner(delta: JsonObject) -> JsonObject:
    value = delta.get("message")
    return {} if value is None else _object(value, "message")


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _others(fields: JsonObject, *names: str) -> Others | None:
    return Others(without(fields, *names)) or None


def _answer(message: JsonObject) -> wire.Answer:
    """Return a message as far as it can be read. Raises WrongShape."""
    return wire.Answer(
        content=_pieces(_pieces_of(message.get("content"))),
        tool_plan=as_text(message.get("tool_plan")),
        tool_calls=message.get("tool_calls"),
        citations=_as_list(message.get("citations")),
        others=_others(message, "role", "content", "tool_plan", "tool_calls", "citations"),
    )


def _pieces_of(content: object) -> list[Piece] | str:
    if isinstance(content, str):
        return content
    return [
        Piece(
            type=item.get("type"),
            text=item.get("text"),
            thinking=item.get("thinking"),
            others=Others({name: value for name, value in item.items() if name not in _PIECE}) or None,
        )
        for item in (_object(entry, "content") for entry in _as_list(content))
    ]


_PIECE = ("type", "text", "thinking")


def _call(value: object, what: str) -> wire.WrittenCall:
    """Return a call as far as it can be read. Raises WrongShape."""
    if isinstance(value, wire.WrittenCall):
        return value
    call = _object(value, what)
    function = _object(call.get("function") or {}, "function")
    return wire.WrittenCall(
        id=call.get("id"),
        type=call.get("type"),
        function=wire.WrittenFunction(
            name=function.get("name"),
            arguments=function.get("arguments"),
            others=_others(function, "name", "arguments"),
        ),
        others=_others(call, "id", "type", "function"),
    )


def _ending(fields: JsonObject) -> wire.End:
    usage = fields.get("usage")
    return wire.End(
        finish_reason=fields.get("finish_reason"),
        usage=usage if isinstance(usage, dict) else None,
        message=_inner(fields),
        others=_others(fields, "finish_reason", "usage", "error", "error_type", "code", "message"),
    )


Kind = Literal["text", "thinking", "call", "unknown"]
Block: TypeAlias = OpenBlock[Kind]


class _Content:
    """The blocks of one reply: Cohere's content, plan and calls to our numbered events. `_open` and `_calls` hold those not yet closed.

    Content and calls are each counted from 0 on the wire; the plan has no number, and goes on until something else is said.
    """

    def __init__(self) -> None:
        self._open: dict[int, Block] = {}
        self._calls: dict[int, Block] = {}
        self._plan: int | None = None
        self._count = 0
        self._numbers: dict[int, int] = {}
        self._texts: list[int] = []
        self._plans: list[int] = []

    def open(self, index: int, piece: Piece, out: list[Event]) -> None:
        """Begin a block of content with whatever it already holds."""
        self.close(index, out)
        self.end_plan(out)
        kind = _kind(piece, None)
        block = self._open[index] = OpenBlock(self._fresh(), kind)
        self._numbers[index] = block.number
        if kind == "unknown":
            block.value = as_it_came(piece)
            return
        if kind == "thinking":
            out.append(ThinkStart(block.number, THINKING))
        else:
            self._texts.append(block.number)
        self.add(index, piece, out)

    def add(self, index: int, piece: Piece, out: list[Event]) -> None:
        """Add a piece of content; one that fits no open block begins its own."""
        block = self._open.get(index)
        text, thinking = piece.text, piece.thinking
        if block is not None and piece.type is None and piece.others is None and piece.signature is None:
            # Nearly all pieces are plain.
            if text and thinking is None and block.kind == "text" and text.__class__ is str:
                block.has_content = True
                out.append(ContentChunk(block.number, text))
                return
            if thinking and text is None and block.kind == "thinking" and thinking.__class__ is str:
                out.append(ThinkChunk(block.number, thinking))
                return
        kind = _kind(piece, block)
        if block is None or block.kind != kind:
            self.open(index, msgspec.structs.replace(piece, type=piece.type or kind), out)
        elif kind == "unknown":
            add_piece(block.value, as_it_came(piece))
        else:
            words_here, beside = (text, thinking) if kind == "text" else (thinking, text)
            if words := as_text(words_here):
                block.has_content = True
                out.append(ThinkChunk(block.number, words) if kind == "thinking" else ContentChunk(block.number, words))
            if beside is not None or piece.others is not None or piece.signature is not None:
                other = {} if beside is None else {"thinking" if kind == "text" else "text": beside}
                _add_fields(block.number, {**other, **(carried_fields(piece) or {})}, out)

    def close(self, index: int, out: list[Event]) -> None:
        """End a block of content, if it is open."""
        block = self._open.pop(index, None)
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
        if self._plan is None:
            self._plan = self._fresh()
            self._plans.append(self._plan)
            out.append(ThinkStart(self._plan, PLAN))
        out.append(ThinkChunk(self._plan, text))

    def add_whole_plan(self, text: str | None, out: list[Event]) -> None:
        """Add a plan that is complete, where there is one."""
        if text:
            self.add_plan(text, out)
            self.end_plan(out)

    def end_plan(self, out: list[Event]) -> None:
        """End the plan, if one goes on."""
        if self._plan is not None:
            out.append(ThinkEnd(self._plan))
            self._plan = None

    def open_call(self, index: int, call: wire.WrittenCall, out: list[Event]) -> None:
        """Begin a call."""
        self.close_call(index, out)
        self.end_plan(out)
        block = self._calls[index] = OpenBlock(self._fresh(), "call")
        function = call.function or wire.WrittenFunction()
        out.append(ToolCallStart(block.number, as_text(call.id), as_text(function.name)))
        named = msgspec.structs.replace(function, name=None)
        self.add_call(index, msgspec.structs.replace(call, id=None, type=None, function=named), out)

    def add_call(self, index: int, call: wire.WrittenCall, out: list[Event]) -> None:
        """Add a piece of a call. Raises WrongShape for one without a beginning."""
        block = self._calls.get(index)
        if block is None:
            raise WrongShape(f"a piece of call {index}, which did not begin")
        function = call.function or wire.WrittenFunction()
        if arguments := as_text(function.arguments):
            block.has_content = True
            out.append(ToolCallChunk(block.number, arguments))
            if call == wire.WrittenCall(function=wire.WrittenFunction(arguments=arguments)):
                return
        fields = {"id": call.id, "type": call.type, **(carried_fields(call) or {})}
        if rest := without({"name": function.name, **(carried_fields(function) or {})}):
            fields["function"] = rest
        _add_fields(block.number, without(fields), out)

    def close_call(self, index: int, out: list[Event]) -> None:
        """End a call, if it is open."""
        block = self._calls.pop(index, None)
        if block is None:
            return
        if not block.has_content:
            out.append(ToolCallChunk(block.number, "{}"))
        out.append(ToolCallEnd(block.number))

    def cite(self, citation: object, out: list[Event]) -> None:
        """Add a citation to the block it is about: the plan, the content it counts to, else the last text."""
        fields: JsonObject = citation if isinstance(citation, dict) else {}
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
        for index in sorted(self._open):
            self.close(index, out)
        for index in sorted(self._calls) if complete else ():
            self.close_call(index, out)

    def flush(self, out: list[Event]) -> None:
        """Return the held parts of unfinished blocks, without saying that they are finished."""
        for block in self._open.values():
            if block.kind == "unknown":
                out.append(UnknownContent(block.number, NAME, block.value))
        self._open.clear()

    def _fresh(self) -> int:
        self._count += 1
        return self._count - 1


def _add_fields(number: int, fields: JsonObject, out: list[Event]) -> None:
    """Add fields that decorate a block; opaque state that bardo sealed is opened."""
    signature = fields.get("signature")
    states = unseal(signature) if isinstance(signature, str) else None
    if states is not None:
        add_states(number, states, out)
        fields = without(fields, "signature")
    if fields:
        out.append(BlockFields(number, NAME, fields))


def _kind(piece: Piece, block: Block | None) -> Kind:
    """Return what kind of content a block or a piece of one is; a piece says it only by its names."""
    if piece.type is not None:
        return piece.type if piece.type in ("text", "thinking") else "unknown"
    if block is not None and block.kind == "unknown":
        return block.kind
    named: list[Kind] = []
    if isinstance(piece.text, str):
        named.append("text")
    if isinstance(piece.thinking, str):
        named.append("thinking")
    kind: Kind = "unknown" if block is None else block.kind
    return kind if kind in named or not named else named[0]


def _calls(payload: JsonObject) -> Iterator[tuple[int, JsonObject, str]]:
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
