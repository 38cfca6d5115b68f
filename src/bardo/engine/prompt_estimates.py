"""How many tokens a prompt has, said before its provider has counted them: from the text, corrected for each model by earlier counts.

Counts of one caller's prompts correct the estimates of that caller alone: a prompt can be made so that its count is like no other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from bardo.engine.route import Target
from bardo.engine.token_counting import estimate_request
from bardo.values.request import Request

_MOST_KEPT = 4096
_LATEST = 0.25
"""The share of the latest count in a model's correction."""
_ENOUGH_TOKENS = 1_000
"""The difference in a shorter prompt counts as that of one of so many tokens: it is mostly what a provider adds to each prompt, such as
the template of a chat, and says nothing of a long one."""
_LEAST, _MOST = 0.2, 5.0
"""What a correction may be. A count outside is no count of this prompt: a provider that adds its own, or counts none of what was cached."""
CountExactly = Callable[[Request], int | None]


class ExactCounters(Protocol):
    """Tokenizers that an operator has: returns what counts for a model, None where none does."""

    def __call__(self, model: str) -> CountExactly | None: ...


class PromptEstimates:
    """Estimates from the text, corrected for each caller and model by what its provider counted for earlier prompts.

    `exact` finds tokenizers, whose counts go before estimates; None where the operator has none.
    """

    def __init__(self) -> None:
        self._corrections: dict[tuple[str, str, str], float] = {}
        self.exact_counters: ExactCounters | None = None
        self.learned = 0
        """How many counts were taken."""

    def estimate(self, request: Request, target: Target, tenant: str = "") -> int:
        """Return about how many tokens a tenant's prompt has for a target."""
        exact = self.exact(request, target.model)
        if exact is not None:
            return exact
        return self.corrected(self.measure(request), target.provider.id, target.model, tenant)

    def measure(self, request: Request) -> int:
        """Return about how many tokens the prompt has, for no model in particular."""
        return estimate_request(request)

    def exact(self, request: Request, model: str) -> int | None:
        """Return how many tokens the prompt has by the operator's own tokenizer of a model; None where there is none."""
        if self.exact_counters is None:
            return None
        count = self.exact_counters(model)
        return None if count is None else count(request)

    def corrected(self, measured: int, provider: str, model: str, tenant: str = "") -> int:
        """Return what a model is likely to count for a tenant's prompt that was measured."""
        return round(measured * self._corrections.get((tenant, provider, model), 1.0))

    def learn(self, estimate: int, counted: int, target: Target, tenant: str = "") -> None:
        """Take what was counted for a tenant's prompt that was estimated for a target."""
        before = self._corrections.get((tenant, target.provider.id, target.model), 1.0)
        self.learn_measured(round(estimate / before), counted, target.provider.id, target.model, tenant)

    def learn_measured(self, measured: int, counted: int, provider: str, model: str, tenant: str = "") -> None:
        """Take what was counted for a prompt that was measured. The model that was longest not counted goes where there are too many."""
        if measured <= 0 or counted <= 0:
            return
        self.learned += 1
        factor = 1 + (counted - measured) / max(measured, _ENOUGH_TOKENS)
        found = min(max(factor, _LEAST), _MOST)
        key = tenant, provider, model
        before = self._corrections.pop(key, None)
        self._corrections[key] = found if before is None else before + _LATEST * (found - before)
        if len(self._corrections) > _MOST_KEPT:
            del self._corrections[next(iter(self._corrections))]

    def corrections(self) -> list[tuple[str, str, str, float]]:
        """Return each correction: its tenant, its provider, its model and the factor."""
        return [(*key, round(factor, 4)) for key, factor in self._corrections.items()]

    def restore(self, corrections: Iterable[tuple[str, str, str, float]]) -> None:
        """Take corrections of an earlier run, for models of which nothing is known yet."""
        for *key, factor in corrections:
            if len(self._corrections) < _MOST_KEPT and _LEAST <= factor <= _MOST:
                self._corrections.setdefault((key[0], key[1], key[2]), factor)
