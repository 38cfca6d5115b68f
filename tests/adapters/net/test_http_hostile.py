"""Odd and hostile bytes of scripted servers: each is read in one way or refused, in whatever cuts it comes."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.connection import HttpConnection
from bardo.values.errors import ProviderError
from support.patience import PATIENCE
from support.tiny_provider import USUAL, speaking

pytestmark = pytest.mark.each_python

H = b"HTTP/1.1 200 OK\r\n"
CHUNKED = H + b"Transfer-Encoding: chunked\r\n\r\n"
TWO = b"Content-Length: 2\r\n\r\nok"
BR = brotli.compress(b"ok")
ZSTD = bytes.fromhex("28b52ffd2002110000") + b"ok"
CHUNKS = b"\r\n\r\n2\r\nok\r\n0\r\n\r\n"


class Seen(NamedTuple):
    """What a caller gets of one reply; an empty error where it was read to its end."""

    status: int
    body: bytes
    error: str


async def seen(*speech: bytes) -> Seen:
    transport = HttpTransport()
    status, body = 0, b""
    try:
        async with speaking(*speech) as place:
            reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), USUAL)
            status = reply.status
            async for piece in reply.chunks():
                body += piece
    except ProviderError as problem:
        return Seen(status, body, type(problem).__name__)
    finally:
        await transport.close()
    return Seen(status, body, "")


def read(*speech: bytes) -> Seen:
    return asyncio.run(asyncio.wait_for(seen(*speech), PATIENCE))


ALLOWED: dict[str, tuple[bytes, int, bytes]] = {
    "a length": (H + TWO, 200, b"ok"),
    "a length with zeros before it": (H + b"Content-Length: 002\r\n\r\nok", 200, b"ok"),
    "a length behind a space": (H + b"Content-Length : 2\r\n\r\nok", 200, b"ok"),
    "a length on a folded line": (H + b"Content-Length:\r\n 2\r\n\r\nok", 200, b"ok"),
    "a status without words": (b"HTTP/1.1 200\r\n" + TWO, 200, b"ok"),
    "a status with a space and no words": (b"HTTP/1.1 200 \r\n" + TWO, 200, b"ok"),
    "words that are no ASCII": (b"HTTP/1.1 200 \xff\xfe\r\n" + TWO, 200, b"ok"),
    "the last status": (b"HTTP/1.1 599 Odd\r\n" + TWO, 599, b"ok"),
    "lines without a carriage return": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, b"ok"),
    "empty lines before it": (b"\r\n\r\n" + H + TWO, 200, b"ok"),
    "a folded header": (H + b"X: a\r\n b\r\n" + TWO, 200, b"ok"),
    "unusual bytes of a header": (H + b"X: \xff\x01\r\n" + TWO, 200, b"ok"),
    "100 Continue": (b"HTTP/1.1 100 Continue\r\n\r\n" + H + TWO, 200, b"ok"),
    "100 with a length": (b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n" + H + TWO, 200, b"ok"),
    "several 1xx": (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3 + H + TWO, 200, b"ok"),
    "chunks": (H + b"Transfer-Encoding: chunked" + CHUNKS, 200, b"ok"),
    "chunks in capitals": (H + b"Transfer-Encoding: CHUNKED" + CHUNKS, 200, b"ok"),
    "chunks and a trailer": (CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n", 200, b"ok"),
    "chunks with extensions": (CHUNKED + b"2;name=value\r\nok\r\n0\r\n\r\n", 200, b"ok"),
    "a chunk's size with spaces behind": (CHUNKED + b"2 \r\nok\r\n0\r\n\r\n", 200, b"ok"),
    "identity": (H + b"Transfer-Encoding: identity\r\n\r\nok", 200, b"ok"),
    "HTTP/1.0 up to its end": (b"HTTP/1.0 200 OK\r\n\r\nto the end", 200, b"to the end"),
    "no length": (H + b"Connection: close\r\n\r\nto the end", 200, b"to the end"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "204 with a length": (b"HTTP/1.1 204 No Content\r\n" + TWO, 204, b""),
    "304": (b"HTTP/1.1 304 Not Modified\r\n\r\n", 304, b""),
    "304 with a length": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", 304, b""),
    "another reply behind it": (H + TWO + b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\nx", 200, b"ok"),
    "an upgrade that is offered": (H + b"Upgrade: h2c\r\nConnection: upgrade\r\n" + TWO, 200, b"ok"),
    "many headers": (H + b"X: y\r\n" * 9_000 + TWO, 200, b"ok"),
    "a word that is no encoding": (H + b"Content-Encoding: utf-8\r\n" + TWO, 200, b"ok"),
    "gzip": (H + b"Content-Encoding: X-GZip\r\n\r\n" + gzip.compress(b"ok"), 200, b"ok"),
    "identity, gzip": (H + b"Content-Encoding: identity, gzip\r\n\r\n" + gzip.compress(b"ok"), 200, b"ok"),
    "br": (H + b"Content-Encoding: br\r\n\r\n" + BR, 200, b"ok"),
    "zstd": (H + b"Content-Encoding: zstd\r\n\r\n" + ZSTD, 200, b"ok"),
    "zstd in frames": (H + b"Content-Encoding: zstd\r\n\r\n" + ZSTD * 2, 200, b"okok"),
    "gzip in members": (H + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"o") + gzip.compress(b"k"), 200, b"ok"),
    "deflate": (H + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"ok"), 200, b"ok"),
    "deflate without a head": (H + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"ok", wbits=-15), 200, b"ok"),
}


@pytest.mark.parametrize(("speech", "status", "body"), ALLOWED.values(), ids=ALLOWED)
def test_what_http_allows_is_read(speech: bytes, status: int, body: bytes) -> None:
    assert read(speech) == Seen(status, body, "")


FORBIDDEN: dict[str, bytes] = {
    "two lengths": H + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
    "a length twice": H + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "a list of lengths": H + b"Content-Length: 2, 2\r\n\r\nok",
    "a length and chunks": H + b"Content-Length: 2\r\nTransfer-Encoding: chunked" + CHUNKS,
    "chunks and a length": H + b"Transfer-Encoding: chunked\r\nContent-Length: 2" + CHUNKS,
    "no length in its header": H + b"Content-Length: \r\n\r\nok",
    "a negative length": H + b"Content-Length: -1\r\n\r\nok",
    "a length with a sign": H + b"Content-Length: +2\r\n\r\nok",
    "a length in hexadecimal": H + b"Content-Length: 0x2\r\n\r\nok",
    "an endless length": H + b"Content-Length: 99999999999999999999999\r\n\r\nok",
    "a header without a name": H + b": x\r\n" + TWO,
    "a line without a colon": H + b"X\r\n" + TWO,
    "a carriage return in a header": H + b"X: a\rb\r\n" + TWO,
    "a zero byte in a header": H + b"X: a\x00b\r\n" + TWO,
    "gzip, chunked": H + b"Transfer-Encoding: gzip, chunked" + CHUNKS,
    "gzip, chunked behind a space": H + b"Transfer-Encoding : gzip, chunked" + CHUNKS,
    "gzip and chunked on two lines": H + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked" + CHUNKS,
    "chunked, gzip": H + b"Transfer-Encoding: chunked, gzip" + CHUNKS,
    "chunked twice": H + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" + CHUNKS,
    "chunked and identity on two lines": H + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity" + CHUNKS,
    "gzip alone": H + b"Transfer-Encoding: gzip\r\n\r\nok",
    "a word like chunked": H + b"Transfer-Encoding: xchunked\r\n\r\nok",
    "chunked with a parameter": H + b"Transfer-Encoding: chunked;q=1" + CHUNKS,
    "a transfer encoding in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
    "a negative chunk": CHUNKED + b"-1\r\nok\r\n0\r\n\r\n",
    "a chunk in 0x": CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n",
    "a chunk that is longer than it says": CHUNKED + b"2\r\nok!!\r\n0\r\n\r\n",
    "an endless chunk": CHUNKED + b"fffffffffffffffff\r\nok\r\n0\r\n\r\n",
    "a chunk without its line": CHUNKED + b"2\nok\n0\n\n",
    "a long extension": CHUNKED + b"2;" + b"x" * 200_000 + b"\r\nok\r\n0\r\n\r\n",
    "a long size": CHUNKED + b"0" * 200_000 + b"2\r\nok\r\n0\r\n\r\n",
    "a long trailer": CHUNKED + b"2\r\nok\r\n0\r\n" + b"X: y\r\n" * 40_000 + b"\r\n",
    "no last chunk": CHUNKED + b"2\r\nok\r\n",
    "no end of the trailer": CHUNKED + b"2\r\nok\r\n0\r\n",
    "endless 1xx": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000 + H + TWO,
    "too many headers": H + b"X: y\r\n" * 40_000 + b"\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nok",
    "HTTP/9.9": b"HTTP/9.9 200 OK\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\n" + TWO,
    "HTTP/2": b"HTTP/2 200 OK\r\n" + TWO,
    "HTTP/1.2": b"HTTP/1.2 200 OK\r\n" + TWO,
    "HTTP/0.9": b"HTTP/0.9 200 OK\r\n" + TWO,
    "http/1.1": b"http/1.1 200 OK\r\n" + TWO,
    "RTSP": b"RTSP/1.0 200 OK\r\n" + TWO,
    "ICE": b"ICE/1.0 200 OK\r\n" + TWO,
    "RTSP behind empty lines": b"\r\n\r\nRTSP/1.0 200 OK\r\n" + TWO,
    "RTSP behind 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\nRTSP/1.0 200 OK\r\n" + TWO,
    "RTSP behind 100 without carriage returns": b"HTTP/1.1 100 Continue\nX: y\n\nRTSP/1.0 200 OK\r\n" + TWO,
    "100 of RTSP": b"RTSP/1.0 100 Continue\r\n\r\n" + H + TWO,
    "ICY": b"ICY 200 OK\r\n" + TWO,
    "status 000": b"HTTP/1.1 000 OK\r\n" + TWO,
    "status 099": b"HTTP/1.1 099 OK\r\n" + TWO,
    "status 600": b"HTTP/1.1 600 OK\r\n" + TWO,
    "status 999": b"HTTP/1.1 999 OK\r\n" + TWO,
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "two spaces before the status": b"HTTP/1.1  200 OK\r\n" + TWO,
    "a space before it": b" " + H + TWO,
    "TLS": b"\x16\x03\x01\x02\x00",
    "zeros": b"\x00" * 1000,
    "a banner": b"SSH-2.0-server\r\n",
    "nothing": b"",
    "fewer bytes than announced": H + b"Content-Length: 5\r\n\r\nok",
    "gzip that is none": H + b"Content-Encoding: gzip\r\n" + TWO,
    "gzip that is cut": H + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"ok")[:-4],
    "gzip twice": H + b"Content-Encoding: gzip, gzip\r\n\r\n" + gzip.compress(gzip.compress(b"ok")),
    "gzip and br on two lines": H + b"Content-Encoding: gzip\r\nContent-Encoding: br\r\n" + TWO,
    "compress": H + b"Content-Encoding: compress\r\n" + TWO,
    "more behind deflate": H + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"ok") + b"more",
    "zstd that is none": H + b"Content-Encoding: zstd\r\n" + TWO,
    "zstd that is cut": H + b"Content-Encoding: zstd\r\n\r\n" + ZSTD[:-2],
    "br that is cut": H + b"Content-Encoding: br\r\n\r\n" + BR[:-1],
    "br that is none": H + b"Content-Encoding: br\r\n" + TWO,
}


@pytest.mark.parametrize("speech", FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_http_forbids_and_what_never_ends_is_refused(speech: bytes) -> None:
    assert read(speech).error in ("MalformedReply", "BrokenStream")


HEADERS = st.sampled_from(
    [
        b"Content-Length: 2",
        b"Content-Length: 02",
        b"Content-Length: +2",
        b"Content-Length : 2",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: xchunked",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Keep-Alive: timeout=5",
        b"Content-Encoding: identity",
        b"X: a\x00b",
        b" folded",
        b"X",
        b": no name",
    ]
)
LINES = st.lists(HEADERS, max_size=4).map(lambda lines: b"".join(line + b"\r\n" for line in lines))
BODIES = st.sampled_from(
    [
        b"ok",
        b"2\r\nok\r\n0\r\n\r\n",
        b"0\r\n\r\n",
        b"",
        b"2\r\nok\r\n",
        b"2\nok\n0\n\n",
        b"2\r\nok\r\n0\r\n\r\nmore",
        b"\r\n",
    ]
)
STATUS = st.sampled_from([b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 204 \r\n", b"HTTP/1.1 500\r\n"])


class _Wire(asyncio.Transport):
    """What carries the bytes of a connection whose server is the test."""

    closing = False

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def heard(*pieces: bytes) -> Seen:
    """Return what a connection makes of a reply that comes in these pieces, and then ends."""
    loop = asyncio.new_event_loop()
    try:
        connection = HttpConnection(loop, lambda _: None)
        connection.connection_made(_Wire())
        incoming = connection.send(b"", b"")
        for piece in pieces:
            connection.data_received(piece)
        connection.connection_lost(None)
        error = "" if incoming.complete else type(incoming.failure).__name__
        return Seen(incoming.status if incoming.headed else 0, incoming.take(), error)
    finally:
        loop.close()


def is_the_same_in_any_cut(speech: bytes, *cuts: int) -> None:
    whole = heard(speech)
    for cut in cuts:
        halves = heard(speech[:cut], speech[cut:])
        assert (halves.status, halves.error) == (whole.status, whole.error), f"cut at {cut}"
        # What is read may be what came before an error; it is never something else.
        assert halves.body == whole.body if not whole.error else whole.body.startswith(halves.body), f"cut at {cut}"


@given(STATUS, LINES, BODIES)
def test_a_reply_of_any_headers_says_the_same_in_any_cut(status: bytes, lines: bytes, body: bytes) -> None:
    speech = status + lines + b"\r\n" + body
    is_the_same_in_any_cut(speech, *range(1, len(speech)))


@pytest.mark.parametrize("name", [*ALLOWED, *FORBIDDEN])
def test_a_reply_says_the_same_in_any_cut(name: str) -> None:
    speech = ALLOWED[name][0] if name in ALLOWED else FORBIDDEN[name]
    cuts = range(1, len(speech)) if len(speech) < 400 else (1, 15, 100, 5_000, len(speech) - 3)
    is_the_same_in_any_cut(speech, *cuts)


@pytest.mark.parametrize("name", [name for name in ALLOWED if len(ALLOWED[name][0]) < 400])
def test_a_reply_in_single_bytes_is_the_whole_one(name: str) -> None:
    speech = ALLOWED[name][0]
    assert heard(*(bytes([byte]) for byte in speech)) == heard(speech)


@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_reply_or_an_error_of_the_provider(speech: bytes) -> None:
    with suppress(ProviderError):
        read(speech)


@pytest.mark.parametrize("colon", [":", " :"])
@pytest.mark.parametrize("lines", [("close", "keep-alive"), ("keep-alive", "close"), ("x", "Close, y")])
def test_several_lines_of_connection_are_one_list(lines: tuple[str, str], colon: str) -> None:
    """A `close` in the first of two was overlooked, and the next request went into a connection that was closing."""
    speech = H + "".join(f"Connection{colon} {line}\r\n" for line in lines).encode() + TWO

    async def connection_of_a_reply() -> str:
        transport = HttpTransport()
        try:
            async with speaking(speech) as place:
                reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), USUAL)
                assert await reply.read(9) == b"ok"
                return reply.headers["connection"]
        finally:
            await transport.close()

    assert asyncio.run(connection_of_a_reply()) == ", ".join(lines)
