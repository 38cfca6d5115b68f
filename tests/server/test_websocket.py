"""A WebSocket on a connection of bardo's server: frames that are refused, bounds, silence, and what comes around the handshake."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.sync.client import connect

from bardo.adapters.config.gateway import ServerBounds
from bardo.server.reply import Receive, Scope, Send
from bardo.server.serving import BackgroundServer
from bardo.server.websocket import CLOSING_SECONDS, DEAD_SECONDS, PING_SECONDS, WebSocketCycle
from support.one_connection import OneConnection
from support.patience import PATIENCE
from support.raw import RawClient, head

pytestmark = pytest.mark.each_python

MOST = 100_000
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
BODY_SECONDS = 7.0


class Echo:
    """Sends back what it is sent; it refuses what is asked at another path than `/echo`."""

    def __init__(self, **bounds: Any) -> None:
        self.bounds = ServerBounds(**{"body_seconds": BODY_SECONDS, **bounds})
        self.max_body_bytes = MOST
        self.ended: list[Any] = []
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while (asked := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{asked}.complete"})
            await send({"type": f"{asked}.complete"})
            return
        if scope["type"] == "http" or scope["path"] != "/echo":
            kind = "" if scope["type"] == "http" else "websocket."
            await send({"type": f"{kind}http.response.start", "status": 404, "headers": [(b"content-length", b"2")]})
            await send({"type": f"{kind}http.response.body", "body": b"no"})
            return
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept", "headers": [(b"x-own", b"header")]})
        await self.go.wait()
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        self.ended.append(message)
        assert await receive() == message
        await send({"type": "websocket.send", "text": "to nobody"})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with BackgroundServer(Echo()) as running:
        yield running.address


def handshake(host: str, path: str = "/echo", **headers: str) -> bytes:
    own = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_key": KEY, "sec_websocket_version": "13"}
    return head(host, path, "GET", **{**own, **headers})


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, mask: bool = True, reserved: int = 0) -> bytes:
    """Return a frame, which may be one that nobody may send."""
    length = len(data)
    size = bytes([length]) if length < 126 else bytes([126]) + length.to_bytes(2) if length < 65536 else None
    size = size or bytes([127]) + length.to_bytes(8)
    first = bytes([fin << 7 | reserved << 4 | opcode])
    if not mask:
        return first + size + data
    return first + bytes([size[0] | 0x80]) + size[1:] + b"\0\0\0\0" + data


def packed(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-12)
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH).removesuffix(b"\0\0\xff\xff")


TEXT, BINARY, CONT, CLOSE, PING = 1, 2, 0, 8, 9
HOSTILE = {
    "without a mask": (frame(TEXT, b"a", mask=False), 1002),
    "a reserved bit": (frame(TEXT, b"a", reserved=2), 1002),
    "packed, unasked": (frame(TEXT, b"a", reserved=4), 1002),
    "an unknown kind": (frame(3, b"a"), 1002),
    "a ping in pieces": (frame(PING, b"a", fin=False), 1002),
    "a long ping": (frame(PING, b"a" * 126), 1002),
    "a piece of nothing": (frame(CONT, b"a"), 1002),
    "a message within another": (frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"), 1002),
    "a code that may not be sent": (frame(CLOSE, (1005).to_bytes(2)), 1002),
    "half a code": (frame(CLOSE, b"\x03"), 1002),
    "a reason that is not UTF-8": (frame(CLOSE, (1000).to_bytes(2) + b"\xff"), 1007),
    "a text that is not UTF-8": (frame(TEXT, b"\xff"), 1007),
    "a letter that ends nowhere": (frame(TEXT, b"\xc3", fin=False) + frame(CONT, b""), 1007),
    "too long": (frame(TEXT, b"a" * (MOST + 1)), 1009),
    "too long by its head": (bytes([0x81, 0xFF]) + (1 << 62).to_bytes(8), 1009),
    "too long together": (frame(TEXT, b"a" * MOST, fin=False) + frame(CONT, b"a"), 1009),
}


def last_words(client: RawClient) -> list[Frame]:
    """Return the frames that come to the end of a connection."""
    frames = Protocol(Side.CLIENT, state=State.OPEN)
    frames.receive_data(client.rest())
    return [event for event in frames.events_received() if isinstance(event, Frame)]


@pytest.mark.parametrize(("sent", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_frame_that_nobody_may_send_ends_the_connection_by_its_code(server: str, sent: bytes, code: int) -> None:
    with RawClient(server) as client:
        client.send(handshake(client.host))
        assert client.reply(head_only=True).status == 101
        client.send(sent)
        client.socket.shutdown(1)
        [closed] = last_words(client)
    assert Close.parse(closed.data).code == code


def test_what_unpacks_to_more_than_a_message_may_have_is_refused(server: str) -> None:
    bomb = packed(b"\0" * 50_000_000)
    for sent, code in (
        ([frame(TEXT, bomb, reserved=4)], 1009),
        ([frame(TEXT, packed(b"a" * MOST), reserved=4, fin=False), frame(CONT, packed(b"b"))], 1009),
        ([frame(TEXT, b"\xff\xff\xff", reserved=4)], 1002),
        ([frame(TEXT, packed(b"a"), reserved=4, fin=False), frame(CONT, packed(b"b"), reserved=4)], 1002),
    ):
        with RawClient(server) as client:
            client.send(handshake(client.host, sec_websocket_extensions="permessage-deflate"))
            assert "permessage-deflate" in client.reply(head_only=True).headers["sec-websocket-extensions"]
            client.send(b"".join(sent))
            client.socket.shutdown(1)
            [closed] = last_words(client)
        assert Close.parse(closed.data).code == code


def test_messages_of_all_sizes_and_pieces_come_back_as_they_were_sent(server: str) -> None:
    address = server.replace("http", "ws") + "/echo"
    noise = os.urandom(MOST // 2 - 9).hex()
    for compression in ("deflate", None):
        with connect(address, compression=compression, max_size=None, open_timeout=PATIENCE) as client:
            assert client.response is not None
            assert client.response.headers["x-own"] == "header"
            for text in ("é", "", noise, "again " * 1000, "again " * 1000):
                client.send(text)
                assert client.recv(PATIENCE) == text
            for data in (b"\xff", noise.encode()):
                client.send(data)
                assert client.recv(PATIENCE) == data
            client.send([noise[:1], noise[1:7], "", noise[7:]])
            assert client.recv(PATIENCE) == noise
            assert client.ping(b"there?").wait(PATIENCE)


def test_a_refused_handshake_leaves_the_connection_to_the_next_request(server: str) -> None:
    with RawClient(server) as client:
        for asked in (
            handshake(client.host, "/other"),
            handshake(client.host, sec_websocket_version="12"),
            handshake(client.host, sec_websocket_key="short"),
            handshake(client.host, connection="keep-alive"),
            handshake(client.host, upgrade="websocket, h2c"),
        ):
            client.send(asked + head(client.host, "/next", "GET"))
            assert client.reply().status == 404
            assert client.reply().status == 404
        client.send(handshake(client.host) + frame(TEXT, b"early"))
        assert client.reply(head_only=True).status == 101
        client.send(frame(CLOSE))
        text, closed = last_words(client)
        assert (bytes(text.data), closed.opcode) == (b"early", Opcode.CLOSE)


def test_a_body_or_http_1_0_is_no_handshake(server: str) -> None:
    with RawClient(server) as client:
        client.send(handshake(client.host, content_length="2") + b"{}")
        assert client.reply().status == 404
        client.send(handshake(client.host).replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert client.reply().status == 404


def test_an_open_connection_is_closed_when_its_application_ends_without_a_word() -> None:
    async def leaves(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "websocket"
        await receive()
        await send({"type": "websocket.accept"})

    with BackgroundServer(leaves) as running, connect(running.address.replace("http", "ws")) as client:
        with pytest.raises(ConnectionClosed) as ended:
            client.recv(PATIENCE)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1011


def inside(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test inside an event loop."""

    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def opened(one: OneConnection) -> bytearray:
    """Open a WebSocket, and return what is written from now on."""
    await one.send(handshake("x"))
    assert b" 101 " in one.wire.written
    one.wire.written.clear()
    return one.wire.written


