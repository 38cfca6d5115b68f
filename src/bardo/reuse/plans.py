"""Plans of requests of one shape. Clients choose what stands in their requests, so the size may not grow with them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from bardo.reuse.memory import Memory, size_of

Plan = TypeVar("Plan")

Place = tuple[Hashable, ...]
"""Where a plan is kept: the id of a provider, the dialect of its endpoint, the shape of a request, or more than these."""
LONGEST_SHAPE = 4096
"""Bytes of a shape by which a plan is kept."""
_PLAN_BYTES = 4096
"""What a plan takes beside what it holds of the request: its control, how the reply's text is read, what was known."""


class PlanCache(Generic[Plan]):
    """The newest plans, by their place. One cache goes with one set of settings.

    What a plan was made from is kept with it, the provider's row and what is known of the target: it holds as long as they are the same.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: Memory[tuple[object, object, Plan]] = Memory()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, place: Place, row: object, facts: object) -> Plan | None:
        """Return the plan that was made from this row of the provider and these facts of the target; None where there is none."""
        kept = self._kept.find(place)
        return kept[2] if kept is not None and kept[0] is row and kept[1] is facts else None

    def keep(self, place: Place, row: object, facts: object, plan: Plan, *, holds: object = None) -> None:
        """Keep a plan, which `holds` this much of a request, and forget others where there is too much."""
        self._kept.keep(place, (row, facts, plan), size_of((place, holds)) + _PLAN_BYTES)
