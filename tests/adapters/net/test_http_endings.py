"""How replies end that end badly: cut, reset, half-closed, slow, or larger than anybody wants. None of them passes for complete."""

from __future__ import annotations

import asyncio
import gzip
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.values.errors import BardoError, BrokenStream, MalformedReply, UpstreamTimeout
from support.patience import PATIENCE
from support.tiny_provider import USUAL

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

Script = Callable[[socket.socket], None]
HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"Content-Length: 2\r\n\r\nok"
RESET = struct.pack("ii", 1, 0)


@contextmanager
def scripted(*scripts: Script) -> Iterator[str]:
    """Run one script for each connection, in the order in which they come; yield the address."""

    def serve() -> None:
        for script in scripts:
            connection, _ = listener.accept()
            connection.settimeout(PATIENCE)
            with connection, suppress(ConnectionError):
                script(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join(PATIENCE)
        assert not thread.is_alive()


def heard(connection: socket.socket, body: bytes = b"{}") -> None:
    """Read a request to its end."""
    received = b""
    while not received.endswith(b"\r\n\r\n" + body):
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionResetError
        received += piece


def until_gone(connection: socket.socket) -> None:
    """Read until the client has hung up."""
    with suppress(ConnectionError):
        while connection.recv(65536):
            pass


async def body_of(transport: HttpTransport, url: str, deadlines: Deadlines = USUAL, *, limit: int = 1000) -> bytes:
    return await (await transport.send(Call(url=url, body=b"{}", provider="tiny"), deadlines)).read(limit)


def failure(script: Script, deadlines: Deadlines = USUAL, *, limit: int = 1000) -> BardoError:
    """Return the error of a call to a server that does this with its connection."""

    async def run(url: str) -> BardoError:
        transport = HttpTransport()
        try:
            with pytest.raises(BardoError) as caught:
                await asyncio.wait_for(body_of(transport, url, deadlines, limit=limit), PATIENCE)
            return caught.value
        finally:
            await transport.close()

    with scripted(script) as url:
        return asyncio.run(run(url))


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def half_close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    until_gone(connection)


FRAMINGS = {
    "a length": b"Content-Length: 10\r\n\r\nhello",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "gzip": b"Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n" + gzip.compress(b"hello"),
}


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("end", [socket.socket.close, half_close, reset], ids=["closed", "half closed", "reset"])
def test_a_body_that_ends_early_is_broken_however_it_ends(framing: bytes, end: Callable[[socket.socket], None]) -> None:
    def script(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(HEAD + framing)
        end(connection)

    assert isinstance(failure(script), BrokenStream)


def test_a_reset_is_no_end_of_a_body_that_ends_with_its_connection() -> None:
    """Without a length or chunks only the end of the connection says that all has come: a reset says that it has not."""

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            reply = await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)
            chunks = reply.chunks()
            assert await anext(chunks) == b"hello"
            read.set()
            with pytest.raises(BrokenStream):
                await asyncio.wait_for(anext(chunks), PATIENCE)
        finally:
            read.set()
            await transport.close()

    def script(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(HEAD + b"\r\nhello")
        read.wait(PATIENCE)
        reset(connection)

    read = threading.Event()
    with scripted(script) as url:
        asyncio.run(run(url))


@pytest.mark.parametrize(
    "reply", [OK, HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"], ids=["a length", "chunks"]
)
def test_a_connection_whose_server_says_no_more_serves_no_second_call(reply: bytes) -> None:
    def says_no_more(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(reply)
        connection.shutdown(socket.SHUT_WR)
        until_gone(connection)

    def answers(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(reply)
        until_gone(connection)

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            assert [await body_of(transport, url) for _ in range(2)] == [b"ok", b"ok"]
        finally:
            await transport.close()

    with scripted(says_no_more, answers) as url:
        asyncio.run(run(url))


@pytest.mark.parametrize("more", [b"x", b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\nx", b"0\r\n\r\n"])
def test_bytes_behind_a_reply_belong_to_nobody_and_end_its_connection(more: bytes) -> None:
    def says_too_much(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(OK + more)
        until_gone(connection)

    def answers(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(OK)
        until_gone(connection)

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            assert [await body_of(transport, url) for _ in range(2)] == [b"ok", b"ok"]
        finally:
            await transport.close()

    with scripted(says_too_much, answers) as url:
        asyncio.run(run(url))


def test_a_reply_before_the_request_was_sent_is_read_and_its_connection_closed() -> None:
    def refuses(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
        read.wait(PATIENCE)

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            call = Call(url=url, body=bytes(16 * 2**20), provider="tiny")
            reply = await asyncio.wait_for(transport.send(call, USUAL), PATIENCE)
            assert (reply.status, await reply.read(10)) == (413, b"no!")
            assert not any(transport._idle.values())
        finally:
            read.set()
            await transport.close()

    read = threading.Event()
    with scripted(refuses) as url:
        asyncio.run(run(url))


def drips(beginning: bytes, drop: bytes) -> Script:
    """Send `drop` again and again, each time before any deadline of the tests has passed."""

    def script(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(beginning)
        with suppress(OSError):
            while not select.select([connection], [], [], 0.005)[0]:
                connection.sendall(drop)

    return script


HEADS = {
    "one header after the other": drips(HEAD, b"X: y\r\n"),
    "a header without an end": drips(HEAD + b"X: ", b"y"),
    "1xx after 1xx": drips(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "empty lines": drips(b"", b"\r\n"),
}


@pytest.mark.parametrize("script", HEADS.values(), ids=HEADS)
def test_a_head_that_drips_meets_the_first_byte_deadline(script: Script) -> None:
    problem = failure(script, Deadlines(first_byte=0.2))
    assert isinstance(problem, UpstreamTimeout)
    assert "0.2 s (first_byte deadline)" in problem.message


BODIES = {
    "a chunk's extension": drips(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;", b"x"),
    "a chunk's size": drips(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "a trailer": drips(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", b"X: y\r\n"),
}


@pytest.mark.parametrize("script", BODIES.values(), ids=BODIES)
def test_what_drips_and_is_no_body_meets_the_idle_deadline(script: Script) -> None:
    problem = failure(script, Deadlines(first_byte=PATIENCE, idle=0.2))
    assert isinstance(problem, UpstreamTimeout)
    assert "0.2 s (idle deadline)" in problem.message


def test_a_body_that_drips_meets_the_total_deadline() -> None:
    script = drips(HEAD + b"Content-Length: 1000000\r\n\r\n", b"x")
    problem = failure(script, Deadlines(first_byte=PATIENCE, idle=PATIENCE, total=0.2), limit=1_000_000)
    assert isinstance(problem, UpstreamTimeout)
    assert "0.2 s (total deadline)" in problem.message


MANY = 100 * 2**20


@pytest.mark.parametrize("framing", [b"Content-Length: %d\r\n\r\n" % MANY, b"\r\n"], ids=["a length", "no length"])
def test_a_hundred_megabytes_are_not_read_where_one_is_the_limit(framing: bytes) -> None:
    def script(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(HEAD + framing)
        piece = bytes(2**16)
        for _ in range(MANY // len(piece)):
            connection.sendall(piece)
            sent.append(len(piece))

    sent: list[int] = []
    problem = failure(script, limit=2**20)
    assert isinstance(problem, MalformedReply)
    assert "larger than 1048576 bytes" in problem.message
    # What the kernel of this machine holds between two sockets comes to a few megabytes.
    assert sum(sent) < MANY / 4


def test_a_small_body_that_unpacks_to_much_is_not_unpacked_beyond_the_limit() -> None:
    packed = gzip.compress(bytes(MANY), 1)
    assert len(packed) < 2**20

    def script(connection: socket.socket) -> None:
        heard(connection)
        connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
        until_gone(connection)

    assert "larger than 1048576 bytes" in failure(script, limit=2**20).message


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


def answering_twice(rest: bytes, said_all: threading.Event, connections: list[int]) -> Script:
    """Begin a reply, end it with `rest` once the client has let go of it, and answer what comes next on the same connection."""

    def script(connection: socket.socket) -> None:
        connections.append(1)
        heard(connection)
        connection.sendall(CHUNKED)
        said_all.wait(PATIENCE)
        if not rest:
            until_gone(connection)
            return
        connection.sendall(rest)
        with suppress(ConnectionError):
            heard(connection)
            connection.sendall(OK)
        until_gone(connection)

    return script


def answering_once(connections: list[int]) -> Script:
    def script(connection: socket.socket) -> None:
        connections.append(1)
        heard(connection)
        connection.sendall(OK)
        until_gone(connection)

    return script


async def until_idle(transport: HttpTransport) -> None:
    """Wait until a connection may serve again."""
    while not any(transport._idle.values()):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def until_closed(transport: HttpTransport) -> None:
    """Wait until no connection is left."""
    while transport._addresses:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_a_reply_that_said_all_gives_its_connection_back_when_its_end_comes() -> None:
    connections: list[int] = []
    said_all = threading.Event()

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            reply = await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)
            assert await anext(reply.chunks()) == b"hello"
            await reply.finish()
            await reply.finish()
            said_all.set()
            await asyncio.wait_for(until_idle(transport), PATIENCE)
            assert await body_of(transport, url) == b"ok"
        finally:
            said_all.set()
            await transport.close()

    with scripted(answering_twice(b"4\r\nmore\r\n0\r\n\r\n", said_all, connections)) as url:
        asyncio.run(run(url))
    assert len(connections) == 1


def test_a_reply_that_said_all_and_does_not_end_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.adapters.net.client._END_SECONDS", 0.02)
    connections: list[int] = []
    said_all = threading.Event()

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            reply = await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)
            assert await anext(reply.chunks()) == b"hello"
            said_all.set()
            await reply.finish()
            await asyncio.wait_for(until_closed(transport), PATIENCE)
            assert await body_of(transport, url) == b"ok"
        finally:
            said_all.set()
            await transport.close()

    with scripted(answering_twice(b"", said_all, connections), answering_once(connections)) as url:
        asyncio.run(run(url))
    assert len(connections) == 2


def test_a_reply_that_is_let_go_of_with_its_rest_unread_takes_its_connection_along() -> None:
    connections: list[int] = []
    said_all = threading.Event()

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            reply = await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)
            assert await anext(reply.chunks()) == b"hello"
            await reply.close()
            said_all.set()
            assert await body_of(transport, url) == b"ok"
        finally:
            said_all.set()
            await transport.close()

    rest = b"4\r\nmore\r\n0\r\n\r\n"
    with scripted(answering_twice(rest, said_all, connections), answering_once(connections)) as url:
        asyncio.run(run(url))
    assert len(connections) == 2


def test_a_reply_that_came_whole_and_was_not_read_leaves_its_connection_to_others() -> None:
    connections: list[int] = []

    def answers(connection: socket.socket) -> None:
        connections.append(1)
        for _ in range(2):
            heard(connection)
            connection.sendall(OK)
        until_gone(connection)

    async def run(url: str) -> None:
        transport = HttpTransport()
        try:
            reply = await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)
            await asyncio.wait_for(until_idle(transport), PATIENCE)
            await reply.close()
            assert await body_of(transport, url) == b"ok"
        finally:
            await transport.close()

    with scripted(answers) as url:
        asyncio.run(run(url))
    assert len(connections) == 1
