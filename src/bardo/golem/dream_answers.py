"""The typed answers of dreams: replay, integration and rehearsed threats (002), fragments at the edge of sleep (002, 003).

Scores and confidences are numbers from 0 to 1 where nothing else is said.
"""

from __future__ import annotations

from typing import Annotated

from bardo.golem.answer import Answer
from bardo.golem.fields import Choices, Confidence, Signed, Stated, Summary, Unit

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
