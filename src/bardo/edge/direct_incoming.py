"""The reply that a direct connection receives: its head, what of its body came, and who is told when more comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from bardo.values.errors import InternalError

# Reading pauses above this much that nobody took yet, which slows the provider down.
_HIGH_WATER = 128 * 1024


class Disconnected(Exception):
    """The connection ended before the reply did; the cause, where there was one, is chained."""


class NotHttp(Exception):
    """What came is no HTTP/1.1 reply, in the parser's words."""


class Connection(Protocol):
    """What a reply needs of the connection that it comes over. `last_heard` is when bytes came, by the loop's clock."""

    loop: asyncio.AbstractEventLoop
    last_heard: float

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abort(self) -> None: ...


class Incoming:
    """The reply that a connection receives: its head, and what of its body came and was not read yet. One task waits for it."""

    __slots__ = (
        "_connection",
        "_held",
        "_size",
        "_waiter",
        "begun",
        "complete",
        "failure",
        "headed",
        "headers",
        "offer",
        "offered_at",
        "status",
        "until_close",
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.headed = False
        self.begun = False
        self.complete = False
        self.until_close = False
        self.failure: BaseException | None = None
        self.offer: Callable[[bytes], bool] | None = None
        """Is asked whether it takes a piece that comes while a task waits for it: one that it takes is not held, and nobody is woken."""
        self.offered_at = 0.0
        """When it took the last one, by the loop's clock."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of its connection."""
        return self._connection.loop

    def wait(self) -> asyncio.Future[None]:
        """Return what is done once something new is known: the head, more of the body, its end, or a failure."""
        self._waiter = waiter = self._connection.loop.create_future()
        return waiter

    def take(self) -> bytes:
        """Return all that is held of the body, which may be nothing."""
        held = self._held
        if not held:
            return b""
        self._held, self._size = [], 0
        if not self.complete:
            self._connection.resume()
        return held[0] if len(held) == 1 else b"".join(held)

    @property
    def at_end(self) -> bool:
        """Whether nothing is held, and nothing more comes."""
        return not self._held and (self.complete or self.failure is not None)

    def add(self, pieces: list[bytes]) -> None:
        """Hold pieces of the body that came in one read, and pause the connection when too much is held."""
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.begun = True
        if self.offer is not None and self._offered(piece):
            return
        self._held.append(piece)
        self._size += len(piece)
        if self._size > _HIGH_WATER:
            self._connection.pause()
        if self._waiter is not None:
            self.wake()

    def _offered(self, piece: bytes) -> bool:
        """Offer a piece, unless something is held before it or nobody waits. Return whether it was taken."""
        waiter, offer = self._waiter, self.offer
        if waiter is None or offer is None or self._held or waiter.done():
            return False
        try:
            taken = offer(piece)
        except Exception as problem:  # noqa: BLE001 - the parser calls this: whoever reads the reply is to get the problem
            self.fail(InternalError(f"a piece of a reply could not be passed on: {type(problem).__name__}"))
            return True
        if taken:
            self.offered_at = self._connection.last_heard
        return taken

    def fail(self, failure: BaseException) -> None:
        """End the reply with a failure and hang up on its connection. The first failure counts; a complete reply has none."""
        if self.complete:
            return
        if self.failure is None:
            self.failure = failure
            self.wake()
        self._connection.abort()

    def wake(self) -> None:
        """Let the waiting task look again."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
