"""A connection of bardo's server without a socket: what a client sends in pieces, and what it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from bardo.adapters.config.gateway import ServerBounds
from bardo.server.protocol import Connection
from bardo.server.reply import Receive, Scope, Send, ServerState


class Wire(asyncio.Transport):
    """Keeps what is written until it is closed, and knows whether more would be read. `unsent` is what a client has not taken of it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unsent = 0
        self.aborted = False
        self._ended = False
        self._reads = True

    def write(self, data: Any) -> None:
        assert not self._ended
        self.written += data

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        self._ended = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self._ended = True

    def abort(self) -> None:
        self._ended = self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self._ended

    def is_reading(self) -> bool:
        return self._reads

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True


class Application:
    """Answers with the path and the body of a request, and knows of which requests it was asked."""

    def __init__(self, **bounds: Any) -> None:
        self.bounds = ServerBounds(**bounds)
        self.asked: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(scope)
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
        body = scope["path"].encode() + b" " + body
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Timer:
    """What happens at a time, unless it is cancelled."""

    def __init__(self, due: float, act: Callable[[], object]) -> None:
        self.due = due
        self.act = act
        self.open = True

    def cancel(self) -> None:
        self.open = False


class Clock:
    """The running event loop, whose time stands still until a test moves it."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self._soon: list[Timer] = []
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, act: Callable[..., object], *arguments: object) -> Timer:
        self.timers.append(Timer(self._now + delay, lambda: act(*arguments)))
        return self.timers[-1]

    def call_soon(self, act: Callable[..., object], *arguments: object) -> Timer:
        self._soon.append(Timer(self._now, lambda: act(*arguments)))
        return self._soon[-1]

    def run_soon(self) -> None:
        """Do what is to be done at the loop's next turn."""
        soon, self._soon = self._soon, []
        for one in soon:
            if one.open:
                one.act()

    def create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    def move(self, seconds: float) -> None:
        """Let time pass, and do what is due meanwhile."""
        until = self._now + seconds
        while due := [timer for timer in self.timers if timer.open and timer.due <= until]:
            first = min(due, key=lambda timer: timer.due)
            self._now, first.open = first.due, False
            first.act()
        self._now = until


class OneConnection:
    """A connection of a server of its own, inside a running event loop. Leaving the block ends it."""

    def __init__(self, app: Any = None, **bounds: Any) -> None:
        self.app = app or Application(**bounds)
        self.wire = Wire()
        self.clock = Clock()
        self.server = ServerState(self.app, {})
        self.connection = Connection(self.server, self.clock)  # type: ignore[arg-type]
        self.connection.connection_made(self.wire)

    async def send(self, *pieces: bytes) -> None:
        """Give the server pieces, each once all that can be answered without it has been."""
        for piece in pieces:
            self.connection.data_received(piece)
            await self.settle()

    async def settle(self) -> None:
        """Let the application do all that it can do."""
        for _ in range(30):
            self.clock.run_soon()
            await asyncio.sleep(0)

    def __enter__(self) -> OneConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.connection_lost(None)

    @property
    def statuses(self) -> list[int]:
        """The statuses of the replies so far."""
        return [int(part[:3]) for part in bytes(self.wire.written).split(b"HTTP/1.1 ")[1:]]

    @property
    def paths(self) -> list[str]:
        """The paths of the requests that the application was asked."""
        return [scope["path"] for scope in self.app.asked]
