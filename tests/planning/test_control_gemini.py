"""What Gemini is told of thinking: its own clients' words unchanged where the model takes them, and everybody else's made to fit."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]


def thinking(**config: Any) -> Fields:
    return {"generationConfig": {"thinkingConfig": config}}


def own(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Gemini client's words."""
    return sent("gemini", "gemini", model, **fields)


def told(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Chat Completions client's words."""
    return sent("openai_chat", "gemini", model, **fields)


AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "nothing": ("gemini-2.5-flash", {}),
    "off": ("gemini-2.5-flash", thinking(thinkingBudget=0)),
    "dynamic": ("gemini-2.5-flash", thinking(thinkingBudget=-1)),
    "dynamic where silence is off": ("gemini-2.5-flash-lite", thinking(thinkingBudget=-1, includeThoughts=True)),
    "a budget": ("gemini-2.5-pro", thinking(thinkingBudget=512)),
    "a budget, shown": ("gemini-2.5-pro", thinking(thinkingBudget=512, includeThoughts=True)),
    "thoughts alone": ("gemini-2.5-flash", thinking(includeThoughts=True)),
    "no thoughts": ("gemini-2.5-flash", thinking(includeThoughts=False)),
    "a level": ("gemini-3-pro-preview", thinking(thinkingLevel="high")),
    "a level, hidden": ("gemini-3.5-flash", thinking(thinkingLevel="minimal", includeThoughts=False)),
    "a word of next year": ("gemini-3.5-flash", thinking(thinkingLevel="low", depth=1)),
    "a word of next year alone": ("gemini-2.5-flash", thinking(depth=1)),
    "a budget to a model nobody knows": ("tunedModels/mine", thinking(thinkingBudget=99, includeThoughts=True)),
    "a level to a model of next year": ("gemini-9-flash", thinking(thinkingLevel="minimal")),
}


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_words_that_the_model_takes_go_on_as_they_came(model: str, fields: Fields) -> None:
    result = own(model, **fields)
    assert (result.fields, result.lost) == (fields, [])


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_they_are_written_so_too_where_nothing_can_be_forwarded(model: str, fields: Fields) -> None:
    result = own(model, bardo={"reasoning": "omit"}, **fields)
    assert (result.fields, result.lost) == (fields, [])


SAID_ANEW: dict[str, tuple[str, Fields, Fields, list[Any]]] = {
    "off where there is none": (
        "gemini-2.5-pro",
        thinking(thinkingBudget=0, includeThoughts=True),
        thinking(thinkingBudget=128, includeThoughts=True),
        [("reasoning", "off", 128)],
    ),
    "thoughts of a model that is off": (
        "gemini-2.5-flash",
        thinking(thinkingBudget=0, includeThoughts=True),
        thinking(thinkingBudget=0),
        [],
    ),
    "a budget where there are levels": (
        "gemini-3.5-flash",
        thinking(thinkingBudget=20_480),
        thinking(thinkingLevel="high"),
        [("reasoning_budget", 20_480, "high")],
    ),
    "a level where there are budgets": ("gemini-2.5-flash", thinking(thinkingLevel="LOW"), thinking(thinkingBudget=2048), []),
    "a budget too small": (
        "gemini-2.5-flash-lite",
        thinking(thinkingBudget=300),
        thinking(thinkingBudget=512),
        [("reasoning_budget", 300, 512)],
    ),
    "dynamic is silence where there are levels": ("gemini-3.5-flash", thinking(thinkingBudget=-1), {}, []),
    "a wish to see wakes nothing": ("gemini-2.5-flash-lite", thinking(includeThoughts=True), {}, []),
    "off where nothing thinks": ("gemma-3-27b-it", thinking(thinkingBudget=0), {}, []),
    "dynamic where nothing thinks": (
        "gemma-3-27b-it",
        thinking(thinkingBudget=-1),
        {},
        [("reasoning", "auto", None)],
    ),
    "a budget where nothing thinks": (
        "gemini-2.0-flash",
        thinking(thinkingBudget=300),
        {},
        [("reasoning", 300, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "said", "fields", "lost"), SAID_ANEW.values(), ids=SAID_ANEW.keys())
def test_words_that_the_model_refuses_are_said_anew(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = own(model, **said)
    assert (result.fields, result.lost) == (fields, lost)


FOREIGN: dict[str, tuple[str, Fields, Fields, list[Any]]] = {
    "nothing said": ("models/gemini-2.5-flash", {}, thinking(includeThoughts=True), []),
    "nothing said where nothing thinks": ("gemma-3-27b-it", {}, {}, []),
    "off": ("gemini-2.5-flash", {"reasoning_effort": "none"}, thinking(thinkingBudget=0), []),
    "off where there is none": (
        "gemini-3-flash-preview",
        {"reasoning_effort": "none"},
        thinking(thinkingLevel="minimal"),
        [("reasoning", "off", "minimal")],
    ),
    "a level": (
        "gemini-2.5-flash",
        {"reasoning_effort": "low"},
        thinking(thinkingBudget=2048, includeThoughts=True),
        [],
    ),
    "a level too high": (
        "gemini-3.5-flash",
        {"reasoning_effort": "xhigh"},
        thinking(thinkingLevel="high", includeThoughts=True),
        [("reasoning_effort", "xhigh", "high")],
    ),
    "a level beside a limit": (
        "gemini-2.5-flash",
        {"reasoning_effort": "high", "max_tokens": 4000},
        {"generationConfig": {"maxOutputTokens": 4000, "thinkingConfig": {"thinkingBudget": 2976, "includeThoughts": True}}},
        [("reasoning_budget", "high", 2976)],
    ),
    "hidden": (
        "gemini-2.5-flash",
        {"reasoning": {"max_tokens": 300, "exclude": True}},
        thinking(thinkingBudget=300, includeThoughts=False),
        [],
    ),
    "left to the model": (
        "gemini-2.5-flash",
        {"reasoning": {"enabled": True}},
        thinking(includeThoughts=True),
        [],
    ),
    "left to a model that must be woken": (
        "gemini-2.5-flash-lite",
        {"reasoning": {"enabled": True}},
        thinking(thinkingBudget=-1, includeThoughts=True),
        [],
    ),
    "sampling": (
        "gemini-2.0-flash",
        {"temperature": 2.5, "min_p": 0.1},
        {"generationConfig": {"temperature": 2, "topP": 0.9}},
        [("min_p", 0.1, {"top_p": 0.9}), ("temperature", 2.5, 2.0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "said", "fields", "lost"), FOREIGN.values(), ids=FOREIGN.keys())
def test_other_clients_words_become_geminis(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = told(model, **said)
    assert (result.fields, result.lost) == (fields, lost)
