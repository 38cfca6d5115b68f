"""Choose a model by Thompson sampling inside a regret budget, so that every choice can be made again from what was recorded of it.

The worth of a model on a request is its success less its price: cost in units of the dearest candidate's, times `price_weight`. A sample of
each posterior decides, as long as what exploring is expected to lose stays inside the budget; else the best mean decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from random import Random

import msgspec

from bardo.routing.learned.outcomes import Estimate

_LEAST = 1e-6


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What exploring may lose: `per_choice` of worth for each choice made so far, of which `spent` is gone."""

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
    """
    if not estimates:
        raise ValueError("no candidate to choose from")
    prices, worth = prices_of(estimates), worth_of(estimates, price_weight)
    best, random = best_of(worth), Random(seed)
    sampled = {
        name: random.betavariate(max(one.alpha, _LEAST), max(one.beta, _LEAST)) - price_weight * prices[name]
        for name, one in sorted(estimates.items())
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
    return {name: one.success - price_weight * prices[name] for name, one in estimates.items()}


def prices_of(estimates: Mapping[str, Estimate]) -> dict[str, float]:
    """Return each cost in units of the dearest; a cost that is not known counts as the dearest, so that it is not taken for a gift."""
    dearest = max((one.cost for one in estimates.values() if one.cost is not None), default=0.0)
    if dearest <= 0:
        return dict.fromkeys(estimates, 0.0)
    return {name: 1.0 if one.cost is None else one.cost / dearest for name, one in estimates.items()}


def best_of(worth: Mapping[str, float]) -> str:
    """Return the candidate with the highest worth, of equals the first by name. Raises ValueError without one."""
    return min(worth, key=lambda name: (-worth[name], name))
