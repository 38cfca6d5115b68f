"""The blocks of a reply, as the readers and the writers of all dialects keep and write them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import msgspec

from bardo.dialects.shared.json_values import JsonObject
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
from bardo.values.blocks import Opaque
from bardo.values.events import (
    ContentChunk,
    Event,
    Extension,
    Finish,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    UsageUpdate,
)
from bardo.values.fold import CarriedFields, OpaqueStates
from bardo.values.request import Request
from bardo.values.runs import MANY, runs_of
from bardo.values.usage import Usage

if TYPE_CHECKING:
    from bardo.dialects.shared.dialect import ReplyEncoder

Kind = Literal["text", "thinking", "plan", "tool_call"]
"""The kind of a block. A plan is the thinking that Cohere writes before its tool calls."""

_CHUNKS: dict[Kind, type] = {
    "text": ContentChunk,
    "thinking": ThinkChunk,
    "plan": ThinkChunk,
    "tool_call": ToolCallChunk,
}


class Frames(Protocol):
    """The frames of one reply. `streamed` False: they are collected into one whole reply instead."""

    streamed: bool

    def take(self) -> list[bytes]:
        """Return the frames written since the last time."""
        ...

    def write_block(self, block: Any) -> None:
        """Write a block that is complete."""
        ...


class BlockWriter:
    """Write one block. Opaque state is kept for its end, because a later state may replace an earlier one.

    `repeats`: the next piece of text differs from the last one in its text only, so that `frame` is all it takes.
    `hidden`: the text of this thinking is not written. `part` is the part of a summary that was written last.
    """

    __slots__ = ("begun", "chunk", "hidden", "kind", "number", "part", "repeats", "states")

    def __init__(self, number: int, kind: Kind, *, hidden: bool = False) -> None:
        self.number = number
        self.kind = kind
        self.chunk = _CHUNKS[kind]
        self.hidden = hidden
        self.part: int | None = None
        self.begun = self.repeats = False
        self.states = OpaqueStates()

    @property
    def owner(self) -> str:
        """The id of a tool call, "" for any other block: the owner of its opaque state."""
        return ""

    def goes_on_with(self, item: Any) -> bool:
        """Whether an event is a piece of this block."""
        is_piece = type(item) is self.chunk
        return is_piece and item.block == self.number and not item.choice

    def frame(self, text: str) -> bytes:
        """Return the frame of one further piece of text."""
        raise NotImplementedError

    def piece(self, text: str) -> None:
        """Write a piece of text or of arguments, after the start of the block where that is still missing."""
        raise NotImplementedError

    def name_call(self, call_id: str, name: str) -> None:
        """Take the id and the name of a tool call."""
        raise NotImplementedError

    def add_fields(self, fields: JsonObject) -> None:
        """Write fields of the dialect's own."""
        raise NotImplementedError

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces it."""
        self.states.add(state)

    def abandon(self) -> None:
        """Leave the block without an end. What follows it gets an index of its own."""

    def end(self) -> None:
        """Write the rest of the block, and the blocks its opaque state needs."""
        raise NotImplementedError


KindT = TypeVar("KindT")


class OpenBlock(Generic[KindT]):
    """One block. `kind` is the dialect's own; `has_content`: a piece of it was not empty.

    `initial` are the arguments with which a call began, `pieces` are texts that are joined at its end, and `value` is what a block of an
    unknown kind holds.
    """

    __slots__ = ("has_content", "initial", "kind", "number", "pieces", "value")

    def __init__(self, number: int, kind: KindT) -> None:
        self.number = number
        self.kind = kind
        self.has_content = False
        self.initial = ""
        self.pieces: list[str] = []
        self.value: JsonObject = {}


def add_piece(value: JsonObject, piece: JsonObject) -> None:
    """Add a piece to a block of an unknown kind: texts and lists go on, any other field is replaced."""
    for name, more in piece.items():
        held = value.get(name)
        joins = isinstance(held, str | list) and type(held) is type(more)
        value[name] = held + more if joins else more


def add_states(number: int, states: tuple[Opaque, ...], out: list[Event]) -> None:
    """Add opaque states to a block."""
    out.extend(OpaqueState(number, state) for state in states)


class ReplyValues:
    """The values of one reply, as its events bring them. `name` is the dialect's name: fields of other dialects are left out."""

    name = ""

    def __init__(self, request: Request) -> None:
        self.start = ReplyStart(model=request.model)
        self.usage = Usage()
        self.finish_event: Finish | None = None
        self.extension: JsonObject = {}
        self.fields = CarriedFields(self.name)

    def take_value(self, item: Event) -> None:
        """Keep what an event says of the reply as a whole; other events say nothing."""
        take = _TAKE.get(item.__class__)
        if take is not None:
            take(self, item)

    def take_start(self, item: ReplyStart) -> None:
        """Take the id, the model and the time of the reply."""
        self.start = ReplyStart(
            id=item.id or self.start.id,
            model=item.model or self.start.model,
            created=self.start.created if item.created is None else item.created,
        )

    def _take_usage(self, item: UsageUpdate) -> None:
        self.usage = item.usage

    def _take_own_fields(self, item: ReplyFields) -> None:
        if item.dialect == self.name and not item.choice:
            self.take_reply_fields(item)

    def _take_finish(self, item: Finish) -> None:
        if not item.choice:
            self.finish_event = item

    def _take_extension(self, item: Extension) -> None:
        self.extension |= item.fields

    def take_reply_fields(self, item: ReplyFields) -> None:
        """Keep fields of the dialect's own for the start or the end of the reply."""
        self.fields.merge(self.name, item.fields)


