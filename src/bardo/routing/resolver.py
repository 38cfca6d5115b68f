"""Find who answers a call: the first provider in order that meets every requirement, and only then one that does not.

In the second pass requirements are preferences, and twice the latency is allowed. What the one that is chosen does not have is said, and
nothing else. Source: the reference document on model routing, "The resolver", which lists all requirements there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bardo.catalog.routing_rows import CallSize, routing_rows
from bardo.routing.candidates import NO_CONDITIONS, USUAL_CALL, Candidate, Candidates, Conditions, RankedCandidate
from bardo.values.request import Intent, Resolution

_ROWS = routing_rows()


class Choice(NamedTuple):
    """A candidate that may be asked; `relaxed` where it does not meet every requirement."""

    candidate: Candidate
    relaxed: bool


def resolve(
    candidates: Candidates, intent: Intent, conditions: Conditions = NO_CONDITIONS, size: CallSize = USUAL_CALL
) -> Resolution | None:
    """Return the first candidate that can do it, or None if none can even with its requirements relaxed."""
    for able in candidates.search(intent, conditions):
        return best(able, intent).candidate.resolution(intent, size)
    asked = relaxed(intent)
    for able in candidates.search(asked, conditions) if asked is not intent else ():
        return best(able, asked).candidate.resolution(intent, size)
    return None


def choices(candidates: Candidates, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Iterator[Choice]:
    """Yield the best candidate of each provider in order: of those that meet the requirements, then of those that do not."""
    strict: set[tuple[str, str]] = set()
    for able in candidates.search(intent, conditions):
        candidate = best(able, intent).candidate
        strict.add((candidate.provider, candidate.model))
        yield Choice(candidate, relaxed=False)
    asked = relaxed(intent)
    if asked is intent:
        return
    for able in candidates.search(asked, conditions):
        candidate = best(able, asked).candidate
        if (candidate.provider, candidate.model) not in strict:
            yield Choice(candidate, relaxed=True)


def relaxed(intent: Intent) -> Intent:
    """Return the intent of the second pass: what it requires as preferences, and more latency; itself where it bounds nothing."""
    if not intent.require and intent.max_latency_ms is None:
        return intent
    most = intent.max_latency_ms
    return msgspec.structs.replace(
        intent,
        require=(),
        prefer=(*intent.prefer, *intent.require),
        max_latency_ms=None if most is None else most * _ROWS.score.relaxed_latency,
    )


def best(able: Sequence[RankedCandidate], intent: Intent) -> RankedCandidate:
    """Return the best of a provider's candidates, the first of equals: see `order_of`."""
    return able[0] if len(able) == 1 else max(able, key=lambda candidate: order_of(candidate, intent))


def order_of(one: RankedCandidate, intent: Intent) -> tuple[bool, int, float, float, float]:
    """Return how good a candidate is for an intent; more is better.

    First whether it is of the wanted quality, then how many preferred features it has, then by rating and price. How much the price counts
    is the intent's cost sensitivity; where high quality is wanted and the price counts for no more than half, the rating decides, and the
    price among equals alone. Of an unknown price or rating the middle is taken.
    """
    least, weight = _ROWS.quality[intent.quality], intent.cost_sensitivity
    weighed = (1 - weight) * one.rating + weight * one.cheapness
    # The reference document has dreams (high, 0.5) answered by Claude Opus where Sonnet is cheaper, and curators (medium, 0.5) by Sonnet.
    first = one.rating if least >= _ROWS.score.best_from and weight <= _ROWS.score.best_until else weighed
    return one.rating >= least, one.preferred, first, weighed, one.rating
