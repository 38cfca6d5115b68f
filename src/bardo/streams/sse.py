"""Server-sent events: bytes to frames and back.

Follows the WHATWG rules (any of LF, CR, CRLF; comments; several data lines; a byte-order mark) for bytes cut anywhere. Each frame keeps
the bytes it stood in, so that a stream can be forwarded untouched. What remains at the end of a stream is given as an incomplete frame:
some servers leave out the last blank line, and a cut stream must be told from a finished one by who reads the payload.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, OversizedFrame

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Bytes in, frames out. Linear in the stream; holds at most one frame."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._limit = limit
        self._carriage_returns = False
        self._at_start = True

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the frames that `item` completes. Raises OversizedFrame when one grows past the limit."""
        held = self._held
        held += item
        if self._at_start and not self._pass_byte_order_mark():
            return ()
        if not self._carriage_returns and b"\r" in item:
            self._carriage_returns = True
        frames = self._split_any() if self._carriage_returns else self._split_newlines()
        if len(held) > self._limit:
            raise OversizedFrame(self._limit)
        return frames

    def finish(self) -> Sequence[Frame]:
        """Return what was left without a closing blank line, as an incomplete frame."""
        rest = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        return (_parse(rest, complete=False),) if rest.strip() else ()

    def _pass_byte_order_mark(self) -> bool:
        held = self._held
        if len(held) < 3 and _BYTE_ORDER_MARK.startswith(held):
            return False
        if held.startswith(_BYTE_ORDER_MARK):
            del held[:3]
        self._at_start = False
        return True

    def _split_newlines(self) -> list[Frame]:
        held, frames, begin = self._held, [], 0
        end = held.find(b"\n\n", self._scanned)
        while end >= 0:
            frames.append(_parse(bytes(held[begin : end + 2])))
            begin = end + 2
            end = held.find(b"\n\n", begin)
        self._forget(begin)
        return frames

    def _split_any(self) -> list[Frame]:
        held, frames, begin = self._held, [], 0
        match = _BLANK_LINE.search(held, self._scanned)
        while match is not None:
            frames.append(_parse(bytes(held[begin : match.end()])))
            begin = match.end()
            match = _BLANK_LINE.search(held, begin)
        self._forget(begin)
        return frames

    def _forget(self, count: int) -> None:
        if count:
            del self._held[:count]
        # A blank line can span the cut: its last three bytes are looked at again.
        self._scanned = max(0, len(self._held) - 3)


def _parse(raw: bytes, *, complete: bool = True) -> Frame:
    if raw.startswith(b"data: ") and raw.endswith(b"\n\n") and b"\n" not in raw[:-2] and b"\r" not in raw:
        return Frame(raw[6:-2], raw=raw, complete=complete)
    data: list[bytes] = []
    event = ""
    for line in _LINE_END.split(raw):
        name, colon, value = line.partition(b":")
        if colon and value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
    return Frame(b"\n".join(data) if data else None, event, raw, complete)


def encode_sse(data: bytes, event: str = "") -> bytes:
    """Write one frame. `data` is one line of JSON; other line ends in it become several data lines."""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    if event:
        return b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"
    return b"data: " + data + b"\n\n"


def encode_comment(text: str) -> bytes:
    """Write a comment, which readers skip: it keeps an idle connection open."""
    return b": " + text.encode().replace(b"\n", b" ").replace(b"\r", b" ") + b"\n\n"
