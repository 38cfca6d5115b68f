"""Names of the operator's own for models, with how much these shall think; and an effort written behind a model's name, `gpt-5:high`.

A name may be a glob with one `*`, and a `*` in its model stands for what that one matched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from bardo.values.errors import ConfigError
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy, Request

Amount = Effort | Literal["off"]
AMOUNTS: tuple[Amount, ...] = ("off", *EFFORTS)
_LONGEST_CHAIN = 16


class Alias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a name stands for. `effort` holds where the caller asks for none, `forced_effort` always, `max_effort` bounds what is asked."""

    model: str
    effort: Amount | None = None
    forced_effort: Amount | None = None
    max_effort: Amount | None = None


class Found(msgspec.Struct, frozen=True):
    """The model that a name stands for, and the aliases on the way to it, the client's own name first."""

    model: str
    steps: tuple[Alias, ...] = ()
    suffix: Amount | None = None


class Aliases:
    """The aliases of a configuration: exact names go before globs, and globs go in the order of the file."""

    def __init__(self, table: Mapping[str, Alias] | None = None) -> None:
        self._exact = {name: alias for name, alias in (table or {}).items() if "*" not in name}
        self._globs: list[tuple[str, str, Alias]] = []
        for name, alias in (table or {}).items():
            head, star, tail = name.partition("*")
            if star:
                self._globs.append((head, tail, alias))
        for name in table or ():
            self.find(name.replace("*", "x"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are no globs."""
        return tuple(self._exact)

    def find(self, model: str) -> Found:
        """Return what a name stands for. Raises ConfigError for aliases that lead to each other."""
        steps: list[Alias] = []
        seen = {model}
        suffix: Amount | None = None
        while True:
            step = self._step(model)
            if step is None:
                bare, _, behind = model.rpartition(":")
                if suffix is None and bare and behind in AMOUNTS:
                    model, suffix = bare, behind
                    seen.add(model)
                    continue
                return Found(model, tuple(steps), suffix)
            alias, further = step
            steps.append(alias)
            if further == model:
                return Found(model, tuple(steps), suffix)
            if further in seen or len(steps) > _LONGEST_CHAIN:
                raise ConfigError(f"the aliases of {model!r} refer to each other", hint="let one of them name a model")
            seen.add(further)
            model = further

    def _step(self, model: str) -> tuple[Alias, str] | None:
        alias = self._exact.get(model)
        if alias is not None:
            return alias, alias.model
        for head, tail, found in self._globs:
            if len(model) >= len(head) + len(tail) and model.startswith(head) and model.endswith(tail):
                return found, found.model.replace("*", model[len(head) : len(model) - len(tail)])
        return None


def with_effort(request: Request, found: Found) -> Request:
    """Return the request with the effort that its model's name says or its aliases set; a name says it for this one call."""
    asked = request.options.reasoning or request.reasoning
    amount = found.suffix or _amount(asked)
    for alias in found.steps:
        if amount is None and asked is None:
            amount = alias.effort
        if alias.max_effort is not None and (amount is not None or asked is not None):
            # A budget is not compared with an effort: the bound holds in its place.
            amount = alias.max_effort if amount is None else min(amount, alias.max_effort, key=AMOUNTS.index)
        amount = alias.forced_effort or amount
    if amount is None or amount == _amount(asked):
        return request
    policy = ReasoningPolicy(mode="off") if amount == "off" else ReasoningPolicy(mode="effort", effort=amount)
    if asked is not None:
        policy = msgspec.structs.replace(policy, visible=asked.visible)
    return msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, reasoning=policy))


def _amount(policy: ReasoningPolicy | None) -> Amount | None:
    """Return the effort that a policy names; None for a budget or one that leaves it to the model."""
    if policy is None or policy.mode not in ("off", "effort"):
        return None
    return "off" if policy.mode == "off" else policy.effort
