"""A provider's reply to events: whole interactions and streams through one path.

A stream tells the same interaction step by step, and ends with `interaction.completed`, which holds everything but the steps. A whole step
is one that began and received everything at once. A model's output may hold several contents and becomes a block for each; a step of
any other kind is one block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from bardo.dialects.gemini.wire import FORMAT, arguments_text
from bardo.dialects.gemini_interactions import wire
from bardo.dialects.gemini_interactions.errors import refusal_in_reply
from bardo.dialects.gemini_interactions.usage import decode_usage
from bardo.dialects.gemini_interactions.wire import NAME, finish_of, states_of
from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES, has_few_brackets
from bardo.dialects.shared.json_values import JsonObject, WrongShape, as_text, decode_leniently, kind_of, want
from bardo.dialects.shared.spellings import seconds_of, stamp_of
from bardo.dialects.shared.structs import Unknown, Whole, Wire, as_it_came, carried_fields, fitted
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

W = TypeVar("W", bound=Wire)


class Decoder:
    """Reads one reply. `excludes_reasoning` is the provider's fact about how thoughts are counted."""

    def __init__(self, *, provider: str = "", excludes_reasoning: bool | None = None) -> None:
        self._provider = provider
        self._excludes_reasoning = excludes_reasoning
        self._start = ReplyStart()
        self._numbers = Numbers()
        self._steps: dict[int, OpenStep] = {}
        self._last: OpenStep | None = None
        self._fields: JsonObject = {}
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
        data = item.data
        if data is None or self._over:
            return ()
        out: list[Event] = []
        event: wire.Event | wire.OtherEvent | None = None
        fault, size = None, len(data)
        if size <= MAX_DEPTH or (size < SLICED_BYTES and has_few_brackets(data)):
            # A whole reply, and an event that is not as the API says, are looked at once more.
            try:
                event = _decode_event(data)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                event = None
        try:
            if event is None and data.strip() not in (b"", b"[DONE]"):
                event, fault = _event_apart(want(decode_leniently(data, out), dict, "the reply"))
            if event is not None:
                self._take(event, fault, out)
        except ValueError as problem:
            if item.complete:
                self._break_off(MalformedReply(f"the reply is not valid JSON: {problem}"), out)
        except WrongShape as problem:
            if item.complete:
                self._break_off(MalformedReply(f"the reply is no interaction: {problem}"), out)
        return out

    def finish(self) -> Sequence[Event]:
        """The bytes are over: a reply without its end is broken."""
        if self._over:
            return ()
        out: list[Event] = []
        self._break_off(BrokenStream("the stream ended before the interaction was complete"), out)
        return out

    def _break_off(self, error: BardoError, out: list[Event]) -> None:
        self._over = True
        self._close_all(out, complete=False)
        if isinstance(error, MalformedReply | BrokenStream):
            error.provider = self._provider
        out.append(Failed(error))

    def _take(self, event: wire.Event | wire.OtherEvent, fault: WrongShape | None, out: list[Event]) -> None:
        """Take an event; `fault` is the fault behind its readable part."""
        if type(event) is wire.StepDelta:
            step = self._steps.get(event.index)
            if step is None:
                # A piece without an announcement begins its step.
                step = self._open(event.index, _BEGUN_BY.get(type(event.delta), wire.ReplyOutput)(), out)
            step.add(event.delta, out)
        elif isinstance(event, wire.StepStart):
            self._open(event.index, event.step, out)
        elif isinstance(event, wire.StepStop):
            if held := self._steps.get(event.index):
                held.close(out)
        elif isinstance(event, wire.InteractionCreated):
            self._take_interaction(event.interaction, out)
        elif isinstance(event, wire.InteractionCompleted):
            self._end(event.interaction, fault, out)
        elif isinstance(event, wire.ErrorEvent):
            self._break_off(refusal_in_reply(event.error or {}, self._provider), out)
        if event.metadata is not None and isinstance(event.metadata, dict):
            self._take_usage(event.metadata.get("usage") or event.metadata.get("total_usage"), out)

    def _open(self, index: int, raw: wire.Step, out: list[Event]) -> OpenStep:
        """Begin a step; one that still has its index is over."""
        if held := self._steps.get(index):
            held.close(out)
        step = self._steps[index] = self._last = _KINDS.get(type(raw), HostedStep)(self._numbers)
        step.open(raw, out)
        return step

    def _close_all(self, out: list[Event], *, complete: bool = True) -> None:
        """End all steps that are open. `complete` False: the reply broke off, and no call is ended."""
        for step in self._steps.values():
            if complete or not isinstance(step, Call):
                step.close(out)

    def _take_interaction(self, interaction: wire.Interaction, out: list[Event]) -> None:
        created = seconds_of(interaction.created)
        start = ReplyStart(
            id=as_text(interaction.id) or self._start.id,
            model=as_text(interaction.model) or self._start.model,
            created=self._start.created if created is None else created,
        )
        if start != self._start:
            self._start = start
            out.append(start)
        fields = carried_fields(interaction) or {}
        if interaction.created is not None and interaction.created != stamp_of(created):
            fields["created"] = interaction.created
        fields = {name: field for name, field in fields.items() if self._fields.get(name) != field}
        if fields:
            self._fields |= fields
            out.append(ReplyFields(NAME, fields))
        self._take_usage(interaction.usage, out)

    def _take_usage(self, raw: object, out: list[Event]) -> None:
        if raw is not None and not self._over:
            usage, degraded = decode_usage(want(raw, dict, "usage"), self._excludes_reasoning)
            out.extend(Degraded(loss) for loss in degraded)
            out.append(UsageUpdate(usage))

    def _end(self, interaction: wire.Interaction, fault: WrongShape | None, out: list[Event]) -> None:
        self._take_interaction(interaction, out)
        if not self._steps:
            for index, step in enumerate(interaction.steps or ()):
                self._open(index, step, out).close(out)
            if fault is not None:
                raise fault
        status = as_text(interaction.status)
        self._close_all(out, complete=status not in ("failed", "cancelled"))
        self._over = True
        if status == "failed":
            faults = interaction.errors
            reason = faults[0] if isinstance(faults, list) and faults else {"message": "the interaction failed"}
            out.append(Failed(refusal_in_reply(reason, self._provider)))
        else:
            # A call that is the last step waits for its result.
            out.append(finish_of(status, called=isinstance(self._last, Call)))


