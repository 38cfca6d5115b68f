"""A route of a subsystem as steps: the best place first, then those that lack something, each with what is lost there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from bardo.catalog.matching import matches_any
from bardo.values.degradation import Degradation
from bardo.values.profile import ProfileEffort


class RouteStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step: `models` (globs) at `providers` (globs of catalog row ids; none: any), and the features that are `lost` there.

    `effort` is the level of thinking that is asked for in this step; empty leaves the subsystem's own.
    """

    models: tuple[str, ...]
    providers: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    effort: ProfileEffort | Literal[""] = ""
    why: str = ""


class FallbackRoute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of one subsystem, best first."""

    subsystem: str
    step: tuple[RouteStep, ...]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a provider serves: the provider's id in the configuration and in the catalog, and the model's id there."""

    provider: str
    row: str
    model: str


class StepTaken(msgspec.Struct, frozen=True, kw_only=True):
    """An offer, and the step that leads to it."""

    offer: Offer
    step: RouteStep

    @property
    def degraded(self) -> tuple[Degradation, ...]:
        """What is lost at this step."""
        return tuple(Degradation(feature, asked=True, sent=False, why=self.step.why) for feature in self.step.lost)


def follow(route: FallbackRoute, offers: Iterable[Offer]) -> Iterator[StepTaken]:
    """Yield the offers in the order in which they are tried: by step, and within one in their own order. No offer comes twice."""
    remaining = list(offers)
    for step in route.step:
        fitting = [offer for offer in remaining if _fits(step, offer)]
        remaining = [offer for offer in remaining if offer not in fitting]
        yield from (StepTaken(offer=offer, step=step) for offer in fitting)


def _fits(step: RouteStep, offer: Offer) -> bool:
    here = not step.providers or matches_any(offer.row, step.providers)
    bare = offer.model.rpartition("/")[2]
    return here and (matches_any(offer.model, step.models) or matches_any(bare, step.models))
