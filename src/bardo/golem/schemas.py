"""The typed answers of the documents' agent, and which subsystem gives which: those of its waking, and those of its dreams (002, 003).

Scores and confidences are numbers from 0 to 1 where nothing else is said.
"""

from __future__ import annotations

import sys
from typing import Annotated

from bardo.golem.answer import Answer
from bardo.golem.fields import Bounds, Choices, Confidence, Count, Signed, Stated, Summary, Text, Unit

VERDICTS = ("promote", "stage", "discard")
THREAT_SEVERITIES = ("low", "medium", "high", "critical")

# What is not judged is neither believed nor thrown away.
Verdict = Annotated[str, Choices(VERDICTS, "stage", priority=("discard", "promote", "stage"))]


class Lesson(Answer, frozen=True, kw_only=True):
    """What was learned, and where it applies. `confidence` is 0 to 1."""

    insight: Stated
    confidence: Confidence
    applicable_conditions: Stated


class Counterfactual(Answer, frozen=True, kw_only=True):
    """What could have been done instead. `plausibility` is 0 to 1."""

    alternative_action: Stated
    estimated_outcome: Stated
    plausibility: Unit


class ReplayAnalysis(Answer, frozen=True, kw_only=True):
    """An episode lived again. `surprise_score` is 0 to 1; `arousal_delta` is -1 to 1, below 0 where it calmed down."""

    episode_id: Stated
    lessons: list[Lesson]
    surprise_score: Unit
    counterfactuals: list[Counterfactual]
    arousal_delta: Signed


class FragmentEvaluation(Answer, frozen=True, kw_only=True):
    """What a fragment of the state before sleep is worth. The three scores are 0 to 1."""

    novelty: Unit
    relevance: Unit
    coherence: Unit
    verdict: Verdict


class IntegrationItem(Answer, frozen=True, kw_only=True):
    """One hypothesis and why it went where it went. `confidence` is 0 to 1."""

    hypothesis_id: Stated
    summary: Stated
    confidence: Confidence
    rationale: Stated


class DreamIntegration(Answer, frozen=True, kw_only=True):
    """Which hypotheses of a night are kept. `playbook_diff` is what changes in PLAYBOOK.md, null where nothing does."""

    promoted: list[IntegrationItem]
    staged: list[IntegrationItem]
    discarded: list[IntegrationItem]
    playbook_diff: str | None


class ThreatAssessment(Answer, frozen=True, kw_only=True):
    """A threat rehearsed. `likelihood` is 0 to 1."""

    threat_type: Stated
    severity: Annotated[str, Choices(THREAT_SEVERITIES, "low", priority=("critical", "high", "medium", "low"))]
    likelihood: Confidence
    impact_if_realized: Stated
    mitigation_actions: list[str]
    detection_signals: list[str]
    rehearsal_outcome: Summary


class CapturedFragment(Answer, frozen=True, kw_only=True):
    """One fragment caught while falling asleep, and what becomes of it. Both scores are 0 to 1."""

    fragment_id: Stated
    insight: Stated
    novelty: Unit
    relevance: Unit
    verdict: Verdict
    rationale: Stated


class CaptureResult(Answer, frozen=True, kw_only=True):
    """What a lucid capture brought (003 names it for `hypnagogic_capture` and leaves its fields open).

    `lucidity` is 0 to 1: how awake the observer was, so how far its verdicts can be trusted.
    """

    fragments: list[CapturedFragment]
    lucidity: Confidence
    summary: Summary


__all__ = [
    "SUBSYSTEM_ANSWERS",
    "Answer",
    "CaptureResult",
    "CapturedFragment",
    "Counterfactual",
    "CrossRef",
    "CuratorEvaluation",
    "DaimonAppraisal",
    "DeathTestament",
    "DreamIntegration",
    "FragmentEvaluation",
    "HeartbeatDecision",
    "IntegrationItem",
    "LayerResult",
    "Lesson",
    "Promotion",
    "ReplayAnalysis",
    "RiskAssessment",
    "RiskLayers",
    "Signal",
    "TestamentHeuristic",
    "TestamentMetric",
    "TestamentWarning",
    "ThreatAssessment",
]


# The curator of the memory (002, CuratorEvaluation)

RELATIONSHIPS = ("supports", "contradicts", "extends")


class CrossRef(Answer, frozen=True, kw_only=True):
    """How one entry stands to another."""

    source_id: Stated
    target_id: Stated
    relationship: Annotated[str, Choices(RELATIONSHIPS, "supports")]


