"""bardo's own application with one more endpoint, which tells what the process holds. For the soak and for scale only."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading

from bardo.surfaces.gateway.http import Receive, Scope, Send
from bardo.surfaces.gateway.main import create_app as create_gateway

PATH = "/bench/state"
"""With `?watch` the longest time that the event loop stood since the last look is told too."""
_BEAT_SECONDS = 0.002


def create_app() -> CountingApp:
    """Return the application of the configuration at hand."""
    return CountingApp()


class CountingApp:
    """The gateway, watched."""

    def __init__(self) -> None:
        self._app = create_gateway()
        self._beats = False
        self._longest = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        held = {"pid": os.getpid()}
        if scope["query_string"] == b"watch":
            # Nothing else, for it would be a stretch of its own.
            held["longest_microseconds"], self._longest = round(self._longest * 1e6), 0.0
            if not self._beats:
                self._beats = True
                self._beat(asyncio.get_running_loop().time())
        else:
            gc.collect()
            held |= {
                "tasks": len(asyncio.all_tasks()),
                "threads": threading.active_count(),
                "objects": len(gc.get_objects()),
            }
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(held).encode()})

    def _beat(self, due: float) -> None:
        """Note by how much the event loop is late, and come again."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._longest = max(self._longest, now - due)
        loop.call_at(now + _BEAT_SECONDS, self._beat, now + _BEAT_SECONDS)
