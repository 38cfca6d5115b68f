"""What becomes of connections, and of what goes over them: warm ones are used again, dead ones are not."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.net.client import Call, Deadlines, HttpTransport, Reply
from bardo.adapters.net.connection import HttpConnection
from bardo.adapters.net.fake import FakeReply
from bardo.values.errors import BrokenStream, InternalError, Unreachable, UpstreamTimeout
from support.patience import PATIENCE
from support.tiny_provider import USUAL, Stage, TinyProvider, answering, asked, played, real, speaking

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

OK = FakeReply(chunks=[b"ok"])


def test_one_connection_serves_calls_in_turn_and_is_closed_with_the_transport() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        for _ in range(5):
            assert await asked(transport, url) == b"ok"
        assert (len(provider.calls), provider.connections) == (5, 1)
        await transport.close()
        await asyncio.wait_for(provider.all_closed.wait(), PATIENCE)

    provider = TinyProvider(answering(OK))
    real(provider, scene)


def test_a_call_that_connects_while_the_transport_is_closed_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        connects, goes_on, resolve = asyncio.Event(), asyncio.Event(), transport._resolved

        async def resolve_later(host: str, port: int) -> Sequence[Any]:
            connects.set()
            await goes_on.wait()
            return await resolve(host, port)

        monkeypatch.setattr(transport, "_resolved", resolve_later)
        asking = asyncio.ensure_future(asked(transport, url))
        await connects.wait()
        await transport.close()
        goes_on.set()
        with pytest.raises(InternalError, match="was closed during a call"):
            await asking
        await asyncio.wait_for(provider.all_closed.wait(), PATIENCE)
        assert provider.calls == []

    provider = TinyProvider(answering(OK))
    real(provider, scene)


def test_a_connection_the_provider_closed_is_not_used_again() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        for _ in range(3):
            assert await asked(transport, url) == b"ok"
            await asyncio.wait_for(provider.all_closed.wait(), PATIENCE)
        assert (len(provider.calls), provider.connections) == (3, 3)

    provider = TinyProvider(answering(OK), hangs_up=True)
    real(provider, scene)


def test_connections_that_a_provider_closes_are_not_held() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        for _ in range(12):
            assert await asked(transport, url) == b"ok"
            await asyncio.wait_for(provider.all_closed.wait(), PATIENCE)
        assert new_connections() < 6

    gc.freeze()
    provider = TinyProvider(answering(OK), hangs_up=True)
    real(provider, scene)


def test_connections_that_a_provider_refuses_are_not_held(closed_port: int) -> None:
    async def run() -> None:
        transport = HttpTransport()
        try:
            for _ in range(12):
                with pytest.raises(Unreachable, match="refuses connections"):
                    await asked(transport, f"http://127.0.0.1:{closed_port}")
            assert new_connections() < 6
        finally:
            await transport.close()

    gc.freeze()
    asyncio.run(run())


def new_connections() -> int:
    """Return how many connections of the direct client there are, open or not, which were not there at `gc.freeze()`."""
    gc.collect()
    return sum(isinstance(one, HttpConnection) for one in gc.get_objects())


@contextmanager
def one_reply_each(calls: int) -> Iterator[tuple[str, threading.Event]]:
    """A provider in a thread that closes each connection after its reply; yield its address, and what tells of each closing."""

    def serve() -> None:
        for _ in range(calls):
            connection, _ = listener.accept()
            with connection:
                heard = b""
                while not heard.endswith(b"{}"):
                    heard += connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            closed.set()

    closed = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", closed
        thread.join()


def test_a_connection_that_was_closed_while_the_loop_was_busy_is_not_used_again() -> None:
    async def run() -> None:
        transport = HttpTransport()
        for _ in range(3):
            assert await asked(transport, url) == b"ok"
            # The loop stands still, as it does while a program computes: it cannot see the provider hang up.
            assert closed.wait(PATIENCE)
            closed.clear()
        await transport.close()

    with one_reply_each(calls=3) as (url, closed):
        asyncio.run(run())


def test_a_request_that_got_no_answer_on_a_kept_connection_is_sent_once_more_and_no_more() -> None:
    def hang_up_on_the_second(call: Call) -> FakeReply:
        if call.body == b"second":
            raise ConnectionAbortedError
        return OK

    async def scene(transport: HttpTransport, url: str) -> None:
        assert await asked(transport, url, b"first") == b"ok"
        with pytest.raises(BrokenStream):
            await asked(transport, url, b"second")
        assert [call.body for call in provider.calls] == [b"first", b"second", b"second"]
        assert provider.connections == 2
        assert await asked(transport, url, b"third") == b"ok"

    provider = TinyProvider(hang_up_on_the_second)
    real(provider, scene)


def test_a_large_body_arrives_whole() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        body = os.urandom(3 * 2**20)
        assert await asked(transport, url, body) == b"ok"
        assert provider.calls[0].body == body

    provider = TinyProvider(answering(OK))
    real(provider, scene)


def test_an_address_is_sent_as_it_is_written() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        await asked(transport, f"{url}/model/arn%3Aaws%2fx:0/converse?key=a%2Bb+c")
        await asked(transport, f"{url}/modèle à part")
        assert [call.url for call in provider.calls] == [
            "/model/arn%3Aaws%2fx:0/converse?key=a%2Bb+c",
            "/mod%C3%A8le%20%C3%A0%20part",
        ]

    provider = TinyProvider(answering(OK))
    real(provider, scene)


def test_a_password_file_of_the_user_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    passwords = tmp_path / "netrc"
    passwords.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(passwords))

    async def scene(transport: HttpTransport, url: str) -> None:
        await asked(transport, url)
        assert "authorization" not in provider.calls[0].headers

    provider = TinyProvider(answering(OK))
    real(provider, scene)


def test_a_reply_that_is_compressed_unasked_is_unpacked() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        assert await asked(transport, url) == b"hello" * 10

    packed = zlib.compress(b"hello" * 10, wbits=31)
    real(TinyProvider(answering(FakeReply(headers={"Content-Encoding": "gzip"}, chunks=[packed]))), scene)


def test_a_stream_that_is_never_silent_for_long_may_last_longer_than_the_idle_deadline() -> None:
    async def scene(stage: Stage) -> None:
        loop = asyncio.get_running_loop()
        ticks.extend(asyncio.Event() for _ in range(10))
        for number, tick in enumerate(ticks):
            loop.call_later(0.25 * number, tick.set)
        reply = await stage.send(Deadlines(first_byte=PATIENCE, idle=2.0))
        assert await reply.read(1000) == b"x" * 10

    # A machine may be busy for two seconds once, but a bound on the whole would hold each time.
    for tries_left in (2, 1, 0):
        ticks: list[asyncio.Event] = []
        try:
            played("real", lambda call: FakeReply(chunks=[step for tick in ticks for step in (tick, b"x")]), scene)  # noqa: B023
            break
        except UpstreamTimeout:
            assert tries_left


async def collect(reply: Reply, pieces: list[bytes]) -> None:
    async for piece in reply.chunks():
        pieces.append(piece)


def test_what_came_before_a_break_is_read_after_it() -> None:
    async def run() -> None:
        transport = HttpTransport()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
        more = asyncio.Event()
        async with speaking(head, more, b"some", b" more") as place:
            reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), USUAL)
            more.set()
            # Nobody reads until the loop has had every occasion to see the provider hang up.
            for _ in range(100):
                await asyncio.sleep(0)
            pieces: list[bytes] = []
            with pytest.raises(BrokenStream):
                await collect(reply, pieces)
            assert b"".join(pieces) == b"some more"
        await transport.close()

    asyncio.run(run())


def test_silent_connections_are_kept_alive() -> None:
    from bardo.adapters.net.connection import watched_socket

    with watched_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as watched:
        assert watched.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