_TAKE: dict[type, Callable[[ReplyValues, Any], None]] = {
    ReplyStart: lambda values, item: values.take_start(item),
    UsageUpdate: ReplyValues._take_usage,
    ReplyFields: ReplyValues._take_own_fields,
    Finish: ReplyValues._take_finish,
    Extension: ReplyValues._take_extension,
}


class RunEncoder:
    """An encoder that writes many events in one go: work done once for the pieces of one text costs next to nothing for each."""

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames of one event."""
        raise NotImplementedError

    def go_on(self, first: Event, further: Sequence[Event]) -> Sequence[bytes] | None:
        """Return the frames of pieces that go on with the text of `first`, which was fed just before, or None if each is to be fed."""
        return None

    def feed_all(self, items: Sequence[Event]) -> Sequence[bytes]:
        """Return the frames of these events, those that `feed` returns for one after the other."""
        out: list[bytes] = []
        for first, *further in runs_of(items):
            out += self.feed(first)
            frames = self.go_on(first, further) if further else ()
            out += _fed(self, further) if frames is None else frames
        return out


def encode_all(encoder: ReplyEncoder, items: Sequence[Event]) -> Sequence[bytes]:
    """Return the frames of these events."""
    if len(items) >= MANY and isinstance(encoder, RunEncoder):
        return encoder.feed_all(items)
    return _fed(encoder, items)


def _fed(encoder: ReplyEncoder | RunEncoder, items: Sequence[Event]) -> Sequence[bytes]:
    return [written for item in items for written in encoder.feed(item)]


# A stream whose frames never repeat costs this many tries.
_MOST_TRIES = 8
_PROBE = "\x1abardo\x1a"
_PROBE_BYTES = msgspec.json.encode(_PROBE)
_encode = msgspec.json.Encoder().encode
_text_of = msgspec.json.Decoder(str).decode
_texts_of = msgspec.json.Decoder(list[str]).decode


def is_text(value: bytes) -> bool:
    """Whether a JSON value is a text."""
    try:
        _text_of(value)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def texts_of(values: Sequence[bytes]) -> list[str] | None:
    """Return the texts that JSON values are, or None if one of them is none."""
    try:
        # No text holds a line end, so two broken ones cannot make a sound one.
        texts = [_text_of(values[0])] if len(values) == 1 else _texts_of(b"[" + b",\n".join(values) + b"]")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return texts if len(texts) == len(values) else None


class RepeatedText:
    """Knows the bytes around the text of the frames that repeat: `around`, or None if nothing is known to repeat.

    `read` returns what a frame continues and its text, and None for a frame that is more than a plain delta.

    It is for dialects whose plain deltas say nothing but which block they continue. As long as frames have the same bytes around their
    text, nothing else in them is new.
    """

    __slots__ = ("_block", "_make", "_read", "_tries", "around")

    def __init__(self, read: Callable[[bytes], tuple[Hashable, str] | None]) -> None:
        self.around: FrameEnds | None = None
        self._read = read
        self._block: Hashable = None
        self._make: Callable[[str], Event] | None = None
        self._tries = _MOST_TRIES

    def note(self, item: Frame, block: Hashable, text: str) -> bool:
        """Take notice of a plain delta that continues `block`. Return whether that is another block than before: then `follow` it."""
        is_same, around = block == self._block, self.around
        if is_same and (around is None or not item.raw.startswith(around.begin)):
            self._learn(item, text)
        return not is_same

    def follow(self, block: Hashable, make: Callable[[str], Event]) -> None:
        """Read what continues `block` from now on; `make` returns the event of a text."""
        self._block, self._make, self.around = block, make, None

    def event(self, text: str) -> Event:
        """Return the event of a text of the block that is followed."""
        assert self._make is not None
        return self._make(text)

    def forget(self) -> None:
        """Forget the frames: a block may have ended."""
        self.around = self._block = self._make = None

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames with these values as their text, `joined` into one, or None if one of them is no text."""
        texts, make = texts_of(values), self._make
        if texts is None or make is None:
            return None
        self._tries = _MOST_TRIES
        return [make("".join(texts))] if joined else [make(text) for text in texts]

    def _learn(self, item: Frame, text: str) -> None:
        """Keep the bytes around the text, if another text in its place changes nothing else."""
        if self._tries <= 0 or item.data is None:
            return
        self._tries -= 1
        head, quoted, tail = item.data.partition(_encode(text))
        if quoted and self._read(head + _PROBE_BYTES + tail) == (self._block, _PROBE):
            self.around = FrameEnds(head, tail, item.event)
