"""A reply of a provider that came before, as if it came now."""

from __future__ import annotations

from collections.abc import AsyncIterator


class StoredReply:
    """A reply whose body is at hand. It was bounded when it was stored."""

    resent = False

    def __init__(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        self.status = status
        self.headers = {"content-type": content_type}
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        body, self._body = self._body, b""
        if body:
            yield body

    async def read(self, limit: int) -> bytes:
        """Return the body."""
        body, self._body = self._body, b""
        return body

    async def finish(self) -> None:
        """Do nothing: no connection is held."""

    async def close(self) -> None:
        """Do nothing: no connection is held."""
