"""What a client gets of a provider's bytes where frames are forwarded as they came.

Strict readers must be able to read each frame: bardo reads over lone surrogates, control characters in strings, NaN, and bytes that are no
UTF-8, and a frame that holds them is written anew, which its client is told. A provider's key is taken out of what it says beside the
answer: warnings, finish words, fields that bardo passes on. What the model wrote is never changed: an answer may be about a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from bardo.dialects.base import PlainReplyDecoder, ReplyDecoder
from bardo.dialects.call_ids import FillCallIds
from bardo.dialects.lenient import MENDED as MENDED
from bardo.dialects.lenient import decode_leniently
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.values.errors import BardoError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Finish,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.secrets import Secrets

if TYPE_CHECKING:
    from bardo.engine.reply_reader import ReplyReader

_decode = msgspec.json.Decoder().decode
_DONE = b"[DONE]"
_AROUND_DATA, _AROUND_NAME = len(b"data: \n\n"), len(b"event: \ndata: \n\n")

EventsAndBytes = tuple[Sequence[Event], bytes]
"""Events, and the bytes of the provider that they were read from; no bytes where the reply broke."""


class ReplyUpdate(msgspec.Struct, frozen=True, gc=False):
    """What one network read of a reply gave: events, and the bytes to forward where frames are forwarded.

    `rewritten` are those of the events that are written anew all the same, behind these bytes.
    """

    events: Sequence[Event]
    raw: bytes = b""
    rewritten: Sequence[Event] = ()


class Forwarding:
    """Decides which bytes of a streamed reply its client gets, where the reply may be forwarded (`forward`).

    Not those of usage that the client did not ask for (`withhold_usage`), and none once a call has come without its id. `hold_end`: from
    the frame on that ends the reply they wait in `held_end`, because the reply is judged before it may end.
    """

    __slots__ = (
        "_ended",
        "_forward",
        "_hold_end",
        "_reader",
        "_settled",
        "_switchable",
        "_waiting",
        "_withhold_usage",
        "held_end",
    )

    def __init__(self, reader: ReplyReader, *, forward: bool, withhold_usage: bool, hold_end: bool) -> None:
        self.held_end: list[bytes] = []
        self._reader = reader
        self._switchable = reader.switchable
        self._forward = forward
        self._withhold_usage = withhold_usage
        self._hold_end = hold_end
        self._ended = False
        self._settled = False
        self._waiting: list[bytes] = []

    def update(self, chunk: bytes) -> ReplyUpdate:
        """Return what one network read gives."""
        if not self._forward:
            return ReplyUpdate(self._reader.feed(chunk))
        pieces = self._reader.read(chunk, joined=True)
        if self._settled and self._reader.repeats:
            # Frames that repeat change nothing of what is asked below.
            return ReplyUpdate(*pieces[0])
        return self._forwarded(pieces)

    def rest(self) -> ReplyUpdate:
        """Return what is left at the end of the reply."""
        if not self._forward or self._reader.reframed:
            return ReplyUpdate(self._reader.finish())
        pieces = self._reader.read_rest()
        update = self._forwarded(pieces)
        return self._ended_stream(update, b"".join([raw for _, raw in pieces]))

    def fail(self, error: BardoError) -> ReplyUpdate:
        """Return what is left where the connection broke, which is no failure of a reply that was complete."""
        update = ReplyUpdate(self._reader.fail(error))
        return update if not self._forward or self._reader.reframed else self._ended_stream(update)

    def _ended_stream(self, update: ReplyUpdate, last: bytes = b"") -> ReplyUpdate:
        """Return the update with the frame that ends the stream, where its provider left that out. `last` are the last bytes that came."""
        decoder = self._switchable
        end = b"" if decoder is None or decoder.lacks_ids or self._reader.failure is not None else decoder.missing_end
        if not end:
            return update
        if last and not last.endswith(b"\n\n"):
            end = b"\n\n" + end
        if not self._hold_end:
            return ReplyUpdate(update.events, update.raw + end, update.rewritten)
        self.held_end.append(end)
        return update

    def _forwarded(self, pieces: Sequence[EventsAndBytes]) -> ReplyUpdate:
        decoder = self._switchable
        waits = decoder is not None and decoder.waits
        switches = decoder is not None and decoder.lacks_ids
        self._settled = not (waits or switches or self._hold_end or self._waiting)
        if len(pieces) == 1 and not waits and not switches and self._is_plain(pieces[0][0]):
            return ReplyUpdate(*pieces[0])
        events = [event for given, _ in pieces for event in given]
        if switches:
            reply = self._reader.fold.response()
            return ReplyUpdate(
                events, b"", [ReplyStart(id=reply.id, model=reply.model, created=reply.created), *events]
            )
        withhold = self._withhold_usage
        sent = self._before_end((given, raw) for given, raw in pieces if not (withhold and _is_usage(given)))
        all_bytes = [*self._waiting, *sent]
        self._waiting = _without_events(pieces) if waits and not self._ended else []
        return ReplyUpdate(events, b"".join(all_bytes[: len(all_bytes) - len(self._waiting)]))

    def _is_plain(self, events: Sequence[Event]) -> bool:
        """Whether the bytes of these events are sent on as they came, as most are."""
        return bool(events) and not self._waiting and not self._hold_end and type(events[0]) is not UsageUpdate

    def _before_end(self, pieces: Iterable[EventsAndBytes]) -> Iterator[bytes]:
        """Yield the bytes that may be sent; the others wait in `held_end`."""
        for events, raw in pieces:
            if self._hold_end and (self._ended or any(type(event) is Finish for event in events)):
                self._ended = True
                self.held_end.append(raw)
            else:
                yield raw


def _without_events(pieces: Sequence[EventsAndBytes]) -> list[bytes]:
    """Return the last frames that gave no events."""
    return [raw for _, raw in reversed([*takewhile(lambda one: not one[0], reversed(pieces))])]


def _is_usage(events: Sequence[Event]) -> bool:
    return bool(events) and all(type(event) is UsageUpdate for event in events)


class SoundFrames:
    """Reads the frames of one reply, and makes them such as any client can read: mended where they must be, with an id for each call."""

    __slots__ = ("_decoder", "_fill_ids", "_read_plain", "_told")

    def __init__(self, decoder: ReplyDecoder, fill_ids: FillCallIds | None) -> None:
        self._decoder = decoder
        self._fill_ids = fill_ids
        self._read_plain = decoder.read_plain_frame if isinstance(decoder, PlainReplyDecoder) else None
        self._told = False

    def decode(self, frame: Frame) -> tuple[Frame, Sequence[Event]]:
        """Return a frame as its client gets it, and its events; at the first that is mended, also the one that tells so."""
        if self._read_plain is not None and _is_data_alone(frame):
            plain = self._read_plain(frame)
            if plain is not None:
                return frame, plain
        readable = sound(frame)
        told = readable.data is not frame.data and not self._told
        self._told = self._told or told
        if self._fill_ids is not None:
            readable = self._fill_ids.feed(readable)
        decoded = self._decoder.feed(readable)
        return readable, [*decoded, MENDED] if told else decoded


def sound(frame: Frame) -> Frame:
    """Return the frame as any reader can read it: the frame itself, unless it had to be mended, or its bytes left out."""
    data, raw = frame.data, frame.raw
    if data is None:
        return frame if frame.complete and _is_text(raw) else Frame(None, complete=frame.complete)
    whole = raw is data
    if data == _DONE:
        return _as_it_is(frame)
    if not _is_strict(data, raw):
        try:
            data = msgspec.json.encode(decode_leniently(data))
        except ValueError:
            return _as_it_is(frame)
        return Frame(data, frame.event, data if whole else encode_sse(data, frame.event), frame.complete)
    return frame


def _is_data_alone(frame: Frame) -> bool:
    """Whether the bytes of a server-sent event are those of its data and its name, and nothing else."""
    name = frame.event
    if frame.data is None or not frame.complete or not name.isascii():
        return False
    around = len(frame.raw) - len(frame.data)
    if name:
        return around == len(name) + _AROUND_NAME
    return around == _AROUND_DATA or (around == _AROUND_DATA + 2 and frame.raw.endswith(b"\r\n\r\n"))


def _as_it_is(frame: Frame) -> Frame:
    """Return a frame that holds no JSON: `[DONE]`, or what its decoder refuses."""
    keep = frame.complete or (frame.data or b"").strip() == _DONE
    return frame if keep and _is_text(frame.raw) else Frame(frame.data, frame.event, b"", frame.complete)


def _is_strict(data: bytes, raw: bytes) -> bool:
    try:
        _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return _is_text(raw)


def _is_text(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_secrets(event: Event, secrets: Secrets) -> Event:
    """Return an event without secrets, where it is none that holds what the model wrote."""
    match event:
        case ReplyFields(fields=fields):
            return msgspec.structs.replace(event, fields=secrets.in_value(fields))
        case Finish(raw=raw):
            return msgspec.structs.replace(event, raw=secrets.in_text(raw))
        case ReplyStart(id=reply_id, model=model):
            return msgspec.structs.replace(event, id=secrets.in_text(reply_id), model=secrets.in_text(model))
        case UsageUpdate(usage=usage):
            return UsageUpdate(msgspec.structs.replace(usage, raw=secrets.in_value(usage.raw)))
        case Degraded(degradation=one):
            return Degraded(
                msgspec.structs.replace(
                    one,
                    what=secrets.in_text(one.what),
                    why=secrets.in_text(one.why),
                    asked=secrets.in_value(one.asked),
                    sent=secrets.in_value(one.sent),
                )
            )
    return event


def without_quoted(raw: bytes, events: Iterable[Event], secrets: Secrets) -> bytes:
    """Return a provider's frame without secrets, unless they are a part of what the model wrote in it."""
    if not secrets.stand_in(raw):
        return raw
    written = "".join(map(_written, events)).encode("utf-8", "replace")
    return raw if secrets.stand_in(written) else secrets.in_bytes(raw)


def _written(event: Event) -> str:
    match event:
        case ContentChunk(text=text) | ThinkChunk(text=text) | RefusalChunk(text=text):
            return text
        case ToolCallChunk(arguments=arguments):
            return arguments
        case ToolCallStart(name=name):
            return name
    return ""
