"""watsonx text generation has no word for thinking: nothing is sent, and what was asked is reported once."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import sent


@pytest.mark.parametrize(
    ("model", "said", "lost"),
    [
        ("google/flan-ul2", {}, []),
        ("google/flan-ul2", {"reasoning_effort": "none"}, []),
        ("google/flan-ul2", {"reasoning_effort": "low"}, [("reasoning", "low", None)]),
        ("openai/gpt-oss-120b", {"reasoning_effort": "none"}, [("reasoning", "off", None)]),
        ("openai/gpt-oss-120b", {"reasoning_effort": "high"}, [("reasoning", "high", None)]),
    ],
    ids=["nothing", "off", "a level", "off where it always thinks", "a level where it always thinks"],
)
def test_what_was_asked_of_thinking_is_reported(model: str, said: dict[str, Any], lost: list[Any]) -> None:
    result = sent("openai_chat", "watsonx", model, **said)
    assert (result.fields, result.lost) == ({}, lost)
