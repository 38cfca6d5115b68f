"""What Bedrock's Converse is told of thinking, and where each family has its own fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.wire import Arrival
from planning.controlled import Sent, sent
from recordings import Recording, each_recording, rows

Fields = dict[str, Any]
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CLAUDE_46 = "us.anthropic.claude-sonnet-4-6"
CLAUDE_5 = "global.anthropic.claude-opus-5"
GPT = "openai.gpt-oss-120b-1:0"
NOVA = "us.amazon.nova-micro-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
MISTRAL = "mistral.mistral-large-2402-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
ADAPTIVE: Fields = {"type": "adaptive"}
OFF: Fields = {"type": "disabled"}


def additional(**fields: Any) -> Fields:
    return {"additionalModelRequestFields": fields}


def enabled(tokens: int) -> Fields:
    return {"type": "enabled", "budget_tokens": tokens}


def nova(level: str) -> Fields:
    return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": level}}


def own(model: str, **fields: Any) -> Sent:
    return sent("bedrock_converse", "bedrock", model, **fields)


def told(model: str, **fields: Any) -> Sent:
    return sent("openai_chat", "bedrock", model, **fields)


AS_THEY_CAME: dict[str, tuple[str, Fields]] = {
    "a budget": (CLAUDE, additional(thinking=enabled(4096))),
    "a budget and a limit": (CLAUDE, {**additional(thinking=enabled(4096)), "inferenceConfig": {"maxTokens": 5000}}),
    "adaptive at an effort": (CLAUDE_5, additional(thinking=ADAPTIVE, output_config={"effort": "max"})),
    "an effort alone": (CLAUDE_46, additional(output_config={"effort": "low"})),
    "off with an effort": (CLAUDE_5, additional(thinking=OFF, output_config={"effort": "low"})),
    "between tools": ("global.anthropic.claude-sonnet-5-5", additional(thinking={"type": "between_tools"})),
    "words of its own": (CLAUDE_5, additional(thinking={**ADAPTIVE, "display": "updates"}, anthropic_beta=["x"])),
    "gpt-oss": (GPT, additional(reasoning_effort="high")),
    "Nova 2": (NOVA_2, additional(**nova("low"))),
    "Nova 2 off": (NOVA_2, additional(reasoningConfig={"type": "disabled"})),
    "Qwen": ("qwen.qwen3-32b-v1:0", additional(reasoning_config="high")),
    "GLM off": ("zai.glm-5", additional(reasoning_effort="none")),
    "a profile nobody knows": (PROFILE, additional(reasoning_effort="high", newer=1)),
    "Claude behind a profile": (PROFILE, additional(thinking=enabled(4096), top_k=3)),
    "Claude's top_k": (CLAUDE, additional(top_k=3)),
    "Nova's top_k": (NOVA, additional(inferenceConfig={"topK": 3})),
}


@pytest.mark.parametrize(("model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_words_that_the_model_takes_go_on_as_they_came(model: str, fields: Fields) -> None:
    result = own(model, **fields)
    assert (result.fields, result.lost) == (fields, [])


SAID_ANEW: dict[str, tuple[str, Fields, Fields, list[str]]] = {
    "another family's word": (NOVA_2, additional(reasoning_effort="low"), additional(**nova("low")), []),
    "Claude's older word": (
        CLAUDE,
        additional(reasoning_config=enabled(2000)),
        additional(thinking=enabled(2000)),
        [],
    ),
    "between tools elsewhere": (
        CLAUDE_46,
        additional(thinking={"type": "between_tools"}),
        additional(thinking=ADAPTIVE),
        ["reasoning"],
    ),
    "a forced tool beside a budget": (
        CLAUDE,
        {
            **additional(thinking=enabled(2000)),
            "toolConfig": {
                "tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}],
                "toolChoice": {"any": {}},
            },
        },
        {
            **additional(thinking=OFF),
            "toolConfig": {
                "tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}],
                "toolChoice": {"any": {}},
            },
        },
        ["reasoning"],
    ),
}


@pytest.mark.parametrize(("model", "fields", "expected", "lost"), SAID_ANEW.values(), ids=SAID_ANEW.keys())
def test_words_that_the_model_does_not_take_are_said_anew(
    model: str, fields: Fields, expected: Fields, lost: list[str]
) -> None:
    result = own(model, **fields)
    assert result.fields == expected
    assert [what for what, _, _ in result.lost] == lost


OTHERS: dict[str, tuple[str, Fields, Fields, list[str]]] = {
    "Claude by tokens": (
        CLAUDE,
        {"reasoning_effort": "medium"},
        {**additional(thinking=enabled(8192)), "inferenceConfig": {"maxTokens": 16_384}},
        [],
    ),
    "a limit leaves room": (
        CLAUDE,
        {"reasoning": {"max_tokens": 8000}, "max_tokens": 4096},
        {**additional(thinking=enabled(3072)), "inferenceConfig": {"maxTokens": 4096}},
        ["reasoning_budget"],
    ),
    "newer Claude is shown": (
        CLAUDE_5,
        {"reasoning_effort": "low"},
        {
            **additional(thinking={**ADAPTIVE, "display": "summarized"}, output_config={"effort": "low"}),
            "inferenceConfig": {"maxTokens": 10_240},
        },
        [],
    ),
    "no sampling beside thinking": (
        CLAUDE,
        {"reasoning_effort": "low", "temperature": 0.3, "top_p": 0.5},
        {**additional(thinking=enabled(2048)), "inferenceConfig": {"maxTokens": 10_240}},
        ["temperature", "top_p"],
    ),
    "gpt-oss has three levels": (
        GPT,
        {"reasoning_effort": "max"},
        additional(reasoning_effort="high"),
        ["reasoning_effort"],
    ),
    "OpenAI's newer": (
        "us.openai.gpt-5.5",
        {"reasoning_effort": "low"},
        additional(reasoning={"effort": "low"}),
        [],
    ),
    "Qwen has three": (
        "qwen.qwen3-32b-v1:0",
        {"reasoning_effort": "xhigh"},
        additional(reasoning_config="high"),
        ["reasoning_effort"],
    ),
    "Nova 2 takes no limit at its highest": (
        NOVA_2,
        {"reasoning_effort": "high", "max_tokens": 9, "temperature": 0.3, "stop": "END"},
        {**additional(**nova("high")), "inferenceConfig": {"stopSequences": ["END"]}},
        ["temperature", "max_output_tokens"],
    ),
    "Nova 2 takes one below": (
        NOVA_2,
        {"reasoning_effort": "low", "max_tokens": 9, "temperature": 0.3},
        {**additional(**nova("low")), "inferenceConfig": {"maxTokens": 9, "temperature": 0.3}},
        [],
    ),
    "a model without control": (NOVA, {"reasoning_effort": "low"}, {}, ["reasoning"]),
    "a profile nobody knows": (PROFILE, {"reasoning_effort": "low"}, {}, ["reasoning"]),
    "Claude's top_k": (CLAUDE, {"top_k": 5}, additional(top_k=5), []),
    "Mistral's top_k": (MISTRAL, {"top_k": 5}, additional(top_k=5), []),
    "Nova's top_k": (NOVA_2, {"top_k": 5}, additional(inferenceConfig={"topK": 5}), []),
    "nobody's top_k": (GPT, {"top_k": 5}, {}, ["top_k"]),
    "Claude's top_k beside thinking": (
        CLAUDE,
        {"top_k": 5, "reasoning_effort": "low"},
        {**additional(thinking=enabled(2048)), "inferenceConfig": {"maxTokens": 10_240}},
        ["top_k"],
    ),
    "a temperature too high": (
        CLAUDE,
        {"temperature": 1.5},
        {"inferenceConfig": {"temperature": 1.0}},
        ["temperature"],
    ),
}


@pytest.mark.parametrize(("model", "fields", "expected", "lost"), OTHERS.values(), ids=OTHERS.keys())
def test_other_clients_words_become_the_familys(model: str, fields: Fields, expected: Fields, lost: list[str]) -> None:
    result = told(model, **fields)
    assert result.fields == expected
    assert sorted(what for what, _, _ in result.lost) == sorted(lost)


ANSWERED = [
    one
    for one in rows("bedrock-converse")
    if one.meta["http_status"] == 200 and "additionalModelRequestFields" in one.meta["request_body"]
]


@each_recording(ANSWERED)
def test_recorded_words_for_thinking_go_on_in_the_models_own_field(recording: Recording) -> None:
    """Claude's `reasoning_config` is written as `thinking`; all else is what was answered."""
    row = builtin().provider("bedrock")
    assert row is not None
    model = recording.meta["api_path"].removeprefix("/model/").rsplit("/", 1)[0]
    body = recording.meta["request_body"]
    request = dialect("bedrock_converse").decode_request(json.dumps(body).encode(), Arrival(model=model))
    target = Target(provider=Provider(id="bedrock", row=row, base_url="http://host"), model=model)
    attempt = plan(request, target)
    written = json.loads(attempt.wire.body)
    expected = dict(body["additionalModelRequestFields"])
    if "claude" in model and "reasoning_config" in expected:
        expected["thinking"] = expected.pop("reasoning_config")
    assert written["additionalModelRequestFields"] == expected
    assert written.get("inferenceConfig", {}) == body.get("inferenceConfig", {})
    assert not attempt.degraded