@inside
async def test_a_silent_client_is_asked_and_one_that_does_not_answer_is_let_go() -> None:
    with OneConnection(Echo()) as one:
        written = await opened(one)
        one.clock.move(PING_SECONDS)
        assert bytes(written) == b"\x89\x00"
        await one.send(frame(10))
        one.clock.move(DEAD_SECONDS - 1)
        assert not one.wire.is_closing()
        one.clock.move(PING_SECONDS)
        assert one.wire.is_closing()


@inside
async def test_a_message_that_does_not_arrive_in_time_ends_the_connection() -> None:
    for pieces in ([frame(TEXT, b"a", fin=False)], [frame(TEXT, b"abc")[:3]]):
        with OneConnection(Echo()) as one:
            written = await opened(one)
            await one.send(*pieces)
            one.clock.move(BODY_SECONDS - 1)
            assert b"\x03\xf0" not in written
            one.clock.move(1)
            assert b"\x03\xf0" in written, "1008"
            assert one.connection.server.limits.body_bytes == 0
            assert one.wire.is_closing()
    with OneConnection(Echo()) as one:
        await opened(one)
        await one.send(frame(TEXT, b"a", fin=False), frame(CONT, b"b"))
        one.clock.move(BODY_SECONDS)
        assert not one.wire.is_closing()


