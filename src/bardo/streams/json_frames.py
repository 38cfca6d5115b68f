"""JSON as frames: JSON lines, one document a line, as Ollama streams; and one array that arrives element by element, as Gemini streams
without `alt=sse`, or one object that stands there instead.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, OversizedFrame


class _JsonDecoder(ABC):
    """The common state of both readers: the bytes of a frame that has not ended, and the limit of them. Linear; holds at most one frame."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._limit = limit
        self._oversized = False
        self._refused = False

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the frames that `item` completes.

        Raises OversizedFrame where one grows past the limit; frames before it are given first, and the next call raises.
        """
        self._held += item
        frames = [] if self._oversized else self._completed()
        self._oversized = self._oversized or len(self._held) > self._limit
        if self._oversized and not frames:
            raise self._refusal()
        return frames

    def finish(self) -> Sequence[Frame]:
        """Return the bytes behind the last frame, which may be a cut one. Raises OversizedFrame where no `feed` did."""
        if self._oversized and not self._refused:
            raise self._refusal()
        rest = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        frame = self._last(rest)
        return () if frame is None else (frame,)

    @abstractmethod
    def _completed(self) -> list[Frame]:
        """Take the complete frames out of the bytes that are held, up to one that is past the limit."""

    @abstractmethod
    def _last(self, rest: bytes) -> Frame | None:
        """Return the frame of the bytes that are left at the end."""

    def _refusal(self) -> OversizedFrame:
        self._refused = True
        return OversizedFrame(self._limit)


class NdjsonDecoder(_JsonDecoder):
    """Bytes in, one frame for each line; a blank one has no data."""

    def _completed(self) -> list[Frame]:
        held = self._held
        frames: list[Frame] = []
        begin = 0
        end = held.find(b"\n", self._scanned)
        while end >= 0:
            line = bytes(held[begin : end + 1])
            if len(line) > self._limit:
                break
            begin = end + 1
            frames.append(Frame(line.strip() or None, raw=line))
            end = held.find(b"\n", begin)
        del held[:begin]
        self._scanned = len(held)
        return frames

    def _last(self, rest: bytes) -> Frame | None:
        return Frame(rest.strip(), raw=rest, complete=False) if rest.strip() else None


def encode_ndjson(data: bytes) -> bytes:
    """Write one document, itself on one line, as a line."""
    return data + b"\n"


_OUTSIDE_STRINGS = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_BETWEEN = b" \t\r\n,"


class JsonArrayDecoder(_JsonDecoder):
    """Bytes in, one frame for each element that is an object or an array.

    Elements of other kinds do not occur in these streams; their bytes stay with the next frame's `raw`, and those behind the last
    element come in a frame without data.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        super().__init__(limit)
        self._depth = 0
        self._outside = 1  # the depth between elements
        self._begin = 0
        self._in_string = False

    def _completed(self) -> list[Frame]:
        frames: list[Frame] = []
        used = 0
        while (mark := self._next_mark()) is not None:
            end = self._take(*mark)
            if end is None:
                continue
            if end - used > self._limit:
                break
            frames.append(Frame(bytes(self._held[self._begin : end]), raw=bytes(self._held[used:end])))
            used = end
        del self._held[:used]
        self._scanned -= used
        self._begin -= used
        return frames

    def _last(self, rest: bytes) -> Frame | None:
        cut = rest[max(0, self._begin) :].strip(_BETWEEN) if self._depth > self._outside else b""
        if cut:
            return Frame(cut, raw=rest, complete=False)
        return Frame(None, raw=rest) if rest else None

    def _next_mark(self) -> tuple[int, int] | None:
        """Return the next structural byte and its place, or None if more bytes are needed."""
        pattern = _IN_STRING if self._in_string else _OUTSIDE_STRINGS
        match = pattern.search(self._held, self._scanned)
        if match is None:
            self._scanned = len(self._held)
            return None
        place = match.start()
        if self._held[place] == 0x5C:  # a backslash takes the byte after it along
            if place + 1 >= len(self._held):
                self._scanned = place
                return None
            self._scanned = place + 2
        else:
            self._scanned = place + 1
        return self._held[place], place

    def _take(self, mark: int, place: int) -> int | None:
        """Follow one structural byte; return the end of an element where it ends one."""
        if mark == 0x22:
            self._in_string = not self._in_string
        elif mark in (0x7B, 0x5B):
            if self._depth == 0:
                self._outside = 1 if mark == 0x5B else 0
            if self._depth == self._outside:
                self._begin = place
            self._depth += 1
        elif mark in (0x7D, 0x5D) and self._depth > 0:
            self._depth -= 1
            if self._depth == self._outside:
                return place + 1
        return None
