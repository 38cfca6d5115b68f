"""Which ways of asking for an answer in a schema were refused, by provider and model, as long as the process lives."""

from __future__ import annotations

from bardo.engine.route import Target
from bardo.structured.modes import Form

_KEPT = 4096


class LearnedForms:
    """A small memory. It forgets the oldest where there are too many."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], frozenset[Form]] = {}

    def refused(self, target: Target) -> frozenset[Form]:
        """Return the forms a target was seen to refuse."""
        return self._refused.get((target.provider.id, target.model), frozenset())

    def learn(self, target: Target, form: Form) -> None:
        """Keep that a target refused a form."""
        key = (target.provider.id, target.model)
        self._refused[key] = self._refused.pop(key, frozenset()) | {form}
        if len(self._refused) > _KEPT:
            del self._refused[next(iter(self._refused))]