@inside
async def test_a_client_that_does_not_read_gets_no_more_answers_to_its_pings() -> None:
    with OneConnection(Echo()) as one:
        written = await opened(one)
        one.connection.pause_writing()
        await one.send(*[frame(PING, b"a" * 100)] * 100)
        assert not written
        assert not one.wire.is_reading()
        one.connection.resume_writing()
        await one.settle()
        assert written.count(b"\x8a\x64") == 100
        assert one.wire.is_reading()


@inside
async def test_a_client_that_ends_its_websocket_and_does_not_read_is_let_go() -> None:
    with OneConnection(Echo()) as one:
        await opened(one)
        await one.send(frame(CLOSE, (1000).to_bytes(2)))
        assert one.wire.is_closing()
        assert not one.wire.aborted
        one.clock.move(CLOSING_SECONDS)
        assert one.wire.aborted


@inside
async def test_what_waits_for_the_application_is_bounded_and_counted() -> None:
    app = Echo(max_total_body_bytes=50_000)
    app.go.clear()
    with OneConnection(app) as one:
        written = await opened(one)
        await one.send(*[frame(TEXT, b"a" * 100)] * 100)
        assert not one.wire.is_reading()
        assert 0 < one.connection.server.limits.body_bytes <= 100 * 110
        app.go.set()
        await one.settle()
        await one.settle()
        assert written.count(b"\x81\x64") == 100
        assert one.connection.server.limits.body_bytes == 0
        assert one.wire.is_reading()
        await one.send(frame(TEXT, b"a" * 60_000)[:55_000])
        assert b"\x03\xf5" in written, "1013"
        assert one.connection.server.limits.body_bytes == 0
        await one.settle()
        assert app.ended[0]["code"] == 1013


@inside
async def test_only_a_websocket_on_which_nothing_is_at_work_leaves_the_process_idle() -> None:
    echo = Echo()
    echo.go.clear()
    with OneConnection(echo) as one:
        assert one.server.limits.is_idle()
        await opened(one)
        assert one.server.limits.tasks
        assert one.server.limits.is_idle()
        one.server.limits.count_body(1)
        assert not one.server.limits.is_idle()
        one.server.limits.body_bytes -= 1
        echo.go.set()
        await one.send(frame(8, b"\x03\xe8"))
        await asyncio.gather(*one.server.limits.tasks)
        assert one.server.limits.websockets == 0
    with OneConnection(Echo()) as one:
        await one.send(handshake("x", "/none"))
        assert one.server.limits.websockets == 0


@inside
async def test_a_client_that_leaves_is_told_to_the_application() -> None:
    app = Echo()
    one = OneConnection(app)
    await opened(one)
    one.connection.connection_lost(None)
    await one.settle()
    assert [message["code"] for message in app.ended] == [1006]
    assert isinstance(one.connection._websocket, WebSocketCycle)


@inside
async def test_thousands_of_frames_in_one_read_leave_others_their_turn() -> None:
    with OneConnection(Echo()) as one:
        await opened(one)
        one.clock.time = iter(range(1_000_000)).__next__  # type: ignore[method-assign]
        one.connection.data_received(frame(PING) * 3000)
        assert one.wire.written.count(b"\x8a\x00") < 1000
        assert not one.wire.is_reading()
        for _ in range(20):
            one.clock.run_soon()
        assert one.wire.written.count(b"\x8a\x00") == 3000
        assert one.wire.is_reading()
