"""Learned routing: choose among the candidates of a call, learn from the outcome, and measure whether that pays.

State is kept by route (the name of a workload, or `default`): its regret budget, and its result beside the best single model. A route where
routing is shown to cost more than it brings asks the best single model from then on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal, NamedTuple

import msgspec

from bardo.routing.learned.clusters import Clusters, Embedding, Share, shipped_clusters
from bardo.routing.learned.outcomes import Estimate, ModelEvidence, Outcome, OutcomeTable

_LEAST = 1e-6


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of exploring: `per_choice` of worth for each choice made so far, of which `spent` is gone."""

    per_choice: float = 0.02
    choices: int = 0
    spent: float = 0.0

    def allows(self, regret: float) -> bool:
        """Say whether one more choice with this expected loss stays inside the budget."""
        return self.spent + regret <= self.per_choice * (self.choices + 1)

    def after(self, regret: float) -> Budget:
        """Return the budget after one choice."""
        return msgspec.structs.replace(self, choices=self.choices + 1, spent=self.spent + regret)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A choice and all that it depends on, as the log keeps it.

    `worth` is the expected worth of each candidate; `regret` what the choice is expected to lose beside the best of them; `explored` says
    that a sample and not the best mean decided for another model than the best. `single`: the model that is asked instead, where the
    request belongs to the share that asks the best single model.
    """

    model: str
    seed: int
    price_weight: float
    estimates: dict[str, Estimate]
    budget: Budget
    regret: float
    explored: bool
    single: str | None = None

    @property
    def asked(self) -> str:
        """The model that is asked first."""
        return self.model if self.single is None else self.single

    @property
    def prices(self) -> dict[str, float]:
        """The cost of each candidate in units of the dearest."""
        return prices_of(self.estimates)

    @property
    def order(self) -> tuple[str, ...]:
        """The model that is asked, then the others from the best expected worth down: whom to ask where the first fails."""
        worth, asked = worth_of(self.estimates, self.price_weight), self.asked
        return (asked, *sorted((name for name in worth if name != asked), key=lambda name: (-worth[name], name)))


def seed_of(request_id: str) -> int:
    """Return the seed of a request's choice."""
    return int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:6], "big")


def choose(estimates: Mapping[str, Estimate], *, seed: int, price_weight: float, budget: Budget) -> Choice:
    """Return the choice among these candidates; the same arguments give the same choice.

    `price_weight` from 0 up: how much success the price of the dearest candidate is worth. Raises ValueError without a candidate.

    It is Thompson sampling inside a regret budget. The worth of a model on a request is its success less its price: cost in units of the
    dearest candidate's, times `price_weight`. A sample of each posterior decides, as long as the expected loss of exploring stays inside
    the budget; else the best mean decides.
    """
    if not estimates:
        raise ValueError("no candidate to choose from")
    prices, worth = prices_of(estimates), worth_of(estimates, price_weight)
    best, random = best_of(worth), Random(seed)
    sampled = {
        name: random.betavariate(max(estimate.alpha, _LEAST), max(estimate.beta, _LEAST)) - price_weight * prices[name]
        for name, estimate in sorted(estimates.items())
    }
    drawn = best_of(sampled)
    model = drawn if budget.allows(worth[best] - worth[drawn]) else best
    return Choice(
        model=model,
        seed=seed,
        price_weight=price_weight,
        estimates=dict(estimates),
        budget=budget,
        regret=worth[best] - worth[model],
        explored=model != best,
    )


def repeat(choice: Choice) -> str:
    """Return the model that is asked when a recorded choice is made again."""
    again = choose(choice.estimates, seed=choice.seed, price_weight=choice.price_weight, budget=choice.budget)
    return again.model if choice.single is None else choice.single


def worth_of(estimates: Mapping[str, Estimate], price_weight: float) -> dict[str, float]:
    """Return the expected worth of each candidate."""
    prices = prices_of(estimates)
    return {name: estimate.success - price_weight * prices[name] for name, estimate in estimates.items()}


def prices_of(estimates: Mapping[str, Estimate]) -> dict[str, float]:
    """Return each cost in units of the dearest; a cost that is not known counts as the dearest, so that it is not taken for a gift."""
    dearest = max((estimate.cost for estimate in estimates.values() if estimate.cost is not None), default=0.0)
    if dearest <= 0:
        return dict.fromkeys(estimates, 0.0)
    return {name: 1.0 if estimate.cost is None else estimate.cost / dearest for name, estimate in estimates.items()}


def best_of(worth: Mapping[str, float]) -> str:
    """Return the candidate with the highest worth, of equals the first by name. Raises ValueError without one."""
    return min(worth, key=lambda name: (-worth[name], name))


