"""A verdict follows from what was observed, rule by rule."""

from __future__ import annotations

import msgspec
import pytest

from bardo.catalog.models import Facts
from bardo.reasoning.control import (
    ControlPlan,
    ControlTarget,
    Layer,
    Observation,
    observation,
    observe,
    plan_reasoning,
    receipt,
    receipt_header,
)
from bardo.values.blocks import Opaque, ReasoningBlock
from bardo.values.fold import build_chain
from bardo.values.reasoning import ReasoningVisibility
from bardo.values.request import ReasoningPolicy
from bardo.values.usage import Usage

QWEN = ControlTarget("qwen", "openai_chat", "qwen3.6-plus")
CHAT = ControlTarget("openai-chat", "openai_chat", "gpt-5")
CLAUDE = ControlTarget("anthropic", "anthropic_messages", "claude-opus-4-8")
CLAUDE_4_5 = ControlTarget("anthropic", "anthropic_messages", "claude-sonnet-4-5")
PLAIN = ControlTarget("openai-chat", "openai_chat", "gpt-4o")
GROK = ControlTarget("xai", "openai_chat", "grok-4.5")

OFF = ReasoningPolicy(mode="off")
HIGH = ReasoningPolicy(mode="effort", effort="high")
LOW = ReasoningPolicy(mode="effort", effort="low")
MAX = ReasoningPolicy(mode="effort", effort="max")
TOKENS = ReasoningPolicy(mode="budget", budget=1000)
AUTO = ReasoningPolicy(mode="auto")

COUNTED = Observation(reasoning_tokens=400, reported=True)
NONE = Observation(reasoning_tokens=0, reported=True)
NOTHING = Observation()
READ = Observation(reasoning_tokens=90, approx=True, text_seen=True, visibility=ReasoningVisibility.VISIBLE)
SEALED = Observation(visibility=ReasoningVisibility.OPAQUE)
MUCH = Observation(reasoning_tokens=1507, reported=True)
ENOUGH = Observation(reasoning_tokens=1506, reported=True)
GUESSED = Observation(reasoning_tokens=9000, approx=True, text_seen=True)


def applied(level: str, seen: Observation = COUNTED) -> Observation:
    return msgspec.structs.replace(seen, effort=level)


