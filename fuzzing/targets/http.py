"""Target `http`: the replies of servers, as the direct client reads them."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import brotli

from bardo.adapters.net.client import BodyUnpacker
from bardo.adapters.net.connection import Disconnected, HttpConnection, NotHttp
from fuzzing.inputs import Input
from fuzzing.laws import Laws, hold, same
from fuzzing.target import Target

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_SEEDS = (
    _HEAD + b"Content-Length: 11\r\n\r\n" + b'{"a":"ebb"}',
    _HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    + _HEAD
    + b"Content-Length: 2\r\n\r\nok",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nuntil the end",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Length: 2\r\n\r\n{}",
)
_WORDS = (
    *(
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b": ",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"0\r\n\r\n",
    ),
    *(
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n",
        b"Upgrade: x\r\n",
        b"5\r\n",
        b"ffffffffffffffff\r\n",
        b";",
        b" ",
        b"\t",
    ),
    *(
        b"Keep-Alive: timeout=99999999999\r\n",
        b"Keep-Alive: timeout=-1\r\n",
        b"Content-Encoding: gzip\r\n",
        b"HTTP/2 ",
        b"Trailer: x\r\n",
    ),
)


class _Transport(asyncio.Transport):
    """Takes what a connection does to its socket, and remembers whether it hung up."""

    closed = False

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def writelines(self, data: Iterable[Any]) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        return None

    def resume_reading(self) -> None:
        return None


class _Loop(asyncio.BaseEventLoop):
    """A loop that is only asked for the time."""

    def time(self) -> float:
        return 0.0


Seen = tuple[bool, int, dict[str, str], bytes, bool, str, bool]


def _read(pieces: Iterable[bytes]) -> Seen:
    loop, transport = _Loop(), _Transport()
    free: list[HttpConnection] = []
    connection = HttpConnection(loop, free.append)
    connection.connection_made(transport)
    reply = connection.send(b"GET / HTTP/1.1\r\n\r\n", b"")
    for piece in pieces:
        if transport.closed or free:
            break
        connection.data_received(piece)
    body = reply.take()
    if not transport.closed and not free:
        connection.connection_lost(None)
    body += reply.take()
    loop.close()
    known = isinstance(reply.failure, NotHttp | Disconnected | None)
    hold(known, f"a reply fails with what callers know: {reply.failure!r}")
    hold(reply.complete or reply.failure is not None, "a reply is complete or has failed once its connection is lost")
    headers = reply.headers if reply.headed else {}
    return reply.headed, reply.status, headers, body, reply.complete, type(reply.failure).__name__, bool(free)


def _check(one: Input, laws: Laws) -> None:
    if one.variant != "http":
        _unpack(one, laws)
        return
    whole = _read([one.body])
    for pieces in laws.cuts_of(one.body):
        cut = _read(pieces)
        # A connection whose reply ends between two reads may serve again before surplus bytes come; those then end it.
        same(cut[:5], whole[:5], "any cut gives the same head, body and end")


def _unpack(one: Input, laws: Laws) -> None:
    body, end = _unpacked(one.variant, [one.body])
    for pieces in laws.cuts_of(one.body):
        other, other_end = _unpacked(one.variant, pieces)
        same(other_end, end, "any cut ends in the same way")
        # How much was unpacked before the mistake was met depends on where the bytes were cut.
        longer, shorter = (body, other) if len(body) > len(other) else (other, body)
        hold(longer.startswith(shorter) if end == "refused" else other == body, "any cut unpacks to the same")


def _unpacked(encoding: str, pieces: Sequence[bytes]) -> tuple[bytes, str]:
    unpacker = BodyUnpacker(encoding)
    body = b""
    try:
        for piece in pieces:
            body += unpacker.unpack(piece)
            while more := unpacker.more():
                body += more
                if len(body) > 1 << 20:
                    return body[: 1 << 20], "long"
    except NotHttp:
        return body, "refused"
    return body, "whole" if unpacker.complete else "cut"


TARGET = Target(
    name="http",
    says="HTTP replies of servers, and compressed bodies",
    seeds=lambda: [
        *(Input("http", seed) for seed in _SEEDS),
        Input("gzip", gzip.compress(b"ebb " * 50, mtime=0) + gzip.compress(b"flow", mtime=0)),
        Input("deflate", zlib.compress(b"ebb " * 50)),
        Input("br", brotli.compress(b"ebb " * 50)),
        Input("zstd", bytes.fromhex("28b52ffd2002110000") + b"ok"),
    ],
    check=_check,
    work=lambda one: _read([one.body]) if one.variant == "http" else None,
    words=lambda variant: _WORDS,
    per_byte=60,
)