Verdict = Literal["pays", "costs", "unproven"]
# 95 % of a normal distribution; both groups must be large enough for it.
_Z = 1.96
LEAST_OF_EACH = 30


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """One group's outcomes: how many, their worth and its square, their success, their cost in US dollars."""

    count: int = 0
    worth: float = 0.0
    squares: float = 0.0
    successes: float = 0.0
    cost: float = 0.0

    def after(self, worth: float, success: float, cost: float) -> Sums:
        """Return the sums with one more outcome."""
        return Sums(
            count=self.count + 1,
            worth=self.worth + worth,
            squares=self.squares + worth * worth,
            successes=self.successes + success,
            cost=self.cost + cost,
        )

    @property
    def mean(self) -> float:
        """The mean worth; 0 for no outcome."""
        return self.worth / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The variance of the mean."""
        if self.count < 2:
            return math.inf
        return (max(0.0, self.squares - self.worth * self.worth / self.count) / (self.count - 1)) / self.count


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Routed requests beside those of the best single model. `gain` is in worth, with its 95 % interval; None: too few outcomes."""

    routed: Sums
    single: Sums
    verdict: Verdict
    gain: float | None = None
    low: float | None = None
    high: float | None = None


def compare(routed: Sums, single: Sums) -> Comparison:
    """Return what the two groups say.

    A stated share of a route's requests, drawn by their ids, goes to the best single model whatever the table expects. Both groups then
    meet the same kind of requests, and the difference of their mean worth (success less price, as choices weigh it) has a plain interval.
    """
    if min(routed.count, single.count) < LEAST_OF_EACH:
        return Comparison(routed=routed, single=single, verdict="unproven")
    gain = routed.mean - single.mean
    half = _Z * math.sqrt(routed.variance + single.variance)
    verdict: Verdict = "pays" if gain - half > 0 else "costs" if gain + half < 0 else "unproven"
    return Comparison(routed=routed, single=single, verdict=verdict, gain=gain, low=gain - half, high=gain + half)


def in_comparison(request_id: str, share: float) -> bool:
    """Say whether a request belongs to the share that goes to the best single model."""
    return seed_of(f"comparison {request_id}") % 10_000 < share * 10_000


Group = Literal["routed", "single"]
MOST_ROUTES = 256
OTHER_ROUTES = "default"
# The whole price of the dearest candidate is worth this much success to a call with a cost sensitivity of 1.
PRICE_WEIGHT = 0.2


class RouteState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one route. `off`: it asks the best single model."""

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
    """The outcome of a choice, as `LearnedRouter.learn` counts it; feedback that came after the outcome where it `is_feedback`."""

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
        memory = state or LearnedState(clusters=shipped_clusters())
        self.embedding = embedding
        self._half_life = half_life
        self._table = OutcomeTable(memory.clusters, half_life, memory.rows)
        self._routes = dict(memory.routes)
        self._regret = regret
        self._comparison_share = comparison_share

    @property
    def state(self) -> LearnedState:
        """The state to store."""
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
        state = self._routes.get(name, RouteState())
        shares = shares or self.shares(prompt)
        estimates = {
            model: _priced(estimate, costs[model])
            for model, estimate in self._table.estimates(costs, shares, at).items()
        }
        budget = msgspec.structs.replace(state.budget, per_choice=self._regret)
        weight = PRICE_WEIGHT * cost_sensitivity
        choice = choose(estimates, seed=seed_of(request_id), price_weight=weight, budget=budget)
        if state.off or in_comparison(request_id, self._comparison_share):
            choice = msgspec.structs.replace(choice, single=self._best_single(costs, weight, at))
            return Pending(route=name, shares=shares, choice=choice, group="single")
        return Pending(route=name, shares=shares, choice=choice, group="routed")

    def learn(self, pending: Pending, *, success: float, cost: float | None, at: float) -> None:
        """Count what came of a choice: `success` from 0 to 1, `cost` in USD or None if it is not known, `at` in Unix time."""
        choice = pending.choice
        self._table.add(Outcome(shares=pending.shares, model=choice.asked, success=success, cost=cost, at=at))
        state = self._routes.get(pending.route, RouteState())
        price = choice.prices[choice.asked]
        sums = (state.routed if pending.group == "routed" else state.single).after(
            success - choice.price_weight * price, success, cost or 0.0
        )
        state = msgspec.structs.replace(state, **{pending.group: sums})
        if pending.group == "routed":
            state = msgspec.structs.replace(state, budget=state.budget.after(choice.regret))
        off = state.off or state.comparison().verdict == "costs"
        self._routes[pending.route] = msgspec.structs.replace(state, off=off)

    def take(self, learned: Learned) -> None:
        """Count what came of a choice."""
        if learned.is_feedback:
            self.correct(learned.pending, by=learned.success, at=learned.at)
        else:
            self.learn(learned.pending, success=learned.success, cost=learned.cost, at=learned.at)

    def after(self, state: LearnedState, learned: Sequence[Learned]) -> LearnedState:
        """Return a state with what was learned added to it as this router adds it. The state that is given is changed."""
        other = LearnedRouter(self.embedding, state, half_life=self._half_life)
        for outcome in learned:
            other.take(outcome)
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
