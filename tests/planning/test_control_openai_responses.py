"""What providers of the Responses dialect are told of thinking."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]


def responses(preset: str, model: str, **fields: Any) -> Sent:
    return sent("openai_responses", preset, model, **fields)


AS_THEY_CAME: dict[str, tuple[str, str, Fields]] = {
    "a level": ("openai", "gpt-5.2", {"reasoning": {"effort": "low"}}),
    "a level and a summary": ("openai", "gpt-5.2", {"reasoning": {"effort": "low", "summary": "detailed"}}),
    "off and a summary": ("openai", "gpt-5.2", {"reasoning": {"effort": "none", "summary": "auto"}}),
    "a summary alone turns nothing on": ("openai", "gpt-5.2", {"reasoning": {"summary": "auto"}}),
    "a summary of thinking in silence": ("openai", "gpt-5", {"reasoning": {"summary": "detailed"}}),
    "other words": ("openai", "gpt-6-astra", {"reasoning": {"effort": "low", "context": "all_turns", "mode": "pro"}}),
    "DeepSeek": ("deepseek-responses", "deepseek-v4-flash", {"reasoning": {"effort": "high"}}),
    "OpenRouter's budget": (
        "openrouter-responses",
        "qwen/qwen3.6-27b",
        {"reasoning": {"max_tokens": 3000, "summary": "auto"}},
    ),
    "OpenRouter's off": ("openrouter-responses", "qwen/qwen3.6-27b", {"reasoning": {"enabled": False}}),
}


@pytest.mark.parametrize(("preset", "model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_a_providers_own_words_go_on_as_they_came(preset: str, model: str, fields: Fields) -> None:
    told = responses(preset, model, **fields)
    assert (told.fields, told.lost) == (fields, [])


def test_a_body_that_says_it_all_is_forwarded_to_the_letter() -> None:
    own = {"reasoning": {"effort": "low", "summary": "detailed"}, "input": [{"role": "user", "content": "Hello."}]}
    assert responses("openai", "gpt-5.2", **own).fields == own


CHANGED: dict[str, tuple[str, str, Fields, Fields, list[tuple[str, Any, Any]]]] = {
    "a budget": (
        "openai",
        "gpt-5.2",
        {"reasoning": {"max_tokens": 3000}},
        {"reasoning": {"effort": "low"}},
        [("reasoning_budget", 3000, "low")],
    ),
    "a budget and a summary": (
        "openai",
        "gpt-5.2",
        {"reasoning": {"max_tokens": 9000, "summary": "concise"}},
        {"reasoning": {"effort": "medium", "summary": "concise"}},
        [("reasoning_budget", 9000, "medium")],
    ),
    "a tie goes up": (
        "openai",
        "gpt-5.2",
        {"reasoning": {"max_tokens": 5120}},
        {"reasoning": {"effort": "medium"}},
        [("reasoning_budget", 5120, "medium")],
    ),
    "off where it cannot be": (
        "openai",
        "gpt-5",
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"effort": "minimal"}},
        [("reasoning", "off", "minimal")],
    ),
    "Ark's words at OpenAI": (
        "openai",
        "gpt-5.2",
        {"thinking": {"type": "disabled"}},
        {"reasoning": {"effort": "none"}},
        [],
    ),
    "Chat's field": ("openai", "gpt-5.2", {"reasoning_effort": "high"}, {"reasoning": {"effort": "high"}}, []),
    "a switch": ("openai", "gpt-5.2", {"enable_thinking": False}, {"reasoning": {"effort": "none"}}, []),
    "a level where nothing thinks": (
        "openai",
        "gpt-4o",
        {"reasoning": {"effort": "low", "summary": "auto"}},
        {},
        [("reasoning", "low", None), ("reasoning.summary", "auto", None)],
    ),
    "a level where only budgets are taken": (
        "openrouter-responses",
        "qwen/qwen3.6-27b",
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"max_tokens": 2048}},
        [],
    ),
    "thinking that is excluded": (
        "openai",
        "gpt-5.2",
        {"reasoning": {"effort": "low", "exclude": True}},
        {"reasoning": {"effort": "low"}},
        [],
    ),
}


@pytest.mark.parametrize(("preset", "model", "fields", "expected", "lost"), CHANGED.values(), ids=CHANGED.keys())
def test_other_words_become_the_providers_own(
    preset: str, model: str, fields: Fields, expected: Fields, lost: list[tuple[str, Any, Any]]
) -> None:
    told = responses(preset, model, **fields)
    assert (told.fields, told.lost) == (expected, lost)


def test_what_is_asked_of_bardo_goes_first_and_leaves_other_words() -> None:
    own = {"effort": "low", "summary": "detailed"}
    told = responses("openai", "gpt-5.2", reasoning=own, bardo={"reasoning": "high"})
    assert told.fields == {"reasoning": {"effort": "high", "summary": "detailed"}}
    assert told.lost == [("reasoning.effort", "low", "high")]
