"""What Ollama is told of thinking, and which tools it is offered where one is to be called."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]


def own(model: str, **fields: Any) -> Sent:
    """Return what becomes of an Ollama client's words."""
    return sent("ollama", "ollama", model, **fields)


def told(model: str, **fields: Any) -> Sent:
    """Return what becomes of a Chat Completions client's words."""
    return sent("openai_chat", "ollama", model, **fields)


AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "nothing": ("qwen3:4b", {}),
    "on": ("qwen3:4b", {"think": True}),
    "off": ("qwen3:4b", {"think": False}),
    "on where there are levels": ("gpt-oss:20b", {"think": True}),
    "a level": ("gpt-oss:20b", {"think": "medium"}),
    "on to a model nobody knows": ("mine", {"think": True}),
    "a level to a model nobody knows": ("mine", {"think": "max"}),
    "words beside": ("qwen3:4b", {"think": False, "keep_alive": "5m", "options": {"num_predict": 9, "num_ctx": 4096}}),
}


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_words_that_the_model_takes_go_on_as_they_came(model: str, fields: Fields) -> None:
    result = own(model, **fields)
    assert (result.fields, result.lost) == (fields, [])


SAID_ANEW: dict[str, tuple[str, Fields, Fields, list[Any]]] = {
    "a level where there is a switch": ("qwen3:4b", {"think": "low"}, {"think": True}, [("reasoning", "low", "on")]),
    "off where there is none": ("gpt-oss:20b", {"think": False}, {"think": "low"}, [("reasoning", "off", "low")]),
    "a level too high": ("gpt-oss:20b", {"think": "max"}, {"think": "high"}, [("reasoning_effort", "max", "high")]),
    "off where nothing thinks": ("llama3.1", {"think": False}, {}, []),
    "on where nothing thinks": ("llama3.1", {"think": True}, {}, [("reasoning", "auto", None)]),
}


@pytest.mark.parametrize(("model", "said", "fields", "lost"), SAID_ANEW.values(), ids=SAID_ANEW.keys())
def test_words_that_the_model_refuses_are_said_anew(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = own(model, **said)
    assert (result.fields, result.lost) == (fields, lost)


FOREIGN: dict[str, tuple[str, Fields, Fields, list[Any]]] = {
    "nothing said": ("qwen3:4b", {}, {}, []),
    "off": ("qwen3:4b", {"reasoning_effort": "none"}, {"think": False}, []),
    "left to the model": ("qwen3:4b", {"reasoning": {"enabled": True}}, {}, []),
    "left to a model that must be woken": ("deepseek-v3.1", {"reasoning": {"enabled": True}}, {"think": True}, []),
    "a level": ("gpt-oss:20b", {"reasoning_effort": "medium"}, {"think": "medium"}, []),
    "a level Ollama has no word for": (
        "mine",
        {"reasoning_effort": "minimal"},
        {"think": "low"},
        [("reasoning_effort", "minimal", "low")],
    ),
    "a level that acts as another": (
        "mine",
        {"reasoning_effort": "xhigh"},
        {"think": "max"},
        [("reasoning_effort", "xhigh", "max")],
    ),
    "a budget": (
        "gpt-oss:20b",
        {"reasoning": {"max_tokens": 9000}},
        {"think": "medium"},
        [("reasoning_budget", 9000, "medium")],
    ),
    "a parameter by Ollama's name": (
        "llama3.1",
        {"repetition_penalty": 1.1, "max_tokens": 9},
        {"options": {"num_predict": 9, "repeat_penalty": 1.1}},
        [],
    ),
}


@pytest.mark.parametrize(("model", "said", "fields", "lost"), FOREIGN.values(), ids=FOREIGN.keys())
def test_other_clients_words_become_ollamas(model: str, said: Fields, fields: Fields, lost: list[Any]) -> None:
    result = told(model, **said)
    assert (result.fields, result.lost) == (fields, lost)


def test_a_tool_that_is_named_is_the_only_one_offered() -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]
    choice = {"type": "function", "function": {"name": "g"}}
    result = told("qwen3:4b", tools=tools, tool_choice=choice)
    assert result.fields == {"tools": [tools[1]]}
    assert result.lost == [("tool_choice", "g", None)]
