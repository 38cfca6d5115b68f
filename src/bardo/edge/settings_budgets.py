"""`[budgets]`: how calls are counted against the budgets of keys where something about their cost is not known."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How calls are counted against the budgets of keys where something about their cost is not known.

    `unknown_cost`: a call whose cost nobody knows at its end counts as its estimate, or as nothing, or keys with a budget may not ask
    models without a price at all. `assumed_output_tokens`: how long an answer is taken to be that has no bound in its request.
    """

    unknown_cost: Literal["estimate", "nothing", "refuse"] = "estimate"
    assumed_output_tokens: Annotated[int, msgspec.Meta(ge=0)] = 1000
