"""How layers have the tokens of one call's prompts estimated."""

from __future__ import annotations

from bardo.context.layer import TargetFacts
from bardo.planning.route import Target
from bardo.planning.token_counting import PromptEstimates
from bardo.values.request import Request


class PromptCounter:
    """Estimates the tokens of the prompts of one call of a tenant. The text is measured once for each request that layers make of it."""

    __slots__ = ("_count", "_estimates", "_request", "_tenant")

    def __init__(self, estimates: PromptEstimates, tenant: str = "") -> None:
        self._estimates = estimates
        self._tenant = tenant
        self._request: Request | None = None
        self._count = 0

    def count(self, request: Request, target: TargetFacts | None) -> int:
        """Return about how many tokens the prompt of a request has for a target, or for none in particular."""
        estimates = self._estimates
        if target is not None and estimates.exact_counters is not None:
            exact = estimates.exact(request, target.model)
            if exact is not None:
                return exact
        measured = self._count if request is self._request else self._measured(request)
        return (
            measured if target is None else estimates.corrected(measured, target.provider, target.model, self._tenant)
        )

    @property
    def asked(self) -> bool:
        """Whether a layer wanted to know the length of the call's prompt."""
        return self._request is not None

    def learn(self, request: Request, target: Target, counted: int) -> None:
        """Correct the estimates by the tokens that a target counted for the prompt of a request."""
        measured = self._measured(request)
        self._estimates.learn_measured(measured, counted, target.provider.id, target.model, self._tenant)

    def _measured(self, request: Request) -> int:
        if request is not self._request:
            self._request, self._count = request, self._estimates.measure(request)
        return self._count