class Promotion(Answer, frozen=True, kw_only=True):
    """An entry that is now believed more. Both confidences are 0 to 1."""

    entry_id: Stated
    from_confidence: Unit
    to_confidence: Unit
    reason: Stated


class CuratorEvaluation(Answer, frozen=True, kw_only=True):
    """What one round of tidying did. `grimoire_health` is 0 to 1."""

    entries_evaluated: Count
    entries_retained: Count
    entries_pruned: Count
    cross_references: list[CrossRef]
    promotions: list[Promotion]
    grimoire_health: Unit


# The daimon: a feeling on three axes (002, DaimonAppraisal)

EMOTIONS = ("joy", "trust", "fear", "surprise", "sadness", "disgust", "anger", "anticipation")


class DaimonAppraisal(Answer, frozen=True, kw_only=True):
    """How the agent feels about what happened. The three axes are -1 to 1; `memory_bias` says what to remember by it."""

    pleasure: Signed
    arousal: Signed
    dominance: Signed
    primary_emotion: Annotated[str, Choices(EMOTIONS, "anticipation")]
    secondary_emotion: str | None
    trigger: Annotated[str, Text(longest=100)]
    memory_bias: Annotated[str, Text(default="neutral")]


# The last thing an agent says (003, `death_testament`). The document names its sections and leaves their fields open.

WARNING_SEVERITIES = ("low", "medium", "high", "critical")


class TestamentMetric(Answer, frozen=True, kw_only=True):
    """One number of a life: `value` in `unit`, and what it says to those who come after."""

    name: Stated
    value: Annotated[float, Bounds(-sys.float_info.max, sys.float_info.max)]
    unit: Stated
    meaning: Stated


class TestamentHeuristic(Answer, frozen=True, kw_only=True):
    """A rule worth inheriting, with the evidence for it. `confidence` is 0 to 1."""

    rule: Stated
    applicable_conditions: Stated
    confidence: Confidence
    evidence: Stated


class TestamentWarning(Answer, frozen=True, kw_only=True):
    """What to beware of, and how to notice it in time."""

    warning: Stated
    severity: Annotated[str, Choices(WARNING_SEVERITIES, "medium", priority=("critical", "high", "medium", "low"))]
    detection_signals: list[str]


class DeathTestament(Answer, frozen=True, kw_only=True):
    """What an agent leaves behind. `cause_of_death` and `reflection` are free text."""

    cause_of_death: Stated
    metrics: list[TestamentMetric]
    heuristics: list[TestamentHeuristic]
    warnings: list[TestamentWarning]
    reflection: Annotated[str, Text(longest=20_000)]


# The heartbeat (002, HeartbeatDecision)

SEVERITIES = ("none", "low", "moderate", "high", "critical")
ACTIONS = ("observe", "analyze", "rebalance", "hedge", "exit", "escalate")


class Signal(Answer, frozen=True, kw_only=True):
    """One thing that drove a decision. `source` is price, volume, governance, liquidity or the like; `magnitude` is 0 to 1."""

    source: Stated
    description: Stated
    magnitude: Unit


class HeartbeatDecision(Answer, frozen=True, kw_only=True):
    """What a beat found and what to do about it. `confidence` is 0 to 1; `escalate` asks for the next tier."""

    severity: Annotated[str, Choices(SEVERITIES, "none", priority=("critical", "high", "moderate", "low"))]
    action: Annotated[str, Choices(ACTIONS, "observe", priority=("exit", "hedge", "rebalance", "escalate", "analyze"))]
    confidence: Confidence
    rationale: Summary
    signals: list[Signal]
    escalate: bool


# The risk engine (002, RiskAssessment). Out of free text nothing passes that was not stated to pass.


class LayerResult(Answer, frozen=True, kw_only=True):
    """What one layer of the defence found. `score` is 0 to 1."""

    passed: bool
    score: Unit
    detail: Stated


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


SUBSYSTEM_ANSWERS: dict[str, type[Answer]] = {
    "curator": CuratorEvaluation,
    "daimon": DaimonAppraisal,
    "daimon_complex": DaimonAppraisal,
    "death_testament": DeathTestament,
    "dream_integration": DreamIntegration,
    "dream_nrem": ReplayAnalysis,
    "dream_threat": ThreatAssessment,
    "heartbeat_t1": HeartbeatDecision,
    "heartbeat_t2": HeartbeatDecision,
    "hypnagogic_capture": CaptureResult,
    "hypnagogic_observer": FragmentEvaluation,
    "risk": RiskAssessment,
}
"""Each subsystem's answer, by the subsystem's name (002, "Used by"; 003, the parameter tables)."""
