"""The numbers of routing, from `catalog/data/routing.toml`: weights of the score, classes of quality, and the usual size of a call."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
import tomli

from bardo.values.request import QUALITIES, Quality


class Weight(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A weight that shifts with the cost sensitivity of a call: `base + slope × sensitivity`."""

    base: float
    slope: float

    def at(self, sensitivity: float) -> float:
        """Return the weight at a cost sensitivity from 0 to 1."""
        return self.base + self.slope * sensitivity


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of the four terms of a score, before they are divided by their sum."""

    cost: Weight
    quality: Weight
    latency: Weight
    features: Weight


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reference values of a score.

    `max_cost_per_m_token` is in USD: who costs that or more scores 0 for cost. `input_share` is the part of the input in the price of a
    token. `unknown` is what an unknown term scores. `relaxed_latency` is how many times its latency a call takes in the second pass.
    An intent whose quality has the rating `best_from` or more, and whose cost sensitivity is at most `best_until`, wants the best.
    """

    max_cost_per_m_token: float
    input_share: float
    unknown: float
    relaxed_latency: int
    best_from: float
    best_until: float


class CallSize(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """About how many tokens a call has."""

    input_tokens: int
    output_tokens: int


class RoutingRows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All numbers of routing. `quality` has the rating of each class, from 0 to 1."""

    weights: Weights
    score: ScoreRow
    quality: dict[Quality, float]
    usual_call: CallSize

    def class_of(self, rating: float) -> Quality:
        """Return the highest class that a rating reaches, or the lowest there is."""
        reached = [name for name in QUALITIES if self.quality[name] <= rating]
        return reached[-1] if reached else QUALITIES[0]


@cache
def routing_rows() -> RoutingRows:
    """Return the numbers that come with bardo."""
    text = files("bardo.catalog").joinpath("data/routing.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), RoutingRows)
