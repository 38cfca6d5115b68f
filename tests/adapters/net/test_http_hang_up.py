"""Whoever lets go of a call hangs up on the provider at once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.fake import FakeReply
from bardo.values.errors import InternalError
from support.certificate import certificate, server_context
from support.patience import PATIENCE
from support.tiny_provider import USUAL, TinyProvider, asked, never, port_of, real

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]


class Listener:
    """A server that takes what comes and never answers; it reads no more than `first` bytes until it may `go_on`."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.heard = 0
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Hanging up with bytes on the way looks like a ConnectionError.
            with contextlib.suppress(ConnectionError):
                await self._listen(reader)
        finally:
            self.ended.set()
            writer.transport.abort()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        self.heard += len(await reader.readexactly(self._first))
        self.began.set()
        await self.go_on.wait()
        while piece := await reader.read(65536):
            self.heard += len(piece)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_cancelling_hangs_up_while_connecting_and_while_sending(scheme: str) -> None:
    async def run() -> None:
        listener, transport = Listener(first=10), HttpTransport()
        server = await asyncio.start_server(listener, "127.0.0.1", 0)
        body = bytes(64 * 2**20)
        call = Call(url=f"{scheme}://127.0.0.1:{port_of(server)}/", body=body)
        sending = asyncio.create_task(transport.send(call, USUAL))
        await asyncio.wait_for(listener.began.wait(), PATIENCE)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        listener.go_on.set()
        await asyncio.wait_for(listener.ended.wait(), PATIENCE)
        assert listener.heard < len(body)
        await transport.close()
        server.close()

    asyncio.run(run())


def test_closing_the_transport_ends_the_calls_that_wait_and_the_replies_that_are_read() -> None:
    async def scene(transport: HttpTransport, url: str) -> None:
        calls = []
        for answer in (FakeReply(chunks=[b"some", asyncio.Event()]), None):
            answers.append(answer)
            calls.append(asyncio.create_task(asked(transport, url)))
            await asyncio.wait_for(provider.asked.wait(), PATIENCE)
            provider.asked.clear()
        await transport.close()
        for call in calls:
            with pytest.raises(InternalError, match="closed during a call"):
                await asyncio.wait_for(call, PATIENCE)

    answers: list[FakeReply | None] = []
    provider = TinyProvider(lambda call: answers[-1] or never(call))
    real(provider, scene)


CHILD = """
import asyncio, os, sys
from bardo.adapters.net.client import Call, Deadlines, HttpTransport

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60
    transport = HttpTransport()
    call = Call(url=sys.argv[1], body=b"{}")
    reply = await transport.send(call, Deadlines())
    assert await anext(reply.chunks()) == b"some"
    await reply.close()
    # The provider has to see the end now, and not when this program ends.
    assert await asyncio.to_thread(sys.stdin.readline) == "seen\\n"
    reply = await transport.send(call, Deadlines())
    assert await anext(reply.chunks()) == b"some"
    sending = asyncio.create_task(transport.send(call, Deadlines()))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait([sending])
    await reply.close()
    await transport.close()

before = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
asyncio.run(main())
assert not before or os.listdir("/proc/self/fd") == before
"""


@contextmanager
def deaf_provider() -> Iterator[tuple[str, threading.Event]]:
    """A provider over TLS that begins a reply and answers no farewell; yield its address, and what tells of a hang-up."""

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
            with socket.socket(fileno=os.dup(secured.fileno())) as bare:
                while bare.recv(65536):
                    pass
        hung_up.set()

    def accept() -> None:
        while not over.is_set():
            connection, _ = listener.accept()
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    context, over, hung_up = server_context(), threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}/", hung_up
        finally:
            over.set()
            socket.create_connection(listener.getsockname()).close()
            for thread in threads:
                thread.join()


def test_over_tls_an_early_close_hangs_up_and_nothing_is_left_behind(tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(certificate())
    surroundings = {**os.environ, "SSL_CERT_FILE": str(trusted)}
    with deaf_provider() as (url, hung_up):
        strict = [sys.executable, "-X", "dev", "-W", "error", "-c", CHILD, url]
        with subprocess.Popen(strict, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings) as child:
            seen = hung_up.wait(PATIENCE)
            _, complaints = child.communicate(b"seen\n" if seen else b"\n", timeout=PATIENCE)
    assert (complaints.decode(), child.returncode) == ("", 0)
