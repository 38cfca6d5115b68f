"""Counts the calls of the current day, in UTC, for which each provider was asked to search the web. Kept in memory, by process."""

from __future__ import annotations

from collections.abc import Callable

from bardo.engine.attempt import Attempt
from bardo.engine.search_budget import searches

_DAY = 86_400


class DailySearches:
    """The searching calls of today by provider, of those that have a budget. `clock` gives Unix time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._day = 0
        self._counts: dict[str, int] = {}

    def today(self, provider: str) -> int:
        """Return how many calls of today asked a provider to search."""
        return self._counts.get(provider, 0) if int(self._clock() // _DAY) == self._day else 0

    def note(self, attempt: Attempt) -> None:
        """Count an attempt that is sent now, where its provider has a budget and it asks for a search."""
        provider = attempt.target.provider
        if provider.row.searches_per_day is None or not searches(attempt.wire, attempt.target):
            return
        day = int(self._clock() // _DAY)
        if day != self._day:
            self._day, self._counts = day, {}
        self._counts[provider.id] = self._counts.get(provider.id, 0) + 1
