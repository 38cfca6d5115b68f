"""Counts the calls for which providers were asked to search the web: of the current day (UTC) by provider, and what they cost by limit.

Kept in memory, by process.
"""

from __future__ import annotations

from collections.abc import Callable

from bardo.engine.attempt import Attempt
from bardo.engine.search_budget import search_nanos, searches

_DAY = 86_400
_MOST_KEYS = 20_000
"""Clients name sessions, so the memory may not grow with them."""


class DailySearches:
    """The searching calls of today by provider, of those that have a budget. `clock` gives Unix time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._day = 0
        self._counts: dict[str, int] = {}
        self._costs: dict[str, int] = {}

    def today(self, provider: str) -> int:
        """Return how many calls of today asked a provider to search."""
        return self._counts.get(provider, 0) if int(self._clock() // _DAY) == self._day else 0

    def cost(self, key: str) -> int:
        """Return how many nano-dollars the searches of a limit's key have cost."""
        return self._costs.get(key, 0)

    def note(self, attempt: Attempt) -> None:
        """Count an attempt that is sent now, where there is a budget for it and it asks for a search."""
        provider = attempt.target.provider
        limits = () if attempt.request is None else attempt.request.options.search_limits
        if provider.row.searches_per_day is None and not limits:
            return
        if not searches(attempt.wire, attempt.target):
            return
        for limit in limits:
            self._costs[limit.key] = self._costs.pop(limit.key, 0) + search_nanos()
            if len(self._costs) > _MOST_KEYS:
                del self._costs[next(iter(self._costs))]
        if provider.row.searches_per_day is None:
            return
        day = int(self._clock() // _DAY)
        if day != self._day:
            self._day, self._counts = day, {}
        self._counts[provider.id] = self._counts.get(provider.id, 0) + 1
