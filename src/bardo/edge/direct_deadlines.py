"""Until when replies over direct connections may begin: one timer for all of them, since one for each costs more than a look."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from bardo.edge.direct_incoming import Incoming
from bardo.values.errors import BardoError

OutOfTime = Callable[[], BardoError]
"""Makes the error of a call whose time is over."""
# Timers of event loops count milliseconds.
_TICK_SECONDS = 0.001


class FirstByteDeadlines:
    """The replies of one transport whose head has not come."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Incoming, tuple[float, OutOfTime]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    def add(self, incoming: Incoming, until: float, out_of_time: OutOfTime) -> None:
        """Fail a reply with the error that `out_of_time` makes where it is still here at `until`, by the loop's clock."""
        self._waiting[incoming] = until, out_of_time
        if until < self._alarm_at:
            self._set_alarm(until)

    def remove(self, incoming: Incoming) -> None:
        """Wait no longer for a reply."""
        self._waiting.pop(incoming, None)

    def close(self) -> None:
        """Look no more."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _set_alarm(self, when: float) -> None:
        self.close()
        self._alarm_at = when
        self._alarm = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._alarm, self._alarm_at = None, math.inf
        now = self._loop.time() + _TICK_SECONDS
        for incoming, (until, out_of_time) in list(self._waiting.items()):
            if until <= now:
                del self._waiting[incoming]
                incoming.fail(out_of_time())
        if self._waiting:
            self._set_alarm(min(until for until, _ in self._waiting.values()))
