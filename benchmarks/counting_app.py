"""bardo's own application with one more endpoint, which tells what the process holds. For the soak only."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading

from bardo.surfaces.gateway.http import Receive, Scope, Send
from bardo.surfaces.gateway.main import create_app as create_gateway

PATH = "/bench/state"


def create_app() -> CountingApp:
    """Return the application of the configuration at hand."""
    return CountingApp()


class CountingApp:
    """The gateway, watched."""

    def __init__(self) -> None:
        self._app = create_gateway()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        gc.collect()
        held = {
            "pid": os.getpid(),
            "tasks": len(asyncio.all_tasks()),
            "threads": threading.active_count(),
            "objects": len(gc.get_objects()),
        }
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(held).encode()})
