"""How long calls to each target took: the time in which nine of ten of the latest ones were answered."""

from __future__ import annotations

from collections import deque

_LATEST = 50
_LEAST = 10
"""So many calls are remembered of a target, and so many are needed before anything is said of it."""
_MOST_TARGETS = 1024
_NOTEWORTHY = 0.25
"""A latency that changed by less than this part of itself is taken for the same."""
_NINE_OF_TEN = 0.9


class ObservedLatency:
    """The latencies of targets, by the id of the provider and the model there.

    `revision` changes when what `p90_ms` says of any target has changed.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._taken: dict[tuple[str, str], deque[float]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[str, str], int] = {}

    def note(self, provider: str, model: str, seconds: float) -> None:
        """Note how long a call took. The target that came first is forgotten where there are too many."""
        name = (provider, model)
        taken = self._taken.get(name)
        if taken is None:
            if len(self._taken) >= _MOST_TARGETS:
                self._forget(next(iter(self._taken)))
            taken = self._taken[name] = deque(maxlen=_LATEST)
        taken.append(seconds)
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count % _LEAST == 0:
            self._learn(name, taken)

    def p90_ms(self, provider: str, model: str) -> int | None:
        """Return the time in which nine of ten calls were answered, in milliseconds; None where too few were made."""
        return self._known.get((provider, model))

    def _learn(self, name: tuple[str, str], taken: deque[float]) -> None:
        found = round(1000 * sorted(taken)[int(_NINE_OF_TEN * (len(taken) - 1))])
        before = self._known.get(name)
        if before is None or abs(found - before) > _NOTEWORTHY * before:
            self._known[name] = found
            self.revision += 1

    def _forget(self, name: tuple[str, str]) -> None:
        del self._taken[name], self._counts[name]
        if self._known.pop(name, None) is not None:
            self.revision += 1
