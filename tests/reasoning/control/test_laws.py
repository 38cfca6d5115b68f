"""What holds for every policy at every model of the catalog."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.forms import builtin_forms
from bardo.catalog.fragments import value_at
from bardo.catalog.models import builtin_models
from bardo.reasoning.control import ControlTarget, plan_reasoning
from bardo.values.request import EFFORTS, ReasoningPolicy

PLACES = sorted(
    {(provider, dialect) for one in builtin_forms().endpoints for provider in one.providers for dialect in one.dialects}
)
MODELS = [*sorted({glob.replace("*", "x") for row in builtin_models().rows for glob in row.match}), "mystery"]

targets = st.builds(
    lambda place, model: ControlTarget(place[0], place[1], model), st.sampled_from(PLACES), st.sampled_from(MODELS)
)
policies = st.one_of(
    st.builds(lambda visible: ReasoningPolicy(mode="off", visible=visible), st.none() | st.booleans()),
    st.builds(
        lambda level, visible: ReasoningPolicy(mode="effort", effort=level, visible=visible),
        st.sampled_from(EFFORTS),
        st.none() | st.booleans(),
    ),
    st.builds(lambda tokens: ReasoningPolicy(mode="budget", budget=tokens), st.integers(0, 300_000)),
    st.just(ReasoningPolicy(mode="auto")),
)
limits = st.none() | st.integers(1, 200_000)


@given(targets, policies, limits, st.booleans())
def test_a_level_that_is_sent_is_one_of_the_models(
    target: ControlTarget, policy: ReasoningPolicy, limit: int | None, show: bool
) -> None:
    plan = plan_reasoning(policy, target, max_output_tokens=limit, show=show)
    assert plan.known is not None
    if plan.level is not None:
        assert plan.level in (plan.known.levels or plan.known.form.levels)
        assert plan.level in str(plan.fields)


@given(targets, policies, limits)
def test_a_budget_is_in_range_and_below_the_output_limit(
    target: ControlTarget, policy: ReasoningPolicy, limit: int | None
) -> None:
    plan = plan_reasoning(policy, target, max_output_tokens=limit)
    assert plan.known is not None
    if plan.budget is not None:
        span = plan.known.budget
        assert span.min <= plan.budget <= (span.max or plan.budget)
        assert plan.max_output_tokens is None or plan.budget < plan.max_output_tokens
        assert str(plan.budget) in str(plan.fields)


@given(targets, policies, limits)
def test_a_budget_leaves_the_answer_its_room_or_the_difference_is_told(
    target: ControlTarget, policy: ReasoningPolicy, limit: int | None
) -> None:
    plan = plan_reasoning(policy, target, max_output_tokens=limit)
    if plan.budget is None or plan.max_output_tokens is None:
        return
    left = plan.max_output_tokens - plan.budget
    assert left > 0
    if left < min(1024, plan.max_output_tokens // 2):
        assert plan.known is not None
        assert plan.budget == plan.known.budget.min
        assert plan.clamped or plan.floored
        assert plan.degraded


@given(st.sampled_from(EFFORTS), st.integers(1, 200_000))
def test_one_level_and_one_limit_are_one_budget_at_every_provider_of_budgets(effort: Any, limit: int) -> None:
    policy = ReasoningPolicy(mode="effort", effort=effort)
    free = [
        ("openrouter", "openai_chat", "qwen/qwen3.6-27b"),
        ("qwen", "openai_chat", "qwen-plus"),
        ("vllm", "openai_chat", "Qwen/Qwen3-32B"),
        ("llama-server", "openai_chat", "Qwen3-1.7B"),
    ]
    plans = [plan_reasoning(policy, ControlTarget(*place), max_output_tokens=limit) for place in free]
    assert len({(plan.budget, plan.clamped) for plan in plans}) == 1


@given(targets, st.booleans(), limits)
def test_off_is_never_silent_where_silence_is_on(target: ControlTarget, show: bool, limit: int | None) -> None:
    plan = plan_reasoning(ReasoningPolicy(mode="off"), target, show=show, max_output_tokens=limit)
    assert plan.known is not None
    if plan.known.facts.omit == "on":
        assert plan.fields or plan.system_text or plan.degraded
    assert plan.floored == bool(plan.degraded)


@given(targets, policies, limits, st.booleans())
def test_fields_that_exclude_each_other_are_never_sent_together(
    target: ControlTarget, policy: ReasoningPolicy, limit: int | None, show: bool
) -> None:
    plan = plan_reasoning(policy, target, max_output_tokens=limit, show=show)
    assert plan.known is not None
    for names in plan.known.form.exclusive:
        assert sum(value_at(plan.fields, name) is not None for name in names) <= 1


@given(targets, policies, limits)
def test_what_differs_is_told_and_the_callers_limit_stays(
    target: ControlTarget, policy: ReasoningPolicy, limit: int | None
) -> None:
    plan = plan_reasoning(policy, target, max_output_tokens=limit)
    if plan.clamped or plan.floored:
        assert plan.degraded
    if limit is not None:
        assert plan.max_output_tokens == limit
    assert not _placeholders(plan.fields)


@given(targets, policies)
def test_the_same_question_has_the_same_answer(target: ControlTarget, policy: ReasoningPolicy) -> None:
    assert plan_reasoning(policy, target) == plan_reasoning(policy, target)


def _placeholders(value: Any) -> bool:
    if isinstance(value, dict):
        return any(name.startswith("$") or _placeholders(inner) for name, inner in value.items())
    return value is None or (isinstance(value, str) and value.startswith("$"))
