"""Score who may answer by cost, quality, latency and features, with weights that shift with the cost sensitivity of the call.

Source: the reference document on model routing, "Backend score computation". Each term is within 0 to 1, which the document leaves
open: a latency above the bound scores 0, and a call without wanted features scores 1 for them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bardo.catalog.routing_rows import routing_rows
from bardo.routing.candidates import NO_CONDITIONS, Candidate, Candidates, Conditions, cheapness, quickness
from bardo.routing.resolver import Choice, relaxed
from bardo.values.request import Intent

_ROWS = routing_rows()
_UNKNOWN = _ROWS.score.unknown
_DIGITS = 9
"""Digits in which scores are compared: the last ones of a sum of four terms are chance."""


class RoutingContext(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a score. `max_latency_ms` None: any latency is as good as another. `diem`: DIEM pays where it is taken."""

    required_features: tuple[str, ...] = ()
    cost_sensitivity: float = 0.5
    max_latency_ms: int | None = None
    diem: bool = False


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a score and their weighted mean `total`, all from 0 to 1. `unknown` names the terms of which nothing is known."""

    cost: float
    quality: float
    latency: float
    features: float
    total: float
    unknown: tuple[str, ...] = ()


def context_of(intent: Intent) -> RoutingContext:
    """Return what an intent is scored for: the features that it requires and those that it prefers count alike."""
    return RoutingContext(
        required_features=tuple(dict.fromkeys((*intent.require, *intent.prefer))),
        cost_sensitivity=intent.cost_sensitivity,
        max_latency_ms=intent.max_latency_ms,
        diem=intent.diem_available,
    )


def compute_backend_score(backend: Candidate, context: RoutingContext) -> float:
    """Return the score of a candidate, from 0 to 1."""
    return score(backend, context).total


def score(backend: Candidate, context: RoutingContext) -> Score:
    """Return the score of a candidate with its terms."""
    price = backend.price(diem=context.diem)
    cost = cheapness(price)
    quality = _UNKNOWN if backend.rating is None else min(1.0, max(0.0, backend.rating))
    latency = quickness(backend.latency_ms, context.max_latency_ms)
    features = (
        sum([name in backend.features for name in context.required_features]) / len(context.required_features)
        if context.required_features
        else 1.0
    )
    weights, sensitivity = _ROWS.weights, context.cost_sensitivity
    by_cost, by_quality = weights.cost.at(sensitivity), weights.quality.at(sensitivity)
    by_latency, by_features = weights.latency.at(sensitivity), weights.features.at(sensitivity)
    total = cost * by_cost + quality * by_quality + latency * by_latency + features * by_features
    unknown = {
        "cost": price is None,
        "quality": backend.rating is None,
        "latency": backend.latency_ms is None and context.max_latency_ms is not None,
    }
    return Score(
        cost=cost,
        quality=quality,
        latency=latency,
        features=features,
        total=total / (by_cost + by_quality + by_latency + by_features),
        unknown=tuple([name for name, holds in unknown.items() if holds]),
    )


def choices_by_score(
    candidates: Candidates, intent: Intent, conditions: Conditions = NO_CONDITIONS
) -> Iterator[Choice]:
    """Yield who may be asked, the best score first: those that meet the requirements, then those that do not.

    Of equal scores the better rated goes first, and of equal ratings the one that stands first in the configuration. Whom calls fail at is
    left out before.
    """
    context = context_of(intent)
    able = _by_score(candidates, intent, conditions, context)
    yield from (Choice(candidate, relaxed=False) for candidate in able)
    asked = relaxed(intent)
    if asked is intent:
        return
    names = {(candidate.provider, candidate.model) for candidate in able}
    others = _by_score(candidates, asked, conditions, context)
    yield from (Choice(other, relaxed=True) for other in others if (other.provider, other.model) not in names)


def _by_score(
    candidates: Candidates, intent: Intent, conditions: Conditions, context: RoutingContext
) -> list[Candidate]:
    able = [ranked.candidate for provider in candidates.search(intent, conditions) for ranked in provider]
    return sorted(
        able,
        key=lambda candidate: (-round(compute_backend_score(candidate, context), _DIGITS), -(candidate.rating or 0.0)),
    )
