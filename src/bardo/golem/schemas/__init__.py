"""The typed answers of the documents' agent, and which subsystem gives which."""

from __future__ import annotations

from bardo.golem.schemas.base import Answer
from bardo.golem.schemas.curator import CrossRef, CuratorEvaluation, Promotion
from bardo.golem.schemas.daimon import DaimonAppraisal
from bardo.golem.schemas.death import DeathTestament, TestamentHeuristic, TestamentMetric, TestamentWarning
from bardo.golem.schemas.dreams import (
    CapturedFragment,
    CaptureResult,
    Counterfactual,
    DreamIntegration,
    FragmentEvaluation,
    IntegrationItem,
    Lesson,
    ReplayAnalysis,
    ThreatAssessment,
)
from bardo.golem.schemas.heartbeat import HeartbeatDecision, Signal
from bardo.golem.schemas.risk import LayerResult, RiskAssessment, RiskLayers

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
