"""bardo's one HTTP client: send a call to a provider and hand its reply over piece by piece.

Connections are kept warm and shared; a reply belongs to one task. Every failure arrives as a `ProviderError` that names
the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bardo.edge.http_calls import Call, Deadlines, Reply, Transport
from bardo.values.errors import InternalError

if TYPE_CHECKING:
    from bardo.edge.http_session import Session

__all__ = ["Call", "Deadlines", "HttpTransport", "Reply", "Transport"]


class HttpTransport:
    """Send calls through aiohttp. Construct it anywhere; it belongs to the event loop of its first call.

    Whoever cancels a call hangs up on the provider at once.
    """

    def __init__(self) -> None:
        self._session: Session | None = None
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        return await (self._session or self._open()).send(call, deadlines)

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> Session:
        from bardo.edge.http_session import Session

        if self._closed:
            raise InternalError("the HTTP client is closed")
        self._session = Session()
        return self._session
