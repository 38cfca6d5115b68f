"""A provider in a few lines of HTTP, and the scenes that both transports play before it."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from bardo.adapters.net.client import Call, Deadlines, HttpTransport, Reply, Transport
from bardo.adapters.net.fake import FakeReply, FakeTransport, Handler
from bardo.values.errors import BardoError
from support.patience import PATIENCE

SECRET = "sk-secret-of-a-test"
USUAL = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=PATIENCE)


class TinyProvider:
    """An HTTP/1.1 server that answers with the same values a FakeTransport gives; `hangs_up` after each, or keeps the connection."""

    def __init__(self, handler: Handler, *, hangs_up: bool = False) -> None:
        self._handler = handler
        self._hangs_up = hangs_up
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.calls: list[Call] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.left_alone = asyncio.Event()
        self.all_closed = asyncio.Event()

    async def start(self, tls: ssl.SSLContext | None = None) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        return f"{'https' if tls else 'http'}://127.0.0.1:{port_of(self._server)}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        # A connection that was accepted just now has a task only after some turns of the loop, and would be left open without one.
        for _ in range(5):
            await asyncio.sleep(0)
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
                if self._hangs_up:
                    next_byte.cancel()
                    return
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


def port_of(server: asyncio.Server) -> int:
    """Return the port on which `server` listens."""
    port: int = server.sockets[0].getsockname()[1]
    return port


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

    async def is_left_alone(self) -> None:
        """Wait until the provider has seen that nobody listens to its reply any more."""
        if isinstance(self.provider, TinyProvider):
            await asyncio.wait_for(self.provider.left_alone.wait(), PATIENCE)
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


@asynccontextmanager
async def speaking(*steps: bytes | asyncio.Event, keep_open: bool = False) -> AsyncIterator[str]:
    """Answer one request on each connection with raw `steps`, then hang up unless `keep_open`; yield where (`host:port`)."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(65536)
            for step in steps:
                if isinstance(step, bytes):
                    writer.write(step)
                else:
                    await step.wait()
            while keep_open and await reader.read(65536):
                pass
            writer.close()
            await writer.wait_closed()
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(speak(reader, writer)))

    tasks: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{port_of(server)}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def real(provider: TinyProvider, scene: Callable[[HttpTransport, str], Coroutine[Any, Any, None]]) -> None:
    """Run `scene` with a transport and the address of `provider`."""

    async def run() -> None:
        transport = HttpTransport()
        try:
            await scene(transport, await provider.start())
        finally:
            await transport.close()
            await provider.stop()

    asyncio.run(run())


async def asked(transport: HttpTransport, url: str, body: bytes = b"{}") -> bytes:
    """Return the whole reply to one call."""
    return await (await transport.send(Call(url=url, body=body, provider="tiny"), USUAL)).read(1000)
