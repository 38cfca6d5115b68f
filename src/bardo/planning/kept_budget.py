"""Whether the gateway keeps the thinking budget of an attempt, and how the model is made to go on behind a thought that was cut.

A server must be able to go on with an answer that was begun; the catalog says which can, and by which fields (`continues`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.planning.text_formats import TextFormats
from bardo.reasoning.control import ControlPlan
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, ReasoningPolicy, Request
from bardo.values.wire import WireRequest

LOSS = "reasoning_budget"
"""The name of the degradation of a budget."""


class BudgetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a budget of `tokens` is kept: a cut thought stands between `start` and `end`, `words` are the last ones of it.

    `fields` have the server go on with the answer that the request's last message begins.
    """

    tokens: int
    start: str
    end: str
    words: str = ""
    fields: dict[str, Any] = {}

    def begun(self, thought: str) -> str:
        """Return the beginning of the answer: the thought as the model's template writes it, ended."""
        last = f"\n\n{self.words.strip()}" if self.words.strip() else ""
        return f"{self.start}\n{thought.strip()}{last}\n{self.end}\n\n"


def budget_to_keep(
    request: Request, plan: ControlPlan, row: ProviderRow, formats: TextFormats, words: str
) -> BudgetPlan | None:
    """Return how the gateway keeps the budget that a request asks for, or None if it asks for none, or the gateway cannot."""
    policy, form, fields = plan.policy, formats.reasoning, row.quirks.continues
    if policy is None or policy.mode != "budget" or not policy.budget or request.choices != 1:
        return None
    if plan.budget is not None or plan.thinks is False or form is None or fields is None:
        return None
    start, end = _first(form.start), _first(form.end)
    if not start or not end:
        return None
    return BudgetPlan(tokens=policy.budget, start=start, end=end, words=words, fields=fields)


def without_loss(degraded: Sequence[Degradation], kept: BudgetPlan) -> tuple[Degradation, ...]:
    """Return the losses where the gateway keeps the budget: all but the budget."""
    return tuple(lost for lost in degraded if lost.asked != kept.tokens)


def without_thinking(request: Request) -> Request:
    """Return a request whose model shall answer at once, as far as it can be told so."""
    options = msgspec.structs.replace(request.options, reasoning=None, on_impossible="floor", allow_loss=("*",))
    return msgspec.structs.replace(request, reasoning=ReasoningPolicy(mode="off"), options=options)


def with_fields(wire: WireRequest, fields: dict[str, Any]) -> WireRequest:
    """Return a request with these fields beside those that it has."""
    body = merge_fields(msgspec.json.decode(wire.body), fields)
    return msgspec.structs.replace(wire, body=msgspec.json.encode(body))


def continued_turn(text: str) -> Message:
    """Return the turn that the model goes on with."""
    return Message("assistant", (TextBlock(text),))


def _first(words: str | tuple[str, ...]) -> str:
    return words if isinstance(words, str) else words[0] if words else ""
