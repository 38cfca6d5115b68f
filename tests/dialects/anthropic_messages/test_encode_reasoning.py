"""Reasoning policies in the form each Claude model takes."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.dialects.anthropic_messages.encode_reasoning import encode_reasoning, nearest_effort
from bardo.dialects.anthropic_messages.models import traits_of
from bardo.dialects.levels import BUDGETS, effort_of
from bardo.values.blocks import Carried
from bardo.values.request import EFFORTS, ReasoningPolicy

SHOWN = {"type": "adaptive", "display": "summarized"}


def effort(level: Any, **fields: Any) -> ReasoningPolicy:
    return ReasoningPolicy(mode="effort", effort=level, **fields)


def budget(tokens: int, **fields: Any) -> ReasoningPolicy:
    return ReasoningPolicy(mode="budget", budget=tokens, **fields)


def enabled(tokens: int, **fields: Any) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens, **fields}


OFF = ReasoningPolicy(mode="off")
AUTO = ReasoningPolicy(mode="auto")


@pytest.mark.parametrize(
    ("model", "policy", "thinking", "level", "lost"),
    [
        ("claude-sonnet-5", effort("high"), SHOWN, "high", ()),
        ("claude-sonnet-5", effort("minimal"), SHOWN, "low", ("reasoning_effort",)),
        ("claude-sonnet-5", effort("low", visible=False), {"type": "adaptive", "display": "omitted"}, "low", ()),
        ("claude-sonnet-5", AUTO, SHOWN, None, ()),
        ("claude-sonnet-5", OFF, {"type": "disabled"}, None, ()),
        ("claude-sonnet-5", budget(9000), SHOWN, "medium", ("reasoning_budget",)),
        ("anthropic/claude-opus-4.6", effort("xhigh"), {"type": "adaptive"}, "high", ("reasoning_effort",)),
        ("claude-opus-4-6", budget(2000), enabled(2000), None, ()),
        ("claude-opus-4-8", effort("xhigh"), SHOWN, "xhigh", ()),
        ("claude-opus-5-5", OFF, {"type": "adaptive"}, "low", ("reasoning",)),
        ("claude-sonnet-5-5", OFF, {"type": "between_tools"}, None, ("reasoning",)),
        (
            "claude-opus-5",
            ReasoningPolicy(mode="off", effort="max"),
            {"type": "disabled"},
            "high",
            ("reasoning_effort",),
        ),
        ("claude-sonnet-4-5-20250929", effort("low"), enabled(2048), None, ()),
        ("claude-sonnet-4-5", effort("low", visible=False), enabled(2048, display="omitted"), None, ()),
        ("claude-sonnet-4-5", AUTO, enabled(8192), None, ("reasoning",)),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", budget(100), enabled(1024), None, ("reasoning_budget",)),
        ("claude-3-5-sonnet-20241022", effort("high"), None, None, ("reasoning",)),
        ("claude-3-5-sonnet-20241022", OFF, None, None, ()),
        ("MiniMax-M2", effort("medium"), enabled(8192), None, ()),
    ],
)
def test_policies(model: str, policy: ReasoningPolicy, thinking: Any, level: str | None, lost: tuple[str, ...]) -> None:
    sent = encode_reasoning(policy, traits_of(model), None)
    assert (sent.thinking, sent.effort, tuple(one.what for one in sent.degraded)) == (thinking, level, lost)


@pytest.mark.parametrize(
    ("policy", "limit", "room", "thinking"),
    [
        (None, None, 8192, None),
        (None, 500, 500, None),
        (budget(20_000), None, 28_192, enabled(20_000)),
        (budget(20_000), 10_000, 10_000, enabled(8976)),
        (budget(20_000), 1500, 1500, enabled(1024)),
        (budget(20_000), 1024, 1024, {"type": "disabled"}),
        (effort("max"), None, 64_000, enabled(62_976)),
    ],
)
def test_the_budget_leaves_room_for_the_answer(
    policy: ReasoningPolicy | None, limit: int | None, room: int, thinking: Any
) -> None:
    sent = encode_reasoning(policy, traits_of("claude-sonnet-4-5"), limit)
    assert (sent.max_tokens, sent.thinking) == (room, thinking)


@pytest.mark.parametrize(
    ("model", "told", "policy", "thinking", "lost"),
    [
        ("claude-sonnet-5", enabled(3000, x=1), budget(3000), {"x": 1, "type": "adaptive"}, ("reasoning_budget",)),
        ("claude-sonnet-4-5", {"type": "adaptive"}, AUTO, enabled(2976), ("reasoning",)),
        ("claude-fable-5", {"type": "disabled"}, OFF, {"type": "adaptive"}, ("reasoning",)),
        ("claude-opus-4-6", None, effort("xhigh"), None, ("reasoning_effort",)),
        ("claude-sonnet-4-5", None, effort("low"), None, ("reasoning_effort",)),
        ("claude-opus-4-8", {"type": "between_tools"}, AUTO, {"type": "adaptive"}, ("reasoning",)),
    ],
)
def test_what_was_told_another_model_is_said_anew(
    model: str, told: dict[str, Any] | None, policy: ReasoningPolicy, thinking: Any, lost: tuple[str, ...]
) -> None:
    carried = Carried("anthropic_messages", {"thinking": told})
    policy = ReasoningPolicy(mode=policy.mode, budget=policy.budget, effort=policy.effort, carried=carried)
    sent = encode_reasoning(policy, traits_of(model), 4000)
    assert (sent.thinking, tuple(one.what for one in sent.degraded)) == (thinking, lost)


def test_levels_and_budgets_agree() -> None:
    assert all(effort_of(BUDGETS[level]) == level for level in EFFORTS)
    assert effort_of(5120) == "medium"
    assert nearest_effort("xhigh", ("low", "high", "max")) == "high"
    assert nearest_effort("minimal", ("low", "high")) == "low"
