"""The steps of a reply while they arrive, brought to numbered blocks.

A whole step is one that began and received everything at once, so whole replies and streams are read by the same code. A model's output may
hold several contents and becomes a block for each; a step of any other kind is one block.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.gemini.constants import FORMAT
from bardo.dialects.gemini.reply_parts import arguments_text
from bardo.dialects.gemini_interactions.constants import NAME, states_of
from bardo.dialects.lenient import as_text
from bardo.dialects.wire import want, without
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    OpaqueState,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
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
