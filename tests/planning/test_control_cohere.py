"""What Cohere is told of thinking, and its ranges of sampling."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]
THINKS = "command-a-reasoning-08-2025"
SILENT = "command-a-03-2025"
LEVELS = "north-mini-code"
DISABLED: Fields = {"thinking": {"type": "disabled"}}
ENABLED: Fields = {"thinking": {"type": "enabled"}}


def enabled(tokens: int, **more: Any) -> Fields:
    return {"thinking": {"type": "enabled", "token_budget": tokens, **more}}


def own(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Cohere client's words."""
    return sent("cohere", "cohere", model, **fields)


def told(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Chat Completions client's words."""
    return sent("openai_chat", "cohere", model, **fields)


AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "nothing": (THINKS, {}),
    "on": (THINKS, ENABLED),
    "off": (THINKS, DISABLED),
    "a budget": (THINKS, enabled(50)),
    "a word of next year": (THINKS, enabled(50, depth=1)),
    "a level": (LEVELS, {"reasoning_effort": "high"}),
    "off by a level": (LEVELS, {"reasoning_effort": "none"}),
    "on to a model nobody knows": ("mine", ENABLED),
    "a level to a model nobody knows": ("mine", {"reasoning_effort": "low"}),
    "words beside": (THINKS, {**enabled(50), "max_tokens": 100, "safety_mode": "STRICT", "p": 0.5}),
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
    "a level where there are budgets": (THINKS, {"reasoning_effort": "low"}, enabled(2048), []),
    "off by a level": (THINKS, {"reasoning_effort": "none"}, DISABLED, []),
    "a budget where there are levels": (
        LEVELS,
        enabled(50),
        {"reasoning_effort": "high"},
        [("reasoning_budget", 50, "high")],
    ),
    "a budget above the limit": (
        THINKS,
        {**enabled(50), "max_tokens": 40},
        {**enabled(20), "max_tokens": 40},
        [("reasoning_budget", 50, 20)],
    ),
    "a level beside a budget": (
        THINKS,
        {**enabled(50), "reasoning_effort": "high"},
        enabled(50),
        [("reasoning_effort", "high", None)],
    ),
    "off where nothing thinks": (SILENT, DISABLED, {}, []),
    "on where nothing thinks": (SILENT, ENABLED, {}, [("reasoning", "auto", None)]),
}


@pytest.mark.parametrize(("model", "said", "fields", "lost"), SAID_ANEW.values(), ids=SAID_ANEW.keys())
def test_words_that_the_model_refuses_are_said_anew(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = own(model, **said)
    assert (result.fields, result.lost) == (fields, lost)


FOREIGN: dict[str, tuple[str, Fields, Fields, list[Any]]] = {
    "nothing said": (THINKS, {}, {}, []),
    "off": (THINKS, {"reasoning_effort": "none"}, DISABLED, []),
    "left to the model": (THINKS, {"reasoning": {"enabled": True}}, {}, []),
    "a level": (THINKS, {"reasoning_effort": "low"}, enabled(2048), []),
    "a level that leaves the answer no room": (
        THINKS,
        {"reasoning_effort": "max"},
        enabled(31_000),
        [("reasoning_budget", "max", 31_000)],
    ),
    "a level beside a limit": (
        THINKS,
        {"reasoning_effort": "high", "max_tokens": 9024},
        {**enabled(8000), "max_tokens": 9024},
        [("reasoning_budget", "high", 8000)],
    ),
    "a budget beside a small limit": (
        THINKS,
        {"reasoning": {"max_tokens": 5000}, "max_tokens": 100},
        {**enabled(50), "max_tokens": 100},
        [("reasoning_budget", 5000, 50)],
    ),
    "where nothing thinks": (SILENT, {"reasoning_effort": "low"}, {}, [("reasoning", "low", None)]),
    "sampling": (
        SILENT,
        {"top_p": 1, "presence_penalty": 2, "frequency_penalty": -1, "temperature": 1.5},
        {"p": 0.99, "presence_penalty": 1, "frequency_penalty": 0, "temperature": 1.5},
        [("top_p", 1, 0.99), ("frequency_penalty", -1, 0), ("presence_penalty", 2, 1)],
    ),
    "stops and answers": (
        SILENT,
        {"stop": list("abcdef"), "n": 2},
        {"stop_sequences": list("abcde")},
        [("n", 2, 1), ("stop", list("abcdef"), list("abcde"))],
    ),
}


@pytest.mark.parametrize(("model", "said", "fields", "lost"), FOREIGN.values(), ids=FOREIGN.keys())
def test_other_clients_words_become_coheres(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = told(model, **said)
    assert (result.fields, result.lost) == (fields, lost)
