"""Asks a second model whether it agrees with an answer, by a call of its own. Whatever becomes of that, the answer stands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bardo.planning.route import Target
from bardo.planning.verification import MOST_SECONDS, Judge, Verification, is_same, judging_request, read_verdict
from bardo.services.facts.directory import Placement
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.call.live_reply import LiveReply

_SAME = "the model that answered is not asked to judge itself"
_MOST_MESSAGE = 500


class Verifier:
    """Has answers judged by one model. `open_call` opens the call that asks it, `placed` finds who may be asked."""

    def __init__(
        self,
        judge: Judge,
        open_call: Callable[[Request], Awaitable[LiveReply]],
        placed: Callable[[Request], Awaitable[tuple[Request, Placement]]],
    ) -> None:
        self._judge = judge
        self._open = open_call
        self._placed = placed

    async def verify(self, request: Request, response: Response, answered: Target, age: float) -> Verification:
        """Return the verdict on an answer that `answered` gave, `age` seconds after the call began. Raises nothing."""
        if request.choices > 1:
            return self._none("of several answers none is judged")
        # Of a stream only the beginning has a deadline.
        deadline = None if request.stream else request.options.deadline_seconds
        seconds = MOST_SECONDS if deadline is None else min(MOST_SECONDS, deadline - age)
        if seconds <= 0:
            return self._none("the call's deadline has passed")
        asked = judging_request(self._judge, request, response)
        try:
            async with asyncio.timeout(seconds):
                _, placed = await self._placed(asked)
                if placed.targets and is_same(placed.targets[0], answered):
                    return self._none(_SAME)
                return await self._ask(asked, answered)
        except BardoError as problem:
            why = f"{type(problem).__name__}: {problem.message}"[:_MOST_MESSAGE]
            return self._none(why, problem.request_id, problem.cost_nanos)
        except TimeoutError:
            return self._none(f"there was no verdict within {seconds:.3g} s")
        except Exception as mistake:  # noqa: BLE001 - an answer that is complete is not lost by what is asked about it
            return self._none(f"a mistake in bardo: {type(mistake).__name__}")

    async def _ask(self, asked: Request, answered: Target) -> Verification:
        live = await self._open(asked)
        try:
            await live.read()
        except BardoError as problem:
            problem.request_id, problem.cost_nanos = live.request_id, live.cost.nanos
            raise
        except asyncio.CancelledError as cancelled:
            live.log_cancelled(cancelled)
            raise
        finally:
            await live.close()
        if is_same(live.attempt.target, answered):
            return self._none(_SAME, live.request_id, live.cost.nanos)
        verdict = read_verdict(live.response())
        if verdict is None:
            return self._none("what it answered is no verdict", live.request_id, live.cost.nanos)
        return Verification(
            model=self._judge.model,
            agrees=verdict.agrees,
            why=verdict.why,
            request_id=live.request_id,
            nanos=live.cost.nanos,
        )

    def _none(self, why: str, request_id: str = "", nanos: int | None = None) -> Verification:
        return Verification(model=self._judge.model, agrees=None, why=why, request_id=request_id or None, nanos=nanos)
