"""What a client gets of a provider's bytes where frames are forwarded as they came, and the model's name in a reply: the one it asked for.

Claude Code drops signed thinking where another name comes back. The provider's name for it stays in the header `X-Bardo-Model`, in the log
and in the receipt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

import msgspec

from bardo.dialects.shared.blocks import RunEncoder, encode_all
from bardo.dialects.shared.dialect import Dialect, ReplyEncoder
from bardo.planning.route import MAX_MODEL_NAME
from bardo.replies.reply_reader import ReplyReader
from bardo.replies.strict_frames import EventsAndBytes
from bardo.values.errors import BardoError
from bardo.values.events import (
    ContentChunk,
    Event,
    Finish,
    RefusalChunk,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    UsageUpdate,
)
from bardo.values.response import Response


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

    def repeated(self, chunk: bytes) -> ReplyUpdate | None:
        """Return what one network read gives in which nothing but one text goes on; None for any other: `update` takes that."""
        forward = self._forward
        if forward and not self._settled:
            return None
        if forward and self._reader.postpone(chunk):
            return ReplyUpdate((), chunk)
        events = self._reader.read_repeated(chunk, joined=forward)
        return None if events is None else ReplyUpdate(events, chunk if forward else b"")

    def rest(self) -> ReplyUpdate:
        """Return what is left at the end of the reply."""
        if not self._forward or self._reader.reframed:
            return ReplyUpdate(self._reader.finish())
        pieces = self._reader.read_rest()
        update = self._forwarded(pieces)
        return self._ended_stream(update, b"".join([raw for _, raw in pieces]))

    def fail(self, error: BardoError) -> ReplyUpdate:
        """Return what is left where the connection broke, which is no failure of a reply that was complete."""
        events = self._reader.fail(error)
        if not self._forward or self._reader.reframed:
            return ReplyUpdate(events)
        return self._ended_stream(ReplyUpdate(events, self._reader.released()))

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
        events = pieces[0][0] if len(pieces) == 1 else [event for given, _ in pieces for event in given]
        if self._settled:
            # Most bytes are sent on as they came.
            kept = [piece for piece in pieces if not _is_usage(piece[0])] if self._withhold_usage else pieces
            return ReplyUpdate(events, b"".join([raw for _, raw in kept]))
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
    return bool(events) and type(events[0]) is UsageUpdate and all(type(event) is UsageUpdate for event in events)


_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


class ClientModelEncoder(RunEncoder):
    """Writes what `inner` writes, with the name `asked` for the model."""

    def __init__(self, inner: ReplyEncoder, asked: str) -> None:
        self._inner = inner
        self._asked = asked
        self.finish = inner.finish

    @property
    def content_type(self) -> str:
        return self._inner.content_type

    @property
    def keep_alive(self) -> bytes:
        return self._inner.keep_alive

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        return self._inner.feed(self._named(item) if type(item) is ReplyStart else item)

    def feed_all(self, items: Sequence[Event]) -> Sequence[bytes]:
        """Write events."""
        kinds = [*map(type, items)]
        place, named = -1, [*items]
        for _ in range(kinds.count(ReplyStart)):
            place = kinds.index(ReplyStart, place + 1)
            named[place] = self._named(named[place])
        return encode_all(self._inner, named)

    def _named(self, start: Any) -> ReplyStart:
        return msgspec.structs.replace(start, model=self._asked)  # type: ignore[no-any-return]


_PIECES = frozenset((ContentChunk, ThinkChunk, ToolCallChunk, RefusalChunk))
"""The events of frames in which, beside what names the model, all is text."""
_NAMING = frozenset((*_PIECES, ReplyStart, Finish, UsageUpdate))
"""Those of a whole stream without calls. In Chat each of its frames names the model, once."""


class ForwardedModel:
    """Puts the name `asked` into the frames of a stream that is forwarded.

    A JSON string holds no quote that is not escaped, so the name is found in no text of the model. Arguments of a call may be an object.
    """

    __slots__ = ("_asked", "_dialect", "_sent", "_swaps")

    def __init__(self, dialect: Dialect, asked: str) -> None:
        self._dialect = dialect
        self._asked = asked
        self._sent = ""
        self._swaps: tuple[tuple[bytes, bytes], ...] = ()

    def in_frames(self, update: ReplyUpdate) -> bytes:
        """Return the bytes of an update with the name that was asked for."""
        if self._dialect.model_field and ReplyStart in map(type, update.events):
            for event in update.events:
                if type(event) is ReplyStart and event.model != self._sent:
                    self._learn(event.model)
        raw = update.raw
        if not self._swaps:
            return raw
        told = {*map(type, update.events)}
        if told and told <= _PIECES:
            return self._replaced(raw)
        named = sum(map(raw.count, [old for old, _ in self._swaps]))
        if not named or (told and told <= _NAMING and named == raw.count(b"data:") - raw.count(b"[DONE]")):
            return self._replaced(raw)
        # Only the lines that hold the name are read.
        pieces, place = list[bytes](), 0
        found = [raw.find(old) for old, _ in self._swaps]
        while ahead := [at for at in found if at >= 0]:
            at = min(ahead)
            begin, end = max(place, raw.rfind(b"\n", place, at) + 1), raw.find(b"\n", at)
            end = end if end >= 0 else len(raw)
            pieces += (raw[place:begin], self._renamed(raw[begin:end]))
            place = end
            found = [
                known if known < 0 or known >= place else raw.find(old, place)
                for known, (old, _) in zip(found, self._swaps, strict=True)
            ]
        return b"".join([*pieces, raw[place:]])

    def _renamed(self, line: bytes) -> bytes:
        """Return a line that holds the name, and maybe the input of a tool or a block with a field of the same name.

        The model is named by a frame, or by the reply in it: Anthropic's `message`, OpenAI's `response`.
        """
        begin, field = line.find(b"{"), self._dialect.model_field
        if begin < 0:
            return line
        try:
            fields = _decode(line[begin:])
            held = {
                name: _decode(raw)
                for name, raw in fields.items()
                if name in ("message", "response") and field not in fields and bytes(raw)[:1] == b"{"
            }
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self._replaced(line)
        place = next((name for name, inner in held.items() if field in inner), None)
        told = (fields if place is None else held[place]).get(field)
        if told is None or bytes(told) != _encode(self._sent):
            return line
        if sum(map(line.count, [old for old, _ in self._swaps])) == 1:
            return self._replaced(line)
        new = msgspec.Raw(_encode(self._asked))
        named = {field: new} if place is None else {place: {**held[place], field: new}}
        return line[:begin] + _encode({**fields, **named}) + line[len(line.rstrip()) :]

    def _replaced(self, raw: bytes) -> bytes:
        for old, new in self._swaps:
            raw = raw.replace(old, new)
        return raw

    def _learn(self, sent: str) -> None:
        self._sent = sent
        self._swaps = _swaps(self._dialect.model_field, sent, self._asked) if sent and sent != self._asked else ()


def with_client_model(body: bytes, dialect: Dialect, response: Response, asked: str) -> bytes:
    """Return a whole reply that is forwarded with the name that was asked for; only this field of the body changes."""
    field, sent = dialect.model_field, response.model
    if not field or not sent or sent == asked:
        return body
    (short, short_new), (long, long_new) = _swaps(field, sent, asked)
    found = body.count(short)
    if found + body.count(long) == 1:
        return body.replace(short, short_new, 1) if found else body.replace(long, long_new, 1)
    # The arguments of a call may hold such a field too.
    try:
        fields = _decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return body
    return _encode({**fields, field: msgspec.Raw(_encode(asked))}) if field in fields else body


def _swaps(field: str, sent: str, asked: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the bytes that name the model, with and without a space, each with what they become."""
    short = len(sent) <= MAX_MODEL_NAME and len(asked) <= MAX_MODEL_NAME
    return _kept_swaps(field, sent, asked) if short else _new_swaps(field, sent, asked)


def _new_swaps(field: str, sent: str, asked: str) -> tuple[tuple[bytes, bytes], ...]:
    name, old, new = (_encode(text) for text in (field, sent, asked))
    return tuple([(name + colon + old, name + colon + new) for colon in (b":", b": ")])


_kept_swaps = lru_cache(maxsize=512)(_new_swaps)


def named_as_asked(response: Response, asked: str) -> Response:
    """Return a response with the name that was asked for."""
    return msgspec.structs.replace(response, model=asked)
