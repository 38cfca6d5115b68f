"""What Bedrock's InvokeModel is told of thinking, in the language of each family's payload."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import sent

Fields = dict[str, Any]
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CLAUDE_5 = "global.anthropic.claude-opus-5"
CLAUDE_48 = "us.anthropic.claude-opus-4-8"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
GPT = "openai.gpt-oss-20b-1:0"
ANTHROPIC: Fields = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 4000}
NOVA: Fields = {"schemaVersion": "messages-v1"}
ADAPTIVE: Fields = {"type": "adaptive"}


def enabled(tokens: int) -> Fields:
    return {"type": "enabled", "budget_tokens": tokens}


def config(**fields: Any) -> Fields:
    return {**NOVA, "inferenceConfig": fields}


LOW = {"type": "enabled", "maxReasoningEffort": "low"}
AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "Claude's budget": (CLAUDE, {**ANTHROPIC, "thinking": enabled(3999)}),
    "Claude's display is left to it": (CLAUDE_5, {**ANTHROPIC, "thinking": ADAPTIVE}),
    "Claude's effort alone": (CLAUDE_48, {**ANTHROPIC, "output_config": {"effort": "low"}}),
    "Nova's level": (NOVA_2, config(maxTokens=9, reasoningConfig=LOW)),
    "Nova off": (NOVA_2, config(reasoningConfig={"type": "disabled"})),
    "Nova's top_k": (NOVA_2, config(topK=4)),
}


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_a_payloads_own_words_go_on_as_they_came(model: str, fields: Fields) -> None:
    result = sent("bedrock_invoke", "bedrock-invoke", model, **fields)
    assert (result.fields, result.lost) == (fields, [])


OTHERS: dict[str, tuple[str, Fields, Fields, list[str]]] = {
    "Claude by tokens": (
        CLAUDE,
        {"reasoning_effort": "low"},
        {**ANTHROPIC, "max_tokens": 10_240, "thinking": enabled(2048)},
        [],
    ),
    "newer Claude is shown": (
        CLAUDE_5,
        {"reasoning_effort": "low"},
        {
            **ANTHROPIC,
            "max_tokens": 10_240,
            "thinking": {**ADAPTIVE, "display": "summarized"},
            "output_config": {"effort": "low"},
        },
        [],
    ),
    "gpt-oss": (GPT, {"reasoning_effort": "low"}, {"reasoning_effort": "low"}, []),
    "Nova": (
        NOVA_2,
        {"reasoning_effort": "low", "max_tokens": 9, "top_k": 4},
        config(maxTokens=9, topK=4, reasoningConfig=LOW),
        [],
    ),
    "Nova has no xhigh": (
        NOVA_2,
        {"reasoning_effort": "xhigh"},
        config(reasoningConfig={"type": "enabled", "maxReasoningEffort": "high"}),
        ["reasoning_effort"],
    ),
}


@pytest.mark.parametrize(("model", "fields", "expected", "lost"), OTHERS.values(), ids=OTHERS.keys())
def test_other_clients_words_become_the_payloads(model: str, fields: Fields, expected: Fields, lost: list[str]) -> None:
    result = sent("openai_chat", "bedrock-invoke", model, **fields)
    assert result.fields == expected
    assert [what for what, _, _ in result.lost] == lost
