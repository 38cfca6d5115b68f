"""L1: targets that cannot take a request are not asked: its prompt is longer than their window, calls to them fail, or a cap forbids them.

Lengths are estimates, and a target is passed over by its window only where the estimate says so with the operator's margin. Where the
prompt fits and the longest answer does not, the target is asked if no other is left: many servers shorten the answer then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bardo.catalog.layer_rows import CapRow
from bardo.catalog.matching import matches_any
from bardo.context.layer import LayerFacts, LayerSteps, Passed, Receipt, TargetFacts
from bardo.values.context_overflow import Overflow
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, ContextOverflow, Forbidden
from bardo.values.request import Request

NAME = "prefilter"
MARGIN = 0.15
"""The share of an estimate by which it may be wrong, chosen and not measured: a wrong refusal is worse than one by the provider."""
_MOST_NAMED = 5
_PER_DOLLAR = 1_000_000_000


class _Refusal(NamedTuple):
    """Why a target is passed over, and the error where it is the last. Without an error it is asked all the same if no other is left."""

    why: str
    error: BardoError | None = None


class Prefilter:
    """The layer. `margin` is the share of an estimate by which it may be wrong; `caps` are what the operator forbids."""

    name = NAME

    def __init__(self, *, margin: float = MARGIN, caps: Sequence[CapRow] = ()) -> None:
        self._margin = margin
        self._caps = tuple(caps)

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Pass the request on to the targets that can take it. Raises ContextOverflow and Forbidden where none can."""
        yield from ()
        tokens = facts.count_tokens(request, None)
        caps = [cap for cap in self._caps if _concerns(cap, request, facts)] if self._caps else ()
        refused: dict[int, _Refusal] = {}
        for place, target in enumerate(facts.targets):
            refusal = self._refusal(request, target, facts, caps)
            if refusal is not None:
                refused[place] = refusal
        saw = {"tokens": tokens, "targets": len(facts.targets)}
        if not refused:
            return Passed(request=request, receipt=Receipt(layer=NAME, saw=saw))
        usable = [place for place in range(len(facts.targets)) if place not in refused]
        if not usable:
            usable = [place for place, refusal in refused.items() if refusal.error is None]
        if not usable:
            raise _refusal_error(refused)
        order = tuple(usable)
        passed_over = {place: refusal for place, refusal in refused.items() if place not in order}
        if not passed_over:
            return Passed(request=request, receipt=Receipt(layer=NAME, saw=saw))
        names = [_name(facts.targets[place]) for place in passed_over]
        return Passed(
            request=request,
            receipt=Receipt(layer=NAME, did=f"passed over {_listed(names)}", saw=saw),
            degraded=tuple(
                Degradation("model", asked=name, why=refusal.why)
                for name, refusal in zip(names, passed_over.values(), strict=True)
            ),
            order=order,
        )

    def _refusal(
        self, request: Request, target: TargetFacts, facts: LayerFacts, caps: Sequence[CapRow]
    ) -> _Refusal | None:
        """Return why a target cannot take a request, or None if it can."""
        for cap in caps:
            if (refusal := self._capped(cap, request, target, facts)) is not None:
                return refusal
        if target.window is not None:
            tokens = facts.count_tokens(request, target)
            least, answer = self._least(tokens), request.max_output_tokens or 0
            if least > target.window:
                why = f"the prompt has about {tokens} tokens, and it takes {target.window}"
                return _Refusal(why, _overflow(tokens, target.window, target))
            if least + answer > target.window:
                why = f"about {tokens} tokens and an answer of {answer} are more than the {target.window} that it takes"
                return _Refusal(why)
        most, asked = target.max_output_tokens, request.max_output_tokens
        if most is not None and asked is not None and asked > most:
            return _Refusal(f"its longest answer has {most} tokens, and {asked} are asked for")
        return _Refusal("calls to it fail now") if target.down else None

    def _capped(self, cap: CapRow, request: Request, target: TargetFacts, facts: LayerFacts) -> _Refusal | None:
        """Return why a cap forbids a target, or None if it does not."""
        reason = f" ({cap.why})" if cap.why else ""
        if cap.models and not matches_any(target.model, cap.models):
            why = f"a cap allows only {', '.join(cap.models)}{reason}"
            return _Refusal(why, Forbidden(f"no model may be asked: {why}"))
        price, most = target.input_nanos, cap.most_usd_per_million
        if most is not None and price is not None and price > most * _PER_DOLLAR:
            why = f"a cap allows {most:g} dollars for a million tokens of a prompt{reason}"
            return _Refusal(why, Forbidden(f"no model may be asked: {why}"))
        if cap.most_prompt_tokens is not None:
            tokens = facts.count_tokens(request, target)
            if self._least(tokens) > cap.most_prompt_tokens:
                why = f"the prompt has about {tokens} tokens, and a cap allows {cap.most_prompt_tokens}{reason}"
                return _Refusal(why, _overflow(tokens, cap.most_prompt_tokens, target))
        return None

    def _least(self, tokens: int) -> int:
        """Return how many tokens a prompt has at least, by its estimate."""
        return int(tokens * (1 - self._margin))


def _concerns(cap: CapRow, request: Request, facts: LayerFacts) -> bool:
    """Whether a cap is about this call."""
    vitality = request.options.vitality
    if cap.vitality_below is not None and (vitality is None or vitality >= cap.vitality_below):
        return False
    return not cap.workloads or matches_any(facts.workload, cap.workloads)


def _overflow(tokens: int, limit: int, target: TargetFacts) -> ContextOverflow:
    message = f"the prompt has about {tokens} tokens, and {_name(target)} takes {limit}"
    return ContextOverflow(
        message, hint="shorten the prompt, or ask a model with a longer context", overflow=Overflow(tokens, limit)
    )


def _refusal_error(refused: dict[int, _Refusal]) -> BardoError:
    """Return the error of a call that no target can take: that of the largest window where all are too small."""
    errors = [refusal.error for refusal in refused.values() if refusal.error is not None]
    windows = [error for error in errors if isinstance(error, ContextOverflow)]
    return max(windows, key=lambda error: error.overflow.limit) if len(windows) == len(errors) else errors[0]


def _name(target: TargetFacts) -> str:
    return f"{target.provider}/{target.model}"


def _listed(names: Sequence[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = len(shown) - _MOST_NAMED
    return ", ".join(shown[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
