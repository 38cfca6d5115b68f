"""The typed answers of the documents' agent, and which subsystem gives which: those of its waking, and those of its dreams (002, 003).

Scores and confidences are numbers from 0 to 1 where nothing else is said.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Annotated, Any, Self, get_args, get_origin

import msgspec

from bardo.golem.fields import (
    AnswerType,
    Bounds,
    Choices,
    Confidence,
    Count,
    FieldKind,
    Signed,
    Stated,
    Summary,
    Text,
    Unit,
    fields_of,
    issues_of,
    object_schema,
)
from bardo.structured import Checker, Extraction, Failure, Json, ResponseSchema, UnusableAnswer, checker, extract

_NEAR = 60
_NO = r"(?:\b(?:not|no|never|without|cannot)|n't)[\s-]{1,3}(?:\w{1,12}[\s-]){0,2}"
_YES_OR_NO = re.compile(r"\s{0,3}(?:[:=]|is|was)\s{0,3}[\"'*]{0,3}(yes|true|no|false|not)\b", re.I)
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:[,_]\d{3})*(?:\.\d{1,15})?")
_BULLET = re.compile(r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+(.+)")


def from_words(kind: AnswerType, text: str, known: Json = None) -> dict[str, Json]:
    """Return the members of an answer as a text says them. `known` is what could be read of broken JSON: its sound members are kept.

    Models that give no JSON write "severity: high, confidence about 0.8, we should hedge". An approval that is not stated is not given, and
    a check that is not mentioned has not passed.
    """
    given = known if isinstance(known, dict) else {}
    members = object_schema(kind)["properties"]
    return {
        field.name: given[field.name]
        if field.name in given and checker(members[field.name]).accepts(given[field.name])
        else _from_text(field, text, given.get(field.name))
        for field in fields_of(kind)
    }


def _from_text(field: FieldKind, text: str, parsed: Json) -> Json:
    if get_origin(field.kind) is list:
        return _list(field, text)
    if isinstance(field.kind, type) and issubclass(field.kind, msgspec.Struct):
        return from_words(field.kind, _section(field, text), parsed)
    if field.kind is bool:
        return _is_true(field.name, text)
    match field.rule:
        case Bounds() as bounds:
            named = re.search(rf"{_name(field.name)}(?P<behind>.{{0,{_NEAR}}})", text, re.I | re.S)
            number = _NUMBER.search(re.split(r"[;\n]", named["behind"])[0]) if named else None
            if named is None or number is None:
                return int(bounds.default) if field.kind is int else bounds.default
            value = float(number.group().replace(",", "").replace("_", ""))
            if named["behind"][number.end() : number.end() + 2].lstrip().startswith("%"):
                value /= 100
            return int(value) if field.kind is int else value
        case Choices() as words:
            return _find_word(field.name, words, text)
        case rule:
            return _text(field, rule, text)


def _name(name: str) -> str:
    """Return a pattern for a field's name as people write it: adjusted_size_usd, "Adjusted size USD"."""
    return r"(?<![^\W_])" + r"[\s_-]{1,3}".join(map(re.escape, name.split("_"))) + r"(?![^\W_])"


def _find_word(name: str, words: Choices, text: str) -> str:
    """Return the word said behind the field's name, else the first one in the text that is not denied."""
    named = re.search(rf"{_name(name)}[^\w\n]{{1,6}}(?:is\s)?[\"'*]{{0,3}}(\w+)", text, re.I)
    if named and named.group(1).lower() in words.words:
        return named.group(1).lower()
    return next((word for word in words.priority or words.words if _is_affirmed(word, text)), words.default)


def _is_affirmed(word: str, text: str) -> bool:
    return any(
        not re.search(_NO + r"$", text[max(0, word_at.start() - 30) : word_at.start()], re.I)
        for word_at in re.finditer(rf"\b{re.escape(word)}(?:s|d|ed|ing)?\b", text, re.I)
    )


def _is_true(name: str, text: str) -> bool:
    match = re.search(_name(name), text, re.I)
    stated = _YES_OR_NO.match(text, match.end()) if match else None
    if stated:
        return stated.group(1).lower() in ("yes", "true")
    return match is not None and _is_affirmed(name.replace("_", " "), text)


