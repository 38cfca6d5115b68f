"""One JSON array that arrives element by element, as Gemini streams without `alt=sse`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, OversizedFrame

_OUTSIDE_STRINGS = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_BETWEEN = b" \t\r\n,"


class JsonArrayDecoder:
    """Bytes in, one frame for each element that is an object or an array. Linear; holds at most one element.

    Elements of other kinds do not occur in these streams; their bytes stay with the next frame's `raw`.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._depth = 0
        self._begin = 0
        self._in_string = False
        self._limit = limit

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the elements that `item` completes. Raises OversizedFrame when one grows past the limit."""
        self._held += item
        frames: list[Frame] = []
        used = 0
        while (found := self._next_mark()) is not None:
            end = self._take(*found)
            if end is not None:
                frames.append(Frame(bytes(self._held[self._begin : end]), raw=bytes(self._held[used:end])))
                used = end
        if used:
            del self._held[:used]
            self._scanned -= used
            self._begin -= used
        if len(self._held) > self._limit:
            raise OversizedFrame(self._limit)
        return frames

    def finish(self) -> Sequence[Frame]:
        """Return what was left inside an element that did not end."""
        rest = bytes(self._held)
        self._held.clear()
        cut = rest[max(0, self._begin) :].strip(_BETWEEN) if self._depth > 1 else b""
        return (Frame(cut, raw=rest, complete=False),) if cut else ()

    def _next_mark(self) -> tuple[int, int] | None:
        """Return the next structural byte and its place; None where more bytes are needed."""
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
            if self._depth == 1:
                self._begin = place
            self._depth += 1
        elif mark in (0x7D, 0x5D) and self._depth > 0:
            self._depth -= 1
            if self._depth == 1:
                return place + 1
        return None
