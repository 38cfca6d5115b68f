"""A model whose ids say whether it thinks (001 §1, `model_id`), and the control in one word (001 §1, `reasoning_wire`)."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.catalog.models import Facts, ModelIds, ModelRow
from bardo.reasoning.control import ControlTarget, Layer, Observation, observe, plan_reasoning, receipt
from bardo.values.request import ReasoningPolicy

OFF = ReasoningPolicy(mode="off")
HIGH = ReasoningPolicy(mode="effort", effort="high")
THINKING = ControlTarget("xai", "openai_chat", "grok-4.20-0309-reasoning")
PLAIN = ControlTarget("xai", "openai_chat", "grok-4.20-0309-non-reasoning")
QWEN = ControlTarget("openrouter", "openai_chat", "qwen/qwen3.6-27b")


@pytest.mark.parametrize("asked", [THINKING, PLAIN], ids=["of-thinking", "of-plain"])
@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_off_is_the_plain_id_and_a_level_or_a_budget_the_thinking_one(asked: ControlTarget, dialect: str) -> None:
    provider = "xai" if dialect == "openai_chat" else "xai-responses"
    at = ControlTarget(provider, dialect, asked.model)
    for policy, model, emitted, thinks in (
        (OFF, PLAIN.model, "off", False),
        (ReasoningPolicy(mode="budget", budget=0), PLAIN.model, "off", False),
        (HIGH, THINKING.model, "on", True),
        (ReasoningPolicy(mode="budget", budget=2048), THINKING.model, "on", True),
    ):
        plan = plan_reasoning(policy, at)
        # Any field of thinking is refused by both.
        assert (plan.model, plan.fields, plan.emitted, plan.thinks) == (model, {}, emitted, thinks)
        assert [one.what for one in plan.degraded] == (["reasoning"] if thinks else [])


def test_who_says_nothing_of_thinking_keeps_the_id() -> None:
    for policy in (None, ReasoningPolicy(mode="auto")):
        assert plan_reasoning(policy, THINKING).model == plan_reasoning(policy, PLAIN).model == ""


def test_the_receipt_names_the_id_and_the_verdict_follows_what_was_seen() -> None:
    off, on = plan_reasoning(OFF, THINKING), plan_reasoning(HIGH, PLAIN)
    quiet = Observation(reasoning_tokens=0, reported=True)
    thought = Observation(reasoning_tokens=90, reported=True, text_seen=True)
    assert receipt(off, quiet, observe(off, quiet))["emitted"] == {"model": PLAIN.model}
    assert (observe(off, quiet), observe(off, thought)) == ("honoured", "contradicted")
    # That it thinks was said, how much was not.
    assert (observe(on, thought), observe(on, quiet)) == ("clamped", "void")


def test_another_host_may_serve_only_one_of_a_pair() -> None:
    elsewhere = ControlTarget("openrouter", "openai_chat", "x-ai/grok-4.20-reasoning")
    assert plan_reasoning(OFF, elsewhere).model == ""
    assert plan_reasoning(OFF, elsewhere).floored
    pair = Layer("operator", Facts(control=("model_id",), model_ids=ModelIds(thinking="-reasoning", plain="-fast")))
    assert plan_reasoning(OFF, elsewhere, facts=[pair]).model == "x-ai/grok-4.20-fast"


def test_the_id_is_kept_as_it_is_spelled_around_the_word() -> None:
    ids = ModelIds(thinking="-Reasoning", plain="-non-reasoning")
    assert ids.of("Vendor/Grok-non-REASONING-0309", thinks=True) == "Vendor/Grok-Reasoning-0309"
    assert ids.of("my-model", thinks=True) is None
    whole = ModelIds(thinking="kimi-k2-thinking", plain="kimi-k2")
    assert whole.of("kimi-k2-thinking", thinks=False) == "kimi-k2"
    assert whole.of("kimi-k2", thinks=True) == "kimi-k2-thinking"


@pytest.mark.parametrize(("thinking", "plain"), [("", "x"), ("x", ""), ("x", "X")])
def test_two_ids_that_cannot_be_told_apart_are_refused(thinking: str, plain: str) -> None:
    with pytest.raises(ValueError, match="must differ"):
        ModelIds(thinking=thinking, plain=plain)


@pytest.mark.parametrize(
    ("wire", "policy", "fields"),
    [
        ("tokens", ReasoningPolicy(mode="effort", effort="low"), {"reasoning": {"max_tokens": 2048}}),
        ("tokens", ReasoningPolicy(mode="budget", budget=4096), {"reasoning": {"max_tokens": 4096}}),
        ("effort", ReasoningPolicy(mode="effort", effort="low"), {"reasoning": {"effort": "low"}}),
        ("effort", ReasoningPolicy(mode="budget", budget=5120), {"reasoning": {"effort": "medium"}}),
        ("none", ReasoningPolicy(mode="effort", effort="low"), {}),
        ("model_id", ReasoningPolicy(mode="effort", effort="low"), {}),
        # `provider` leaves the control to the layers below.
        ("provider", ReasoningPolicy(mode="effort", effort="low"), {"reasoning": {"max_tokens": 2048}}),
    ],
)
def test_001_the_wire_of_a_row_decides_how_a_policy_is_written(
    wire: Any, policy: ReasoningPolicy, fields: dict[str, Any]
) -> None:
    row = ModelRow(provider="openrouter", match=("qwen/*",), reasoning_wire=wire)
    assert plan_reasoning(policy, QWEN, facts=[Layer("operator", row)]).fields == fields


def test_an_operators_wire_stands_over_what_a_server_says_of_its_control() -> None:
    row = ModelRow(provider="ds4", match=("*",), reasoning_wire="none")
    live = Layer("L1", Facts(control=("effort",), efforts=("low", "high")))
    plan = plan_reasoning(HIGH, ControlTarget("ds4", "openai_chat", "m"), facts=[live, Layer("operator", row)])
    assert (plan.fields, plan.layer) == ({}, "operator")


def test_a_row_says_its_control_once() -> None:
    said_twice = ModelRow(provider="x", match=("*",), reasoning_wire="effort", control=("budget",))
    assert said_twice.contradicts_itself
    assert said_twice.control == ("budget",)
    for row in (
        ModelRow(provider="x", match=("*",), reasoning_wire="effort"),
        ModelRow(provider="x", match=("*",), reasoning_wire="provider", control=("budget",)),
        ModelRow(provider="x", match=("*",), control=("budget",)),
    ):
        assert not row.contradicts_itself
