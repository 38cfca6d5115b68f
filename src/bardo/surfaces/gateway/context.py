"""What every operation of the gateway is given: the runner, and the limits of a request."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from bardo.adapters.stores.database.problems import DatabaseProblem, in_one_line
from bardo.adapters.stores.response_store import ResponseStore
from bardo.batches.service import BatchService
from bardo.call.runner import Runner
from bardo.server.reply import RequestCycle, cycle_of
from bardo.services.accounts.accounts import Accounts
from bardo.services.facts.event_feed import EventFeed
from bardo.services.facts.feedback import FeedbackRecorder
from bardo.surfaces.gateway.access import require_json
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.client_head import head_of
from bardo.surfaces.gateway.compressed_bodies import encodings_of, unpacked
from bardo.surfaces.gateway.draining import Draining
from bardo.surfaces.gateway.held_values import HeldValues
from bardo.surfaces.gateway.http import Receive, Scope, read_body, too_large, within
from bardo.surfaces.gateway.route_tables import Route
from bardo.values.errors import BardoError, InternalError, Unavailable

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
    from bardo.surfaces.gateway.panel import PanelLoader

_log = logging.getLogger("bardo.gateway")
# Each may take as much memory as a body may have before it is counted.
_UNPACKED_AT_ONCE = 2
_SECONDS_TO_END = 0.5
"""How long who reads events may take for the last ones when the gateway stops."""


class GatewayContext:
    """The runner of a gateway, the limits of a request and a stream, and whether unasked thinking is shown.

    `responses` is where responses are kept, `feedback` takes what clients think of answers; None where neither is done.
    `accounts` are the keys that are asked for, None where anybody may ask, and `batches` the batches of clients, None where none are taken.
    `draining` makes what is asked when the client of a request leaves. `events` is the feed that an earlier configuration began.
    `panel` loads the panel, None where there is none.
    `memory` is the thinking of past calls, None where it is not kept.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        max_body: int,
        max_values: int,
        keep_alive_seconds: float,
        unasked_thinking: bool = False,
        draining: Callable[[Answer], Draining] | None = None,
        responses: ResponseStore | None = None,
        feedback: FeedbackRecorder | None = None,
        accounts: Accounts | None = None,
        batches: BatchService | None = None,
        panel: PanelLoader | None = None,
        events: EventFeed | None = None,
        memory: ReasoningMemory | None = None,
    ) -> None:
        self.runner = runner
        self.memory = memory
        self.accounts = accounts
        self.batches = batches
        self.panel = panel
        self.events = events or EventFeed(runner.events)
        self.open_requests = 0
        """How many requests are being answered: batches yield to them."""
        self._onlookers: set[asyncio.Task[Any]] = set()
        self.feedback = feedback
        self.responses = responses
        self.prompt_estimates = runner.estimates
        self.keep_alive_seconds = keep_alive_seconds
        self.unasked_thinking = unasked_thinking
        self.draining = draining or partial(Draining, drains=False, seconds=0.0, tokens=0)
        self.max_body = max_body
        self.values = HeldValues(max_values)
        self._unpacking = asyncio.Semaphore(_UNPACKED_AT_ONCE)

    def is_busy(self) -> bool:
        """Whether clients wait for answers."""
        return self.open_requests > 0

    @contextmanager
    def onlooking(self) -> Iterator[None]:
        """Answer a request whose reply has no end of its own, in this task: it keeps no batch waiting, and no gateway from stopping."""
        task = asyncio.current_task()
        assert task is not None
        self._onlookers.add(task)
        self.open_requests -= 1
        try:
            yield
        finally:
            self.open_requests += 1
            self._onlookers.discard(task)

    def end_streams(self) -> None:
        """End the replies that have no end of their own, because the gateway stops. Who does not read what was sent is cut off."""
        self.events.close()
        if self.panel is not None:
            self.panel.end_streams()
        for task in self._onlookers:
            asyncio.get_running_loop().call_later(_SECONDS_TO_END, self._cut_off, task)

    def _cut_off(self, task: asyncio.Task[Any]) -> None:
        if task in self._onlookers:
            task.cancel()

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request. Raises UnsupportedMediaType, TooLarge or Overloaded, ClientDisconnected where the client left."""
        require_json(scope)
        cycle = cycle_of(receive)
        body = None if cycle is None else cycle.take_body()
        if body is None:
            body = await read_body(scope, receive, self.max_body)
        body = within(body, self.max_body)
        if b"content-encoding" in head_of(scope).fields:
            body = await self._unpacked(body, encodings_of(head_of(scope).lines), cycle)
        await self.values.admit(scope, body)
        return body

    async def _unpacked(self, body: bytes, encodings: Sequence[str], cycle: RequestCycle | None) -> bytes:
        """Return a body as it was before it was packed. It counts among the bodies in memory: raises Overloaded where they are too many."""
        if not encodings:
            return body
        async with self._unpacking:
            plain = await asyncio.to_thread(unpacked, body, encodings, self.max_body, too_large)
            if cycle is not None:
                cycle.count_body(len(plain))
        return plain


ServeOperation: TypeAlias = Callable[[GatewayContext, Route, Scope, Receive, Answer], Awaitable[None]]
"""Answers one request of one endpoint. It may raise BardoError, as long as the answer has not begun."""


def mistake(where: str) -> BardoError:
    """Log the exception at hand, and return the error that the client gets: a store that cannot be used, or a mistake in bardo."""
    problem = sys.exception()
    assert problem is not None
    if type(problem).__module__.partition(".")[0] in _DRIVERS or isinstance(problem, DatabaseProblem):
        why = in_one_line(getattr(problem, "orig", None) or problem)
        _log.error("a store could not be used, at %s: %s", where, why)
        return Unavailable(
            "a store of this gateway cannot be used now", hint="try again soon; the gateway's log says which and why"
        )
    _log.exception("a mistake in bardo, at %s", where)
    return InternalError("bardo failed", hint="the gateway's log says where")


_DRIVERS = frozenset({"sqlite3", "sqlalchemy", "psycopg", "redis"})
"""Packages whose exceptions say that a store cannot be used, where nothing nearer to it could."""
