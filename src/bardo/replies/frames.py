"""Cut the bytes of one reply into frames, know when the model has begun to speak, and read a whole body that broke off."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.dialect import Framing, RepeatingDecoder, ReplyDecoder
from bardo.dialects.shared.json_values import excerpt
from bardo.streams.eventstream import EventStreamDecoder
from bardo.streams.frames import Frame, FramingError, WholeBody
from bardo.streams.json_array import JsonArrayDecoder
from bardo.streams.ndjson import NdjsonDecoder
from bardo.streams.sse import FrameEnds, SseDecoder
from bardo.streams.stage import Stage
from bardo.values.errors import MalformedReply
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    EmptyThought,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    UsageUpdate,
    WithheldThought,
)

_QUOTED_BYTES = 1000
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"
_SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
# Neither a field of an SSE frame nor the length of an event stream's message begins so.
_JSON = (b"{", b"[")
_DECODERS: dict[Framing, Callable[[], Stage[bytes, Frame]]] = {
    "sse": SseDecoder,
    "ndjson": NdjsonDecoder,
    "json_array": JsonArrayDecoder,
    "eventstream": EventStreamDecoder,
}


class ReplyFraming:
    """Cuts one reply into frames. `reframed`: its bytes are in another framing than was announced; `begun`: a frame with data came.

    The head of a reply is sometimes wrong about its framing: a server may answer a streaming request with one JSON object under a stream's
    content type, or the other way round, and a proxy may answer with a page. Bytes that are no reply at all are quoted.
    """

    __slots__ = ("_framing", "_opening", "_provider", "_streamed", "begun", "inner", "reframed")

    def __init__(self, framing: Framing, *, streamed: bool, provider: str) -> None:
        self.inner: Stage[bytes, Frame] = _DECODERS[framing]() if streamed else WholeBody()
        self.begun = False
        self.reframed = False
        self._framing = framing
        self._streamed = streamed
        self._provider = provider
        self._opening = b""

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the frames that `item` completes. Raises FramingError."""
        if self.begun:
            return self.inner.feed(item)
        if len(self._opening) < _QUOTED_BYTES:
            self._look(item[:_QUOTED_BYTES])
        return self._checked(self.inner.feed(item))

    def finish(self) -> Sequence[Frame]:
        """Return what is left, and the frames of a whole body that is a stream. Raises FramingError."""
        if self.begun:
            return self.inner.finish()
        frames = self.inner.finish()
        if not self._streamed and frames and _is_stream(frames[0].data or b"", self._framing):
            self.reframed = True
            self.inner = _DECODERS[self._framing]()
            frames = [*self.inner.feed(frames[0].raw), *self.inner.finish()]
        return self._checked(frames)

    def _checked(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Return the reply's first frames. Raises FramingError where they hold no JSON and nothing in their framing says they should."""
        data = next((frame.data for frame in frames if frame.data), b"")
        plain = isinstance(self.inner, WholeBody | NdjsonDecoder)
        if plain and data.strip(_BEFORE_TEXT) and not data.lstrip(_BEFORE_TEXT).startswith(_JSON):
            raise FramingError("it is no JSON object")
        self.begun = bool(data)
        return frames

    def problem(self, why: str = "") -> MalformedReply | None:
        """Return what is wrong with bytes that held no frame; None where there were none, or frames."""
        if self.begun or not self._opening.strip(_BEFORE_TEXT):
            return MalformedReply(why, provider=self._provider) if why else None
        message = f"what {self._provider} sent is not a reply: {excerpt(self._opening, 200)}"
        return MalformedReply(message, hint="check base_url, and what answers there", provider=self._provider)

    def _look(self, item: bytes) -> None:
        """Keep the reply's first bytes, and read one JSON value as what it is."""
        before = self._opening.strip(_BEFORE_TEXT)
        self._opening += item
        if before or not self._streamed or self._framing not in ("sse", "eventstream"):
            return
        if self._opening.lstrip(_BEFORE_TEXT).startswith(_JSON):
            self.reframed = True
            self.inner = WholeBody()


class RepeatedFrames:
    """Reads the frames of a stream that are alike in one go, where the framing and the decoder of a reply can both do so."""

    __slots__ = ("_around", "decoder", "framing")

    def __init__(self, framing: SseDecoder, decoder: RepeatingDecoder) -> None:
        self.framing = framing
        self.decoder = decoder
        self._around: FrameEnds | None = None

    @classmethod
    def of(cls, framing: Stage[bytes, Frame], decoder: ReplyDecoder) -> Self | None:
        """Return the reader of these two, None where one of them reads frame by frame."""
        both = isinstance(framing, SseDecoder) and isinstance(decoder, RepeatingDecoder)
        return cls(framing, decoder) if both else None  # type: ignore[arg-type]

    def read(self, chunk: bytes, place: int, *, joined: bool) -> tuple[Sequence[Event], int] | None:
        """Return the events of the frames at `place` of `chunk`, and where they end; None where it must be fed."""
        self._around = around = self.decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, place, around)
        events = self.decoder.again(values, joined=joined) if values else None
        if events is None and len(values) > 1 and not around.filled:
            # The last one begins as they do and goes on otherwise: with a signature, a null, or as the end of the block.
            *values, last = values
            end -= around.begins + len(last) + around.ends
            events = self.decoder.again(values, joined=joined)
        return None if events is None else (events, end)

    def value_of(self, chunk: bytes) -> bytes | None:
        """Return what stands in a chunk between the ends of a frame like those that were read last; None where these are not its ends.

        Where the value is a JSON text, the chunk is just one such frame: no text holds a line end or an unescaped quote.
        """
        around = self._around
        if around is None or not chunk.startswith(around.begin) or not chunk.endswith(around.end) or around.filled:
            return None
        return chunk[around.begins : len(chunk) - around.ends]

    def read_all(self, chunk: bytes, *, joined: bool) -> Sequence[Event] | None:
        """Return the events of a chunk that holds nothing but such frames, all of them whole; None for any other."""
        value = self.value_of(chunk)
        events = None if value is None else self.decoder.again((value,), joined=joined)
        if events is not None:
            return events
        self._around = around = self.decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, 0, around)
        return self.decoder.again(values, joined=joined) if values and end == len(chunk) else None