def _text(field: FieldKind, rule: Any, text: str) -> str | None:
    named = re.search(rf"{_name(field.name)}[\"'*]{{0,3}}\s?[:=][\"'*]{{0,3}}\s*([^\n]{{1,1000}})", text, re.I)
    if named:
        return named.group(1).strip(" *\"',")
    if field.nullable:
        return None
    return (
        " ".join(text.split())[: rule.longest]
        if isinstance(rule, Text) and rule.longest
        else getattr(rule, "default", "")
    )


def _list(field: FieldKind, text: str) -> list[str]:
    """Return the bullets under a heading of the field's name. Lists of parts stay empty: sentences do not tell where one ends."""
    named = re.search(rf"{_name(field.name)}[^\n]{{0,20}}:?[ \t*]*\n(?P<under>.*)", text, re.I | re.S)
    if get_args(field.kind) != (str,) or named is None:
        return []
    items: list[str] = []
    for line in named["under"].splitlines():
        bullet = _BULLET.match(line)
        if bullet is None and line.strip():
            break
        items += [bullet.group(1).strip()] if bullet else []
    return items


def _section(field: FieldKind, text: str) -> str:
    """Return the line that names a part, and the lines below it that are indented.

    AnswerType that only hold further parts are hardly ever named: those further ones are looked for in the whole text.
    """
    if all(isinstance(inner.kind, type) and issubclass(inner.kind, msgspec.Struct) for inner in fields_of(field.kind)):
        return text
    named = re.search(rf"^.*{_name(field.name)}.*$(?:\n[ \t]+.*$){{0,20}}", text, re.I | re.M)
    return named.group() if named else ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A typed answer of one subsystem; it fills the `StructuredOutput` protocol. AnswerType of answers are Answers too."""

    @classmethod
    def schema(cls) -> ResponseSchema:
        """Return the schema to ask for: every member required, and no others."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        return ResponseSchema(name=name, schema=object_schema(cls), strict=True)

    @classmethod
    def prompt_guidance(cls) -> str:
        """Return what to add to a prompt where the schema cannot be enforced (002, `prompt_guidance`)."""
        written = msgspec.json.format(msgspec.json.encode(object_schema(cls)), indent=2).decode()
        return (
            f"\n\nRespond ONLY with valid JSON matching this structure:\n```json\n{written}\n```\n"
            "Do not include any text outside the JSON block."
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read JSON that conforms to the schema. Raises UnusableAnswer for any other text."""
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError) as problem:
            raise UnusableAnswer(_refused("no_json", f"not JSON: {problem}", text)) from problem
        return cls.from_value(value, text=text)

    @classmethod
    def from_value(cls, value: Json, *, text: str | bytes = "") -> Self:
        """Take a decoded JSON value that conforms to the schema. Raises UnusableAnswer for any other value."""
        failures = _checker(cls).failures(value)
        if failures:
            raise UnusableAnswer(_refused("invalid", f"not a {cls.__name__}: {failures[0]}", text, failures))
        return msgspec.convert(value, cls)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read an answer out of free text: JSON in it if there is any that conforms, else its own words as well as they can be read.

        Reading words loses much: a missing field takes a careful default. Raises UnusableAnswer for a text without words.
        """
        extraction = extract(text, _checker(cls))
        if extraction.ok:
            return msgspec.convert(extraction.value, cls)
        if not re.search(r"[^\W_]", text):
            raise UnusableAnswer(extraction)
        return msgspec.convert(from_words(cls, text, extraction.value), cls)

    def validate(self, issues: list[str]) -> None:
        """Add one line to `issues` for each number out of its range and each word that is not in its list, parts included."""
        issues.extend(issues_of(self))


@cache
def _checker(kind: type[Answer]) -> Checker:
    return checker(object_schema(kind))


def _refused(code: Any, message: str, text: str | bytes, failures: tuple[Failure, ...] = ()) -> Extraction:
    written = text if isinstance(text, str) else text.decode(errors="replace")
    return Extraction(error=code, message=message, failures=failures, text=written)


VERDICTS = ("promote", "stage", "discard")
THREAT_SEVERITIES = ("low", "medium", "high", "critical")

# An answer without a judgement is neither believed nor thrown away.
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
