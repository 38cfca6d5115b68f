"""What the parts of agents spent today, by key, subsystem and provider: from the log, and from the calls of this process.

A day is one of UTC. The log is read at most once a second, and has the calls of other workers and of earlier processes; until it has a call
of this process, that call counts by itself.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY
from bardo.adapters.stores.log.row import LogRow
from bardo.values.errors import OperatorError

if TYPE_CHECKING:
    from bardo.adapters.stores.log.reader import LogReader

_SECONDS = 1.0
_log = logging.getLogger("bardo.agent")


class SpendKey(NamedTuple):
    """Whose money it is, for what, and where it went."""

    key_id: str
    subsystem: str
    provider: str


class DaySpending:
    """The nano-dollars of today. `path` is the log's place, None where there is none; `clock` gives Unix time."""

    def __init__(self, path: Path | str | None, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._day = -1
        self._own: dict[SpendKey, int] = {}
        self._at_first: dict[SpendKey, int] | None = None
        self._latest: Mapping[SpendKey, int] = {}
        self._read_at = -_SECONDS
        self._reader: LogReader | None = None
        self._lock = threading.Lock()
        self._reading: asyncio.Lock | None = None

    def note(self, row: LogRow) -> None:
        """Count a call that has ended."""
        self._begin_day()
        # What is known of a cost that is not known as a whole is spent too.
        nanos = row.cost_nanos if row.cost_nanos is not None else sum((row.cost_parts or {}).values())
        if row.subsystem and nanos and int(row.started_at // SECONDS_PER_DAY) == self._day:
            key = SpendKey(row.key_id or "", row.subsystem, row.provider)
            self._own[key] = self._own.get(key, 0) + nanos

    async def of_key(self, key_id: str) -> dict[SpendKey, int]:
        """Return what was spent today with a key; an empty id is that of calls without one."""
        self._begin_day()
        if self._path is not None:
            self._reading = self._reading or asyncio.Lock()
            async with self._reading:
                if self._clock() - self._read_at >= _SECONDS:
                    await self._read()
        first = self._at_first or {}
        known = {key: first.get(key, 0) + nanos for key, nanos in self._own.items()}
        every = {**dict.fromkeys(self._latest, 0), **known}
        # The log holds calls of others; this process knows its own before the log does.
        return {
            key: max(nanos, self._latest.get(key, 0), first.get(key, 0))
            for key, nanos in every.items()
            if key.key_id == key_id
        }

    def close(self) -> None:
        """Close the log."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _begin_day(self) -> None:
        day = int(self._clock() // SECONDS_PER_DAY)
        if day != self._day:
            self._day, self._own, self._at_first, self._latest, self._read_at = day, {}, None, {}, -_SECONDS

    async def _read(self) -> None:
        day, self._read_at = self._day, self._clock()
        try:
            found = await asyncio.to_thread(self._sums, day)
        except OperatorError as problem:
            _log.warning("what the agent spent today cannot be read: %s", problem.message)
            return
        if day != self._day:
            return
        if self._at_first is None:
            # Calls of this process may be in the log already.
            self._at_first = {key: max(0, nanos - self._own.get(key, 0)) for key, nanos in found.items()}
        self._latest = found

    def _sums(self, day: int) -> dict[SpendKey, int]:
        from bardo.adapters.stores.log.reader import LogReader

        assert self._path is not None
        with self._lock:
            if self._reader is None:
                self._reader = LogReader(self._path)
            groups = self._reader.costs(("key", "subsystem", "provider"), since=float(day * SECONDS_PER_DAY))
        return {
            SpendKey(*(str(one.of[name]) for name in ("key", "subsystem", "provider"))): one.sums.cost_nanos
            + one.sums.partial_nanos
            for one in groups
            if one.of["subsystem"]
        }
