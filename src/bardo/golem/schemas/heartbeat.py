"""What the heartbeat answers with (002, HeartbeatDecision)."""

from __future__ import annotations

from typing import Annotated

from bardo.golem.schemas.base import Answer, Confidence, Gist, Unit, Unsaid, Words

SEVERITIES = ("none", "low", "moderate", "high", "critical")
ACTIONS = ("observe", "analyze", "rebalance", "hedge", "exit", "escalate")


class Signal(Answer, frozen=True, kw_only=True):
    """One thing that drove a decision. `source` is price, volume, governance, liquidity or the like; `magnitude` is 0 to 1."""

    source: Unsaid
    description: Unsaid
    magnitude: Unit


class HeartbeatDecision(Answer, frozen=True, kw_only=True):
    """What a beat found and what to do about it. `confidence` is 0 to 1; `escalate` asks for the next tier."""

    severity: Annotated[str, Words(SEVERITIES, "none", listen=("critical", "high", "moderate", "low"))]
    action: Annotated[str, Words(ACTIONS, "observe", listen=("exit", "hedge", "rebalance", "escalate", "analyze"))]
    confidence: Confidence
    rationale: Gist
    signals: list[Signal]
    escalate: bool
