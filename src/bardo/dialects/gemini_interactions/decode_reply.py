"""A provider's reply to events: whole interactions and streams through one path.

A stream tells the same interaction step by step, and ends with `interaction.completed`, which holds everything but the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.dialects.gemini_interactions.block_reader import Thought, fields_of, items_of
from bardo.dialects.gemini_interactions.constants import NAME, finish_of
from bardo.dialects.gemini_interactions.errors import refusal_in_reply
from bardo.dialects.gemini_interactions.steps import Steps
from bardo.dialects.gemini_interactions.usage import decode_usage
from bardo.dialects.lenient import as_text, decode_leniently
from bardo.dialects.timestamps import seconds_of, stamp_of
from bardo.dialects.wire import WrongShape, without
from bardo.streams.frames import Frame
from bardo.values.errors import BardoError, BrokenStream, MalformedReply
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    UsageUpdate,
)


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
