"""A route of a subsystem as steps: the best place first, then those that lack something, each with its losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from bardo.catalog.matching import matches_any
from bardo.catalog.models import model_qualities
from bardo.catalog.routing_rows import routing_rows
from bardo.routing.candidates import Candidate, ranked, spelled
from bardo.routing.resolver import order_of
from bardo.values.degradation import Degradation
from bardo.values.profile import ProfileEffort
from bardo.values.request import Intent


class RouteStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step: `models` (globs) at `providers` (globs of catalog row ids; none: any), and the features that are `lost` there.

    `effort` is the level of thinking that is asked for in this step; empty leaves the subsystem's own. `prefer` are features whose models
    go first in the step. `variant` is asked for behind the models' ids at providers that have it, as `floor` (the cheapest servers first).
    """

    models: tuple[str, ...]
    providers: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    effort: ProfileEffort | Literal[""] = ""
    why: str = ""
    prefer: tuple[str, ...] = ()
    variant: str = ""


class FallbackRoute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of one subsystem, best first."""

    subsystem: str
    step: tuple[RouteStep, ...]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a provider serves: the provider's id in the configuration and in the catalog, and the model's id there.

    `candidate` holds its facts, or None if only the catalog's class of the model is known.
    """

    provider: str
    row: str
    model: str
    candidate: Candidate | None = None


class StepTaken(msgspec.Struct, frozen=True, kw_only=True):
    """An offer, and the step that leads to it."""

    offer: Offer
    step: RouteStep

    @property
    def degraded(self) -> tuple[Degradation, ...]:
        """The losses at this step."""
        return tuple(Degradation(feature, asked=True, sent=False, why=self.step.why) for feature in self.step.lost)


def follow(route: FallbackRoute, offers: Iterable[Offer], intent: Intent) -> Iterator[StepTaken]:
    """Yield the offers in the order in which they are tried, none of them twice: by step, and within one the best for the intent first.

    Those go first that have what the step prefers, and of them those of the wanted quality; else the order of the providers holds, and
    for each the order of its models by `resolver.order_of`.
    """
    remaining = list(offers)
    for step in route.step:
        fitting = [offer for offer in remaining if fits(step, offer.row, offer.model)]
        remaining = [offer for offer in remaining if offer not in fitting]
        yield from (StepTaken(offer=offer, step=step) for offer in _best_first(step, fitting, intent))


def _best_first(step: RouteStep, fitting: list[Offer], intent: Intent) -> list[Offer]:
    providers = list(dict.fromkeys(offer.provider for offer in fitting))

    def place(offer: Offer) -> tuple[bool, bool, int, tuple[float, ...]]:
        candidate = offer.candidate or _by_catalog(offer)
        order = order_of(ranked(candidate, intent), intent)
        lacks = not candidate.features.issuperset(step.prefer)
        return lacks, not order[0], providers.index(offer.provider), tuple([-value for value in order])

    return sorted(fitting, key=place)


def _by_catalog(offer: Offer) -> Candidate:
    quality = model_qualities().find(spelled(offer.model))
    rating = None if quality is None else routing_rows().quality[quality]
    return Candidate(provider=offer.provider, model=offer.model, rating=rating)


def fits(step: RouteStep, row: str, model: str) -> bool:
    """Whether a step leads to a model at a provider, by the id of its catalog row."""
    here = not step.providers or matches_any(row, step.providers)
    return here and (matches_any(model, step.models) or matches_any(model.rpartition("/")[2], step.models))
