"""`[budgets]`: how calls are counted against the limits and budgets of keys, and where."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from bardo.edge.settings_problems import Place
from bardo.edge.settings_stores import REDIS
from bardo.values.errors import ConfigError


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How calls are counted against the limits and budgets of keys, and where.

    `store` is the address of Redis or Valkey where all gateways count what they lease of limits and budgets; empty is the database of
    `[state]`, where the keys are. `store_env` names the variable that holds it, for an address with a password.
    `unknown_cost`: a call whose cost nobody knows at its end counts as its estimate, or as nothing, or keys with a budget may not ask
    models without a price at all. `assumed_output_tokens`: how long an answer is taken to be that has no bound in its request.
    """

    store: str = ""
    store_env: str = ""
    unknown_cost: Literal["estimate", "nothing", "refuse"] = "estimate"
    assumed_output_tokens: Annotated[int, msgspec.Meta(ge=0)] = 1000


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
