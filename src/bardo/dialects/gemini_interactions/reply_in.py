"""A provider's reply to events: whole interactions and streams through one path.

A stream tells the same interaction step by step, and ends with `interaction.completed`, which holds everything but the steps.

The steps of a reply while they arrive, brought to numbered blocks.

A whole step is one that began and received everything at once, so whole replies and streams are read by the same code. A model's output may
hold several contents and becomes a block for each; a step of any other kind is one block.

The steps of one reply, found by their index on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.dialects.gemini.wire import FORMAT, arguments_text
from bardo.dialects.gemini_interactions.errors import refusal_in_reply
from bardo.dialects.gemini_interactions.usage import decode_usage
from bardo.dialects.gemini_interactions.wire import NAME, finish_of, states_of
from bardo.dialects.shared.json_values import WrongShape, as_text, decode_leniently, want, without
from bardo.dialects.shared.spellings import seconds_of, stamp_of
from bardo.streams.frames import Frame
from bardo.values.errors import BardoError, BrokenStream, MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    OpaqueState,
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


class Numbers:
    """Gives the blocks of one reply their numbers."""

    def __init__(self) -> None:
        self._next = 0

    def fresh(self) -> int:
        """Return the next number."""
        self._next += 1
        return self._next - 1


class OpenStep:
    """One step. `number` is that of its block, -1 while it has none; `text` says that plain pieces of text go on."""

    text = False
    call = False

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.number = -1
        self.part = -1
        self.over = False

    def open(self, raw: dict[str, Any], out: list[Event]) -> None:
        """Begin with whatever the step already holds."""
        raise NotImplementedError

    def add(self, delta: dict[str, Any], out: list[Event]) -> None:
        """Take a piece."""
        raise NotImplementedError

    def close(self, out: list[Event]) -> None:
        """End the step, once."""
        if not self.over:
            self.over = True
            self._end(out)

    def _end(self, out: list[Event]) -> None:
        raise NotImplementedError

    def _sign(self, raw: dict[str, Any], out: list[Event]) -> None:
        out.extend(OpaqueState(self.number, state) for state in states_of(as_text(raw.get("signature"))))

    def _decorate(self, fields: dict[str, Any], out: list[Event]) -> None:
        if fields:
            out.append(BlockFields(self.number, NAME, fields))

    def _add_other(self, delta: dict[str, Any], out: list[Event]) -> None:
        """Take a piece that any kind of step may get: its signature, or something nobody knows."""
        if delta.get("type") == "thought_signature":
            self._sign(delta, out)
            self._decorate(without(delta, "type", "signature"), out)
        else:
            self._decorate({"deltas": [delta]}, out)


class Thought(OpenStep):
    """Thinking: the items of a summary, and a signature."""

    def open(self, raw: dict[str, Any], out: list[Event]) -> None:
        self.number = self.numbers.fresh()
        out.append(ThinkStart(self.number, FORMAT))
        for item in items_of(raw.get("summary"), "summary"):
            self._summarise(item, out)
        self._sign(raw, out)
        self._decorate(without(raw, "type", "summary", "signature"), out)

    def add(self, delta: dict[str, Any], out: list[Event]) -> None:
        if delta.get("type") == "thought_summary":
            self._summarise(fields_of(delta.get("content"), "content"), out, continues=delta.get("continues") is True)
        else:
            self._add_other(delta, out)

    def _summarise(self, item: dict[str, Any], out: list[Event], *, continues: bool = False) -> None:
        if item.get("type", "text") != "text":
            self._decorate({"summary": [item]}, out)
            return
        self.part += 0 if continues and self.part >= 0 else 1
        out.append(ThinkChunk(self.number, text_of(item), self.part))
        self._decorate(without(item, "type", "text"), out)

    def _end(self, out: list[Event]) -> None:
        out.append(ThinkEnd(self.number))


class Output(OpenStep):
    """The model's output. Contents that are no text are kept together, as a step of their own."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers)
        self._fields: dict[str, Any] = {}
        self._signature: dict[str, Any] = {}
        self._other_steps: list[dict[str, Any]] = []

    def open(self, raw: dict[str, Any], out: list[Event]) -> None:
        self._fields = without(raw, "type", "content", "signature")
        self._signature = raw
        for item in items_of(raw.get("content"), "content"):
            self.text = False
            self.add(item, out)

    def add(self, delta: dict[str, Any], out: list[Event]) -> None:
        kind = delta.get("type")
        if kind == "text":
            self._begin_text(out)
            out.append(ContentChunk(self.number, text_of(delta)))
            self._decorate(without(delta, "type", "text"), out)
        elif kind == "text_annotation_delta":
            self._require_text_block(out)
            self._decorate(without(delta, "type"), out)
        elif kind == "thought_signature":
            self._require_text_block(out)
            self._add_other(delta, out)
        else:
            self.text = False
            self._other_steps.append(delta)

    def _begin_text(self, out: list[Event]) -> None:
        if self.text:
            return
        self._give_others(out)
        first = self.number < 0
        self.number = self.numbers.fresh()
        self.text = True
        if first:
            self._decorate({"step": self._fields} if self._fields else {}, out)
            self._sign(self._signature, out)

    def _require_text_block(self, out: list[Event]) -> None:
        """Have a text block to say something of."""
        if self.number < 0:
            self._begin_text(out)
            out.append(ContentChunk(self.number, ""))

    def _give_others(self, out: list[Event]) -> None:
        if self._other_steps:
            value = {"type": "model_output", "content": self._other_steps}
            if self.number < 0:
                signature = self._signature.get("signature")
                value |= {**self._fields, **({"signature": signature} if signature else {})}
                self._fields, self._signature = {}, {}
            out.append(UnknownContent(self.numbers.fresh(), NAME, value))
            self._other_steps = []

    def _end(self, out: list[Event]) -> None:
        has_others = bool(self._other_steps)
        self._give_others(out)
        if self.number < 0 and not has_others:
            self._require_text_block(out)


