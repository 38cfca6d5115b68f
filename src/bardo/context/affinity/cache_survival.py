"""How probably a cached prefix is still there after a pause, learned from what providers report of their cache reads.

Providers keep cached prompts for five minutes, for an hour or until they need the room, and not all say which. So the share of a prefix
that was read from the cache is noted by the length of the pause, and a curve that never rises is fitted to it (the
pool-adjacent-violators algorithm; Ayer and others, 1955). Before anything is known the share halves every five minutes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

HALF_LIFE_SECONDS = 300.0
"""The half-life that is assumed of a cache of which nothing is known: the reference document's decay over five minutes."""
LEAST_TOKENS = 1024
"""Providers cache no shorter prompts (OpenAI and Anthropic, as of 2026-11), so that reading nothing of them tells nothing."""
_EDGES = (15, 30, 60, 120, 180, 240, 300, 360, 480, 720, 1200, 1800, 2700, 3600, 4500, 7200, 14400, 28800)
"""Where the intervals of pauses end, in seconds: closest at five minutes and at an hour, for which providers say they keep prompts."""
_MIDDLES = (*((first + second) / 2 for first, second in pairwise((0, *_EDGES))), 2.0 * _EDGES[-1])
_SEEN, _UNSEEN = 1.0, 0.1
"""For how many observations the assumption counts in an interval of which something was seen, and of which nothing was."""
_KEPT = 0.985
"""What part of its weight an observation has after the next one: about the latest sixty count, so that what changes is learned anew."""


class CacheSurvival:
    """The curve of one model at one provider. `half_life` is what is assumed at first, in seconds."""

    __slots__ = ("_counts", "_curve", "_half_life", "_means", "observations")

    def __init__(self, half_life: float = HALF_LIFE_SECONDS) -> None:
        self._half_life = half_life
        self._counts = [0.0] * len(_MIDDLES)
        self._means = [0.0] * len(_MIDDLES)
        self._curve: list[float] | None = None
        self.observations = 0

    def note(self, seconds: float, share: float) -> None:
        """Learn what share of a prefix, from 0 to 1, was read from the cache after a pause of so many seconds."""
        place = _interval(seconds)
        self._counts = [count * _KEPT for count in self._counts]
        self._counts[place] += 1.0
        self._means[place] += (min(1.0, max(0.0, share)) - self._means[place]) / self._counts[place]
        self._curve = None
        self.observations += 1

    def share(self, seconds: float) -> float:
        """Return what share of a prefix is probably still cached after so many seconds, from 0 to 1."""
        if not self.observations:
            return math.exp2(-max(0.0, seconds) / self._half_life)
        return self.curve[_interval(seconds)]

    @property
    def curve(self) -> Sequence[float]:
        """The share that is left in each interval of pauses, which never rises."""
        if self._curve is None:
            assumed = [math.exp2(-middle / self._half_life) for middle in _MIDDLES]
            priors = [_SEEN if count else _UNSEEN for count in self._counts]
            weights = [prior + count for prior, count in zip(priors, self._counts, strict=True)]
            values = [
                (prior * share + count * mean) / (prior + count)
                for prior, share, count, mean in zip(priors, assumed, self._counts, self._means, strict=True)
            ]
            self._curve = falling(values, weights)
        return self._curve

    def half_life(self) -> float:
        """Return after how many seconds half of a prefix is left; infinity where more than half is left after the longest pause."""
        if not self.observations:
            return self._half_life
        before, at = 1.0, 0.0
        for share, middle in zip(self.curve, _MIDDLES, strict=True):
            if share <= 0.5:
                return at + (middle - at) * (before - 0.5) / (before - share) if before > share else middle
            before, at = share, middle
        return math.inf


def falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the sequence that never rises and is nearest to `values` by weighted squares, in linear time."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = value, weight, 1
        while pools and pools[-1][0] < mean:
            other, own, size = pools.pop()
            mean = (mean * total + other * own) / (total + own)
            total, count = total + own, count + size
        pools.append((mean, total, count))
    return [mean for mean, _, count in pools for _ in range(count)]


def _interval(seconds: float) -> int:
    """Return the place of the interval in which a pause is."""
    return bisect_left(_EDGES, seconds)
