"""The last thing an agent says (003, `death_testament`): sections a program can read, and a reflection in its own words.

The document names the sections metrics, heuristics and warnings, and leaves their fields open.
"""

from __future__ import annotations

from typing import Annotated

from bardo.golem.schemas.base import Answer, Bounds, Confidence, Text, Unsaid, Words

WARNING_SEVERITIES = ("low", "medium", "high", "critical")
_LARGEST = 1.7976931348623157e308


class TestamentMetric(Answer, frozen=True, kw_only=True):
    """One number of a life: `value` in `unit`, and what it says to those who come after."""

    name: Unsaid
    value: Annotated[float, Bounds(-_LARGEST, _LARGEST)]
    unit: Unsaid
    meaning: Unsaid


class TestamentHeuristic(Answer, frozen=True, kw_only=True):
    """A rule worth inheriting, with the evidence for it. `confidence` is 0 to 1."""

    rule: Unsaid
    applicable_conditions: Unsaid
    confidence: Confidence
    evidence: Unsaid


class TestamentWarning(Answer, frozen=True, kw_only=True):
    """What to beware of, and how to notice it in time."""

    warning: Unsaid
    severity: Annotated[str, Words(WARNING_SEVERITIES, "medium", listen=("critical", "high", "medium", "low"))]
    detection_signals: list[str]


class DeathTestament(Answer, frozen=True, kw_only=True):
    """What an agent leaves behind. `cause_of_death` and `reflection` are free text."""

    cause_of_death: Unsaid
    metrics: list[TestamentMetric]
    heuristics: list[TestamentHeuristic]
    warnings: list[TestamentWarning]
    reflection: Annotated[str, Text(longest=20_000)]
