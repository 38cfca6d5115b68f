"""An HTTP/1.1 server on loopback with exact control over the bytes sent and the end of a connection.

Built on asyncio's streams and h11, so that a fault may cut an event in two, stop for ever or reset the connection.
A client that leaves ends its handler; closing the server ends all handlers and sockets.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import h11

from bardo.simulators.delivery import Action, Await, AwaitDisconnect, End, Head, Leave, Pause, Send
from bardo.simulators.exchange import Incoming, read_incoming
from bardo.simulators.gates import Gate

Handler: TypeAlias = Callable[[Incoming], Iterator[Action]]

_READ = 64 * 1024
# A connection is accepted, set up, handed over, aborted and closed, each in a turn of the loop.
_TURNS_OF_A_CONNECTION = 6
_BODY_LIMIT = 64 * 1024 * 1024
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@asynccontextmanager
async def listening(handler: Handler, host: str, port: int) -> AsyncIterator[str]:
    """Serve `handler`; gives the address. Port 0 takes a free one."""
    handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    is_open = True

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not is_open:  # It connected while the server was closing.
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(_Connection(reader, writer, handler).serve())
        handlers[task] = writer
        task.add_done_callback(handlers.pop)

    server = await asyncio.start_server(accept, host, port, backlog=512)
    try:
        yield _address(server.sockets[0])
    finally:
        is_open = False
        # Stop accepting, and let accepted connections reach their handler: asyncio drops them where the server closes
        # first.
        loop = asyncio.get_running_loop()
        for listener in server.sockets:
            with suppress(NotImplementedError):  # Where a loop has no readers.
                loop.remove_reader(listener.fileno())
        for _ in range(_TURNS_OF_A_CONNECTION):
            await asyncio.sleep(0)
        ended = {**handlers}
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        for writer in ended.values():
            writer.transport.abort()  # A handler that had not begun has not done it.
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0)  # Aborted transports close their sockets in the loop's next turn.


@asynccontextmanager
async def refusing(host: str, port: int) -> AsyncIterator[str]:
    """Reserve a port without listening on it, so that connections are refused."""
    with socket.socket() as held:
        held.bind((host, port))
        yield _address(held)


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://{host}:{port}"


class _Disconnected(Exception):
    """The other side closed the connection."""


class _Connection:
    """One connection and the requests that come over it, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._protocol = h11.Connection(h11.SERVER)
        writer.transport.set_write_buffer_limits(0)  # Draining then means sent, so a cut comes where it was asked.

    async def serve(self) -> None:
        """Serve until either side is done."""
        try:
            while await self._exchange():
                self._protocol.start_next_cycle()
            self._writer.close()
            await self._writer.wait_closed()
        except (_Disconnected, ConnectionError, h11.ProtocolError):
            self._writer.transport.abort()
        except BaseException:  # Cancelled, or a script's own mistake: the client must not wait for ever.
            self._writer.transport.abort()
            raise

    async def _exchange(self) -> bool:
        """Serve one request, and return whether another may follow."""
        incoming = await self._read()
        if incoming is None:
            return False
        for action in self._handler(incoming):
            if isinstance(action, Leave):
                self._leave(reset=action.reset)
                return False
            await self._perform(action)
        return self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE

    async def _read(self) -> Incoming | None:
        """Read one request, or None if the client has no more."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > _BODY_LIMIT:
                    raise _Disconnected
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                return _incoming(request, bytes(body))
            else:
                return None

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._protocol.next_event()
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type) or event is h11.PAUSED
                return event
            if self._protocol.they_are_waiting_for_100_continue:
                await self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self._protocol.receive_data(await self._reader.read(_READ))

    async def _perform(self, action: Action) -> None:
        match action:
            case Head(status, headers, length):
                sized = (*headers, ("content-length", str(length))) if length is not None else headers
                await self._write(h11.Response(status_code=status, headers=list(sized)))
            case Send(data):
                await self._write(h11.Data(data=data))
                await asyncio.sleep(0)  # Other connections get their turn between two events.
            case Pause(seconds):
                await self._pause(seconds)
            case AwaitDisconnect():
                await self._pause(None)
            case Await(gate):
                await self._stand_at(gate)
            case End():
                await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Event) -> None:
        data = self._protocol.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def _pause(self, seconds: float | None) -> None:
        """Wait. Raises _Disconnected as soon as the client disconnects."""
        try:
            async with asyncio.timeout(seconds):
                while data := await self._reader.read(_READ):
                    self._protocol.receive_data(data)
        except TimeoutError:
            return
        raise _Disconnected

    async def _stand_at(self, gate: Gate) -> None:
        """Wait for the gate. Raises _Disconnected as soon as the client disconnects."""
        opened = asyncio.ensure_future(gate.passed())
        left = asyncio.ensure_future(self._pause(None))
        try:
            await asyncio.wait((opened, left), return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                raise _Disconnected
        finally:
            opened.cancel()
            left.cancel()
            await asyncio.gather(opened, left, return_exceptions=True)

    def _leave(self, *, reset: bool) -> None:
        if reset:
            bound: socket.socket = self._writer.get_extra_info("socket")
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._writer.transport.abort()


def _incoming(request: h11.Request, body: bytes) -> Incoming:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
    return read_incoming(request.method.decode("ascii"), request.target.decode("latin-1"), headers, body)
