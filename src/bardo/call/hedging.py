"""Asks a second provider too where the first is slower than usual: the first reply that begins is taken, the other is let go of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from bardo.call.call_recorder import CallRecorder
from bardo.call.opened_reply import OpenedReply
from bardo.planning.exchange import Exchange
from bardo.planning.route import Target, target_names
from bardo.routing.health import Latency
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.request import Request

_MOST_CREDIT = 10.0
"""How many hedges may follow at once after a long time without one."""

Opener = Callable[[OpenedReply], Coroutine[Any, Any, None]]
"""Sends an attempt and reads until its reply has begun. Raises BardoError."""


class HedgeBudget:
    """Bounds which share of all calls a second provider is asked for."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._credit = 0.0

    def count(self) -> None:
        """Take a call that could be hedged."""
        self._credit = min(self._credit + self._share, _MOST_CREDIT)

    def spend(self) -> bool:
        """Whether one more call may be hedged; it is counted then."""
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True


def hedge_after(latency: Latency, *, stream: bool) -> float | None:
    """Return after how many seconds a target is slower than in 95 of 100 of its calls; None where too few were made to say."""
    found = latency.first_token_p95_ms if stream else latency.p95_ms
    return None if found is None else found / 1000


class Race:
    """Attempts of one call that run at once. `run` returns the first whose reply begins; the others are noted as lost."""

    def __init__(self, open_reply: Opener, recorder: CallRecorder) -> None:
        self._open = open_reply
        self._recorder = recorder
        self._tasks: dict[asyncio.Task[None], OpenedReply] = {}
        self.errors: list[BardoError] = []

    async def run(self, first: OpenedReply, seconds: float, second: Callable[[], OpenedReply | None]) -> OpenedReply:
        """Begin with `first`, and after so many seconds with `second` too, unless there is none.

        Raises the BardoError of the last attempt where each of them failed.
        """
        try:
            self._start(first)
            done, _ = await asyncio.wait(self._tasks, timeout=seconds)
            other = None if done else second()
            if other is not None:
                self._start(other)
            return await self._winner()
        finally:
            await self._end()

    def _start(self, opened: OpenedReply) -> None:
        self._tasks[asyncio.create_task(self._open(opened))] = opened

    async def _winner(self) -> OpenedReply:
        while True:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in [one for one in self._tasks if one in done]:
                opened, failure = self._tasks.pop(task), task.exception()
                if failure is None:
                    return opened
                if not isinstance(failure, BardoError) or not self._tasks:
                    raise failure
                self.errors.append(failure)

    async def _end(self) -> None:
        """Let go of whoever lost."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for opened in self._tasks.values():
            opened.note_ended(self._recorder, lost=True)
            await opened.close()


def hedge_attempts(plan: Callable[..., Exchange], request: Request, targets: Sequence[Target], why: str) -> Exchange:
    """Return the attempts at the targets after the first, which is slow."""
    first, second, *_ = target_names(targets)
    lost = Degradation("provider", asked=first, sent=second, why=why)
    return plan(msgspec.structs.replace(request, degraded=(*request.degraded, lost)), targets[1:])
