"""AWS's binary event stream, written by hand: two lengths and their checksum, headers, payload, checksum of all."""

from __future__ import annotations

import struct
import zlib

from bardo.simulators.fields import Fields, compact

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_STRING = 7


def event(name: str, payload: Fields, *, place: int = 0) -> bytes:
    """Write one event with the letters Bedrock pads it with; `place` varies their number."""
    padded = dict(sorted({**payload, "p": _PADDING[: 2 + place * 7 % 60]}.items()))
    return _message(
        compact(padded), {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    )


def exception(name: str, message: str) -> bytes:
    """Write an error that befalls a stream."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return _message(compact({"message": message}), headers)


def _message(payload: bytes, headers: dict[str, str]) -> bytes:
    written = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack("!II", 16 + len(written) + len(payload), len(written))
    start = lengths + struct.pack("!I", zlib.crc32(lengths))
    return start + written + payload + struct.pack("!I", zlib.crc32(start + written + payload))


def _header(name: str, value: str) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(value)) + value.encode()
