"""Unpack what was compressed, a bounded piece at a time: gzip, deflate, Brotli and Zstandard."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol

PIECE_BYTES = 64 * 1024
"""The most that one step gives, so that a small body cannot fill the memory."""
OF_SEVERAL_STREAMS = frozenset({"gzip", "x-gzip", "zstd"})
"""Encodings in which several streams behind one another are one body."""
_DEFLATED = 8


class Unpacker(Protocol):
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
        piece = self._inflate.decompress(self._waiting + data, PIECE_BYTES)
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
        piece: bytes = self._inflate.process(taken, output_buffer_limit=PIECE_BYTES)
        self.ended = self._inflate.is_finished()
        return piece


class _Zstandard:
    def __init__(self) -> None:
        self.ended, self.unused = False, b""
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        self._inflate: Any = zstd.ZstdDecompressor()

    def unpack(self, data: bytes) -> bytes:
        piece: bytes = self._inflate.decompress(data, PIECE_BYTES)
        self.ended, self.unused = self._inflate.eof, self._inflate.unused_data
        return piece


UNPACKERS: dict[str, Callable[[bytes], Unpacker]] = {
    "gzip": lambda first: _Zlib(False, first),
    "x-gzip": lambda first: _Zlib(False, first),
    "deflate": lambda first: _Zlib(True, first),
    "br": lambda first: _Brotli(),
    "zstd": lambda first: _Zstandard(),
}
"""The unpackers of each encoding, by its name in HTTP; one is made with the first bytes of the stream."""