class Numbers:
    """Gives the blocks of one reply their numbers."""

    def __init__(self) -> None:
        self._next = 0

    def fresh(self) -> int:
        """Return the next number."""
        self._next += 1
        return self._next - 1


class OpenStep:
    """One step while it arrives. `number` is that of its block, -1 while it has none."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.number = -1
        self.over = False

    def open(self, raw: Any, out: list[Event]) -> None:
        """Begin with whatever the step already holds."""
        raise NotImplementedError

    def add(self, delta: wire.Delta, out: list[Event]) -> None:
        """Take a piece."""
        raise NotImplementedError

    def close(self, out: list[Event]) -> None:
        """End the step, once."""
        if not self.over:
            self.over = True
            self._end(out)

    def _end(self, out: list[Event]) -> None:
        raise NotImplementedError

    def _sign(self, signature: object, out: list[Event]) -> None:
        if signature is not None:
            out.extend(OpaqueState(self.number, state) for state in states_of(as_text(signature)))

    def _decorate(self, fields: JsonObject | None, out: list[Event]) -> None:
        if fields:
            out.append(BlockFields(self.number, NAME, fields))

    def _add_other(self, delta: wire.Delta, out: list[Event]) -> None:
        """Take a piece that any kind of step may get: its signature, or something unknown."""
        if isinstance(delta, wire.SignatureDelta):
            self._sign(delta.signature, out)
            self._decorate(carried_fields(delta), out)
        else:
            self._decorate({"deltas": [as_it_came(delta)]}, out)


class Thought(OpenStep):
    """Thinking: the items of a summary, and a signature."""

    part = -1

    def open(self, raw: wire.ReplyThought, out: list[Event]) -> None:
        self.number = self.numbers.fresh()
        out.append(ThinkStart(self.number, FORMAT))
        for item in raw.summary or ():
            self._summarise(item, out)
        self._sign(raw.signature, out)
        self._decorate(carried_fields(raw), out)

    def add(self, delta: wire.Delta, out: list[Event]) -> None:
        if isinstance(delta, wire.SummaryDelta):
            self._summarise(delta.content, out, continues=delta.continues is True)
        else:
            self._add_other(delta, out)

    def _summarise(self, item: wire.Summary, out: list[Event], *, continues: bool = False) -> None:
        if item.type != "text":
            self._decorate({"summary": [as_it_came(item)]}, out)
            return
        self.part += 0 if continues and self.part >= 0 else 1
        out.append(ThinkChunk(self.number, item.text or "", self.part))
        self._decorate(carried_fields(item), out)

    def _end(self, out: list[Event]) -> None:
        out.append(ThinkEnd(self.number))


class Output(OpenStep):
    """The model's output. Contents that are no text are kept together, as a step of their own."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers)
        self._goes_on = False
        self._fields: JsonObject = {}
        self._signature: object = None
        self._others: list[JsonObject] = []

    def open(self, raw: wire.ReplyOutput, out: list[Event]) -> None:
        self._fields = carried_fields(raw) or {}
        self._signature = raw.signature
        for item in raw.content or ():
            self._goes_on = False
            self.add(item, out)

    def add(self, delta: wire.Delta, out: list[Event]) -> None:
        if type(delta) is wire.TextDelta:
            if not self._goes_on:
                self._begin_text(out)
            out.append(ContentChunk(self.number, delta.text))
            if delta.others is not None or delta.annotations is not None:
                self._decorate(carried_fields(delta), out)
        elif isinstance(delta, wire.AnnotationsDelta):
            self._require_text_block(out)
            self._decorate(carried_fields(delta), out)
        elif isinstance(delta, wire.SignatureDelta):
            self._require_text_block(out)
            self._add_other(delta, out)
        else:
            self._goes_on = False
            self._others.append(as_it_came(delta))

    def _begin_text(self, out: list[Event]) -> None:
        self._give_others(out)
        first = self.number < 0
        self.number = self.numbers.fresh()
        self._goes_on = True
        if first:
            self._decorate({"step": self._fields} if self._fields else {}, out)
            self._sign(self._signature, out)

    def _require_text_block(self, out: list[Event]) -> None:
        """Have a text block to say something of."""
        if self.number < 0:
            self._begin_text(out)
            out.append(ContentChunk(self.number, ""))

    def _give_others(self, out: list[Event]) -> None:
        if self._others:
            value: JsonObject = {"type": "model_output", "content": self._others}
            if self.number < 0:
                value |= {**self._fields, **({"signature": self._signature} if self._signature else {})}
                self._fields, self._signature = {}, None
            out.append(UnknownContent(self.numbers.fresh(), NAME, value))
            self._others = []

    def _end(self, out: list[Event]) -> None:
        has_others = bool(self._others)
        self._give_others(out)
        if self.number < 0 and not has_others:
            self._require_text_block(out)


