"""Pings: where the operator wants it, providers whose list of models is free are asked for it at times, to see whether they are there.

A ping tells of the connection alone. That models answer, only calls tell, and none is made for it: a request of one token costs money, and
fails at models that think first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bardo.adapters.net.client import Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider
from bardo.routing.circuit import AttemptOutcome
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.list_models import list_models
from bardo.values.errors import BardoError, Unreachable, UpstreamTimeout

_ASKING = Deadlines(connect=5.0, first_byte=10.0, idle=10.0)
_AT_ONCE = 8
_UNREACHABLE = AttemptOutcome(error="connection")
# A refusal says that there is a server, as a list does.
_THERE = AttemptOutcome(error="caller")


class HealthPings:
    """Pings providers every `seconds` from `start` until `close`."""

    def __init__(
        self,
        directory: ProviderDirectory,
        transport: Transport,
        keyring: Keyring,
        health: HealthKeeper,
        *,
        seconds: float,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._transport = transport
        self._keyring = keyring
        self._health = health
        self._seconds = seconds
        self._watch = watch
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = self._task or asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop. A ping that is under way is abandoned."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ping_all(self) -> None:
        """Ask every provider whose list is free, some at once."""
        limit = asyncio.Semaphore(_AT_ONCE)
        asked = (one for one in self._directory.providers if one.row.free_list and not self._keyring.lacks(one))
        await asyncio.gather(*(self._ping(server, limit) for one in asked for server in one.servers))

    async def _run(self) -> None:
        while True:
            await self.ping_all()
            await asyncio.sleep(self._seconds)

    async def _ping(self, provider: Provider, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                await list_models(provider, self._transport, self._keyring, _ASKING)
            except (Unreachable, UpstreamTimeout):
                outcome = _UNREACHABLE
            except BardoError:
                outcome = _THERE
            else:
                outcome = _THERE
        self._health.note(provider.place, "", outcome, self._watch())
