"""AWS's binary event stream (`application/vnd.amazon.eventstream`), which Bedrock streams.

A message is: total length, header length, CRC-32 of those eight bytes; headers; payload; CRC-32 of everything before. Numbers are
big-endian. Source: the event stream encoding page of Amazon's developer guides.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

from bardo.streams.frames import MAX_FRAME_BYTES, Frame, FramingError, OversizedFrame

CONTENT_TYPE = "application/vnd.amazon.eventstream"

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_LENGTHS = struct.Struct(">II")
_LENGTH = struct.Struct(">H")
_STRING = 7
# Bytes of each header type with a fixed size: true, false, byte, short, int, long, timestamp, uuid.
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_COUNTED = frozenset({6, _STRING})
_MOST_KINDS = 64


class CorruptFrame(FramingError):
    """A checksum or a length in the stream is wrong; nothing after it can be read."""


class EventStreamDecoder:
    """Bytes in, frames out: the payload as `data`, `:event-type` (or the exception's type) as `event`."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._limit = limit
        self._problem: ValueError | None = None
        self._raised = False
        # The messages of a stream have few kinds of headers, each the same bytes every time.
        self._kinds: dict[bytes, str] = {}

    def feed(self, item: bytes) -> Sequence[Frame]:
        """Return the messages that `item` completes.

        Raises OversizedFrame or CorruptFrame; messages before the bad one are given first, and the next call raises.
        """
        if self._problem is not None:
            self._raised = True
            raise self._problem
        held = self._held
        held += item
        frames: list[Frame] = []
        begin = 0
        try:
            while len(held) - begin >= _PRELUDE.size:
                total, header_size = self._prelude(begin)
                if len(held) - begin < total:
                    break
                frames.append(self._parse(bytes(held[begin : begin + total]), header_size))
                begin += total
        except ValueError as problem:
            self._problem = problem
            if not frames:
                self._raised = True
                raise
        del held[:begin]
        return frames

    def finish(self) -> Sequence[Frame]:
        """Return what was left of a message that did not end: it has no payload, only `raw`. Raises the problem that no `feed` raised."""
        if self._problem is not None and not self._raised:
            self._raised = True
            raise self._problem
        rest = bytes(self._held)
        self._held.clear()
        return (Frame(b"", raw=rest, complete=False),) if rest else ()

    def _prelude(self, begin: int) -> tuple[int, int]:
        total, header_size, checksum = _PRELUDE.unpack_from(self._held, begin)
        if crc32(self._held[begin : begin + 8]) != checksum:
            raise CorruptFrame("the prelude of an event does not fit its checksum")
        if total > self._limit:
            raise OversizedFrame(self._limit)
        if total < _PRELUDE.size + _CRC.size + header_size:
            raise CorruptFrame("an event is shorter than its own headers")
        return total, header_size

    def _parse(self, raw: bytes, header_size: int) -> Frame:
        if crc32(raw[:-4]) != _CRC.unpack_from(raw, len(raw) - 4)[0]:
            raise CorruptFrame("an event does not fit its checksum")
        end = _PRELUDE.size + header_size
        return Frame(raw[end:-4], self._kind(raw[_PRELUDE.size : end]), raw)

    def _kind(self, block: bytes) -> str:
        kind = self._kinds.get(block)
        if kind is None:
            headers = dict(_headers(block))
            kind = headers.get(":event-type") or headers.get(":exception-type") or headers.get(":error-code") or ""
            if len(self._kinds) < _MOST_KINDS:
                self._kinds[block] = kind
        return kind


def message_headers(raw: bytes) -> dict[str, str]:
    """Return the text headers of one whole message, such as `:error-message`."""
    if len(raw) < _PRELUDE.size:
        return {}
    return dict(_headers(raw[_PRELUDE.size : _PRELUDE.size + _LENGTHS.unpack_from(raw)[1]]))


def _headers(data: bytes) -> Iterable[tuple[str, str]]:
    """Yield the headers that hold text; others are passed over."""
    place = 0
    while place < len(data):
        name_end = place + 1 + data[place]
        if name_end >= len(data):
            raise CorruptFrame("a header of an event is cut")
        name, kind = data[place + 1 : name_end].decode("utf-8", "replace"), data[name_end]
        begin, size = name_end + 1, _FIXED.get(kind)
        if size is None:
            if kind not in _COUNTED or begin + 2 > len(data):
                raise CorruptFrame("a header of an event is of no known type")
            size = _LENGTH.unpack_from(data, begin)[0]
            begin += 2
        if begin + size > len(data):
            raise CorruptFrame("a header of an event is cut")
        if kind == _STRING:
            yield name, data[begin : begin + size].decode("utf-8", "replace")
        place = begin + size


def encode_event(payload: bytes, headers: Mapping[str, str]) -> bytes:
    """Write one message; all headers are text."""
    return encode_message(payload, encode_headers(headers))


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Write headers once, for messages that share them."""
    return b"".join(_header(name, value) for name, value in headers.items())


def encode_message(payload: bytes, block: bytes) -> bytes:
    """Write one message with headers that are already written."""
    lengths = _LENGTHS.pack(_PRELUDE.size + len(block) + len(payload) + _CRC.size, len(block))
    message = b"".join((lengths, _CRC.pack(crc32(lengths)), block, payload))
    return message + _CRC.pack(crc32(message))


def _header(name: str, value: str) -> bytes:
    wire_name, wire_value = name.encode(), value.encode()
    return bytes([len(wire_name)]) + wire_name + bytes([_STRING]) + _LENGTH.pack(len(wire_value)) + wire_value
