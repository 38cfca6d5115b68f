"""The documents' typed answers: their schemas, three ways to be read, and what is checked beyond the schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from bardo.golem.schemas import (
    SUBSYSTEM_ANSWERS,
    Answer,
    CaptureResult,
    CuratorEvaluation,
    DaimonAppraisal,
    DeathTestament,
    DreamIntegration,
    FragmentEvaluation,
    HeartbeatDecision,
    ReplayAnalysis,
    RiskAssessment,
    ThreatAssessment,
)
from bardo.structured import StructuredOutput, UnusableAnswer, parse_response, validate

pytestmark = pytest.mark.each_python

LAYER = {"passed": True, "score": 0.9, "detail": "within limits"}
LAYERS = ("hard_shields", "position_sizing", "adaptive_guardrails", "observation", "defi_threats")
ITEM = {"hypothesis_id": "h1", "summary": "s", "confidence": 0.7, "rationale": "r"}

SAMPLES: dict[type[Answer], dict[str, Any]] = {
    HeartbeatDecision: {
        "severity": "high",
        "action": "hedge",
        "confidence": 0.8,
        "rationale": "Liquidity thins out.",
        "signals": [{"source": "liquidity", "description": "depth halved", "magnitude": 0.5}],
        "escalate": False,
    },
    DaimonAppraisal: {
        "pleasure": -0.2,
        "arousal": 0.6,
        "dominance": 0.1,
        "primary_emotion": "fear",
        "secondary_emotion": None,
        "trigger": "a drawdown",
        "memory_bias": "losses",
    },
    RiskAssessment: {
        "approved": True,
        "adjusted_size_usd": 1200.5,
        "layers": dict.fromkeys(LAYERS, LAYER),
        "warnings": ["gas is high"],
        "reasoning": None,
    },
    CuratorEvaluation: {
        "entries_evaluated": 9,
        "entries_retained": 7,
        "entries_pruned": 2,
        "cross_references": [{"source_id": "a", "target_id": "b", "relationship": "extends"}],
        "promotions": [{"entry_id": "a", "from_confidence": 0.4, "to_confidence": 0.7, "reason": "held twice"}],
        "grimoire_health": 0.8,
    },
    ReplayAnalysis: {
        "episode_id": "e1",
        "lessons": [{"insight": "wait", "confidence": 0.6, "applicable_conditions": "thin books"}],
        "surprise_score": 0.3,
        "counterfactuals": [{"alternative_action": "exit", "estimated_outcome": "less loss", "plausibility": 0.5}],
        "arousal_delta": -0.2,
    },
    FragmentEvaluation: {"novelty": 0.9, "relevance": 0.4, "coherence": 0.5, "verdict": "stage"},
    DreamIntegration: {"promoted": [ITEM], "staged": [], "discarded": [], "playbook_diff": "+ wait"},
    ThreatAssessment: {
        "threat_type": "oracle manipulation",
        "severity": "medium",
        "likelihood": 0.2,
        "impact_if_realized": "loss",
        "mitigation_actions": ["use two oracles"],
        "detection_signals": ["spread"],
        "rehearsal_outcome": "contained",
    },
    CaptureResult: {
        "fragments": [
            {
                "fragment_id": "f1",
                "insight": "i",
                "novelty": 0.8,
                "relevance": 0.5,
                "verdict": "promote",
                "rationale": "r",
            }
        ],
        "lucidity": 0.6,
        "summary": "one kept",
    },
    DeathTestament: {
        "cause_of_death": "out of credit",
        "metrics": [{"name": "return", "value": -3.5, "unit": "percent", "meaning": "a losing life"}],
        "heuristics": [
            {"rule": "wait", "applicable_conditions": "always", "confidence": 0.9, "evidence": "40 episodes"}
        ],
        "warnings": [{"warning": "thin books", "severity": "high", "detection_signals": ["depth"]}],
        "reflection": "I should have waited.",
    },
}
KINDS = list(SAMPLES)


def name_of(kind: type[Answer]) -> str:
    return kind.__name__


def test_every_subsystem_of_the_documents_has_its_answer() -> None:
    assert set(SUBSYSTEM_ANSWERS.values()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
class TestEveryKind:
    def test_it_fills_the_protocol(self, kind: type[Answer]) -> None:
        assert issubclass(kind, StructuredOutput)

    def test_its_schema_is_strict_everywhere(self, kind: type[Answer]) -> None:
        schema = kind.schema()
        jsonschema_rs.meta.validate(schema.schema)
        assert schema.strict
        assert schema.name.replace("_", "") == kind.__name__.lower()
        waiting: list[Any] = [schema.schema]
        while waiting:
            one = waiting.pop()
            waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
            if isinstance(one, dict) and "properties" in one:
                assert one["additionalProperties"] is False
                assert one["required"] == list(one["properties"])

    def test_a_caller_who_changes_the_schema_changes_its_own(self, kind: type[Answer]) -> None:
        changed = kind.schema().schema
        assert isinstance(changed, dict)
        changed.clear()
        assert kind.schema().schema != {}
        assert kind.from_value(SAMPLES[kind])

    def test_it_reads_json_and_writes_the_same(self, kind: type[Answer]) -> None:
        value = kind.from_json(json.dumps(SAMPLES[kind]))
        assert json.loads(msgspec.json.encode(value)) == SAMPLES[kind]
        assert validate(value).issues == ()

    def test_json_in_prose_is_read_as_it_stands(self, kind: type[Answer]) -> None:
        text = f"I looked at it closely.\n```json\n{json.dumps(SAMPLES[kind], indent=2)}\n```\nThat is all."
        assert kind.from_text(text) == kind.from_json(json.dumps(SAMPLES[kind]))
        assert parse_response(kind, text, schema_enforced=False) == kind.from_text(text)

    @pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"x": 1}', "no JSON at all", b"\xff"])
    def test_other_json_is_refused(self, kind: type[Answer], text: str | bytes) -> None:
        with pytest.raises(UnusableAnswer) as caught:
            kind.from_json(text)
        assert caught.value.extraction.error in ("no_json", "invalid")

    def test_a_member_less_or_more_is_refused(self, kind: type[Answer]) -> None:
        sample = SAMPLES[kind]
        for changed in ({**sample, "more": 1}, dict(list(sample.items())[1:])):
            with pytest.raises(UnusableAnswer):
                kind.from_value(changed)

    def test_free_text_gives_an_answer_that_conforms(self, kind: type[Answer]) -> None:
        value = kind.from_text("It looks fine to me, and nothing of note happened.")
        assert kind.from_json(msgspec.json.encode(value)) == value
        assert validate(value).valid

    @pytest.mark.parametrize("text", ["", " \n", "?!…"])
    def test_a_text_without_words_is_refused(self, kind: type[Answer], text: str) -> None:
        with pytest.raises(UnusableAnswer):
            kind.from_text(text)

    def test_the_guidance_holds_the_schema(self, kind: type[Answer]) -> None:
        said = kind.prompt_guidance()
        assert said.startswith("\n\nRespond ONLY with valid JSON matching this structure:\n```json\n")
        assert json.loads(said.partition("```json\n")[2].partition("\n```")[0]) == kind.schema().schema


def test_the_heartbeats_schema_is_that_of_the_document() -> None:
    signal = {
        "type": "object",
        "properties": {
            "source": {"type": "string"},
            "description": {"type": "string"},
            "magnitude": {"type": "number"},
        },
        "required": ["source", "description", "magnitude"],
        "additionalProperties": False,
    }
    assert HeartbeatDecision.schema().schema == {
        "type": "object",
        "properties": {
            "severity": {"type": "string", "enum": ["none", "low", "moderate", "high", "critical"]},
            "action": {"type": "string", "enum": ["observe", "analyze", "rebalance", "hedge", "exit", "escalate"]},
            "confidence": {"type": "number"},
            "rationale": {"type": "string"},
            "signals": {"type": "array", "items": signal},
            "escalate": {"type": "boolean"},
        },
        "required": ["severity", "action", "confidence", "rationale", "signals", "escalate"],
        "additionalProperties": False,
    }


ISSUES: dict[str, tuple[type[Answer], dict[str, Any], str]] = {
    "confidence": (HeartbeatDecision, {"confidence": 1.2}, "confidence 1.2 out of range [0,1]"),
    "pleasure": (DaimonAppraisal, {"pleasure": -1.5}, "pleasure -1.5 out of range [-1,1]"),
    "size": (RiskAssessment, {"adjusted_size_usd": -1.0}, "adjusted_size_usd -1.0 out of range"),
    "count": (CuratorEvaluation, {"entries_pruned": -1}, "entries_pruned -1 out of range"),
    "inside a list": (
        HeartbeatDecision,
        {"signals": [{"source": "s", "description": "d", "magnitude": 2.0}]},
        "signals[0].magnitude 2.0 out of range [0,1]",
    ),
    "inside a part": (
        RiskAssessment,
        {"layers": {**dict.fromkeys(LAYERS, LAYER), "observation": {**LAYER, "score": 7}}},
        "layers.observation.score 7.0 out of range [0,1]",
    ),
}


@pytest.mark.parametrize("name", ISSUES)
def test_a_number_out_of_its_range_is_an_issue(name: str) -> None:
    kind, changed, issue = ISSUES[name]
    result = validate(kind.from_value({**SAMPLES[kind], **changed}))
    assert result.verdict == "invalid_content"
    assert len(result.issues) == 1
    assert result.issues[0].startswith(issue)


def test_a_word_outside_its_list_is_an_issue_where_the_schema_did_not_stop_it() -> None:
    decision = msgspec.convert({**SAMPLES[HeartbeatDecision], "severity": "extreme"}, HeartbeatDecision)
    assert validate(decision).issues == ("severity 'extreme' is none of none, low, moderate, high, critical",)
    with pytest.raises(UnusableAnswer):
        HeartbeatDecision.from_value({**SAMPLES[HeartbeatDecision], "severity": "extreme"})


def test_a_heartbeat_in_words() -> None:
    heard = HeartbeatDecision.from_text(
        "Severity: high. This is not critical. We should hedge the position; my confidence is about 85%. No need to escalate."
    )
    assert (heard.severity, heard.action, heard.confidence, heard.escalate) == ("high", "hedge", 0.85, False)
    assert heard.signals == []
    assert heard.rationale.startswith("Severity: high.")


def test_a_heartbeat_that_asks_for_more() -> None:
    heard = HeartbeatDecision.from_text("A critical drop in liquidity: exit at once and escalate.")
    assert (heard.severity, heard.action, heard.escalate, heard.confidence) == ("critical", "exit", True, 0.5)


def test_a_daimon_in_words() -> None:
    heard = DaimonAppraisal.from_text("Pleasure: 0.3, arousal = -0.5. Mostly fear.\nMemory bias: recent losses")
    assert (heard.pleasure, heard.arousal, heard.dominance) == (0.3, -0.5, 0.0)
    assert (heard.primary_emotion, heard.secondary_emotion, heard.memory_bias) == ("fear", None, "recent losses")


@pytest.mark.parametrize(
    ("text", "approved"),
    [
        ("Approved: yes, at a size of 500.", True),
        ("The trade is approved.", True),
        ("The trade is not approved.", False),
        ("I have never approved this.", False),
        ("Approved: no", False),
        ("unapproved", False),
        ("It looks fine to me.", False),
    ],
)
def test_only_an_approval_that_is_spoken_is_one(text: str, approved: bool) -> None:
    assert RiskAssessment.from_text(text).approved is approved


def test_a_layer_nobody_spoke_of_has_not_passed() -> None:
    heard = RiskAssessment.from_text(
        "Approved: yes\nAdjusted size USD: 1,250.50\n\n"
        "- Hard shields: passed, score 0.9\n- Observation: not passed, score 0.2\n\nWarnings:\n- gas is high\n- thin books\n"
    )
    assert (heard.approved, heard.adjusted_size_usd) == (True, 1250.5)
    assert (heard.layers.hard_shields.passed, heard.layers.observation.passed) == (True, False)
    assert heard.layers.defi_threats.passed is False
    assert heard.warnings == ["gas is high", "thin books"]


def test_what_a_broken_answer_holds_is_kept() -> None:
    heard = HeartbeatDecision.from_text(
        '{"severity": "low", "action": "observe", "confidence": 0.9, "rationale": "all is critical'
    )
    assert (heard.severity, heard.action, heard.confidence) == ("low", "observe", 0.9)