RULES = [
    ("the reply says that a lower level was applied", HIGH, CHAT, applied("medium"), "clamped"),
    ("the reply says that a higher level was applied", LOW, CHAT, applied("medium"), "clamped"),
    ("the reply says that the level was applied", HIGH, CHAT, applied("high"), "honoured"),
    ("the reply says so, and nobody knows whether it thought", HIGH, CHAT, applied("medium", NOTHING), "clamped"),
    ("the reply says that no level was applied, and shows no thinking", HIGH, CHAT, applied("none", NOTHING), "void"),
    ("the reply says that no level was applied, and it thought", HIGH, CHAT, applied("none"), "honoured"),
    ("the reply says a word that is no level", HIGH, CHAT, applied("default"), "honoured"),
    ("what was seen goes before the word", HIGH, CHAT, applied("high", NONE), "void"),
    ("off, and the reply says that no level was applied", OFF, QWEN, applied("none", NOTHING), "honoured"),
    ("off, and the reply says that a level was applied", OFF, QWEN, applied("low", NOTHING), "contradicted"),
    ("off, and it did not think whatever it says", OFF, QWEN, applied("low", NONE), "honoured"),
    ("off, and it thought whatever it says", OFF, QWEN, applied("none", COUNTED), "hidden_only"),
    ("nothing asked", None, CHAT, COUNTED, "unknown"),
    ("off, and it did not think", OFF, QWEN, NONE, "honoured"),
    ("off, and nobody knows", OFF, QWEN, NOTHING, "unknown"),
    ("off, and its thinking was read", OFF, QWEN, READ, "contradicted"),
    ("off, and tokens were billed", OFF, QWEN, COUNTED, "hidden_only"),
    ("off, and opaque state came", OFF, QWEN, SEALED, "hidden_only"),
    ("a budget of nothing is off", ReasoningPolicy(mode="budget", budget=0), QWEN, COUNTED, "hidden_only"),
    ("the least there is for off", OFF, GROK, COUNTED, "floored"),
    ("the least there is, unseen", OFF, GROK, NOTHING, "floored"),
    ("the least there is was none", OFF, GROK, NONE, "honoured"),
    ("off at a model that never thinks", OFF, PLAIN, NONE, "honoured"),
    ("auto, and it thought", AUTO, QWEN, COUNTED, "honoured"),
    ("auto, and it did not", AUTO, QWEN, NONE, "honoured"),
    ("auto, and nobody knows", AUTO, QWEN, NOTHING, "unknown"),
    ("a level that cannot be said", HIGH, PLAIN, NONE, "void"),
    ("a level, and it thought", HIGH, CHAT, COUNTED, "honoured"),
    ("a level, and its thinking was read", HIGH, CHAT, READ, "honoured"),
    ("a level, and nobody knows", HIGH, CHAT, NOTHING, "unknown"),
    ("high, and it did not think", HIGH, CHAT, NONE, "void"),
    ("low, and an easy question", LOW, CHAT, NONE, "unknown"),
    ("high, where the model decides", HIGH, CLAUDE, NONE, "unknown"),
    ("another level was sent", MAX, CHAT, COUNTED, "clamped"),
    ("another level was sent, unseen", MAX, CHAT, NOTHING, "clamped"),
    ("within a budget and its slack", TOKENS, QWEN, ENOUGH, "honoured"),
    ("beyond a budget and its slack", TOKENS, QWEN, MUCH, "contradicted"),
    ("an estimate contradicts nothing", TOKENS, QWEN, GUESSED, "honoured"),
    ("a budget sent as a level, and kept", TOKENS, CHAT, ENOUGH, "honoured"),
    ("a budget sent as a level, and exceeded", TOKENS, CHAT, MUCH, "contradicted"),
    ("a budget that cannot be said, and is exceeded", TOKENS, PLAIN, MUCH, "contradicted"),
    ("a budget that cannot be said, and is kept", TOKENS, PLAIN, ENOUGH, "void"),
    (
        "a larger budget was sent, and used",
        ReasoningPolicy(mode="budget", budget=500),
        CLAUDE_4_5,
        MUCH,
        "contradicted",
    ),
    (
        "a larger budget was sent, and not used",
        ReasoningPolicy(mode="budget", budget=500),
        CLAUDE_4_5,
        COUNTED,
        "clamped",
    ),
    ("a level is no number of tokens", HIGH, CHAT, MUCH, "honoured"),
]


@pytest.mark.parametrize(
    ("policy", "target", "seen", "verdict"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES]
)
def test_a_verdict_follows_from_what_was_observed(
    policy: ReasoningPolicy | None, target: ControlTarget, seen: Observation, verdict: str
) -> None:
    assert observe(plan_reasoning(policy, target), seen) == verdict


def test_thinking_that_gave_way_is_clamped_unless_it_came_after_all() -> None:
    target = ControlTarget("anthropic", "anthropic_messages", "claude-sonnet-4-5")
    plan = plan_reasoning(LOW, target, max_output_tokens=900)
    assert plan.emitted == "off"
    assert observe(plan, NONE) == observe(plan, NOTHING) == "clamped"
    assert observe(plan, READ) == "contradicted"


def _aliased() -> ControlPlan:
    live = Layer("L1", Facts(efforts=("high", "max"), aliases={"low": "high"}), "ds4 alias map")
    return plan_reasoning(LOW, ControlTarget("ds4", "openai_chat", "deepseek-v4-flash"), facts=[live])


def test_a_receipt_says_intent_emission_layer_and_verdict() -> None:
    plan = _aliased()
    verdict = observe(plan, READ)
    assert receipt_header(plan, verdict) == "intent=low; emitted=high; layer=L1; verdict=clamped"
    assert receipt(plan, READ, verdict) == {
        "intent": "low",
        "emitted": {"reasoning_effort": "high"},
        "layer": "L1",
        "assumed": None,
        "reason": "ds4 alias map",
        "observed": {
            "reasoning_tokens": 90,
            "reported": False,
            "approx": True,
            "text_seen": True,
            "visibility": "visible",
            "effort": None,
        },
        "verdict": "clamped",
    }