def _is_stream(body: bytes, framing: Framing) -> bool:
    """Whether a body that was announced as one JSON value is a stream."""
    text = body.lstrip(_BEFORE_TEXT)
    if framing == "ndjson":
        first, _, more = text.partition(b"\n")
        return first.rstrip().endswith(b"}") and more.lstrip().startswith(b"{")
    if framing == "eventstream":
        return body.startswith(b"\0")
    return framing == "sse" and text.startswith(_SSE_FIELDS)


_NO_CONTENT = frozenset({ReplyStart, ReplyFields, UsageUpdate, Degraded})
_NO_TOKEN = frozenset({ThinkStart, ThinkEnd, EmptyThought, WithheldThought, BlockFields, Failed})


def is_content(event: Event) -> bool:
    """Whether an event is more than the beginning and end of a reply without content."""
    if type(event) is Finish:
        # A word that is new is one; what stands there instead of a word is none.
        return event.reason != "unknown" or event.raw.isidentifier()
    return type(event) not in _NO_CONTENT


def is_token(event: Event) -> bool:
    """Whether an event shows that the model has begun to answer, or has ended.

    A block without text is none, and neither is the id of one: servers announce blocks before the model has made anything.
    """
    if type(event) in _NO_CONTENT:
        return False
    if isinstance(event, ContentChunk | ThinkChunk | RefusalChunk):
        return bool(event.text)
    if isinstance(event, ToolCallChunk):
        return bool(event.arguments)
    if isinstance(event, OpaqueState):
        return event.opaque.kind != "id"
    if isinstance(event, Finish) and event.reason == "error":
        return False
    return type(event) not in _NO_TOKEN and is_content(event)


_MOST_BYTES = 1 << 20
"""How much of a body is read as JSON; what is behind it counts as text."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*+("?)|[{}\[\]]')
_HALF_PAIR = re.compile(r"\\u[dD][89aAbB][0-9a-fA-F]{2}\Z")
_LAST_WORD = re.compile(r"(?<![\w.+-])[\w.+-]*\Z")
_CLOSING = {"{": "}", "[": "]"}


def events_of_broken_body(body: bytes, row: ProviderRow) -> Sequence[Event]:
    """Return what a model had said by a body that broke off, and what was counted; nothing that says that it ended."""
    text = body[:_MOST_BYTES].decode("utf-8", "ignore")
    events: list[Event] = []
    for closed in _closed(text):
        data = closed.encode()
        try:
            msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            continue
        events = [*dialect(row.dialect).open_decoder(row).feed(Frame(data, raw=data))]
        break
    rest = body[_MOST_BYTES:].decode("utf-8", "ignore")
    if rest:
        events.append(ContentChunk(0, rest))
    return [event for event in events if not isinstance(event, Failed | Finish)]


def _closed(text: str) -> Sequence[str]:
    """Return the ways in which a JSON text may be closed where it ends: behind a value, a key, a colon or comma, or in a word."""
    open_ones: list[str] = []
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in _CLOSING:
            open_ones.append(_CLOSING[token])
        elif token in ("}", "]"):
            del open_ones[-1:]
        elif found[1] == "":
            # A text that goes on: half an escape at its end belongs to no token.
            text = _HALF_PAIR.sub("", text[: found.end()]) + '"'
            break
    closing = "".join(reversed(open_ones))
    bare = text.rstrip().removesuffix(",")
    word = _LAST_WORD.sub("", bare)
    return (bare + closing, bare + ":null" + closing, bare + "null" + closing, word + "null" + closing)