class Call(OpenStep):
    """A function call: its arguments whole at the beginning, or in pieces."""

    call = True

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers)
        self._arguments: Any = None
        self._has_content = False

    def open(self, raw: dict[str, Any], out: list[Event]) -> None:
        self.number = self.numbers.fresh()
        signed = bool(states_of(as_text(raw.get("signature"))))
        out.append(ToolCallStart(self.number, as_text(raw.get("id")), as_text(raw.get("name")), state_follows=signed))
        self._arguments = raw.get("arguments")
        self._sign(raw, out)
        self._decorate(without(raw, "type", "id", "name", "arguments", "signature"), out)

    def add(self, delta: dict[str, Any], out: list[Event]) -> None:
        if delta.get("type") != "arguments_delta":
            self._add_other(delta, out)
            return
        if piece := as_text(delta.get("arguments")):
            self._has_content = True
            out.append(ToolCallChunk(self.number, piece))
        self._decorate(without(delta, "type", "arguments"), out)

    def _end(self, out: list[Event]) -> None:
        if not self._has_content:
            whole = self._arguments
            text = arguments_text(whole) if isinstance(whole, dict) else as_text(whole)
            out.append(ToolCallChunk(self.number, text or "{}"))
        out.append(ToolCallEnd(self.number))


class HostedStep(OpenStep):
    """A step that only this dialect has: a search of Google's and what it found."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers)
        self._value: dict[str, Any] = {}

    def open(self, raw: dict[str, Any], out: list[Event]) -> None:
        self.number = self.numbers.fresh()
        self._value = dict(raw)

    def add(self, delta: dict[str, Any], out: list[Event]) -> None:
        for name, more in delta.items():
            held = self._value.get(name)
            if name != "type" and more not in (None, "", [], {}):
                grows = isinstance(held, list) and isinstance(more, list)
                self._value[name] = [*held, *more] if grows and held is not None else more

    def _end(self, out: list[Event]) -> None:
        out.append(UnknownContent(self.number, NAME, self._value))


def fields_of(value: Any, what: str) -> dict[str, Any]:
    """Return an object. Raises WrongShape."""
    return want(value, dict, what)


def items_of(value: Any, what: str) -> list[dict[str, Any]]:
    """Return a list of objects; nothing at all is an empty one. Raises WrongShape."""
    items: list[Any] = [] if value is None else want(value, list, what)
    return [fields_of(item, f"{what}[{place}]") for place, item in enumerate(items)]


def text_of(item: dict[str, Any]) -> str:
    """Return the text of a content. Raises WrongShape."""
    return want(item.get("text", ""), str, "text")


_KINDS: dict[str, type[OpenStep]] = {"thought": Thought, "model_output": Output, "function_call": Call}
_BEGUN_BY = {"thought_summary": "thought", "thought_signature": "thought", "arguments_delta": "function_call"}


class Steps:
    """The steps of one reply, by their index on the wire."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._last: OpenStep | None = None
        self.by_index: dict[int, OpenStep] = {}

    @property
    def end_with_a_call(self) -> bool:
        """Whether the last step is a call, which waits for its result."""
        return self._last is not None and self._last.call

    def open(self, index: int, raw: dict[str, Any], out: list[Event]) -> OpenStep:
        """Begin a step; one that still has its index is over."""
        self.close(index, out)
        kind = raw.get("type")
        step = _KINDS.get(kind if isinstance(kind, str) else "", HostedStep)(self._numbers)
        self.by_index[index] = self._last = step
        step.open(raw, out)
        return step

    def add(self, index: int, delta: dict[str, Any], out: list[Event]) -> None:
        """Take a piece; one that nobody announced begins its step."""
        step = self.by_index.get(index)
        if step is None:
            step = self.open(index, {"type": _BEGUN_BY.get(as_text(delta.get("type")), "model_output")}, out)
        step.add(delta, out)

    def close(self, index: int, out: list[Event]) -> None:
        """End a step, if there is one."""
        if step := self.by_index.get(index):
            step.close(out)

    def close_all(self, out: list[Event], *, complete: bool = True) -> None:
        """End all steps that are open. `complete` False: the reply broke off, and no call is ended."""
        for step in self.by_index.values():
            if complete or not step.call:
                step.close(out)


