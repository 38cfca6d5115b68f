"""Real requests that were answered: what they asked for is written the same way again, and stands in the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.reasoning.control import ControlTarget, plan_reasoning
from bardo.values.request import ReasoningPolicy
from recordings import Recording, rows

FOLDERS = (
    "anthropic-messages", "bedrock-converse", "cohere", "deepseek", "gemini", "gemini-interactions", "groq", "mistral", "openai-chat",
    "openai-responses", "xai-chat", "xai-responses",
)  # fmt: skip
# What only says whether thinking is shown, or belongs to something else.
_BESIDE = {"display", "summary", "includeThoughts", "thinking_summaries", "context", "format", "reasoning_format"}
# Sent and taken, yet not what bardo sends: Gemini 3 ignores budgets, and Bedrock a field its Claude does not know.
_OTHERWISE = {
    ("gemini", "gemini-3-pro-preview", "budget"),
    ("bedrock-converse", "us.anthropic.claude-haiku-4-5-20251001-v1:0", "budget"),
}


def _controls(body: Any) -> dict[str, Any]:
    """Return the fields of a body that say how to think."""
    kept: dict[str, Any] = {}
    for name in ("thinking", "reasoning", "reasoning_effort", "output_config", "additionalModelRequestFields"):
        if isinstance(body.get(name), str | dict):
            kept[name] = body[name]
    for name, inner in (("generationConfig", "thinkingConfig"), ("generation_config", "thinking_level")):
        value = (body.get(name) or {}).get(inner)
        if value is not None:
            kept[name] = {inner: value}
    plain: dict[str, Any] = _plain(kept)
    return plain


def _plain(value: Any) -> Any:
    """Return fields without what is beside the point, empty objects left out, Gemini's words in one spelling."""
    if not isinstance(value, dict):
        return value.lower() if isinstance(value, str) else value
    renamed = {
        "thinking_budget": "thinkingBudget",
        "include_thoughts": "includeThoughts",
        "thinking_level": "thinkingLevel",
    }
    inner = {renamed.get(name, name): _plain(one) for name, one in value.items()}
    return {name: one for name, one in inner.items() if name not in _BESIDE and one not in ({}, None)}


def _policy(controls: dict[str, Any]) -> ReasoningPolicy | None:
    """Return the policy that the fields say."""
    words = dict(_leaves(controls))
    if words.get("type") == "disabled" or words.get("thinkingBudget") == 0:
        return ReasoningPolicy(mode="off")
    tokens = words.get("budget_tokens") or words.get("thinkingBudget")
    if tokens:
        return ReasoningPolicy(mode="budget", budget=tokens)
    named = ("effort", "reasoning_effort", "thinkingLevel", "maxReasoningEffort", "reasoning_config")
    effort = next((words[name] for name in named if name in words), None)
    if effort:
        return ReasoningPolicy(mode="effort", effort=effort)
    return ReasoningPolicy(mode="auto") if words.get("type") in ("adaptive", "enabled") else None


def _leaves(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner)
        else:
            yield name, inner


def _asked() -> list[tuple[str, Recording, dict[str, Any], ReasoningPolicy]]:
    found = []
    for folder in FOLDERS:
        for one in rows(folder):
            body = one.meta["request_body"]
            if one.meta["http_status"] != 200 or not isinstance(body, dict):
                continue
            policy = _policy(_controls(body))
            if policy is not None and (folder, one.meta["model"], policy.mode) not in _OTHERWISE:
                found.append((folder, one, _controls(body), policy))
    return found


@pytest.mark.parametrize(("folder", "recording", "controls", "policy"), _asked(), ids=lambda value: str(value)[:80])
def test_what_was_asked_is_written_the_same_way(
    folder: str, recording: Recording, controls: dict[str, Any], policy: ReasoningPolicy
) -> None:
    provider = builtin().provider(folder)
    assert provider is not None
    model = str(recording.meta["model"])
    limit = recording.meta["request_body"].get("max_tokens")
    # These callers weighed budget and limit against each other themselves.
    target = ControlTarget(provider.id, provider.dialect, model)
    plan = plan_reasoning(policy, target, max_output_tokens=limit, answer_headroom=0)
    wanted = dict(controls)
    if folder == "deepseek" and policy.mode == "effort":
        wanted["thinking"] = {"type": "enabled"}
    if folder == "cohere":
        assert plan.fields in ({}, wanted)
        return
    assert _plain(plan.fields) == wanted
    assert plan.degraded == ()
    assert not plan.unclassified
