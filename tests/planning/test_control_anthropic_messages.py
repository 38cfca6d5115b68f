"""What Anthropic is told of thinking: its own clients' words unchanged where the model takes them, and everybody's else made to fit."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]
SHOWN: Fields = {"type": "adaptive", "display": "summarized"}
ADAPTIVE: Fields = {"type": "adaptive"}
OFF: Fields = {"type": "disabled"}
TOOL: Fields = {"name": "f", "input_schema": {"type": "object"}}
BINDING: Fields = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def enabled(tokens: int, **more: Any) -> Fields:
    return {"type": "enabled", "budget_tokens": tokens, **more}


def effort(level: str) -> Fields:
    return {"output_config": {"effort": level}}


def own(model: str, **fields: Any) -> Sent:
    """Return what becomes of an Anthropic client's words."""
    return sent("anthropic_messages", "anthropic", model, **{"max_tokens": 4000, **fields})


def told(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Chat Completions client's words."""
    return sent("openai_chat", "anthropic", model, **fields)


AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "a budget": ("claude-sonnet-4-5", {"thinking": enabled(2000)}),
    "a budget next to the limit": ("claude-sonnet-4-5", {"thinking": enabled(2976)}),
    "a budget and its display": ("claude-opus-4-6", {"thinking": enabled(2000, display="omitted")}),
    "the default display, said aloud": ("claude-opus-4-6", {"thinking": enabled(2000, display="summarized")}),
    "a budget and an effort": ("claude-opus-4-5", {"thinking": enabled(2000), **effort("low")}),
    "adaptive": ("claude-opus-4-8", {"thinking": ADAPTIVE}),
    "adaptive, shown": ("claude-opus-4-8", {"thinking": SHOWN}),
    "adaptive at an effort": ("claude-opus-4-8", {"thinking": ADAPTIVE, **effort("xhigh")}),
    "updates and a binding": (
        "claude-sonnet-5",
        {"thinking": {**ADAPTIVE, "display": "updates", **BINDING}, **effort("high")},
    ),
    "off": ("claude-sonnet-5", {"thinking": OFF}),
    "off with an effort": ("claude-opus-5", {"thinking": OFF, **effort("high")}),
    "an effort alone": ("claude-sonnet-5", effort("low")),
    "an effort alone where silence is off": ("claude-opus-4-8", effort("low")),
    "between tools": ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
    "between tools at an effort": ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}, **effort("low")}),
    "sampling": ("claude-sonnet-4-5", {"temperature": 0.5, "top_k": 4}),
    "a forced tool": ("claude-sonnet-5", {"tool_choice": {"type": "any"}, "tools": [TOOL]}),
    "adaptive to a model nobody knows": ("lab-model", {"thinking": ADAPTIVE, **effort("max")}),
    "an effort alone to a model nobody knows": ("lab-model", effort("max")),
    "between tools to a model nobody knows": ("lab-model", {"thinking": {"type": "between_tools", **BINDING}}),
    "other fields of output_config": (
        "claude-sonnet-5",
        {"thinking": ADAPTIVE, "output_config": {"effort": "high", "task_budget": {"total": 20_000}}},
    ),
}


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_words_that_the_model_takes_go_on_as_they_came(model: str, fields: Fields) -> None:
    result = own(model, **fields)
    assert (result.fields, result.lost) == ({"max_tokens": 4000, **fields}, [])


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_they_are_written_so_too_where_nothing_can_be_forwarded(model: str, fields: Fields) -> None:
    result = own(model, bardo={"reasoning": "omit"}, **fields)
    assert (result.fields, result.lost) == ({"max_tokens": 4000, **fields}, [])


