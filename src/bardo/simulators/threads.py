"""Run a server in a thread of its own, for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager

Started = Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]]


@contextmanager
def in_thread(serve: Callable[[], AbstractAsyncContextManager[str]], name: str) -> Iterator[str]:
    """Serve in a thread; gives the address. Everything is closed when the block ends."""
    started: Started = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_until_stopped(serve, started)), name=name)
    thread.start()
    try:
        loop, stop, address = started.result()
        try:
            yield address
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join()


async def _until_stopped(serve: Callable[[], AbstractAsyncContextManager[str]], started: Started) -> None:
    stop = asyncio.Event()
    try:
        async with serve() as address:
            started.set_result((asyncio.get_running_loop(), stop, address))
            await stop.wait()
    except OSError as error:
        if started.done():
            raise
        started.set_exception(error)
