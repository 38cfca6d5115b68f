"""The least a gateway in Python can do: uvicorn takes a request, aiohttp sends it on, and what comes back is passed on unread.

`python -m benchmarks.bare_proxy UPSTREAM PORT`. It reads no JSON, holds no key and writes no log: the floor to compare gateways with.
"""

from __future__ import annotations

import sys
from typing import Any

import aiohttp
import uvicorn


class BareProxy:
    """An ASGI app that passes each request on to `upstream`, and each piece of the reply back."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        session = self._session = self._session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        message = await receive()
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        headers = {"content-type": "application/json"}
        async with session.post(self._upstream + scope["path"], data=body, headers=headers) as reply:
            kind = reply.headers["content-type"].encode()
            await send({"type": "http.response.start", "status": reply.status, "headers": [(b"content-type", kind)]})
            async for piece in reply.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def main(upstream: str, port: int) -> None:
    """Serve until the process is ended."""
    uvicorn.run(BareProxy(upstream), port=port, log_level="error", access_log=False, lifespan="off")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
