"""A reply over a direct connection, read piece by piece; a compressed one is unpacked as it is read."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from bardo.edge import http_problems as problems
from bardo.edge.direct_incoming import Incoming, NotHttp
from bardo.edge.http_bodies import TimedReply
from bardo.edge.http_calls import Call
from bardo.values.errors import BardoError, InternalError

_PACKED = ("gzip", "x-gzip", "deflate")
_UNREADABLE = ("br", "zstd")
_PIECE_BYTES = 64 * 1024
_DEFLATED = 8


class DirectReply(TimedReply):
    """One reply over a direct connection. Raises NotHttp for one that is compressed in a way that cannot be unpacked."""

    __slots__ = ("_incoming", "_unpacker")

    def __init__(
        self, incoming: Incoming, call: Call, idle: float, open_replies: set[TimedReply], *, resent: bool
    ) -> None:
        encoding = incoming.headers.get("content-encoding")
        self._unpacker = None if encoding is None else Unpacker.of(encoding.strip().lower())
        self._incoming = incoming
        super().__init__(incoming.status, incoming.headers, call, idle, open_replies, incoming.loop, resent=resent)

    async def read(self, limit: int) -> bytes:
        incoming = self._incoming
        if self._done or self._unpacker is not None or self._problem is not None or not incoming.complete:
            return await super().read(limit)
        # Most whole replies have come with their heads.
        body = incoming.take()
        await self.close()
        if len(body) > limit:
            raise problems.oversized(self._call, limit)
        return body

    def offer_pieces(self, take: Callable[[bytes], bool]) -> None:
        """Ask `take` whether it takes a piece, as each comes while the reader waits for it; the reader gets those that it does not take."""
        if self._unpacker is None:
            self._incoming.offer = take

    def _last_piece_at(self) -> float:
        return self._incoming.offered_at

    def _has_ended(self) -> bool:
        return self._incoming.complete or self._incoming.failure is not None

    def _hang_up(self) -> None:
        self._incoming.offer = None
        if not self._incoming.complete:
            self._incoming.fail(self._problem or InternalError("the reply was closed"))

    async def _next_chunk(self) -> bytes:
        incoming, unpacker = self._incoming, self._unpacker
        while True:
            try:
                chunk = incoming.take() if unpacker is None else unpacker.more() or unpacker.unpack(incoming.take())
            except NotHttp as failure:
                self._problem = self._problem or problems.unreadable(self._call, str(failure))
                return b""
            if chunk:
                return chunk
            if incoming.at_end:
                self._problem = self._problem or self._ending()
                return b""
            self._begin_waiting()
            try:
                await incoming.wait()
            finally:
                self._reading = False

    def _ending(self) -> BardoError | None:
        """Return what was wrong with a body of which nothing more comes."""
        failure = self._incoming.failure
        if isinstance(failure, BardoError):
            return failure
        if isinstance(failure, NotHttp) and not self._incoming.begun:
            return problems.unreadable(self._call, str(failure))
        cut = failure is not None or (self._unpacker is not None and not self._unpacker.complete)
        return problems.cut_off(self._call) if cut else None


class Unpacker:
    """Unpacks a compressed body within bounded memory. Raises NotHttp for what cannot be unpacked."""

    def __init__(self, encoding: str) -> None:
        self._deflate = encoding == "deflate"
        self._inflate: zlib._Decompress | None = None
        self._rest = b""

    @classmethod
    def of(cls, encoding: str) -> Unpacker | None:
        """Return what unpacks an encoding; None where the body is read as it is."""
        if encoding in _UNREADABLE:
            raise NotHttp(f"content-encoding {encoding}")
        return cls(encoding) if encoding in _PACKED else None

    @property
    def complete(self) -> bool:
        """Whether the compressed stream came to its end, or nothing of one came."""
        return self._inflate is None or self._inflate.eof

    def more(self) -> bytes:
        """Return what follows of the data that was given before."""
        return self.unpack(b"") if self._rest else b""

    def unpack(self, data: bytes) -> bytes:
        """Return the next piece of the body; at most `_PIECE_BYTES` of it."""
        data = self._rest + data if self._rest else data
        self._rest = b""
        while data:
            if self._inflate is None or self._inflate.eof:
                # A body of several gzip members is one body.
                self._inflate = zlib.decompressobj(self._window(data))
            try:
                piece = self._inflate.decompress(data, _PIECE_BYTES)
            except zlib.error as problem:
                raise NotHttp("content-encoding") from problem
            data = self._inflate.unused_data or self._inflate.unconsumed_tail
            if piece:
                self._rest = data
                return piece
        return b""

    def _window(self, data: bytes) -> int:
        if not self._deflate:
            return 16 + zlib.MAX_WBITS
        # Some servers send deflate without zlib's header, whose first byte names method 8.
        return zlib.MAX_WBITS if data[0] & 0x0F == _DEFLATED else -zlib.MAX_WBITS
