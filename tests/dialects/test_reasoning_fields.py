"""How clients of OpenAI's dialects say how the model should think."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects import dialect
from bardo.dialects.shared.control_fields import FIELDS, TEMPLATE, read_thinking, with_own_words
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import ReasoningPolicy, Request
from bardo.values.wire import Arrival

NAME = "openai_chat"
DIALECTS = ("openai_chat", "openai_responses")
OFF, ON = ReasoningPolicy(mode="off"), ReasoningPolicy(mode="auto")
LOW = ReasoningPolicy(mode="effort", effort="low")
BUDGET = ReasoningPolicy(mode="budget", budget=2000)


def both(**fields: Any) -> ReasoningPolicy:
    return ReasoningPolicy(**{"mode": "budget", "budget": 2000, "effort": "low", **fields})


def shown(visible: bool) -> ReasoningPolicy:
    return ReasoningPolicy(mode="auto", visible=visible, enables_thinking=False)


def template(**arguments: Any) -> dict[str, Any]:
    return {TEMPLATE: arguments}


POLICIES: dict[str, tuple[dict[str, Any], ReasoningPolicy | None]] = {
    "nothing": ({}, None),
    "nulls": (dict.fromkeys(FIELDS | {TEMPLATE}), None),
    "empty objects": ({"reasoning": {}, "thinking": {}, TEMPLATE: {}}, None),
    # OpenAI, Groq, Mistral.
    "a level": ({"reasoning_effort": "low"}, LOW),
    "the highest level": ({"reasoning_effort": "max"}, ReasoningPolicy(mode="effort", effort="max")),
    "none is off": ({"reasoning_effort": "none"}, OFF),
    "Groq's default": ({"reasoning_effort": "default"}, ON),
    # OpenRouter, Responses, Together, Venice.
    "an object's level": ({"reasoning": {"effort": "low"}}, LOW),
    "an object's none": ({"reasoning": {"effort": "none"}}, OFF),
    "an object's budget": ({"reasoning": {"max_tokens": 2000}}, BUDGET),
    "an object's off": ({"reasoning": {"enabled": False}}, OFF),
    "an object's on": ({"reasoning": {"enabled": True}}, ON),
    "an object's on and level": ({"reasoning": {"enabled": True, "effort": "low"}}, LOW),
    "excluded": (
        {"reasoning": {"effort": "low", "exclude": True}},
        ReasoningPolicy(mode="effort", effort="low", visible=False),
    ),
    "not included": ({"include_reasoning": False}, shown(False)),
    "included": ({"include_reasoning": True}, shown(True)),
    "exclude goes before include": ({"include_reasoning": True, "reasoning": {"exclude": True}}, shown(False)),
    # DeepSeek, Kimi, GLM, MiniMax, Ark, Anthropic's shape.
    "enabled": ({"thinking": {"type": "enabled"}}, ON),
    "enabled with a budget": ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, BUDGET),
    "enabled with a level beside": ({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, LOW),
    "disabled": ({"thinking": {"type": "disabled"}}, OFF),
    "adaptive": ({"thinking": {"type": "adaptive"}}, ON),
    "auto": ({"thinking": {"type": "auto"}}, ON),
    "thinking as a flag": ({"thinking": False}, OFF),
    # Qwen, vLLM.
    "Qwen's on": ({"enable_thinking": True}, ON),
    "Qwen's off": ({"enable_thinking": False}, OFF),
    "Qwen's budget": ({"enable_thinking": True, "thinking_budget": 2000}, BUDGET),
    "Qwen's budget alone": ({"thinking_budget": 2000}, BUDGET),
    "vLLM's budget": ({"thinking_token_budget": 2000, **template(enable_thinking=True)}, BUDGET),
    # Ollama.
    "think": ({"think": True}, ON),
    "do not think": ({"think": False}, OFF),
    "think at a level": ({"think": "low"}, LOW),
    # The arguments of chat templates.
    "a switch": (template(enable_thinking=False), OFF),
    "another switch": (template(thinking=True), ON),
    "both switches": (template(thinking=False, enable_thinking=False), OFF),
    "a template's budget": (template(enable_thinking=True, thinking_budget=2000), BUDGET),
    "a template's level": (template(reasoning_effort="low"), LOW),
    "other arguments": (template(add_generation_prompt=True), None),
    # Several at once.
    "a level and a budget": ({"reasoning": {"effort": "low", "max_tokens": 2000}}, both()),
    "the same twice": ({"reasoning_effort": "low", "reasoning": {"effort": "low"}}, LOW),
    "off and a level": (
        {"thinking": {"type": "disabled"}, "reasoning_effort": "low"},
        ReasoningPolicy(mode="off", effort="low"),
    ),
    "off and a budget": (
        {"enable_thinking": False, "thinking_budget": 2000},
        ReasoningPolicy(mode="off", budget=2000),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "policy"), POLICIES.values(), ids=POLICIES.keys())
def test_fields_become_a_policy(fields: dict[str, Any], policy: ReasoningPolicy | None) -> None:
    read = read_thinking(fields, NAME).policy
    assert (read and msgspec.structs.replace(read, raw_fields={})) == policy


@pytest.mark.parametrize("name", [name for name, (_, policy) in POLICIES.items() if policy is not None])
def test_a_policy_remembers_its_words(name: str) -> None:
    fields, _ = POLICIES[name]
    policy = read_thinking({**fields, "user": "u"}, NAME).policy
    assert policy is not None
    assert policy.raw_fields == fields


WORDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a summary": ({"reasoning": {"effort": "low", "summary": "detailed"}}, {"reasoning.summary": "detailed"}),
    "a context": ({"reasoning": {"context": "all", "mode": "pro"}}, {"reasoning.context": "all", "reasoning.mode": "pro"}),
    "what Kimi keeps": ({"thinking": {"type": "enabled", "keep": "all"}}, {"thinking.keep": "all"}),
    "what GLM clears": ({"thinking": {"clear_thinking": False}}, {"thinking.clear_thinking": False}),
    "nulls": ({"reasoning": {"effort": "low", "summary": None}}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), WORDS.values(), ids=WORDS.keys())
def test_words_beside_are_carried(fields: dict[str, Any], words: dict[str, Any]) -> None:
    policy = read_thinking(fields, NAME).policy
    assert policy is not None
    assert policy.carried == (Carried(NAME, words) if words else None)


@pytest.mark.parametrize(
    ("fields", "visible"),
    [({"summary": "auto"}, True), ({"generate_summary": "concise"}, True), ({"summary": "none"}, False), ({}, None)],
)
def test_who_asks_for_a_summary_wants_to_read(fields: dict[str, Any], visible: bool | None) -> None:
    policy = read_thinking({"reasoning": {"effort": "low", **fields}}, NAME).policy
    assert policy is not None
    assert policy.visible is visible


def test_a_word_that_is_no_amount_turns_nothing_on() -> None:
    policy = read_thinking({"reasoning": {"summary": "auto"}}, NAME).policy
    assert policy is not None
    assert (policy.mode, policy.enables_thinking) == ("auto", False)


def test_thinking_that_is_excluded_is_omitted() -> None:
    assert read_thinking({"reasoning": {"exclude": True}}, NAME).omit
    assert read_thinking({"include_reasoning": False}, NAME).omit
    assert not read_thinking({"reasoning": {"exclude": False}, "include_reasoning": False}, NAME).omit


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown level": ({"reasoning_effort": "huge"}, "reasoning_effort"),
    "an empty level": ({"reasoning_effort": ""}, "reasoning_effort"),
    "an empty nested level": ({"reasoning": {"effort": ""}}, "reasoning.effort"),
    "an unknown nested level": ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    "an unknown level to think at": ({"think": "hard"}, "think"),
    "an unknown template's level": (template(reasoning_effort="huge"), f"{TEMPLATE}.reasoning_effort"),
    "an unknown type": ({"thinking": {"type": "deep"}}, "thinking.type"),
    "a negative budget": ({"reasoning": {"max_tokens": -1}}, "reasoning.max_tokens"),
    "a negative thinking budget": ({"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking.budget_tokens"),
    "Qwen's negative budget": ({"thinking_budget": -5}, "thinking_budget"),
    "a template's negative budget": (template(thinking_budget=-5), f"{TEMPLATE}.thinking_budget"),
    "a level that is no text": ({"reasoning_effort": 3}, "reasoning_effort"),
    "an object that is none": ({"reasoning": "low"}, "reasoning"),
    "a switch that is none": ({"enable_thinking": "yes"}, "enable_thinking"),
    "a template's switch that is none": (template(thinking=1), f"{TEMPLATE}.thinking"),
    "arguments that are none": ({TEMPLATE: []}, TEMPLATE),
    "a thought that is none": ({"thinking": 5}, "thinking"),
    "a budget that is none": ({"thinking_budget": "all"}, "thinking_budget"),
    "on and off": ({"enable_thinking": True, "reasoning_effort": "none"}, "enable_thinking"),
    "on and off in the template": ({"think": True, **template(enable_thinking=False)}, f"{TEMPLATE}.enable_thinking"),
    "two levels": ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, "reasoning.effort"),
    "two budgets": ({"thinking_budget": 1, "reasoning": {"max_tokens": 2}}, "reasoning.max_tokens"),
}  # fmt: skip


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize(("fields", "param"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused_by_name(spoken: str, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        decoded(spoken, fields)
    assert refused.value.param == param
    assert param in refused.value.message


def decoded(spoken: str, fields: dict[str, Any]) -> Request:
    body = {"model": "m", "messages": [], "input": "hi", **fields}
    return dialect(spoken).decode_request(json.dumps(body).encode(), Arrival())


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("name", POLICIES)
def test_each_dialect_reads_them_and_keeps_none_as_unknown(spoken: str, name: str) -> None:
    fields, policy = POLICIES[name]
    request = decoded(spoken, fields)
    assert (request.reasoning and msgspec.structs.replace(request.reasoning, raw_fields={})) == policy
    assert not FIELDS & request.extra.keys()
    assert request.extra.get(TEMPLATE, {}) == ({"add_generation_prompt": True} if name == "other arguments" else {})
    assert request.options.omit_reasoning is (policy is not None and policy.visible is False)


@pytest.mark.parametrize("spoken", DIALECTS)
def test_the_templates_other_arguments_stay(spoken: str) -> None:
    request = decoded(spoken, template(enable_thinking=False, documents=[1]))
    assert request.extra[TEMPLATE] == {"documents": [1]}


def policy_of(**fields: Any) -> Request:
    return decoded(NAME, fields)


OWN: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "beside the control's": (
        {"reasoning": {"effort": "high", "summary": "detailed"}},
        {"reasoning": {"effort": "low", "summary": "auto"}},
        {"reasoning": {"effort": "low", "summary": "detailed"}},
        {},
    ),
    "where another field is used": (
        {"reasoning": {"effort": "high", "summary": "detailed"}},
        {"reasoning_effort": "low"},
        {"reasoning_effort": "low"},
        {"reasoning.summary": "detailed"},
    ),
    "where nothing could be said": (
        {"reasoning": {"effort": "high", "summary": "detailed"}},
        {},
        {},
        {"reasoning.summary": "detailed"},
    ),
    "where nothing else was said": (
        {"reasoning": {"summary": "detailed"}},
        {},
        {"reasoning": {"summary": "detailed"}},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "control", "written", "left"), OWN.values(), ids=OWN.keys())
def test_the_callers_own_words_stay_with_their_object(
    fields: dict[str, Any], control: dict[str, Any], written: dict[str, Any], left: dict[str, Any]
) -> None:
    assert with_own_words(control, policy_of(**fields), NAME) == (written, left)


def test_words_of_another_dialect_are_not_written() -> None:
    assert with_own_words({}, policy_of(reasoning={"summary": "auto"}), "openai_responses") == ({}, {})


_VALUES = (
    st.none() | st.booleans() | st.integers(-5, 5000) | st.sampled_from(["low", "none", "max", "x", "enabled", ""])
)
_OBJECTS = st.dictionaries(
    st.sampled_from(["effort", "max_tokens", "enabled", "exclude", "type", "budget_tokens", "thinking", "x"]),
    _VALUES,
    max_size=4,
)


@given(st.dictionaries(st.sampled_from([*sorted(FIELDS), TEMPLATE]), _VALUES | _OBJECTS, max_size=4))
def test_whatever_is_read_makes_sense_or_is_refused(fields: dict[str, Any]) -> None:
    try:
        policy = read_thinking(fields, NAME).policy
    except InvalidRequest:
        return
    if policy is not None:
        assert (policy.mode == "effort") <= (policy.effort is not None)
        assert (policy.mode == "budget") <= (policy.budget is not None and policy.budget >= 0)
