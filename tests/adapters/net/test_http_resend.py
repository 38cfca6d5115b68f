"""A kept connection that the provider closed without a byte of a reply: the call goes out once more, on a fresh one."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.connection import idle_limit
from bardo.values.errors import BrokenStream
from support.patience import PATIENCE
from support.tiny_provider import USUAL

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STREAMED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
RESET = struct.pack("ii", 1, 0)
Script = Callable[[socket.socket, int], None]
"""What a connection does, by its number from 0."""


class Provider:
    """A server on a real socket; each connection runs `script` in a thread of its own."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1/chat"
        self.connections = 0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._run, args=(connection, self.connections), daemon=True)
            self.connections += 1
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):
            self._script(connection, number)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in (self._accepting, *self._threads):
            thread.join(PATIENCE)


def heard(connection: socket.socket) -> bytes:
    """Return one request, empty where the client hung up."""
    data = b""
    while not data.endswith(b"{}"):
        piece = connection.recv(4096)
        if not piece:
            return b""
        data += piece
    return data


@contextmanager
def serving(script: Script) -> Iterator[Provider]:
    provider = Provider(script)
    try:
        yield provider
    finally:
        provider.close()


async def ask(transport: HttpTransport, url: str) -> tuple[bytes, bool]:
    reply = await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)
    return await reply.read(1000), reply.resent


def closing(connection: socket.socket) -> None:
    """End a connection as most servers do."""


def resetting(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def half_closing(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    connection.recv(4096)


ENDS = pytest.mark.parametrize("end", [closing, resetting, half_closing])
REPLIES = pytest.mark.parametrize("reply", [OK, STREAMED], ids=["whole", "streamed"])


def test_a_reply_does_not_hold_the_body_that_was_sent() -> None:
    def script(connection: socket.socket, _: int) -> None:
        heard(connection)
        connection.sendall(STREAMED)

    with serving(script) as provider:
        body = b" " * 100 + b"{}"

        async def run() -> None:
            transport = HttpTransport()
            before = sys.getrefcount(body)
            reply = await transport.send(Call(url=provider.url, body=body, provider="tiny"), USUAL)
            assert sys.getrefcount(body) == before
            assert await reply.read(1000) == b"ok"
            await transport.close()

        asyncio.run(run())


@ENDS
@REPLIES
def test_back_to_back_calls_survive_a_server_that_closes_after_each_reply(
    end: Callable[[socket.socket], None], reply: bytes
) -> None:
    def script(connection: socket.socket, _: int) -> None:
        if heard(connection):
            connection.sendall(reply)
            end(connection)

    async def run() -> None:
        transport = HttpTransport()
        try:
            for _ in range(40):
                assert (await ask(transport, provider.url))[0] == b"ok"
        finally:
            await transport.close()

    with serving(script) as provider:
        asyncio.run(run())


@ENDS
@REPLIES
def test_a_kept_connection_that_ends_at_the_next_request_is_replaced_once(
    end: Callable[[socket.socket], None], reply: bytes
) -> None:
    def script(connection: socket.socket, number: int) -> None:
        heard(connection)
        connection.sendall(reply)
        # The next request arrives, and is not answered.
        if heard(connection) and number == 0:
            end(connection)
            return
        connection.sendall(reply)
        heard(connection)

    async def run() -> None:
        transport = HttpTransport()
        try:
            assert await ask(transport, provider.url) == (b"ok", False)
            assert await ask(transport, provider.url) == (b"ok", True)
            assert await ask(transport, provider.url) == (b"ok", False)
        finally:
            await transport.close()
        assert provider.connections == 2

    with serving(script) as provider:
        asyncio.run(run())


async def first_byte(transport: HttpTransport) -> None:
    """Wait until the call that is open has read a byte of its reply."""
    while not any(connection.heard for connection in transport._addresses):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


@ENDS
@pytest.mark.parametrize("said", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_after_one_byte_of_a_reply_a_call_is_not_sent_again(end: Callable[[socket.socket], None], said: bytes) -> None:
    requests: list[bytes] = []

    def script(connection: socket.socket, _: int) -> None:
        requests.append(heard(connection))
        connection.sendall(OK)
        requests.append(heard(connection))
        connection.sendall(said)
        # The bytes are there before the end is.
        passed.wait(PATIENCE)
        end(connection)

    async def run() -> None:
        transport = HttpTransport()
        try:
            await ask(transport, provider.url)
            asking = asyncio.create_task(ask(transport, provider.url))
            await asyncio.wait_for(first_byte(transport), PATIENCE)
            passed.set()
            with pytest.raises(BrokenStream):
                await asking
        finally:
            passed.set()
            await transport.close()

    passed = threading.Event()
    with serving(script) as provider:
        asyncio.run(run())
    assert len(requests) == 2


@ENDS
def test_on_a_fresh_connection_a_call_is_not_sent_again(end: Callable[[socket.socket], None]) -> None:
    def script(connection: socket.socket, _: int) -> None:
        heard(connection)
        end(connection)

    async def run() -> None:
        transport = HttpTransport()
        try:
            with pytest.raises(BrokenStream):
                await ask(transport, provider.url)
        finally:
            await transport.close()
        assert provider.connections == 1

    with serving(script) as provider:
        asyncio.run(run())


def test_the_second_sending_is_the_last() -> None:
    def script(connection: socket.socket, number: int) -> None:
        heard(connection)
        if number == 0:
            connection.sendall(OK)
            heard(connection)

    async def run() -> None:
        transport = HttpTransport()
        try:
            await ask(transport, provider.url)
            with pytest.raises(BrokenStream):
                await ask(transport, provider.url)
        finally:
            await transport.close()
        assert provider.connections == 2

    with serving(script) as provider:
        asyncio.run(run())


def test_a_connection_that_the_server_keeps_for_no_time_is_not_used_again() -> None:
    def script(connection: socket.socket, _: int) -> None:
        while heard(connection):
            connection.sendall(OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=0, max=100\r\n\r\n"))

    async def run() -> None:
        transport = HttpTransport()
        try:
            for _ in range(3):
                assert await ask(transport, provider.url) == (b"ok", False)
        finally:
            await transport.close()
        assert provider.connections == 3

    with serving(script) as provider:
        asyncio.run(run())


@pytest.mark.parametrize(
    ("header", "limit"),
    [
        ("timeout=5", 4.0),
        ("timeout=5, max=100", 4.0),
        ("max=100; Timeout = 1", 0.5),
        ('timeout="60"', 59.0),
        ("max=7", None),
        ("timeout=soon", None),
        ("", None),
        (None, None),
    ],
)
def test_how_long_a_server_keeps_a_connection_is_what_it_says_less_the_way_there(
    header: str | None, limit: float | None
) -> None:
    assert idle_limit(header) == limit
