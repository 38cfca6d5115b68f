"""What Gemini's Interactions are told of thinking: a level for every model, and summaries where they are wanted."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]


def config(**fields: Any) -> Fields:
    return {"generation_config": fields}


def own(model: str, **fields: Any) -> Sent:
    """Return what becomes of an Interactions client's words."""
    return sent("gemini_interactions", "gemini-interactions", model, **fields)


def told(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Chat Completions client's words."""
    return sent("openai_chat", "gemini-interactions", model, **fields)


AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "nothing": ("gemini-2.5-flash", {}),
    "a level": ("gemini-2.5-flash", config(thinking_level="low")),
    "a level and summaries": ("gemini-3.5-flash", config(thinking_level="minimal", thinking_summaries="auto")),
    "a level without summaries": ("gemini-3.5-flash", config(thinking_level="high", thinking_summaries="none")),
    "summaries alone": ("gemini-2.5-flash", config(thinking_summaries="auto")),
    "no summaries": ("gemini-2.5-flash", config(thinking_summaries="none")),
    "a level to a model nobody knows": ("mine", config(thinking_level="minimal", thinking_summaries="auto")),
    "words beside": ("gemini-3.5-flash", config(thinking_level="low", temperature=0.5, speech_config={"voice": "v"})),
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
    "a level too low": (
        "gemini-3.7-flash",
        config(thinking_level="minimal"),
        config(thinking_level="low"),
        [("reasoning_effort", "minimal", "low")],
    ),
    "a level where nothing thinks": (
        "gemma-3-27b-it",
        config(thinking_level="low", thinking_summaries="auto"),
        {},
        [("reasoning", "low", None)],
    ),
    "a wish to see wakes nothing": ("gemini-2.5-flash-lite", config(thinking_summaries="auto"), {}, []),
}


@pytest.mark.parametrize(("model", "said", "fields", "lost"), SAID_ANEW.values(), ids=SAID_ANEW.keys())
def test_words_that_the_model_refuses_are_said_anew(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = own(model, **said)
    assert (result.fields, result.lost) == (fields, lost)


FOREIGN: dict[str, tuple[str, Fields, Fields, list[Any]]] = {
    "nothing said": ("gemini-3-flash-preview", {}, config(thinking_summaries="auto"), []),
    "a level": (
        "gemini-3-flash-preview",
        {"reasoning_effort": "minimal"},
        config(thinking_level="minimal", thinking_summaries="auto"),
        [],
    ),
    "a level between two": (
        "gemini-3-pro-preview",
        {"reasoning_effort": "medium"},
        config(thinking_level="low", thinking_summaries="auto"),
        [("reasoning_effort", "medium", "low")],
    ),
    "a budget": (
        "gemini-2.5-flash",
        {"reasoning": {"max_tokens": 9000}},
        config(thinking_level="medium", thinking_summaries="auto"),
        [("reasoning_budget", 9000, "medium")],
    ),
    "off": (
        "gemini-2.5-flash",
        {"reasoning_effort": "none"},
        config(thinking_level="low"),
        [("reasoning", "off", "low")],
    ),
    "off where silence is off": ("gemini-2.5-flash-lite", {"reasoning_effort": "none"}, {}, []),
    "hidden": (
        "gemini-2.5-flash",
        {"reasoning": {"effort": "high", "exclude": True}},
        config(thinking_level="high", thinking_summaries="none"),
        [],
    ),
    "where nothing thinks": ("gemma-3-27b", {"reasoning_effort": "high"}, {}, [("reasoning", "high", None)]),
}


@pytest.mark.parametrize(("model", "said", "fields", "lost"), FOREIGN.values(), ids=FOREIGN.keys())
def test_other_clients_words_become_levels(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = told(model, **said)
    assert (result.fields, result.lost) == (fields, lost)
