"""Unpack the compressed body of a request, piece by piece and within a bound on its unpacked size.

`Content-Encoding` names the forms in the order in which they were applied (RFC 9110, section 8.4).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bardo.values.errors import InvalidRequest, UnsupportedMediaType

_PIECE_BYTES = 64 * 1024
_DEFLATED = 8
_IDENTITY = ("", "identity")
# A body is packed once; twice is allowed, and more is only made to keep a server busy.
_MOST_ENCODINGS = 2
_OF_SEVERAL_STREAMS = ("gzip", "x-gzip", "zstd")
_MOST_STREAMS = 10_000


class _Unpacker(Protocol):
    """One compressed stream. `unpack` takes data and returns at most a piece of what it holds; `b""` goes on with what was given before."""

    ended: bool
    unused: bytes

    def unpack(self, data: bytes) -> bytes: ...


class _Zlib:
    """gzip, and deflate with zlib's header or, as some programs send it, without."""

    def __init__(self, is_deflate: bool, first: bytes) -> None:
        self.ended, self.unused, self._waiting = False, b"", b""
        raw = is_deflate and first[0] & 0x0F != _DEFLATED
        self._inflate = zlib.decompressobj(
            -zlib.MAX_WBITS if raw else zlib.MAX_WBITS if is_deflate else 16 + zlib.MAX_WBITS
        )

    def unpack(self, data: bytes) -> bytes:
        piece = self._inflate.decompress(self._waiting + data, _PIECE_BYTES)
        self._waiting = self._inflate.unconsumed_tail
        self.ended, self.unused = self._inflate.eof, self._inflate.unused_data
        return piece


class _Brotli:
    def __init__(self) -> None:
        import brotli

        self.ended, self.unused, self._waiting = False, b"", b""
        self._inflate: Any = brotli.Decompressor()

    def unpack(self, data: bytes) -> bytes:
        if self._inflate.is_finished():
            self.unused += data
            return b""
        self._waiting += data
        taken, self._waiting = (self._waiting, b"") if self._inflate.can_accept_more_data() else (b"", self._waiting)
        piece: bytes = self._inflate.process(taken, output_buffer_limit=_PIECE_BYTES)
        self.ended = self._inflate.is_finished()
        return piece


class _Zstandard:
    def __init__(self) -> None:
        self.ended, self.unused = False, b""
        self._inflate: Any = _zstd().ZstdDecompressor()

    def unpack(self, data: bytes) -> bytes:
        piece: bytes = self._inflate.decompress(data, _PIECE_BYTES)
        self.ended, self.unused = self._inflate.eof, self._inflate.unused_data
        return piece


def _zstd() -> Any:
    """Return the module of zstd: Python's own from 3.14 on, else its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


_UNPACKERS: dict[str, Callable[[bytes], _Unpacker]] = {
    "gzip": lambda first: _Zlib(False, first),
    "x-gzip": lambda first: _Zlib(False, first),
    "deflate": lambda first: _Zlib(True, first),
    "br": lambda first: _Brotli(),
    "zstd": lambda first: _Zstandard(),
}
ACCEPTED = "gzip, deflate, br, zstd"
"""What the header `Accept-Encoding` of a refusal names."""


def encodings_of(lines: Sequence[tuple[bytes, bytes]]) -> tuple[str, ...]:
    """Return how a body was packed, in order, none for a plain one. Raises UnsupportedMediaType for what is not unpacked here."""
    named = b",".join(value for name, value in lines if name == b"content-encoding").decode("latin-1").lower()
    found = tuple(name for each in named.split(",") if (name := each.strip()) not in _IDENTITY)
    unknown = next((name for name in found if name not in _UNPACKERS), None)
    if unknown is not None:
        message = f"a body with content-encoding {unknown[:100]!r} is not read"
        raise UnsupportedMediaType(message, hint=f"send it as it is, or as one of {ACCEPTED}", accepts=ACCEPTED)
    if len(found) > _MOST_ENCODINGS:
        message = f"the body is packed {len(found)} times"
        raise UnsupportedMediaType(message, hint="pack it once", accepts=ACCEPTED)
    return found


def unpacked(body: bytes, encodings: Sequence[str], limit: int, too_large: Callable[[int], Exception]) -> bytes:
    """Return a body as it was before it was packed. Raises `too_large` past `limit` bytes, InvalidRequest for what cannot be unpacked."""
    for encoding in reversed(encodings):
        if body:
            body = _unpacked_once(body, encoding, limit, too_large)
    return body


def _unpacked_once(body: bytes, encoding: str, limit: int, too_large: Callable[[int], Exception]) -> bytes:
    pieces: list[bytes] = []
    size, place, streams = 0, 0, 1
    unpacker, data = _UNPACKERS[encoding](body), b""
    while True:
        if not data:
            # Given in parts, since what stands behind the end of a stream is copied.
            data = body[place : place + _PIECE_BYTES]
            place += len(data)
        try:
            piece = unpacker.unpack(data)
        except Exception as problem:
            raise _broken(encoding) from problem
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        if not unpacker.ended:
            if not piece and not data:
                raise _broken(encoding)
            data = b""
            continue
        data = unpacker.unused or body[place : place + _PIECE_BYTES]
        place += 0 if unpacker.unused else len(data)
        if not data:
            return b"".join(pieces)
        streams += 1
        # Several members of gzip, or frames of zstd, are one body.
        if encoding not in _OF_SEVERAL_STREAMS or streams > _MOST_STREAMS:
            raise _broken(encoding)
        unpacker = _UNPACKERS[encoding](data)


def _broken(encoding: str) -> InvalidRequest:
    message = f"the body says content-encoding {encoding} and cannot be unpacked so to its end"
    return InvalidRequest(message, hint="send all of it, packed as the header says, or unpacked without the header")
