"""A request that says whether to think goes to the id of the pair that says so: the body, the attempt and the caller are told the same."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import sent

THINKING, PLAIN = "grok-4.20-0309-reasoning", "grok-4.20-0309-non-reasoning"


@pytest.mark.parametrize(
    ("spoken", "preset", "said", "asked", "model"),
    [
        ("openai_chat", "xai", {"reasoning_effort": "none"}, THINKING, PLAIN),
        ("openai_chat", "xai", {"reasoning_effort": "high"}, PLAIN, THINKING),
        ("openai_responses", "xai-responses", {"reasoning": {"effort": "none"}}, THINKING, PLAIN),
        ("anthropic_messages", "xai", {"thinking": {"type": "disabled"}}, THINKING, PLAIN),
        ("gemini", "xai", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, THINKING, PLAIN),
        ("openai_chat", "xai", {}, PLAIN, PLAIN),
        ("openai_chat", "xai", {}, THINKING, THINKING),
    ],
)
def test_the_body_has_the_id_that_says_the_policy_and_no_other_word_of_it(
    spoken: str, preset: str, said: dict[str, Any], asked: str, model: str
) -> None:
    fields = {"max_tokens": 100, **said} if spoken == "anthropic_messages" else said
    reached = sent(spoken, preset, asked, **fields)
    assert reached.attempt.target.model == model
    assert reached.attempt.wire.body.count(model.encode()) == 1
    assert b"effort" not in reached.attempt.wire.body
    renamed = [one for one in reached.lost if one[0] == "model"]
    assert renamed == ([] if model == asked else [("model", asked, model)])
