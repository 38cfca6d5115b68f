"""JSON lines: one JSON document a line, as Ollama streams."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, OversizedFrame


class NdjsonDecoder:
    """Bytes in, one frame for each line that is not blank. Linear; holds at most one line."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._limit = limit

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the lines that `item` completes. Raises OversizedFrame when one grows past the limit."""
        held = self._held
        held += item
        frames: list[Frame] = []
        begin = 0
        end = held.find(b"\n", self._scanned)
        while end >= 0:
            line = bytes(held[begin : end + 1])
            begin = end + 1
            if line.strip():
                frames.append(Frame(line.strip(), raw=line))
            end = held.find(b"\n", begin)
        if begin:
            del held[:begin]
        self._scanned = len(held)
        if len(held) > self._limit:
            raise OversizedFrame(self._limit)
        return frames

    def finish(self) -> Sequence[Frame]:
        """Return a last line without its line end; it may be cut."""
        rest = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        return (Frame(rest.strip(), raw=rest, complete=False),) if rest.strip() else ()


def encode_ndjson(data: bytes) -> bytes:
    """Write one document, itself on one line, as a line."""
    return data + b"\n"