class Call(OpenStep):
    """A function call: its arguments whole at the beginning, or in pieces."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers)
        self._arguments: object = None
        self._has_content = False

    def open(self, raw: wire.ReplyCall, out: list[Event]) -> None:
        self.number = self.numbers.fresh()
        signed = bool(states_of(as_text(raw.signature)))
        out.append(ToolCallStart(self.number, as_text(raw.id), as_text(raw.name), state_follows=signed))
        self._arguments = raw.arguments
        self._sign(raw.signature, out)
        self._decorate(carried_fields(raw), out)

    def add(self, delta: wire.Delta, out: list[Event]) -> None:
        if not isinstance(delta, wire.ArgumentsDelta):
            self._add_other(delta, out)
            return
        if piece := as_text(delta.arguments):
            self._has_content = True
            out.append(ToolCallChunk(self.number, piece))
        self._decorate(carried_fields(delta), out)

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
        self._value: JsonObject = {}

    def open(self, raw: Unknown, out: list[Event]) -> None:
        self.number = self.numbers.fresh()
        self._value = dict(raw.whole.value)

    def add(self, delta: wire.Delta, out: list[Event]) -> None:
        for name, more in as_it_came(delta).items():
            held = self._value.get(name)
            if name != "type" and more not in (None, "", [], {}):
                grows = isinstance(held, list) and isinstance(more, list)
                self._value[name] = [*held, *more] if grows and held is not None else more

    def _end(self, out: list[Event]) -> None:
        out.append(UnknownContent(self.number, NAME, self._value))


_KINDS: dict[type, Callable[[Numbers], OpenStep]] = {
    wire.ReplyThought: Thought,
    wire.ReplyOutput: Output,
    wire.ReplyCall: Call,
}
_BEGUN_BY: dict[type, Callable[[], wire.Step]] = {
    wire.SummaryDelta: wire.ReplyThought,
    wire.SignatureDelta: wire.ReplyThought,
    wire.ArgumentsDelta: wire.ReplyCall,
}

_decode_event: Callable[[bytes], wire.Event] = msgspec.json.Decoder(wire.Event).decode


def _event_apart(fields: JsonObject) -> tuple[wire.Event | wire.OtherEvent, WrongShape | None]:
    """Return an event, or a whole reply as its last one, and the fault behind its readable part. Raises WrongShape."""
    metadata = fields.get("metadata")
    match fields.get("event_type"):
        case "step.start":
            step = _step(want(fields.get("step"), dict, "step"))
            return wire.StepStart(step=step, index=_index(fields), metadata=metadata), None
        case "step.delta":
            delta = _delta(want(fields.get("delta"), dict, "delta"))
            return wire.StepDelta(delta=delta, index=_index(fields), metadata=metadata), None
        case "step.stop":
            return wire.StepStop(index=_index(fields), metadata=metadata), None
        case "interaction.created":
            interaction, _ = _interaction(want(fields.get("interaction"), dict, "interaction"))
            return wire.InteractionCreated(interaction=interaction, metadata=metadata), None
        case "interaction.completed":
            interaction, fault = _interaction(want(fields.get("interaction"), dict, "interaction"))
            return wire.InteractionCompleted(interaction=interaction, metadata=metadata), fault
        case "error":
            return wire.ErrorEvent(error=fields.get("error"), metadata=metadata), None
        case str():
            return wire.OtherEvent(metadata=metadata), None
    if fields.get("error") is not None:
        return wire.ErrorEvent(error=fields["error"]), None
    if fields.get("object") == "interaction" or isinstance(fields.get("steps"), list):
        interaction, fault = _interaction(fields)
        return wire.InteractionCompleted(interaction=interaction), fault
    if "event_type" not in fields and isinstance(fields.get("delta"), dict):
        # A piece of a step is known without a name.
        return _event_apart({**fields, "event_type": "step.delta"})
    raise WrongShape("neither an event nor an interaction")


def _interaction(fields: JsonObject) -> tuple[wire.Interaction, WrongShape | None]:
    """Return an interaction with its steps as far as they can be read, and the faults of the next one."""
    interaction, steps = _fitted({**fields, "steps": []}, wire.Interaction), list[wire.Step]()
    interaction.steps = steps
    try:
        for step in _objects(fields.get("steps"), "steps"):
            steps.append(_step(step))
    except WrongShape as fault:
        return interaction, fault
    return interaction, None


_STEPS: dict[str, type[wire.ReplyThought | wire.ReplyOutput | wire.ReplyCall]] = {
    "thought": wire.ReplyThought,
    "model_output": wire.ReplyOutput,
    "function_call": wire.ReplyCall,
}
_DELTAS: dict[
    str, type[wire.TextDelta | wire.SummaryDelta | wire.SignatureDelta | wire.ArgumentsDelta | wire.AnnotationsDelta]
] = {
    "text": wire.TextDelta,
    "thought_summary": wire.SummaryDelta,
    "thought_signature": wire.SignatureDelta,
    "arguments_delta": wire.ArgumentsDelta,
    "text_annotation_delta": wire.AnnotationsDelta,
}


def _step(value: JsonObject) -> wire.Step:
    """Return a step; one of an unknown type is kept whole. Raises WrongShape."""
    kind = _STEPS.get(as_text(value.get("type")))
    if kind is wire.ReplyOutput and value.get("content") is not None:
        value = {**value, "content": [*map(_delta, _objects(value["content"], "content"))]}
    return Unknown(Whole(value)) if kind is None else _fitted(value, kind)


def _delta(value: JsonObject) -> wire.Delta:
    """Return a piece of a step; one of an unknown type is kept whole. Raises WrongShape."""
    kind = _DELTAS.get(as_text(value.get("type")))
    return Unknown(Whole(value)) if kind is None else _fitted(value, kind)


def _objects(value: object, what: str) -> list[JsonObject]:
    """Return a list of objects; nothing at all is an empty one. Raises WrongShape."""
    listed: list[object] = [] if value is None else want(value, list, what)
    return [want(item, dict, f"{what}[{place}]") for place, item in enumerate(listed)]


def _index(fields: JsonObject) -> int:
    index = fields.get("index", 0)
    if type(index) is not int:
        raise WrongShape("index is no whole number")
    return index


_WRONG = re.compile(r"got `(?P<kind>\w+)` - at `\$(?:[^`]*[^\w\[\]`])?(?P<name>[\w\[\]]+)`$|field `(?P<missing>\w+)`")
_VALUES: tuple[object, ...] = ("", 0, 0.5, True, None)
_NAMES = {type(value).__name__: kind_of(value) for value in _VALUES}
_NAMES |= {"array": kind_of([]), "object": kind_of({}), "null": kind_of(None)}


def _fitted(value: JsonObject, kind: type[W]) -> W:
    """Return an object as a struct. Raises WrongShape, which names the field."""
    try:
        return fitted(value, kind)
    except msgspec.ValidationError as problem:
        wrong = _WRONG.search(str(problem))
        if wrong is None:
            raise WrongShape(str(problem)) from problem
        name = wrong["name"] or wrong["missing"]
        raise WrongShape(f"{name} is {_NAMES.get(wrong['kind'] or 'null', wrong['kind'])}") from problem
