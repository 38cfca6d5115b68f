"""How many tokens a prompt has, said before its provider has counted them: some dialects name the number where a stream begins."""

from __future__ import annotations

from bardo.engine.route import Target
from bardo.engine.token_counting import estimate_request
from bardo.values.request import Request

_MOST_MODELS = 512
_LATEST = 0.25
"""The share of the latest count in a model's correction."""


class PromptEstimates:
    """Estimates from the text, corrected for each model by what its provider counted for earlier prompts."""

    def __init__(self) -> None:
        self._corrections: dict[tuple[str, str], float] = {}

    def estimate(self, request: Request, target: Target) -> int:
        """Return about how many tokens the prompt has for a target."""
        return round(estimate_request(request) * self._corrections.get(_key(target), 1.0))

    def learn(self, estimate: int, counted: int, target: Target) -> None:
        """Take what was counted for a prompt that was estimated. The oldest model's correction goes where there are too many."""
        if not estimate or not counted:
            return
        key = _key(target)
        before = self._corrections.pop(key, None)
        found = counted / estimate * (1.0 if before is None else before)
        self._corrections[key] = found if before is None else before + _LATEST * (found - before)
        if len(self._corrections) > _MOST_MODELS:
            del self._corrections[next(iter(self._corrections))]


def _key(target: Target) -> tuple[str, str]:
    return target.provider.id, target.model