@pytest.mark.parametrize(
    ("policy", "header"),
    [
        (None, "intent=none; emitted=nothing; layer=L2; verdict=unknown"),
        (OFF, "intent=off; emitted=off; layer=L2; verdict=honoured"),
        (TOKENS, "intent=budget:1000; emitted=budget:1000; layer=L2; verdict=void"),
        (AUTO, "intent=auto; emitted=auto; layer=L2; verdict=honoured"),
    ],
)
def test_the_words_of_a_receipt(policy: ReasoningPolicy | None, header: str) -> None:
    plan = plan_reasoning(policy, QWEN)
    assert receipt_header(plan, observe(plan, NONE)) == header


def test_an_observation_is_read_from_a_chain() -> None:
    text = (ReasoningBlock(text="Let me see."),)
    chain = build_chain(text, Usage(), provider="x", model="y", billed_as_output=True)
    assert observation(chain) == Observation(
        reasoning_tokens=3, approx=True, text_seen=True, visibility=ReasoningVisibility.VISIBLE
    )
    sealed = (ReasoningBlock(opaque=(Opaque("signature", "abc", "anthropic-claude-v1"),)),)
    chain = build_chain(sealed, Usage(), provider="x", model="y", billed_as_output=True)
    assert observation(chain).thought is True
    assert observation(build_chain((), Usage(), provider="", model="", billed_as_output=True)).thought is None
    counted = build_chain((), Usage(reasoning_tokens=0), provider="", model="", billed_as_output=True)
    assert observation(counted).thought is False


def test_a_model_nobody_knows_that_thinks_is_no_evidence_of_a_level() -> None:
    unknown, known = (
        ControlTarget("vllm", "openai_chat", "my-model"),
        ControlTarget("vllm", "openai_chat", "gpt-oss-20b"),
    )
    policy = ReasoningPolicy(mode="effort", effort="high")
    seen = Observation(reasoning_tokens=900, reported=True)
    assert observe(plan_reasoning(policy, unknown), seen) == "unknown"
    assert observe(plan_reasoning(policy, known), seen) == "honoured"
    elsewhere = ControlTarget("openai-compatible", "openai_chat", "gpt-oss-20b")
    assert observe(plan_reasoning(policy, elsewhere), seen) == "unknown", (
        "it thinks unasked, and the server may drop the field"
    )
    woken = ControlTarget("openai-compatible", "openai_chat", "gpt-5.1")
    assert observe(plan_reasoning(policy, woken), seen) == "honoured", "it does not think unless it is told to"
    off = plan_reasoning(ReasoningPolicy(mode="off"), unknown)
    assert observe(off, Observation(reasoning_tokens=0, reported=True)) == "honoured"
    assert observe(off, seen) == "hidden_only"


def test_a_smaller_budget_that_was_sent_is_no_measure_of_the_one_that_was_asked_for() -> None:
    asked = ReasoningPolicy(mode="budget", budget=8000)
    plan = plan_reasoning(asked, CLAUDE_4_5, max_output_tokens=4000)
    assert plan.budget is not None
    assert plan.budget < 4000
    assert observe(plan, Observation(reasoning_tokens=7000, reported=True)) == "clamped"
    assert observe(plan, Observation(reasoning_tokens=11_000, reported=True)) == "contradicted"


def test_whether_a_level_asks_for_thought_is_said_by_the_one_that_was_asked_for() -> None:
    high = msgspec.structs.replace(plan_reasoning(HIGH, CHAT), level="low", clamped=True)
    low = msgspec.structs.replace(plan_reasoning(LOW, CHAT), level="high", clamped=True)
    assert observe(high, NONE) == "void"
    assert observe(low, NONE) == "unknown"
