"""Replies that no honest server sends: the direct client reads them as aiohttp does, or refuses what aiohttp refuses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.adapters.net.client import Call, Client, HttpTransport
from bardo.values.errors import ProviderError
from support.patience import PATIENCE
from support.tiny_provider import USUAL, speaking

pytestmark = pytest.mark.each_python

CLIENTS: tuple[Client, ...] = ("direct", "aiohttp")
H = b"HTTP/1.1 200 OK\r\n"
CHUNKED = H + b"Transfer-Encoding: chunked\r\n\r\n"


class Seen(NamedTuple):
    """What a caller gets of one reply; an empty error where it was read to its end."""

    status: int
    body: bytes
    error: str


async def seen(client: Client, speech: bytes) -> Seen:
    transport = HttpTransport(client)
    status, body = 0, b""
    try:
        async with speaking(speech) as place:
            reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), USUAL)
            status = reply.status
            async for piece in reply.chunks():
                body += piece
    except ProviderError as problem:
        return Seen(status, body, type(problem).__name__)
    finally:
        await transport.close()
    return Seen(status, body, "")


def both(speech: bytes) -> tuple[Seen, Seen]:
    async def run() -> tuple[Seen, Seen]:
        direct, other = await asyncio.wait_for(asyncio.gather(*(seen(client, speech) for client in CLIENTS)), PATIENCE)
        return direct, other

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("speech", "body"),
    [
        (H + b"Content-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + H + b"Content-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3 + H + b"Content-Length: 2\r\n\r\nok", b"ok"),
        (CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n", b"ok"),
        (CHUNKED + b"2;name=value\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", b"to the end"),
        (H + b"Connection: close\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", b""),
        (H + b"Content-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\nx", b"ok"),
    ],
)
def test_what_http_allows_is_read_by_both(speech: bytes, body: bytes) -> None:
    direct, other = both(speech)
    assert direct.body == body
    assert direct.error == ""
    assert (other.status, other.body) == (direct.status, direct.body)


@pytest.mark.parametrize(
    "speech",
    [
        H + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
        H + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        H + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        H + b"Content-Length: -1\r\n\r\nok",
        H + b"Content-Length: 0x2\r\n\r\nok",
        H + b"Content-Length: 99999999999999999999999\r\n\r\nok",
        CHUNKED + b"-1\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nok!!\r\n0\r\n\r\n",
        CHUNKED + b"fffffffffffffffff\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"2;" + b"x" * 200_000 + b"\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nok\r\n0\r\n" + b"X: y\r\n" * 40_000 + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000 + H + b"Content-Length: 2\r\n\r\nok",
        H + b"X: y\r\n" * 40_000 + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nok",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 600 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"\x00" * 1000,
        H + b"Content-Length: 5\r\n\r\nok",
        H + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
        H + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\nok",
    ],
)
def test_what_http_forbids_and_what_never_ends_is_refused(speech: bytes) -> None:
    direct = asyncio.run(seen("direct", speech))
    assert direct.error in ("MalformedReply", "BrokenStream")


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


@example(b"HTTP/1.1 200 OK\r\n", b"", b"")
@given(STATUS, LINES, BODIES)
def test_no_reply_is_longer_for_one_client_than_for_the_other(status: bytes, lines: bytes, body: bytes) -> None:
    direct, other = both(status + lines + b"\r\n" + body)
    if not direct.error and not other.error:
        assert direct == other
    # What is read may be what came before an error; it is never something else.
    assert direct.body.startswith(other.body) or other.body.startswith(direct.body)


@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_reply_or_an_error_of_the_provider(speech: bytes) -> None:
    with suppress(ProviderError):
        asyncio.run(seen("direct", speech))


@pytest.mark.parametrize("lines", [("close", "keep-alive"), ("keep-alive", "close"), ("x", "Close, y")])
def test_several_lines_of_connection_are_one_list(lines: tuple[str, str]) -> None:
    """A `close` in the first of two was overlooked, and the next request went into a connection that was closing."""
    speech = H + "".join(f"Connection: {line}\r\n" for line in lines).encode() + b"Content-Length: 2\r\n\r\nok"

    async def connection_of_a_reply() -> str:
        transport = HttpTransport("direct")
        try:
            async with speaking(speech) as place:
                reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), USUAL)
                assert await reply.read(9) == b"ok"
                return reply.headers["connection"]
        finally:
            await transport.close()

    assert asyncio.run(connection_of_a_reply()) == ", ".join(lines)
