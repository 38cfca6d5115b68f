"""`[budgets]`: how calls are counted against the limits and budgets of keys, and where."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Annotated, Literal, cast

import msgspec

from bardo.edge.settings_problems import Place
from bardo.edge.settings_stores import REDIS
from bardo.values.errors import ConfigError

UnknownCost = Literal["refuse", "estimate", "allow"]
"""Whether a key with a budget may ask a model without a price, and what such a call counts as."""


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How calls are counted against the limits and budgets of keys, and where.

    `store` is the address of Redis or Valkey where all gateways count what they lease of limits and budgets; empty is the database of
    `[state]`, where the keys are. `store_env` names the variable that holds it, for an address with a password.
    `unknown_cost`: whether keys with a budget may ask models without a price. With `refuse` they may not; with `estimate` such a call
    counts as what it would cost at `assumed_usd_per_million_input` and `assumed_usd_per_million_output` tokens; with `allow` (or
    `nothing`, its older name) it counts as nothing. A key may have its own. `assumed_output_tokens`: how long an answer is taken to be that
    has no bound in its request, or of which nothing came before its client left or its provider failed.
    `overrun`: whether an answer that goes on when the budget of its key is spent is brought to its end (`finish`), or ended with what came
    of it (`cut`). `spread_percent` is what keys are charged above the provider's cost: their budgets and what they are told they spent
    hold it, and the log keeps the provider's cost alone. `search_usd_per_day` is what the searches that providers run may cost in a day
    (UTC) with each key, and together without one; None: any amount.
    """

    store: str = ""
    store_env: str = ""
    unknown_cost: Literal["refuse", "estimate", "allow", "nothing"] = "refuse"
    assumed_usd_per_million_input: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 5.0
    assumed_usd_per_million_output: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 25.0
    assumed_output_tokens: Annotated[int, msgspec.Meta(ge=0)] = 1000
    overrun: Literal["finish", "cut"] = "finish"
    search_usd_per_day: Annotated[float, msgspec.Meta(ge=0)] | None = None
    spread_percent: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0

    def charged(self, nanos: int) -> int:
        """Return what a key is charged for a provider's cost, in nano-dollars: a part of one is a whole one (003, "Configuration")."""
        if not self.spread_percent:
            return nanos
        return ceil(nanos * (100 + Fraction(repr(self.spread_percent))) / 100)

    def rule(self, own: str) -> UnknownCost:
        """Return what holds for calls of unknown cost of a key whose own word is `own`, empty where it has none."""
        said = own or self.unknown_cost
        return "allow" if said == "nothing" else cast("UnknownCost", said)

    def assumed_nanos(self, input_tokens: int, output_tokens: int) -> int:
        """Return what a call to a model without a price counts as, in nano-dollars."""
        by_input, by_output = self.assumed_usd_per_million_input, self.assumed_usd_per_million_output
        return round((input_tokens * by_input + output_tokens * by_output) * 1_000)


def check_budgets(budgets: BudgetSettings, place: Place) -> None:
    """Raise ConfigError for a store that limits are not counted in."""
    if budgets.store:
        check_limits_store(budgets.store, place)


def check_limits_store(store: str, place: Place) -> None:
    """Raise ConfigError for a place that is no address of Redis or Valkey."""
    if not store.startswith(REDIS):
        message = (
            f"{place.of('store')}: limits are counted in Redis or Valkey, or in the database of [state], and not there"
        )
        raise ConfigError(message, hint=f"write an address that begins with {', '.join(REDIS)}, or leave it empty")
