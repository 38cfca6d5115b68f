"""What the risk engine answers with (002, RiskAssessment). Out of free text nothing passes that was not said to pass."""

from __future__ import annotations

import sys
from typing import Annotated

from bardo.golem.schemas.base import Answer, Bounds, Unit, Unsaid


class LayerResult(Answer, frozen=True, kw_only=True):
    """What one layer of the defence found. `score` is 0 to 1."""

    passed: bool
    score: Unit
    detail: Unsaid


class RiskLayers(Answer, frozen=True, kw_only=True):
    """The five layers, in the order in which they are asked."""

    hard_shields: LayerResult
    position_sizing: LayerResult
    adaptive_guardrails: LayerResult
    observation: LayerResult
    defi_threats: LayerResult


class RiskAssessment(Answer, frozen=True, kw_only=True):
    """Whether a position may be taken, and how large: `adjusted_size_usd` is in US dollars and may be less than was asked for."""

    approved: bool
    adjusted_size_usd: Annotated[float, Bounds(0.0, sys.float_info.max)]
    layers: RiskLayers
    warnings: list[str]
    reasoning: str | None