SAID_ANEW: dict[str, tuple[str, Fields, Fields, list[str]]] = {
    "a budget where there are levels": (
        "claude-sonnet-5",
        {"thinking": enabled(3000, **BINDING)},
        {"thinking": {**ADAPTIVE, **BINDING}, **effort("low")},
        ["reasoning_budget"],
    ),
    "adaptive where there are budgets": (
        "claude-sonnet-4-5",
        {"thinking": ADAPTIVE},
        {"thinking": enabled(2976)},
        ["reasoning_budget"],
    ),
    "off where there is none": (
        "claude-fable-5",
        {"thinking": OFF},
        {"thinking": ADAPTIVE, **effort("low")},
        ["reasoning"],
    ),
    "off beside too high an effort": (
        "claude-opus-5",
        {"thinking": OFF, **effort("max")},
        {"thinking": OFF, **effort("high")},
        ["reasoning_effort"],
    ),
    "an effort too high": (
        "claude-opus-4-6",
        {"thinking": ADAPTIVE, **effort("xhigh")},
        {"thinking": ADAPTIVE, **effort("high")},
        ["reasoning_effort"],
    ),
    "an effort alone too high": ("claude-opus-4-6", effort("xhigh"), effort("high"), ["reasoning_effort"]),
    "an effort alone where there is none": ("claude-sonnet-4-5", effort("low"), {}, ["reasoning_effort"]),
    "between tools elsewhere": (
        "claude-opus-4-8",
        {"thinking": {"type": "between_tools"}},
        {"thinking": ADAPTIVE},
        ["reasoning"],
    ),
    "a budget that leaves nothing": (
        "claude-sonnet-4-5",
        {"thinking": enabled(2000), "max_tokens": 1000},
        {"thinking": OFF, "max_tokens": 1000},
        ["reasoning"],
    ),
    "off where nothing thinks": ("claude-3-5-haiku-latest", {"thinking": OFF}, {}, []),
    "sampling while it thinks": (
        "claude-sonnet-4-5",
        {"thinking": enabled(2000), "temperature": 0.5, "top_p": 0.96, "top_k": 3},
        {"thinking": enabled(2000), "top_p": 0.96},
        ["top_k", "temperature"],
    ),
    "a forced tool beside a budget": (
        "claude-sonnet-4-5",
        {"thinking": enabled(2000), "tools": [TOOL], "tool_choice": {"type": "any"}},
        {"thinking": OFF, "tools": [TOOL], "tool_choice": {"type": "any"}},
        ["reasoning"],
    ),
    "a forced tool where none can be": (
        "claude-opus-5-5",
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}},
        {"tools": [TOOL], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
}


@pytest.mark.parametrize(("model", "fields", "expected", "lost"), SAID_ANEW.values(), ids=SAID_ANEW.keys())
def test_words_that_the_model_does_not_take_are_said_anew(
    model: str, fields: Fields, expected: Fields, lost: list[str]
) -> None:
    result = own(model, **fields)
    assert result.fields == {"max_tokens": 4000, **expected}
    assert [what for what, _, _ in result.lost] == lost


OTHERS: dict[str, tuple[str, Fields, Fields, list[str]]] = {
    "nothing": ("claude-sonnet-4-5", {}, {"max_tokens": 8192}, []),
    "a level is shown": (
        "claude-sonnet-5",
        {"reasoning_effort": "high"},
        {"thinking": SHOWN, **effort("high"), "max_tokens": 8192 + 32_768},
        [],
    ),
    "a level below all": (
        "claude-sonnet-5",
        {"reasoning_effort": "minimal"},
        {"thinking": SHOWN, **effort("low"), "max_tokens": 8192 + 2048},
        ["reasoning_effort"],
    ),
    "a hidden level": (
        "claude-sonnet-5",
        {"reasoning": {"effort": "low", "exclude": True}},
        {"thinking": {**ADAPTIVE, "display": "omitted"}, **effort("low"), "max_tokens": 8192 + 2048},
        [],
    ),
    "a level as a budget": (
        "claude-sonnet-4-5-20250929",
        {"reasoning_effort": "low"},
        {"thinking": enabled(2048), "max_tokens": 8192 + 2048},
        [],
    ),
    "a hidden budget": (
        "claude-sonnet-4-5",
        {"reasoning": {"max_tokens": 2048, "exclude": True}},
        {"thinking": enabled(2048, display="omitted"), "max_tokens": 8192 + 2048},
        [],
    ),
    "a limit leaves room for the answer": (
        "claude-sonnet-4-5",
        {"reasoning": {"max_tokens": 20_000}, "max_tokens": 10_000},
        {"thinking": enabled(8976), "max_tokens": 10_000},
        ["reasoning_budget"],
    ),
    "the model's own limit": (
        "claude-opus-4-1",
        {"reasoning_effort": "max"},
        {"thinking": enabled(32_000 - 1024), "max_tokens": 32_000},
        ["reasoning_budget"],
    ),
    "a level where nothing thinks": (
        "claude-3-5-haiku-latest",
        {"reasoning_effort": "high"},
        {"max_tokens": 8192},
        ["reasoning"],
    ),
    "sampling that is fixed": (
        "claude-opus-4-8",
        {"temperature": 0.5, "top_p": 1.0},
        {"max_tokens": 8192},
        ["temperature"],
    ),
    "a temperature too high": (
        "claude-sonnet-4-0",
        {"temperature": 1.5, "top_p": 0.5},
        {"temperature": 1.0, "top_p": 0.5, "max_tokens": 8192},
        ["temperature"],
    ),
}


@pytest.mark.parametrize(("model", "fields", "expected", "lost"), OTHERS.values(), ids=OTHERS.keys())
def test_other_clients_words_become_anthropics(model: str, fields: Fields, expected: Fields, lost: list[str]) -> None:
    result = told(model, **fields)
    assert result.fields == expected
    assert [what for what, _, _ in result.lost] == lost
