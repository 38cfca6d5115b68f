"""Counts what the running calls of one key spend while their replies come, so that a budget that is spent ends them at once.

It looks again after as many bytes as what is left may pay for, and holds what comes while the store of limits is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

_LEAST_BYTES, _MOST_BYTES = 512, 16_384
"""How many bytes of all replies of a key may come between two looks."""


class BudgetMeter:
    """The meter of one key. A model writes no more than one token a byte, of which a thousand cost `thousand_nanos`.

    `look` counts what came and returns what is left of the budget, in nano-dollars. `check` asks the store whether the budget is spent,
    and ends the calls where it is; None where they go on. `alone`: no other process spends of the same budget.
    """

    def __init__(
        self,
        look: Callable[[], int | None],
        check: Callable[[], Coroutine[Any, Any, None]] | None,
        alone: Callable[[], bool],
    ) -> None:
        self.thousand_nanos = 0
        self.fed: set[str] = set()
        """The requests of whose replies something came since the last look."""
        self._look = look
        self._check = check
        self._alone = alone
        self._bytes = 0
        self._known: int | None = None
        """What was left when the store was asked last."""
        self._checking: asyncio.Task[None] | None = None

    def allow(self, size: int) -> int:
        """Return how many of so many bytes may be read now. Where none may, `wait` says when."""
        if self._checking is not None:
            return 0
        if self._bytes <= 0 and not self._look_again():
            return 0
        allowed = size if self._check is None else min(size, self._bytes)
        self._bytes -= allowed
        return allowed

    def _look_again(self) -> bool:
        """Count what came, and return whether more may be read."""
        left = self._look()
        if left is None or self._check is None:
            self._bytes = _MOST_BYTES
            return True
        if self._known is None:
            self._known = left
        # What others spend is seen by asking, the more often the less is left.
        if left < 0 or (left * 2 <= self._known and not self._alone()):
            self._checking = asyncio.get_running_loop().create_task(self._check())
            self._checking.add_done_callback(self._end_check)
            return False
        # A frame has more bytes than what the model wrote.
        affordable = left * 1000 // self.thousand_nanos if self.thousand_nanos else _MOST_BYTES
        self._bytes = min(max(affordable, _LEAST_BYTES), _MOST_BYTES)
        return True

    async def wait(self) -> int:
        """Return once something may be read, or its call was ended; and how many bytes may be, also where the store cannot be asked."""
        if self._checking is not None:
            await asyncio.wait([self._checking])
        return _LEAST_BYTES

    def _end_check(self, _: asyncio.Task[None]) -> None:
        self._checking, self._known, self._bytes = None, None, 0


class StreamMeter:
    """The meter of the reply to one request."""

    def __init__(self, meter: BudgetMeter, request_id: str) -> None:
        self._meter = meter
        self._request_id = request_id

    def allow(self, size: int) -> int:
        """Return how many of so many bytes may be read now. Where none may, `wait` says when."""
        allowed = self._meter.allow(size)
        self._meter.fed.add(self._request_id)  # Behind it: a look counts what was read before this piece.
        return allowed

    async def wait(self) -> int:
        """Return once something may be read, or the reply was cut; and how many bytes may be."""
        return await self._meter.wait()