# Fields nobody knows make these fail, so that the generic way can carry them.
class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False, forbid_unknown_fields=True):
    text: str


class _Summary(msgspec.Struct, tag_field="type", tag="thought_summary", gc=False, forbid_unknown_fields=True):
    content: _Text
    continues: bool = False


class _Delta(msgspec.Struct, tag_field="event_type", tag="step.delta", gc=False, forbid_unknown_fields=True):
    index: int
    delta: _Text | _Summary
    event_id: msgspec.Raw = msgspec.Raw()


_decode_delta = msgspec.json.Decoder(_Delta).decode
_KNOWN_FIELDS = ("id", "model", "created", "status", "usage", "steps", "object")


class Decoder:
    """Reads one reply. `excludes_reasoning` is the provider's fact about how thoughts are counted."""

    def __init__(self, *, provider: str = "", excludes_reasoning: bool | None = None) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._start = ReplyStart()
        self._steps = Steps()
        self._fields: dict[str, Any] = {}
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
            frame = _decode_delta(item.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._feed_slowly(item.data, complete=item.complete)
        step, delta = self._steps.by_index.get(frame.index), frame.delta
        if step is not None and type(delta) is _Text and step.text:
            return (ContentChunk(step.number, delta.text),)
        if type(step) is Thought and type(delta) is _Summary:
            step.part += 0 if delta.continues and step.part >= 0 else 1
            return (ThinkChunk(step.number, delta.content.text, step.part),)
        return self._feed_slowly(item.data, complete=item.complete)

    def finish(self) -> Sequence[Event]:
        """The bytes are over: a reply without its end is broken."""
        if self._over:
            return ()
        out: list[Event] = []
        self._break_off(BrokenStream("the stream ended before the interaction was complete"), out)
        return out

    def _feed_slowly(self, data: bytes, *, complete: bool) -> Sequence[Event]:
        out: list[Event] = []
        try:
            if data.strip() not in (b"", b"[DONE]"):
                self._take(fields_of(decode_leniently(data, out), "the reply"), out)
        except ValueError as problem:
            if complete:
                self._break_off(MalformedReply(f"the reply is not valid JSON: {problem}"), out)
        except WrongShape as problem:
            if complete:
                self._break_off(MalformedReply(f"the reply is no interaction: {problem}"), out)
        return out

    def _break_off(self, error: BardoError, out: list[Event]) -> None:
        self._over = True
        self._steps.close_all(out, complete=False)
        if isinstance(error, MalformedReply | BrokenStream):
            error.provider = self._provider
        out.append(Failed(error))

    def _take(self, value: dict[str, Any], out: list[Event]) -> None:
        name = value.get("event_type")
        if isinstance(name, str):
            _TAKE.get(name, Decoder._take_nothing)(self, value, out)
            self._take_metadata(value.get("metadata"), out)
        elif value.get("error") is not None:
            self._take_error(value, out)
        elif value.get("object") == "interaction" or isinstance(value.get("steps"), list):
            self._end(value, out)
        else:
            raise WrongShape("neither an event nor an interaction")

    def _take_interaction(self, raw: dict[str, Any], out: list[Event]) -> None:
        created = seconds_of(raw.get("created"))
        start = ReplyStart(
            id=as_text(raw.get("id")) or self._start.id,
            model=as_text(raw.get("model")) or self._start.model,
            created=self._start.created if created is None else created,
        )
        if start != self._start:
            self._start = start
            out.append(start)
        fields = without(raw, *_KNOWN_FIELDS)
        if raw.get("created") is not None and raw["created"] != stamp_of(created):
            fields["created"] = raw["created"]
        fields = {name: field for name, field in fields.items() if self._fields.get(name) != field}
        if fields:
            self._fields |= fields
            out.append(ReplyFields(NAME, fields))
        self._take_usage(raw.get("usage"), out)

    def _take_usage(self, raw: Any, out: list[Event]) -> None:
        if raw is not None and not self._over:
            usage, degraded = decode_usage(fields_of(raw, "usage"), self._excludes_reasoning)
            out.extend(Degraded(one) for one in degraded)
            out.append(UsageUpdate(usage))

    def _take_metadata(self, metadata: Any, out: list[Event]) -> None:
        if isinstance(metadata, dict):
            self._take_usage(metadata.get("usage") or metadata.get("total_usage"), out)

    def _take_created(self, value: dict[str, Any], out: list[Event]) -> None:
        self._take_interaction(fields_of(value.get("interaction"), "interaction"), out)

    def _take_start(self, value: dict[str, Any], out: list[Event]) -> None:
        self._steps.open(_index(value), fields_of(value.get("step"), "step"), out)

    def _take_delta(self, value: dict[str, Any], out: list[Event]) -> None:
        self._steps.add(_index(value), fields_of(value.get("delta"), "delta"), out)

    def _take_stop(self, value: dict[str, Any], out: list[Event]) -> None:
        self._steps.close(_index(value), out)

    def _take_completed(self, value: dict[str, Any], out: list[Event]) -> None:
        self._end(fields_of(value.get("interaction"), "interaction"), out)

    def _take_error(self, value: dict[str, Any], out: list[Event]) -> None:
        self._break_off(refusal_in_reply(value.get("error") or {}, self._provider), out)

    def _take_nothing(self, value: dict[str, Any], out: list[Event]) -> None:
        """A change of status says nothing that the end does not."""

    def _end(self, raw: dict[str, Any], out: list[Event]) -> None:
        self._take_interaction(raw, out)
        if not self._steps.by_index:
            for index, step in enumerate(items_of(raw.get("steps"), "steps")):
                self._steps.open(index, step, out)
                self._steps.close(index, out)
        status = as_text(raw.get("status"))
        self._steps.close_all(out, complete=status not in ("failed", "cancelled"))
        self._over = True
        faults = raw.get("errors")
        if status == "failed":
            fault = faults[0] if isinstance(faults, list) and faults else {"message": "the interaction failed"}
            out.append(Failed(refusal_in_reply(fault, self._provider)))
        else:
            out.append(finish_of(status, called=self._steps.end_with_a_call))


def _index(value: dict[str, Any]) -> int:
    index = value.get("index", 0)
    if type(index) is not int:
        raise WrongShape("index is no whole number")
    return index


_TAKE: dict[str, Callable[[Decoder, dict[str, Any], list[Event]], None]] = {
    "interaction.created": Decoder._take_created,
    "step.start": Decoder._take_start,
    "step.delta": Decoder._take_delta,
    "step.stop": Decoder._take_stop,
    "interaction.completed": Decoder._take_completed,
    "error": Decoder._take_error,
}
