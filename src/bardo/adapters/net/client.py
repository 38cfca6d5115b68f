"""bardo's one HTTP client: send a call to a provider and hand its reply over piece by piece.

Connections are kept warm and shared; a reply belongs to one task. Every failure arrives as a `ProviderError` that names
the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bardo.adapters.net.calls import Call, Client, Deadlines, Reply, Transport
from bardo.values.errors import ClientMisuse, ConfigError, InternalError
from bardo.values.extras import how_to_install

if TYPE_CHECKING:
    from bardo.adapters.net.session import Session
    from bardo.adapters.net.transport import DirectTransport

__all__ = ["Call", "Client", "Deadlines", "HttpTransport", "Reply", "Transport"]


class HttpTransport:
    """Send calls by bardo's own client; with `client` "aiohttp", by aiohttp.

    Construct it anywhere; it belongs to the event loop of its first call. Whoever cancels a call hangs up on the provider at once. A call
    that found its kept connection closed, without a byte of a reply, is sent once more on a fresh one.
    """

    def __init__(self, client: Client = "direct") -> None:
        self._client = client
        self._direct: DirectTransport | None = None
        self._session: Session | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        if self._loop is not asyncio.get_running_loop():
            self._begin()
        if self._client == "direct":
            return await (self._direct or self._open_direct()).send(call, deadlines)
        return await (self._session or self._open_session()).send(call, deadlines)

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        direct, self._direct = self._direct, None
        here = self._loop is asyncio.get_running_loop()
        for opened in (direct, session):
            if opened is not None and here:
                await opened.close()
            elif opened is not None:
                opened.let_go()

    def _begin(self) -> None:
        if self._loop is not None:
            raise another_loop("the HTTP client")
        self._loop = asyncio.get_running_loop()

    def _open_direct(self) -> DirectTransport:
        from bardo.adapters.net.transport import DirectTransport

        self._check_open()
        self._direct = DirectTransport()
        return self._direct

    def _open_session(self) -> Session:
        self._check_open()
        self._session = aiohttp_session()()
        return self._session

    def _check_open(self) -> None:
        if self._closed:
            raise InternalError("the HTTP client is closed")


def aiohttp_session() -> type[Session]:
    """Load aiohttp and return what sends calls through it. Raises ConfigError where it is not installed."""
    try:
        from bardo.adapters.net.session import Session
    except ImportError as problem:
        hint = f"{how_to_install('aiohttp')}, or leave out client under [http]"
        raise ConfigError("aiohttp is not installed", hint=hint) from problem
    return Session


def another_loop(what: str) -> ClientMisuse:
    """Return the error of a client that is used in an event loop other than its own."""
    return ClientMisuse(
        f"{what} belongs to another event loop", hint="make one for each event loop, or use bardo.Client"
    )
