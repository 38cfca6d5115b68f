"""bardo's one HTTP client: send a call to a provider and hand its reply over piece by piece.

Connections are kept warm and shared; a reply belongs to one task. Every failure arrives as a `ProviderError` that names
the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bardo.edge.http_calls import Call, Deadlines, Reply, Transport
from bardo.values.errors import ClientMisuse, InternalError

if TYPE_CHECKING:
    from bardo.edge.http_session import Session

__all__ = ["Call", "Deadlines", "HttpTransport", "Reply", "Transport"]


class HttpTransport:
    """Send calls through aiohttp. Construct it anywhere; it belongs to the event loop of its first call.

    Whoever cancels a call hangs up on the provider at once. A call that found its kept connection closed, without a byte of a reply, is
    sent once more on a fresh one.
    """

    def __init__(self) -> None:
        self._session: Session | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        session = self._session or self._open()
        if self._loop is not asyncio.get_running_loop():
            raise another_loop("the HTTP client")
        return await session.send(call, deadlines)

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is None:
            return
        if self._loop is asyncio.get_running_loop():
            await session.close()
        else:
            session.let_go()

    def _open(self) -> Session:
        from bardo.edge.http_session import Session

        if self._closed:
            raise InternalError("the HTTP client is closed")
        self._loop = asyncio.get_running_loop()
        self._session = Session()
        return self._session


def another_loop(what: str) -> ClientMisuse:
    """Return the error of a client that is used in an event loop other than its own."""
    return ClientMisuse(
        f"{what} belongs to another event loop", hint="make one for each event loop, or use bardo.Client"
    )
