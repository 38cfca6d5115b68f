"""What the fakes of chat services have in common: a server in the test's event loop, and waiting for what a bot does."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Self

from aiohttp import web

from support.patience import PATIENCE

_LOOK_SECONDS = 0.1


class RateWindow:
    """So many calls in so many seconds."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        self._times: deque[float] = deque()

    @property
    def left(self) -> int:
        """How many calls may still be made in this window."""
        return max(0, self.most - len(self._times))

    def wait(self, now: float) -> float:
        """Count a call and return 0, or the seconds until one may be made."""
        while self._times and self._times[0] <= now - self.seconds:
            self._times.popleft()
        if len(self._times) >= self.most:
            return self._times[0] + self.seconds - now
        self._times.append(now)
        return 0.0

    def reset_after(self, now: float) -> float:
        """Return in how many seconds the oldest call counts no longer."""
        return max(0.0, self._times[0] + self.seconds - now) if self._times else 0.0


class ChatServer:
    """A server of HTTP at a free port of this machine, in the running event loop."""

    def __init__(self) -> None:
        self.address = ""
        self.bot: asyncio.Task[None] | None = None
        """The bot that is tested."""
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    def routes(self, app: web.Application) -> None:
        """Add the paths of the service."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=50_000_000)
        self.routes(app)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def changed(self) -> None:
        """Wake those who wait for something."""
        async with self._changed:
            self._changed.notify_all()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something is true, of this service or of another. Raises what ended the bot, where that happens first."""
        async with asyncio.timeout(PATIENCE):
            while not true():
                if self.bot is not None and self.bot.done():
                    self.bot.result()
                    raise AssertionError("the bot has ended")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS), self._changed:
                        await self._changed.wait()


def now() -> float:
    """Return the time of the running event loop."""
    return asyncio.get_running_loop().time()
