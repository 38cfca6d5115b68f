"""JSON lines: one JSON document a line, as Ollama streams."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, OversizedFrame


class NdjsonDecoder:
    """Bytes in, one frame for each line; a blank one has no data. Linear; holds at most one line."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._limit = limit
        self._oversized = False
        self._told = False

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the lines that `item` completes.

        Raises OversizedFrame where one grows past the limit; lines before it are given first, and the next call raises.
        """
        held = self._held
        held += item
        frames: list[Frame] = []
        begin = 0
        end = held.find(b"\n", self._scanned)
        while end >= 0 and not self._oversized:
            line = bytes(held[begin : end + 1])
            if len(line) > self._limit:
                break
            begin = end + 1
            frames.append(Frame(line.strip() or None, raw=line))
            end = held.find(b"\n", begin)
        del held[:begin]
        self._scanned = len(held)
        self._oversized = self._oversized or len(held) > self._limit
        if self._oversized and not frames:
            self._told = True
            raise OversizedFrame(self._limit)
        return frames

    def finish(self) -> Sequence[Frame]:
        """Return a last line without its line end; it may be cut. Raises OversizedFrame where no `feed` did."""
        if self._oversized and not self._told:
            self._told = True
            raise OversizedFrame(self._limit)
        rest = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        return (Frame(rest.strip(), raw=rest, complete=False),) if rest.strip() else ()


def encode_ndjson(data: bytes) -> bytes:
    """Write one document, itself on one line, as a line."""
    return data + b"\n"
