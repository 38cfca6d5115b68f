"""The bytes of one reply as frames, in the framing that they have: the head of a reply is sometimes wrong about it.

A server may answer a streaming request with one JSON object under a stream's content type, or the other way round, and a proxy
may answer with a page. What is no reply at all is quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from bardo.dialects.shared.dialect import Framing, RepeatingDecoder, ReplyDecoder
from bardo.dialects.shared.json_values import excerpt
from bardo.streams.eventstream import EventStreamDecoder
from bardo.streams.frames import Frame, FramingError, WholeBody
from bardo.streams.json_array import JsonArrayDecoder
from bardo.streams.ndjson import NdjsonDecoder
from bardo.streams.sse import FrameEnds, SseDecoder
from bardo.streams.stage import Stage
from bardo.values.errors import MalformedReply
from bardo.values.events import Event

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
    """Cuts one reply into frames. `reframed`: its bytes are in another framing than was announced; `begun`: a frame with data came."""

    __slots__ = ("_framing", "_opening", "_provider", "_streamed", "begun", "inner", "reframed")

    def __init__(self, framing: Framing, *, streamed: bool, provider: str) -> None:
        self.inner = open_framing(framing, streamed=streamed)
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
            self.inner = open_framing(self._framing, streamed=True)
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
            self.inner = open_framing(self._framing, streamed=False)


class RepeatedFrames:
    """Reads the frames of a stream that are alike in one go, where the framing and the decoder of a reply can both do so."""

    __slots__ = ("_around", "_decoder", "framing")

    def __init__(self, framing: SseDecoder, decoder: RepeatingDecoder) -> None:
        self.framing = framing
        self._decoder = decoder
        self._around: FrameEnds | None = None

    @classmethod
    def of(cls, framing: Stage[bytes, Frame], decoder: ReplyDecoder) -> Self | None:
        """Return the reader of these two, None where one of them reads frame by frame."""
        both = isinstance(framing, SseDecoder) and isinstance(decoder, RepeatingDecoder)
        return cls(framing, decoder) if both else None  # type: ignore[arg-type]

    def read(self, chunk: bytes, place: int, *, joined: bool) -> tuple[Sequence[Event], int] | None:
        """Return the events of the frames at `place` of `chunk`, and where they end; None where it must be fed."""
        self._around = around = self._decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, place, around)
        events = self._decoder.again(values, joined=joined) if values else None
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
        events = None if value is None else self._decoder.again((value,), joined=joined)
        if events is not None:
            return events
        self._around = around = self._decoder.repeated()
        if around is None:
            return None
        values, end = self.framing.run(chunk, 0, around)
        return self._decoder.again(values, joined=joined) if values and end == len(chunk) else None


def open_framing(framing: Framing, *, streamed: bool) -> Stage[bytes, Frame]:
    """Begin to cut one reply: a whole one is one frame."""
    return _DECODERS[framing]() if streamed else WholeBody()


def _is_stream(body: bytes, framing: Framing) -> bool:
    """Whether a body that was announced as one JSON value is a stream."""
    text = body.lstrip(_BEFORE_TEXT)
    if framing == "ndjson":
        first, _, more = text.partition(b"\n")
        return first.rstrip().endswith(b"}") and more.lstrip().startswith(b"{")
    if framing == "eventstream":
        return body.startswith(b"\0")
    return framing == "sse" and text.startswith(_SSE_FIELDS)
