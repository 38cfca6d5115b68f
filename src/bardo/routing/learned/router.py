"""Learned routing: choose among the candidates of a call, and learn from what comes of it.

State is kept by route (the name of a workload, or `default`): its regret budget, and what it reached beside the best single model. A route
where routing is shown to cost more than it brings asks the best single model from then on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from bardo.routing.learned.choosing import Budget, Choice, best_of, choose, seed_of, worth_of
from bardo.routing.learned.clusters import Clusters, Embedding, Share, shipped_clusters
from bardo.routing.learned.comparison import Comparison, Sums, compare, in_comparison
from bardo.routing.learned.outcomes import Estimate, ModelEvidence, Outcome, OutcomeTable

Group = Literal["routed", "single"]
MOST_ROUTES = 256
OTHER_ROUTES = "default"
# The whole price of the dearest candidate is worth this much success to a call with a cost sensitivity of 1.
PRICE_WEIGHT = 0.2


class RouteState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one route. `off`: it asks the best single model."""

    budget: Budget = Budget()
    routed: Sums = Sums()
    single: Sums = Sums()
    off: bool = False

    def comparison(self) -> Comparison:
        """Return whether routing pays here."""
        return compare(self.routed, self.single)


class LearnedState(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept between runs. Bounded by the numbers of clusters, models and routes."""

    clusters: Clusters
    rows: dict[str, ModelEvidence] = {}
    routes: dict[str, RouteState] = {}
    version: Literal[1] = 1


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A choice whose outcome is not known yet."""

    route: str
    shares: tuple[Share, ...]
    choice: Choice
    group: Group


class Learned(NamedTuple):
    """What came of a choice, as `LearnedRouter.learn` counts it; feedback that came after the outcome where it `is_feedback`."""

    pending: Pending
    success: float
    cost: float | None
    at: float
    is_feedback: bool = False


class LearnedRouter:
    """The table and the routes of one program. `half_life` in seconds; `comparison_share` is the share that asks the best single model."""

    def __init__(
        self,
        embedding: Embedding,
        state: LearnedState | None = None,
        *,
        half_life: float = math.inf,
        regret: float = Budget().per_choice,
        comparison_share: float = 0.1,
    ) -> None:
        kept = state or LearnedState(clusters=shipped_clusters())
        self.embedding = embedding
        self._half_life = half_life
        self._table = OutcomeTable(kept.clusters, half_life, kept.rows)
        self._routes = dict(kept.routes)
        self._regret = regret
        self._comparison_share = comparison_share

    @property
    def state(self) -> LearnedState:
        """What is to be kept."""
        return LearnedState(clusters=self._table.clusters, rows=self._table.rows, routes=self._routes)

    @property
    def slow(self) -> bool:
        """Whether `shares` takes a millisecond or more."""
        return self.embedding.slow

    def shares(self, prompt: str) -> tuple[Share, ...]:
        """Return the clusters that a prompt belongs to."""
        return self._table.clusters.shares(prompt, self.embedding)

    def choose(
        self,
        prompt: str,
        costs: Mapping[str, float | None],
        *,
        request_id: str,
        at: float,
        route: str = OTHER_ROUTES,
        cost_sensitivity: float = 0.5,
        shares: tuple[Share, ...] | None = None,
    ) -> Pending:
        """Return the choice among the models that `costs` names, with what a call costs there in USD where a price is known.

        `at` is Unix time; `shares` are those of the prompt where they are known already. Raises ValueError without a candidate.
        """
        name = route if route in self._routes or len(self._routes) < MOST_ROUTES else OTHER_ROUTES
        kept = self._routes.get(name, RouteState())
        shares = shares or self.shares(prompt)
        estimates = {
            model: _priced(estimate, costs[model])
            for model, estimate in self._table.estimates(costs, shares, at).items()
        }
        budget = msgspec.structs.replace(kept.budget, per_choice=self._regret)
        weight = PRICE_WEIGHT * cost_sensitivity
        choice = choose(estimates, seed=seed_of(request_id), price_weight=weight, budget=budget)
        if kept.off or in_comparison(request_id, self._comparison_share):
            choice = msgspec.structs.replace(choice, single=self._best_single(costs, weight, at))
            return Pending(route=name, shares=shares, choice=choice, group="single")
        return Pending(route=name, shares=shares, choice=choice, group="routed")

    def learn(self, pending: Pending, *, success: float, cost: float | None, at: float) -> None:
        """Count what came of a choice: `success` from 0 to 1, `cost` in USD or None where it is not known, `at` in Unix time."""
        choice = pending.choice
        self._table.add(Outcome(shares=pending.shares, model=choice.asked, success=success, cost=cost, at=at))
        kept = self._routes.get(pending.route, RouteState())
        price = choice.prices[choice.asked]
        sums = (kept.routed if pending.group == "routed" else kept.single).after(
            success - choice.price_weight * price, success, cost or 0.0
        )
        kept = msgspec.structs.replace(kept, **{pending.group: sums})
        if pending.group == "routed":
            kept = msgspec.structs.replace(kept, budget=kept.budget.after(choice.regret))
        off = kept.off or kept.comparison().verdict == "costs"
        self._routes[pending.route] = msgspec.structs.replace(kept, off=off)

    def take(self, learned: Learned) -> None:
        """Count what came of a choice."""
        if learned.is_feedback:
            self.correct(learned.pending, by=learned.success, at=learned.at)
        else:
            self.learn(learned.pending, success=learned.success, cost=learned.cost, at=learned.at)

    def after(self, state: LearnedState, learned: Sequence[Learned]) -> LearnedState:
        """Return a state with what was learned added to it as this router adds it. The state that is given is changed."""
        other = LearnedRouter(self.embedding, state, half_life=self._half_life)
        for one in learned:
            other.take(one)
        return other.state

    def learn_again(self, state: LearnedState, learned: Sequence[Learned]) -> None:
        """Go on from a state in the place of this router's own, with what was learned that is not in it."""
        state = self.after(state, learned)
        self._table = OutcomeTable(state.clusters, self._half_life, state.rows)
        self._routes = dict(state.routes)

    def correct(self, pending: Pending, *, by: float, at: float) -> None:
        """Count feedback that came after the outcome: 1 a success, 0 a failure, as one more outcome of the same choice."""
        self._table.add(Outcome(shares=pending.shares, model=pending.choice.asked, success=by, at=at))

    def _best_single(self, costs: Mapping[str, float | None], weight: float, at: float) -> str:
        whole = {model: _priced(self._table.overall(model, at), cost) for model, cost in costs.items()}
        return best_of(worth_of(whole, weight))


def _priced(estimate: Estimate, cost: float | None) -> Estimate:
    return estimate if cost is None else msgspec.structs.replace(estimate, cost=cost)
