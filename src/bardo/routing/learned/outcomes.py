"""The outcomes of each model in each cluster of requests: success as a Beta posterior, and mean cost, both fading with time.

A fine cluster's evidence is joined to that of its coarse cluster, and this one's to the model's whole: where little was seen, the wider
mean stands in. The whole starts at one success in two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bardo.routing.learned.clusters import Clusters, Share

# How many outcomes the mean of the wider level counts as. Chosen by cross-validation, as the clusters' numbers were.
PRIOR_OUTCOMES = 10.0
_FIRST_PRIOR = 2.0
MOST_MODELS = 256


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a model did on one request. `success` from 0 to 1; `cost` in US dollars, or None if it is not known; `at` in seconds."""

    shares: tuple[Share, ...]
    model: str
    success: float
    cost: float | None = None
    at: float = 0.0


class Evidence(msgspec.Struct, array_like=True):
    """Sums over outcomes, each faded to the time `at`: how many, of success, how many with a cost, and of that cost."""

    count: float = 0.0
    successes: float = 0.0
    priced: float = 0.0
    cost: float = 0.0
    at: float = 0.0

    def add(self, share: float, outcome: Outcome, half_life: float) -> None:
        """Count a share of an outcome. What comes late is faded to the time that stands here."""
        faded = self.faded(outcome.at, half_life)
        late = _fading(self.at - outcome.at, half_life)
        share *= late
        self.count, self.successes = faded.count + share, faded.successes + share * outcome.success
        self.priced, self.cost, self.at = faded.priced, faded.cost, max(self.at, outcome.at)
        if outcome.cost is not None:
            self.priced, self.cost = self.priced + share, self.cost + share * outcome.cost

    def faded(self, at: float, half_life: float) -> Evidence:
        """Return the evidence as it counts at a time."""
        share = _fading(at - self.at, half_life)
        return Evidence(
            self.count * share, self.successes * share, self.priced * share, self.cost * share, max(at, self.at)
        )


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The expected outcome of a model on one request: a Beta posterior of success, and the mean cost in US dollars (None: never seen)."""

    alpha: float
    beta: float
    cost: float | None

    @property
    def success(self) -> float:
        """The mean of the posterior."""
        return self.alpha / (self.alpha + self.beta)


class ModelEvidence(msgspec.Struct):
    """The evidence for one model: in each fine cluster, in each coarse one, and in the whole."""

    fine: dict[int, Evidence] = {}
    coarse: dict[int, Evidence] = {}
    whole: Evidence = msgspec.field(default_factory=Evidence)


class OutcomeTable:
    """The evidence of all models in all clusters. `half_life` in seconds; infinite: nothing fades.

    Bounded: clusters x `MOST_MODELS` cells. A model above that number is not counted.
    """

    def __init__(
        self, clusters: Clusters, half_life: float = math.inf, rows: dict[str, ModelEvidence] | None = None
    ) -> None:
        self.clusters = clusters
        self.half_life = half_life
        self.rows: dict[str, ModelEvidence] = rows or {}

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were seen, in the order of their names."""
        return tuple(sorted(self.rows))

    def add(self, outcome: Outcome) -> bool:
        """Count an outcome in its clusters; False where the table has no room for another model."""
        if outcome.model not in self.rows and len(self.rows) >= MOST_MODELS:
            return False
        row = self.rows.setdefault(outcome.model, ModelEvidence())
        for share in outcome.shares:
            coarse = self.clusters.parents[share.cluster]
            row.fine.setdefault(share.cluster, Evidence()).add(share.share, outcome, self.half_life)
            row.coarse.setdefault(coarse, Evidence()).add(share.share, outcome, self.half_life)
        row.whole.add(1.0, outcome, self.half_life)
        return True

    def overall(self, model: str, at: float = 0.0) -> Estimate:
        """Return the estimate for a model on any request."""
        whole = self.rows.get(model, ModelEvidence()).whole.faded(at, self.half_life)
        return Estimate(
            alpha=whole.successes + _FIRST_PRIOR / 2,
            beta=whole.count - whole.successes + _FIRST_PRIOR / 2,
            cost=whole.cost / whole.priced if whole.priced else None,
        )

    def estimate(self, model: str, shares: Sequence[Share], at: float = 0.0) -> Estimate:
        """Return the estimate for a model on a request with these shares, at a time in seconds."""
        row, whole = self.rows.get(model, ModelEvidence()), self.overall(model, at)
        overall, mean_cost = whole.success, whole.cost
        mean = count = cost = 0.0
        for share in shares:
            own = self._faded(row.fine, share.cluster, at)
            coarse = self._faded(row.coarse, self.clusters.parents[share.cluster], at)
            wider = (coarse.successes + PRIOR_OUTCOMES * overall) / (coarse.count + PRIOR_OUTCOMES)
            mean += share.share * (own.successes + PRIOR_OUTCOMES * wider) / (own.count + PRIOR_OUTCOMES)
            count += share.share * (own.count + min(PRIOR_OUTCOMES, coarse.count) + _FIRST_PRIOR)
            if mean_cost is not None:
                cost += share.share * (own.cost + PRIOR_OUTCOMES * mean_cost) / (own.priced + PRIOR_OUTCOMES)
        return Estimate(alpha=mean * count, beta=(1 - mean) * count, cost=None if mean_cost is None else cost)

    def estimates(self, models: Iterable[str], shares: Sequence[Share], at: float = 0.0) -> Mapping[str, Estimate]:
        """Return the estimate for each of these models."""
        return {model: self.estimate(model, shares, at) for model in models}

    def _faded(self, level: Mapping[int, Evidence], cluster: int, at: float) -> Evidence:
        evidence = level.get(cluster)
        return Evidence() if evidence is None else evidence.faded(at, self.half_life)


def _fading(seconds: float, half_life: float) -> float:
    return 0.5 ** (seconds / half_life) if seconds > 0 else 1.0
