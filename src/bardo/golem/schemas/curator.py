"""What the curator of the memory answers with (002, CuratorEvaluation)."""

from __future__ import annotations

from typing import Annotated

from bardo.golem.schemas.base import Answer, Count, Unit, Unsaid, Words

RELATIONSHIPS = ("supports", "contradicts", "extends")


class CrossRef(Answer, frozen=True, kw_only=True):
    """How one entry stands to another."""

    source_id: Unsaid
    target_id: Unsaid
    relationship: Annotated[str, Words(RELATIONSHIPS, "supports")]


class Promotion(Answer, frozen=True, kw_only=True):
    """An entry that is now believed more. Both confidences are 0 to 1."""

    entry_id: Unsaid
    from_confidence: Unit
    to_confidence: Unit
    reason: Unsaid


class CuratorEvaluation(Answer, frozen=True, kw_only=True):
    """What one round of tidying did. `grimoire_health` is 0 to 1."""

    entries_evaluated: Count
    entries_retained: Count
    entries_pruned: Count
    cross_references: list[CrossRef]
    promotions: list[Promotion]
    grimoire_health: Unit
