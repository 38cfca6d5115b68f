"""The frames of a byte stream, and framings that need no delimiters."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MAX_FRAME_BYTES = 32 * 1024 * 1024


class FramingError(ValueError):
    """The bytes of a stream cannot be cut into frames any further."""


class OversizedFrame(FramingError):
    """One frame is larger than the limit; the reader is at fault no more than the writer."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"one frame of the stream is over {limit} bytes")
        self.limit = limit


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One unit of a stream: its payload, its event name, and the bytes it stood in.

    `data` is None if the frame has no payload (a comment, a keep-alive). `complete` is False for what was left when the
    stream ended in the middle of a frame. `alone`: the bytes are those of the payload and its name, and nothing else.
    """

    data: bytes | None
    event: str = ""
    raw: bytes = b""
    complete: bool = True
    alone: bool = False


class WholeBody:
    """A body that is one frame: feed it in pieces, and it comes out at the end."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._limit = limit

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Keep a piece. Raises OversizedFrame past the limit."""
        self._size += len(item)
        if self._size > self._limit:
            raise OversizedFrame(self._limit)
        self._pieces.append(item)
        return ()

    def finish(self) -> Sequence[Frame]:
        """Return the body."""
        body = b"".join(self._pieces)
        self._pieces.clear()
        return (Frame(body, raw=body),)
