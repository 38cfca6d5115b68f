"""One contract for both transports, then what only a real connection can show."""

from __future__ import annotations

import asyncio
import inspect
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bardo.edge.fake import FakeReply, FakeTransport, Handler
from bardo.edge.http import USER_AGENT, Call, Deadlines, HttpTransport, Reply, Transport, is_loopback
from bardo.edge.http_problems import origin, unanswered
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    ConfigError,
    InternalError,
    MalformedReply,
    Unreachable,
    UpstreamTimeout,
)

SECRET = "sk-secret-of-a-test"
PATIENCE = 10.0
USUAL = Deadlines(connect=5, first_byte=PATIENCE, idle=PATIENCE)

KINDS = pytest.mark.parametrize("kind", ["real", "fake"])


class TinyProvider:
    """An HTTP/1.1 server that answers with the same values a FakeTransport gives."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.calls: list[Call] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.left_alone = asyncio.Event()
        self.all_closed = asyncio.Event()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: the one asyncio makes complains loudly when it is cancelled.
        task = asyncio.create_task(self._converse(reader, writer))
        self._tasks.add(task)
        self.connections += 1
        self.all_closed.clear()
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self.all_closed.set()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(1)
        try:
            while first:
                call = await _read_call(first, reader)
                self.calls.append(call)
                self.asked.set()
                next_byte = asyncio.create_task(reader.read(1))
                answering = asyncio.create_task(self._answer(call, writer))
                await asyncio.wait({next_byte, answering}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    self.left_alone.set()
                    answering.cancel()
                    return
                answering.result()
                first = await next_byte
        except (ConnectionError, EOFError):
            self.left_alone.set()
        finally:
            writer.transport.abort()

    async def _answer(self, call: Call, writer: asyncio.StreamWriter) -> None:
        given = self._handler(call)
        reply = await given if inspect.isawaitable(given) else given
        headers = {"Transfer-Encoding": "chunked", **reply.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {reply.status} Status\r\n{lines}\r\n".encode())
        for step in reply.chunks:
            if isinstance(step, BardoError):
                await writer.drain()
                raise ConnectionAbortedError
            if isinstance(step, bytes):
                writer.write(b"%x\r\n%s\r\n" % (len(step), step))
                await writer.drain()
            else:
                await step.wait()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _read_call(first: bytes, reader: asyncio.StreamReader) -> Call:
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
    start, *lines = head.strip().split("\r\n")
    method, path, _ = start.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Call(method=method, url=path, headers=headers, body=body)


class Stage:
    """A transport, the provider behind it, and where it listens."""

    def __init__(self, transport: Transport, url: str, provider: TinyProvider | FakeTransport) -> None:
        self.transport = transport
        self.url = url
        self.provider = provider

    def call(self, body: bytes = b"{}") -> Call:
        headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
        return Call(url=f"{self.url}/v1/chat?key={SECRET}", headers=headers, body=body, provider="tiny")

    async def send(self, deadlines: Deadlines = USUAL) -> Reply:
        return await self.transport.send(self.call(), deadlines)

    async def is_asked(self) -> None:
        """Wait until the provider has a request."""
        if isinstance(self.provider, TinyProvider):
            await asyncio.wait_for(self.provider.asked.wait(), PATIENCE)
        await asyncio.sleep(0)
        assert self.provider.calls

    async def is_left_alone(self, patience: float = PATIENCE) -> None:
        """Wait until the provider has seen that nobody listens to its reply any more."""
        if isinstance(self.provider, TinyProvider):
            await asyncio.wait_for(self.provider.left_alone.wait(), patience)
        else:
            assert len(self.provider.abandoned) == 1


@asynccontextmanager
async def staged(kind: str, handler: Handler) -> AsyncIterator[Stage]:
    if kind == "fake":
        fake = FakeTransport(handler)
        yield Stage(fake, "http://tiny.example", fake)
        await fake.close()
        return
    provider, transport = TinyProvider(handler), HttpTransport()
    try:
        yield Stage(transport, await provider.start(), provider)
    finally:
        await transport.close()
        await provider.stop()


def played(kind: str, handler: Handler, scene: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    """Run `scene` against a transport of `kind` whose provider answers with `handler`."""

    async def run() -> None:
        async with staged(kind, handler) as stage:
            await scene(stage)

    asyncio.run(run())


def answering(reply: FakeReply) -> Handler:
    return lambda call: reply


def never(call: Call) -> Awaitable[FakeReply]:
    return asyncio.get_running_loop().create_future()


@KINDS
def test_a_call_arrives_whole_and_so_does_its_reply(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        reply = await stage.transport.send(stage.call(b'{"a":1}'), USUAL)
        assert (reply.status, reply.headers["x-request-id"]) == (201, "Abc")
        assert await reply.read(100) == b"hello world"
        [call] = stage.provider.calls
        assert (call.method, call.url.removeprefix(stage.url), call.body) == (
            "POST",
            f"/v1/chat?key={SECRET}",
            b'{"a":1}',
        )
        assert call.headers["authorization"] == f"Bearer {SECRET}"

    reply = FakeReply(status=201, headers={"X-Request-Id": "Abc"}, chunks=[b"hello ", b"world"])
    played(kind, answering(reply), scene)


@KINDS
def test_the_head_does_not_wait_for_the_body_nor_a_piece_for_the_next(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        first, second = asyncio.Event(), asyncio.Event()
        gates.chunks = [first, b"one", second, b"two"]
        reply = await stage.send()
        chunks = reply.chunks()
        first.set()
        assert await anext(chunks) == b"one"
        second.set()
        assert await anext(chunks) == b"two"
        assert [piece async for piece in chunks] == []

    class Gates:
        chunks: list[bytes | BardoError | asyncio.Event]

    gates = Gates()
    played(kind, lambda call: FakeReply(chunks=gates.chunks), scene)


@KINDS
@pytest.mark.parametrize("status", [307, 401, 500])
def test_any_status_is_a_reply_and_no_redirect_is_followed(kind: str, status: int) -> None:
    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        assert reply.status == status
        assert await reply.read(100) == b"why"
        assert len(stage.provider.calls) == 1

    played(kind, answering(FakeReply(status=status, headers={"Location": "/elsewhere"}, chunks=[b"why"])), scene)


@KINDS
def test_a_body_that_breaks_off_is_a_broken_stream_after_what_came(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        chunks = reply.chunks()
        assert await anext(chunks) == b"some"
        with pytest.raises(BrokenStream):
            await anext(chunks)
        assert [piece async for piece in chunks] == []

    gap = asyncio.Event()
    gap.set()
    played(kind, answering(FakeReply(chunks=[b"some", gap, BrokenStream("cut")])), scene)


@KINDS
def test_a_whole_body_is_read_up_to_its_limit(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        assert await (await stage.send()).read(12) == b"x" * 12
        with pytest.raises(MalformedReply, match="larger than 11 bytes"):
            await (await stage.send()).read(11)

    played(kind, answering(FakeReply(chunks=[b"xxxx"] * 3)), scene)


@KINDS
def test_a_provider_that_does_not_answer_in_time_is_given_up(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        with pytest.raises(UpstreamTimeout, match=r"0\.05 s \(first_byte deadline\)") as caught:
            await stage.send(Deadlines(first_byte=0.05))
        assert caught.value.provider == "tiny"

    played(kind, never, scene)


@KINDS
def test_a_stream_that_stalls_is_given_up_and_closed(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        stall.append(asyncio.Event())
        chunks = (await stage.send(Deadlines(first_byte=PATIENCE, idle=0.05))).chunks()
        assert await anext(chunks) == b"some"
        with pytest.raises(UpstreamTimeout, match=r"0\.05 s \(idle deadline\)"):
            await anext(chunks)
        await stage.is_left_alone()

    stall: list[asyncio.Event] = []
    played(kind, lambda call: FakeReply(chunks=[b"some", *stall]), scene)


@KINDS
def test_closing_early_closes_the_connection_and_ends_the_chunks(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        forever.append(asyncio.Event())
        reply = await stage.send()
        chunks = reply.chunks()
        assert await anext(chunks) == b"some"
        await reply.close()
        await stage.is_left_alone()
        await reply.close()
        assert [piece async for piece in chunks] == []

    forever: list[asyncio.Event] = []
    played(kind, lambda call: FakeReply(chunks=[b"some", *forever]), scene)


@KINDS
def test_cancelling_a_read_and_closing_closes_the_connection(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        forever.append(asyncio.Event())
        begun = asyncio.Event()

        async def follow() -> None:
            reply = await stage.send()
            try:
                async for _ in reply.chunks():
                    begun.set()
            finally:
                await reply.close()

        following = asyncio.create_task(follow())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        await stage.is_left_alone()

    forever: list[asyncio.Event] = []
    played(kind, lambda call: FakeReply(chunks=[b"some", *forever]), scene)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            "real",
            marks=pytest.mark.xfail(
                strict=True, raises=TimeoutError, reason="pyreqwest 0.15 keeps a cancelled request running"
            ),
        ),
        "fake",
    ],
)
def test_cancelling_before_the_head_closes_the_connection(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        sending = asyncio.create_task(stage.send())
        await stage.is_asked()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await stage.is_left_alone(patience=1.0)

    played(kind, never, scene)


@KINDS
def test_nothing_is_sent_once_the_transport_is_closed(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        await stage.transport.close()
        with pytest.raises(InternalError, match="closed"):
            await stage.send()

    played(kind, never, scene)


def test_a_fake_raises_what_its_handler_raises_and_keeps_the_call() -> None:
    def refuse(call: Call) -> FakeReply:
        raise Unreachable("nobody there")

    async def scene(stage: Stage) -> None:
        with pytest.raises(Unreachable, match="nobody there"):
            await stage.send()
        assert isinstance(stage.provider, FakeTransport)
        assert (len(stage.provider.calls), stage.provider.open_calls, stage.provider.abandoned) == (1, [], [])

    played("fake", refuse, scene)


def test_one_connection_serves_calls_in_turn_and_is_closed_with_the_transport() -> None:
    async def scene(stage: Stage) -> None:
        assert isinstance(stage.provider, TinyProvider)
        for _ in range(5):
            assert await (await stage.send()).read(10) == b"ok"
        assert (len(stage.provider.calls), stage.provider.connections) == (5, 1)
        await stage.transport.close()
        await asyncio.wait_for(stage.provider.all_closed.wait(), PATIENCE)

    played("real", answering(FakeReply(chunks=[b"ok"])), scene)


def test_a_reader_that_pauses_makes_the_provider_pause() -> None:
    piece, pieces = b"x" * 65536, 1024

    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        await asyncio.wait_for(blocked.wait(), PATIENCE)
        assert len(written) < pieces / 2
        size = 0
        async for chunk in reply.chunks():
            size += len(chunk)
        assert size == len(piece) * pieces

    class Flood(list[bytes]):
        """Pieces that note how far the provider got, and when it came no further."""

        def __iter__(self) -> Any:
            loop = asyncio.get_running_loop()
            for _ in range(pieces):
                pause = loop.call_later(0.3, blocked.set)
                written.append(1)
                yield piece
                pause.cancel()

    written: list[int] = []
    blocked = asyncio.Event()
    played("real", answering(FakeReply(chunks=Flood())), scene)


def test_a_reply_has_one_reader() -> None:
    async def scene(stage: Stage) -> None:
        forever.append(asyncio.Event())
        reply = await stage.send()
        reading = asyncio.ensure_future(anext(reply.chunks()))
        await asyncio.sleep(0)
        with pytest.raises(InternalError, match="while another was reading"):
            await reply.close()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await reply.close()
        await stage.is_left_alone()

    forever: list[asyncio.Event] = []
    played("real", lambda call: FakeReply(chunks=[*forever]), scene)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        assert await reply.read(10) == b"ok"
        [call] = stage.provider.calls
        assert (call.headers["user-agent"], call.headers["accept-encoding"]) == (USER_AGENT, "identity")
        assert "cookie" not in call.headers

    played("real", answering(FakeReply(headers={"Set-Cookie": "a=b"}, chunks=[b"ok"])), scene)


@pytest.fixture
def free_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def failing(url: str, headers: dict[str, str] | None = None, deadlines: Deadlines = USUAL) -> BardoError:
    """Return the error of a call to `url`, checked for secrets."""

    async def run() -> BardoError:
        transport = HttpTransport()
        call = Call(url=url, headers=headers or {"x-api-key": SECRET}, body=b"{}", provider="tiny")
        try:
            with pytest.raises(BardoError) as caught:
                await transport.send(call, deadlines)
        finally:
            await transport.close()
        return caught.value

    problem = asyncio.run(run())
    assert SECRET not in str(problem)
    assert problem.__context__ is None
    assert problem.hint
    return problem


async def _listening(speech: bytes) -> asyncio.Server:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(speech)
        writer.close()

    return await asyncio.start_server(say, "127.0.0.1", 0)


def failing_at(speech: bytes, scheme: str = "http") -> BardoError:
    """Return the error of a call to a server that says only `speech`."""

    async def run() -> BardoError:
        server = await _listening(speech)
        address = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1?key={SECRET}"
        try:
            return await asyncio.to_thread(failing, address)
        finally:
            server.close()

    return asyncio.run(run())


def test_a_closed_port_is_unreachable_and_named(free_port: int) -> None:
    problem = failing(f"http://127.0.0.1:{free_port}/v1/chat?key={SECRET}")
    assert isinstance(problem, Unreachable)
    assert problem.message == f"127.0.0.1:{free_port} refuses connections"
    assert (problem.provider, problem.retryable) == ("tiny", True)


def test_a_name_nobody_knows_is_unreachable() -> None:
    problem = failing(f"http://nobody.invalid/v1?key={SECRET}")
    assert isinstance(problem, Unreachable)
    assert problem.message == "the name in nobody.invalid:80 cannot be resolved"


def test_a_server_without_tls_is_unreachable_over_https() -> None:
    problem = failing_at(b"HTTP/1.1 400 Bad Request\r\n\r\n", scheme="https")
    assert isinstance(problem, Unreachable)
    assert problem.message.startswith("no TLS connection to 127.0.0.1:")


def test_a_server_that_speaks_something_else_is_malformed() -> None:
    assert isinstance(failing_at(b"SSH-2.0-server\r\n\r\n"), MalformedReply)


@pytest.mark.parametrize("speech", [b"", b"HTTP/1.1 200 O"], ids=["nothing", "half a head"])
def test_a_connection_closed_before_the_reply_is_broken(speech: bytes) -> None:
    assert isinstance(failing_at(speech), BrokenStream)


@pytest.mark.parametrize("url", ["chat", "http://[bad/", "ftp://example.com/"])
def test_an_address_that_is_none_is_a_matter_of_configuration(url: str) -> None:
    problem = failing(url)
    assert isinstance(problem, ConfigError)
    assert problem.hint == "check base_url"


def test_a_key_with_a_line_break_is_a_matter_of_configuration(free_port: int) -> None:
    problem = failing(f"http://127.0.0.1:{free_port}/", {"x-api-key": f"{SECRET}\n{SECRET}"})
    assert isinstance(problem, ConfigError)
    assert problem.message == "a header for tiny holds a character HTTP does not allow"


def test_a_connection_that_takes_too_long_names_its_deadline() -> None:
    from pyreqwest.exceptions import ConnectTimeoutError

    call = Call(url=f"https://u:{SECRET}@example.com/v1?key={SECRET}", provider="tiny")
    problem = unanswered(ConnectTimeoutError("late", {"causes": None}), call, Deadlines(connect=3))
    assert isinstance(problem, UpstreamTimeout)
    assert problem.message == "no connection to example.com:443 within 3 s (connect deadline)"


@pytest.mark.parametrize(
    ("url", "place"),
    [("https://a.example/v1", "a.example:443"), ("http://[::1]:9/x", "[::1]:9"), ("http://h:x/", "its address")],
)
def test_only_host_and_port_of_an_address_are_shown(url: str, place: str) -> None:
    assert origin(url) == place


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:8080/v1", True),
        ("http://model.localhost/v1", True),
        ("http://127.0.0.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://10.0.0.1/v1", False),
        ("https://localhost.example.com/v1", False),
        ("nonsense", False),
    ],
)
def test_loopback_addresses_are_told_from_others(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback


def test_importing_the_client_does_not_load_the_library() -> None:
    probe = "import sys, bardo.edge.http; sys.exit('pyreqwest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
