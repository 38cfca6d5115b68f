"""Calls to an https provider through a proxy: TLS is spoken with the provider, and the proxy sees its name only."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bardo.adapters.net import client as http_client
from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.adapters.net.fake import FakeReply
from bardo.values.errors import BardoError, MalformedReply, Unreachable, UpstreamTimeout
from support.certificate import certificate, server_context
from support.patience import PATIENCE
from support.tiny_provider import SECRET, USUAL, TinyProvider, answering, asked, port_of

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

URL = f"https://provider.example/v1?key={SECRET}"
OPENED = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n"


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.create_default_context(cadata=certificate().decode().partition("-----END PRIVATE KEY-----\n")[2])
    monkeypatch.setattr(http_client, "_tls", lambda: context)


class TunnelProxy:
    """A proxy that answers every CONNECT with `answer`, and then carries bytes to and from `port`."""

    def __init__(self, port: int, answer: bytes = OPENED) -> None:
        self._port = port
        self._answer = answer
        self.heads: list[bytes] = []
        self.carried = b""
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        try:
            yield f"{'https' if tls else 'http'}://somebody:{SECRET}@127.0.0.1:{port_of(server)}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            for problem in await asyncio.gather(*self._tasks, return_exceptions=True):
                # The calls that are open still are cancelled here; nothing else may end one but its client.
                if problem is not None and not isinstance(problem, asyncio.CancelledError):
                    raise problem

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            if b"HTTP/1.1 200" in self._answer or b"HTTP/1.0 200" in self._answer:
                inner, outer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    await asyncio.gather(self._carry(reader, outer), self._carry(inner, writer))
                finally:
                    outer.transport.abort()
            else:
                await reader.read(1)
        finally:
            writer.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while piece := await source.read(65536):
            self.carried += piece
            target.write(piece)
            await target.drain()
        target.transport.abort()


@asynccontextmanager
async def tunnelled(
    monkeypatch: pytest.MonkeyPatch, *, answer: bytes = OPENED, proxy_tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[HttpTransport, TunnelProxy, TinyProvider]]:
    """Yield a client whose environment names a proxy, that proxy, and the TLS provider behind it."""
    provider, transport = TinyProvider(answering(FakeReply(chunks=[b"ok"]))), HttpTransport()
    port = int((await provider.start(server_context())).rpartition(":")[2])
    proxy = TunnelProxy(port, answer)
    for name in ("NO_PROXY", "no_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with proxy.running(proxy_tls) as address:
        monkeypatch.setenv("HTTPS_PROXY", address)
        try:
            yield transport, proxy, provider
        finally:
            await transport.close()
            await provider.stop()


def failure(monkeypatch: pytest.MonkeyPatch, answer: bytes, deadlines: Deadlines = USUAL) -> BardoError:
    async def run() -> BardoError:
        async with tunnelled(monkeypatch, answer=answer) as (transport, _, _):
            with pytest.raises(BardoError) as caught:
                await transport.send(Call(url=URL, body=b"{}", provider="tiny"), deadlines)
            return caught.value

    problem = asyncio.run(run())
    assert SECRET not in str(problem)
    return problem


@pytest.mark.parametrize("secure", [False, True], ids=["plain proxy", "proxy with TLS"])
def test_a_way_through_a_proxy_is_opened_once_and_shows_it_nothing(
    monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    async def run() -> None:
        tls = server_context() if secure else None
        async with tunnelled(monkeypatch, proxy_tls=tls) as (transport, proxy, provider):
            assert [await asked(transport, URL) for _ in range(3)] == [b"ok"] * 3
            [head] = proxy.heads
            assert head.startswith(b"CONNECT provider.example:443 HTTP/1.1\r\nhost: provider.example:443\r\n")
            assert b"proxy-authorization: Basic " in head
            assert SECRET.encode() not in proxy.carried
            assert {call.headers["host"] for call in provider.calls} == {"provider.example"}
            assert not any("proxy-authorization" in call.headers for call in provider.calls)

    asyncio.run(run())


def test_a_proxy_that_refuses_is_named_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = failure(monkeypatch, b"HTTP/1.1 403 Not from here\r\nContent-Length: 4\r\n\r\nno!\n")
    assert isinstance(problem, Unreachable)
    assert problem.message == "the proxy opens no way to provider.example:443: 403 Not from here"


def test_a_proxy_that_quotes_its_password_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = base64.b64encode(f"somebody:{SECRET}".encode())
    problem = failure(monkeypatch, b"HTTP/1.1 407 Basic " + proof + b" of \x1b[31m " + SECRET.encode() + b"\r\n\r\n")
    assert isinstance(problem, Unreachable)
    assert proof.decode() not in problem.message
    assert "\x1b" not in problem.message
    assert problem.message.startswith("the proxy opens no way to provider.example:443: 407 Basic [key]")


@pytest.mark.parametrize(
    "line", [b"HTTP/1.1 000 OK", b"HTTP/1.1 099 OK", b"HTTP/2.0 200 OK", b"HTTP/1.1 600 OK", b"HTTP/1.1 101 OK"]
)
def test_a_proxy_whose_status_is_none_opens_nothing(monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    assert isinstance(failure(monkeypatch, line + b"\r\n\r\n"), MalformedReply)


def test_a_proxy_may_say_something_before_it_opens_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\n"
        async with tunnelled(monkeypatch, answer=answer) as (transport, _, _):
            assert await asked(transport, URL) == b"ok"

    asyncio.run(run())


def test_a_proxy_that_speaks_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(failure(monkeypatch, b"SSH-2.0-OpenSSH_9\r\n"), MalformedReply)
    endless = b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000
    assert isinstance(failure(monkeypatch, endless), BardoError)


def test_a_proxy_that_never_answers_meets_the_connect_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = failure(monkeypatch, b"", Deadlines(connect=0.05, first_byte=PATIENCE))
    assert isinstance(problem, UpstreamTimeout)
    assert "0.05 s (connect deadline)" in problem.message


def test_a_host_with_another_name_is_not_trusted_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> BardoError:
        async with tunnelled(monkeypatch) as (transport, _, provider):
            with pytest.raises(Unreachable) as caught:
                await asked(transport, "https://other.example/v1")
            assert not provider.calls
            return caught.value

    assert "certificate not trusted" in asyncio.run(run()).message
