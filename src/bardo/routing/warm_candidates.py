"""Candidates of a call whose conversation some of them have in their prompt cache: these cost less for it than their prices say.

Leaving a warm cache costs once, in the call at hand; staying saves in every call to come. So what is saved now is divided by the number of
calls that are expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from bardo.routing.candidates import (
    NO_CONDITIONS,
    Candidate,
    CandidateIndex,
    Candidates,
    Conditions,
    RankedCandidate,
    Refusals,
    ranked,
)
from bardo.values.request import Intent


class WarmCandidates:
    """`candidates`, of which those named in `discounts` (provider and model) cost so much less, in USD per million tokens."""

    def __init__(self, candidates: Candidates, discounts: Mapping[tuple[str, str], float]) -> None:
        self._candidates = candidates
        found = {name: _find(candidates, *name) for name in discounts}
        self._warm = {
            name: msgspec.structs.replace(one, stay_discount=discounts[name])
            for name, one in found.items()
            if one is not None
        }

    def __iter__(self) -> Iterator[Candidate]:
        return (self._warm.get((one.provider, one.model), one) for one in self._candidates)

    def search(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Iterator[tuple[RankedCandidate, ...]]:
        """Yield the groups of `candidates`, and with them those that would not have been the best without the discount."""
        left = dict(self._warm)
        for group in self._candidates.search(intent, conditions):
            found = []
            for one in group:
                warm = left.pop((one.candidate.provider, one.candidate.model), None)
                found.append(one if warm is None else ranked(warm, intent))
            yield tuple(found)
        if intent.model is None:
            further = tuple([ranked(one, intent) for one in left.values() if one.meets(intent, conditions)])
            if further:
                yield further

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> Refusals:
        """Return who cannot do it, and why."""
        return self._candidates.refusals(intent, conditions)


def _find(candidates: Candidates, provider: str, model: str) -> Candidate | None:
    """Return a candidate by its provider and model; None where it is not one."""
    named = candidates.named(f"{provider}/{model}") if isinstance(candidates, CandidateIndex) else candidates
    return next((one for one in named if (one.provider, one.model) == (provider, model)), None)
