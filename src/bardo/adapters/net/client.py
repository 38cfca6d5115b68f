"""bardo's one HTTP client: send a call to a provider and hand its reply over piece by piece.

Connections are kept warm and shared; a reply belongs to one task. Every failure arrives as a `ProviderError` that names
the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bardo.adapters.net.calls import Call, Deadlines, Reply, Transport
from bardo.values.errors import ClientMisuse, InternalError

if TYPE_CHECKING:
    from bardo.adapters.net.transport import DirectTransport

__all__ = ["Call", "Deadlines", "HttpTransport", "Reply", "Transport"]


class HttpTransport:
    """Send calls over HTTP/1.1, straight or through a proxy of the environment.

    Construct it anywhere; it belongs to the event loop of its first call. Whoever cancels a call hangs up on the provider at once. A call
    that found its kept connection closed, without a byte of a reply, is sent once more on a fresh one.
    """

    def __init__(self) -> None:
        self._direct: DirectTransport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        if self._loop is not asyncio.get_running_loop():
            self._begin()
        return await (self._direct or self._open_direct()).send(call, deadlines)

    async def close(self) -> None:
        self._closed = True
        direct, self._direct = self._direct, None
        if direct is not None and self._loop is asyncio.get_running_loop():
            await direct.close()
        elif direct is not None:
            direct.let_go()

    def _begin(self) -> None:
        if self._loop is not None:
            raise another_loop("the HTTP client")
        self._loop = asyncio.get_running_loop()

    def _open_direct(self) -> DirectTransport:
        from bardo.adapters.net.transport import DirectTransport

        if self._closed:
            raise InternalError("the HTTP client is closed")
        self._direct = DirectTransport()
        return self._direct


def another_loop(what: str) -> ClientMisuse:
    """Return the error of a client that is used in an event loop other than its own."""
    return ClientMisuse(
        f"{what} belongs to another event loop", hint="make one for each event loop, or use bardo.Client"
    )
