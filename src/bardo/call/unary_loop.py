"""The attempts of a call that is answered in one piece: the same target once more, the next, or the end, within the time of the call."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from bardo.call.failover import Recovery
from bardo.planning.unary import Course, Try, UnaryAttempt, WholeReply
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError

Result = TypeVar("Result")
Sender = Callable[[UnaryAttempt[Result], tuple[Degradation, ...]], Awaitable[tuple[Result, list[WholeReply]]]]
"""Sends one attempt, with what was lost before it, and returns its result. Raises BardoError."""


class UnaryLoop(Generic[Result]):
    """The attempts of one call. `attempt` makes one; after one that failed, `turn` waits for the next, or raises."""

    def __init__(self, course: Course[Result], recovery: Recovery, send: Sender[Result]) -> None:
        self._course = course
        self._recovery = recovery
        self._send = send
        self._try: Try[Result] = next(course)

    async def attempt(self) -> tuple[Result, list[WholeReply]]:
        """Send the attempt that is due, and return its result within the time that is left. Raises BardoError."""
        attempt, lost = self._try
        left = self._recovery.time_left
        if left == math.inf:
            return await self._send(attempt, lost)
        try:
            async with asyncio.timeout(max(0.0, left)):
                return await self._send(attempt, lost)
        except TimeoutError:
            raise self._recovery.out_of_time(attempt.target.provider.id) from None

    async def turn(self, problem: BardoError, seconds: float) -> None:
        """Choose what follows an attempt of so many seconds that failed, and wait until it is due. Raises BardoError where nothing is."""
        recovery = self._recovery
        recovery.note(problem)
        if await recovery.rest(problem, seconds, alone=False):
            return
        following = self._following(problem)
        if following is not None:
            recovery.turn_to_next()
            self._try = following
        elif not await recovery.rest(problem, seconds, alone=True):
            raise recovery.error_to_tell

    def _following(self, problem: BardoError) -> Try[Result] | None:
        """Return the next attempt after one that failed; None where no target is left that can express the request, or no time."""
        if not self._recovery.has_time:
            return None
        try:
            return self._course.send(problem)
        except (StopIteration, BardoError):
            return None
