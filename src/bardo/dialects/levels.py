"""How many tokens a level of effort is worth where a dialect has only one of the two."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.values.request import EFFORTS, Effort

BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 32_768,
    "xhigh": 49_152,
    "max": 65_536,
}


PORTABLE: tuple[Effort, ...] = ("low", "medium", "high")
"""The levels every server that takes levels knows."""


def effort_of(budget: int, among: Sequence[Effort] = EFFORTS) -> Effort:
    """Return the level, of those `among` in rising order, whose budget is nearest; the higher of two that are as near."""
    return min(reversed(among), key=lambda effort: abs(BUDGETS[effort] - budget))
