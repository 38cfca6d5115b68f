"""What can go wrong on the way to a provider is named, with its place and what to check, and no secret is told."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import Any

import pytest

from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.adapters.net.fake import FakeReply
from bardo.adapters.net.problems import origin
from bardo.values.errors import BardoError, BrokenStream, ConfigError, MalformedReply, Unreachable, UpstreamTimeout
from support.certificate import certificate, server_context
from support.patience import PATIENCE
from support.tiny_provider import SECRET, USUAL, TinyProvider, answering, speaking

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

HEAD = b"HTTP/1.1 200 OK\r\n"
KEY = {"x-api-key": SECRET}


async def failure(url: str, headers: dict[str, str] = KEY, deadlines: Deadlines = USUAL) -> BardoError:
    """Return the error of a call to `url`, checked for secrets."""
    transport = HttpTransport()
    call = Call(url=url, headers=headers, body=b"{}", provider="tiny")
    try:
        with pytest.raises(BardoError) as caught:
            await (await transport.send(call, deadlines)).read(1000)
    finally:
        await transport.close()
    problem = caught.value
    assert SECRET not in str(problem)
    assert (problem.__cause__, problem.__context__) == (None, None)
    assert problem.hint
    return problem


def failing(url: str, headers: dict[str, str] = KEY) -> BardoError:
    return asyncio.run(failure(url, headers))


def failing_at(*speech: bytes, scheme: str = "http") -> BardoError:
    """Return the error of a call to a server that says only `speech`."""

    async def run() -> BardoError:
        async with speaking(*speech) as place:
            return await failure(f"{scheme}://{place}/v1?key={SECRET}")

    return asyncio.run(run())


def test_a_closed_port_is_unreachable_and_named(closed_port: int) -> None:
    problem = failing(f"http://127.0.0.1:{closed_port}/v1/chat?key={SECRET}")
    assert isinstance(problem, Unreachable)
    assert problem.message == f"127.0.0.1:{closed_port} refuses connections"
    assert (problem.provider, problem.retryable) == ("tiny", True)


def test_a_name_nobody_knows_is_unreachable() -> None:
    problem = failing(f"http://nobody.invalid/v1?key={SECRET}")
    assert isinstance(problem, Unreachable)
    assert problem.message == "the name in nobody.invalid:80 cannot be resolved"


def test_a_server_without_tls_is_unreachable_over_https() -> None:
    problem = failing_at(b"HTTP/1.1 400 Bad Request\r\n\r\n", scheme="https")
    assert isinstance(problem, Unreachable)
    assert problem.message.startswith("no TLS connection to 127.0.0.1:")
    assert problem.message.endswith("wrong version number")


def test_a_certificate_nobody_trusts_is_named() -> None:
    async def run() -> BardoError:
        provider = TinyProvider(answering(FakeReply()))
        try:
            return await failure(await provider.start(server_context()))
        finally:
            await provider.stop()

    problem = asyncio.run(run())
    assert isinstance(problem, Unreachable)
    assert problem.message.endswith("certificate not trusted, self-signed certificate")
    assert "trusts the server's certificate" in problem.hint


def test_a_certificate_for_another_name_is_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting = ssl.create_default_context(cadata=certificate().decode().partition("-----END PRIVATE KEY-----\n")[2])
    monkeypatch.setattr("bardo.adapters.net.client._tls", lambda: trusting)

    async def run() -> BardoError:
        provider = TinyProvider(answering(FakeReply()))
        try:
            url = await provider.start(server_context())
            problem = await failure(url.replace("127.0.0.1", "localhost"))
            assert not provider.calls
            return problem
        finally:
            await provider.stop()

    problem = asyncio.run(run())
    assert isinstance(problem, Unreachable)
    assert "certificate not trusted, hostname mismatch" in problem.message


def test_a_server_that_hangs_up_on_a_tls_greeting_is_unreachable() -> None:
    assert isinstance(failing_at(scheme="https"), Unreachable)


def test_a_deadline_is_told_of_though_the_loop_has_closed_the_socket_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> BardoError:
        async def closes(_: Any, *, sock: socket.socket, **__: Any) -> Any:
            os.close(sock.fileno())
            await asyncio.Event().wait()

        async with speaking(asyncio.Event()) as place:
            monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", closes)
            return await failure(f"https://{place}/v1", deadlines=Deadlines(connect=0.05))

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        problem = runner.run(run())
    assert isinstance(problem, UpstreamTimeout)


def test_a_connection_that_takes_too_long_names_its_deadline() -> None:
    async def run() -> BardoError:
        async with speaking(asyncio.Event()) as place:
            return await failure(f"https://{place}/v1?key={SECRET}", deadlines=Deadlines(connect=0.05))

    problem = asyncio.run(run())
    assert isinstance(problem, UpstreamTimeout)
    assert problem.message.endswith(" within 0.05 s (connect deadline)")


@pytest.mark.parametrize(
    ("speech", "said"),
    [
        (b"SSH-2.0-server\r\n\r\n", "is not an HTTP reply"),
        (HEAD + b"Long: " + b"x" * 100_000 + b"\r\n\r\n", "not an HTTP reply: got more than 65536 bytes"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", "not an HTTP reply: invalid character in chunk size"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", "compressed its reply, unasked"),
    ],
    ids=["a banner", "an endless header", "a chunk without size", "gzip that is none"],
)
def test_what_is_not_http_is_malformed(speech: bytes, said: str) -> None:
    problem = failing_at(speech)
    assert isinstance(problem, MalformedReply)
    assert said in problem.message


@pytest.mark.parametrize("speech", [b"", b"HTTP/1.1 200 O"], ids=["nothing", "half a head"])
def test_a_connection_closed_before_the_reply_is_broken(speech: bytes) -> None:
    problem = failing_at(speech)
    assert isinstance(problem, BrokenStream)
    assert problem.message.endswith("no answer came, the connection was closed")


@pytest.mark.parametrize(
    "speech",
    [
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        HEAD + b"Content-Length: 10\r\n\r\nhello",
    ],
    ids=["no last chunk", "fewer bytes than announced"],
)
def test_a_body_that_is_cut_off_is_broken_after_what_came(speech: bytes) -> None:
    async def run() -> None:
        transport = HttpTransport()
        async with speaking(speech) as place:
            reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), USUAL)
            chunks = reply.chunks()
            # By now the loop may or may not know of the break: what came before it is given either way.
            assert await anext(chunks) == b"hello"
            with pytest.raises(BrokenStream, match="the connection closed before its end") as caught:
                await anext(chunks)
            assert caught.value.__context__ is None
            assert [piece async for piece in chunks] == []
        await transport.close()

    asyncio.run(run())


def test_a_body_that_stops_being_http_is_broken_long_before_the_idle_deadline() -> None:
    async def run() -> None:
        go_on = asyncio.Event()
        transport = HttpTransport()
        beginning = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        async with speaking(beginning, go_on, b"ZZ\r\nhello\r\n", keep_open=True) as place:
            reply = await transport.send(Call(url=f"http://{place}/", provider="tiny"), Deadlines(idle=100 * PATIENCE))
            chunks = reply.chunks()
            assert await anext(chunks) == b"hello"
            go_on.set()
            with pytest.raises(BrokenStream):
                await asyncio.wait_for(anext(chunks), PATIENCE)
        await transport.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "url", ["chat", "http://[bad/", "ftp://example.com/", f"https://{'a' * 70}.example/", "http:///"]
)
def test_an_address_that_is_none_is_a_matter_of_configuration(url: str) -> None:
    problem = failing(url)
    assert isinstance(problem, ConfigError)
    assert problem.hint == "check base_url"


@pytest.mark.parametrize(
    "headers",
    [{"x-api-key": f"{SECRET}\n{SECRET}"}, {"x-api-key": f"{SECRET}\u200b"}, {f"x {SECRET}": "a"}, {"": "a"}],
    ids=["line break", "invisible", "name with a space", "no name"],
)
def test_a_header_that_cannot_be_sent_is_a_matter_of_configuration(closed_port: int, headers: dict[str, str]) -> None:
    problem = failing(f"http://127.0.0.1:{closed_port}/", headers)
    assert isinstance(problem, ConfigError)
    assert problem.message == "a header for tiny holds a character HTTP does not allow"


@pytest.mark.parametrize(
    ("url", "place"),
    [("https://a.example/v1", "a.example:443"), ("http://[::1]:9/x", "[::1]:9"), ("http://h:x/", "its address")],
)
def test_only_host_and_port_of_an_address_are_shown(url: str, place: str) -> None:
    assert origin(url) == place
