"""Fields that Chat Completions and Responses have in common reach the other one; the rows hold all that OpenAI's library names in both."""

from __future__ import annotations

from typing import Any

import pytest

import bardo
from bardo.adapters.config.settings import parse_settings
from bardo.catalog.shared_fields import shared_rows
from bardo.dialects.shared.losses import take_at as take
from bardo.planning.explanation import Explanation

CHAT, RESPONSES = "openai_chat", "openai_responses"
# What both have and the rest of a request says, or is written by bardo itself.
SAID_ELSEWHERE = {"model", "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "stream_options"}
FIELDS: dict[str, Any] = {
    "metadata": {"a": "b"},
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "safety_identifier": "s",
    "service_tier": "flex",
    "store": True,
    "top_logprobs": 3,
    "user": "u",
}


def explained(provider: str, dialect: str, body: dict[str, Any], preset: str = "openai") -> Explanation:
    text = f'[[providers]]\nid = "one"\npreset = "{preset}"\ndialect = "{dialect}"\nbase_url = "http://lab/v1"\n'
    asked = {**body, "model": "one/gpt-4.1", "bardo": {"allow_loss": ["*"]}}
    return bardo.explain(asked, provider, "", config=parse_settings(text))


def chat(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hi"}], **fields}


def test_fields_of_chat_reach_responses() -> None:
    found = explained(CHAT, RESPONSES, chat(**FIELDS, verbosity="low", logprobs=True))
    assert {name: found.body[name] for name in FIELDS} == FIELDS
    assert found.body["text"] == {"verbosity": "low"}
    assert "message.output_text.logprobs" in found.body["include"]
    assert "logprobs" not in found.body
    assert found.degraded == ()


def test_fields_of_responses_reach_chat() -> None:
    own = {"text": {"verbosity": "low"}, "include": ["message.output_text.logprobs"], "truncation": "auto"}
    found = explained(RESPONSES, CHAT, {"input": "hi", **FIELDS, **own})
    assert {name: found.body[name] for name in FIELDS} == FIELDS
    assert (found.body["verbosity"], found.body["logprobs"]) == ("low", True)
    assert [one.what for one in found.degraded] == ["truncation"]


def test_obfuscation_is_asked_for_in_either() -> None:
    found = explained(CHAT, RESPONSES, chat(stream=True, stream_options={"include_obfuscation": False}))
    assert found.body["stream_options"] == {"include_obfuscation": False}


def test_a_provider_that_is_not_known_to_take_them_gets_none_and_it_is_said_why() -> None:
    found = explained(RESPONSES, CHAT, {"input": "hi", "metadata": {"a": "b"}}, preset="deepseek")
    assert "metadata" not in found.body
    assert [(one.what, one.why) for one in found.degraded] == [("metadata", "deepseek is not known to take it")]


def test_the_rows_hold_what_both_have_in_openais_own_types() -> None:
    from openai.types.chat import completion_create_params as of_chat
    from openai.types.responses import response_create_params as of_responses

    both = (
        of_chat.CompletionCreateParamsBase.__annotations__.keys()
        & of_responses.ResponseCreateParamsBase.__annotations__.keys()
    )
    group = shared_rows()[0]
    assert {path.partition(".")[0] for path in group.same} - {"stream_options"} == both - SAID_ELSEWHERE


@pytest.mark.parametrize(
    "words", [{"service_tier": "ultrafast"}, {"prompt_cache_options": {"ttl": "12h"}}], ids=["tier", "time of a cache"]
)
def test_a_value_that_only_responses_has_is_not_sent_to_chat(words: dict[str, Any]) -> None:
    found = explained(RESPONSES, CHAT, {"input": "hi", **words})
    assert not words.keys() & found.body.keys()
    assert [one.why for one in found.degraded] == ["this endpoint has no such value"]


def test_cache_options_that_both_have_reach_chat_and_those_of_responses_alone_are_reported() -> None:
    found = explained(
        RESPONSES, CHAT, {"input": "hi", "prompt_cache_options": {"mode": "explicit", "ttl": "30m", "prewarm": True}}
    )
    assert found.body["prompt_cache_options"] == {"mode": "explicit", "ttl": "30m"}
    assert [(one.what, one.asked) for one in found.degraded] == [("prompt_cache_options", {"prewarm": True})]


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES])
def test_a_tier_of_openai_reaches_converse(dialect: str) -> None:
    said = chat() if dialect == CHAT else {"input": "hi"}
    found = explained(dialect, "bedrock_converse", {**said, "service_tier": "flex"}, preset="bedrock")
    assert found.body["serviceTier"] == {"type": "flex"}
    assert not [one for one in found.degraded if "tier" in one.what.lower()]


def test_a_tier_that_says_nothing_is_left_out_and_one_that_converse_lacks_is_reported() -> None:
    automatic = explained(CHAT, "bedrock_converse", chat(service_tier="auto"), preset="bedrock")
    assert "serviceTier" not in automatic.body
    assert automatic.degraded == ()
    fast = explained(CHAT, "bedrock_converse", chat(service_tier="fast"), preset="bedrock")
    assert "serviceTier" not in fast.body
    assert [one.what for one in fast.degraded] == ["serviceTier.type"]


def test_openrouter_takes_its_mode_of_reasoning_from_a_client_of_responses() -> None:
    found = explained(RESPONSES, CHAT, {"input": "hi", "reasoning": {"mode": "pro"}, "user": "u"}, preset="openrouter")
    assert found.body["reasoning"]["mode"] == "pro"
    assert found.body["user"] == "u"
    assert found.degraded == ()


def test_a_mode_of_reasoning_is_reported_where_it_is_not_taken() -> None:
    found = explained(RESPONSES, CHAT, {"input": "hi", "reasoning": {"mode": "pro"}}, preset="deepseek")
    assert "mode" in str([one.what for one in found.degraded])


@pytest.mark.parametrize("preset", ["anthropic", "gemini", "deepseek", "vllm", "bedrock", "cohere"])
def test_what_every_reply_has_is_not_reported_as_lost(preset: str) -> None:
    asked = {
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "metadata": {},
        "truncation": "disabled",
        "model": "m",
        "input": "hi",
    }
    assert bardo.explain(asked, RESPONSES, preset).degraded == ()


@pytest.mark.parametrize("preset", ["anthropic", "gemini", "openai", "bedrock"])
def test_a_reply_of_text_is_what_every_provider_gives(preset: str) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "model": "gpt-5.4-pro"}
    assert bardo.explain({**asked, "modalities": ["text"]}, CHAT, preset).degraded == ()
    lost = bardo.explain({**asked, "modalities": ["text", "audio"]}, CHAT, preset).degraded
    assert [(one.what, one.asked) for one in lost] == [("modalities", ["audio"])]


def test_a_long_prompt_is_cut_only_by_responses() -> None:
    lost = bardo.explain({"input": "hi", "model": "m", "truncation": "auto"}, RESPONSES, "openai-chat").degraded
    assert [(one.what, one.asked) for one in lost] == [("truncation", "auto")]


def test_what_else_a_field_asks_for_is_reported() -> None:
    asked = {
        "store": True,
        "include": ["reasoning.encrypted_content", "x.y"],
        "metadata": {"a": 1},
        "input": "hi",
        "model": "m",
    }
    found = bardo.explain({**asked, "reasoning": {"summary": "detailed"}}, RESPONSES, "anthropic")
    assert [(one.what, one.asked) for one in found.degraded] == [
        ("reasoning.summary", "detailed"),
        ("store", True),
        ("include", ["x.y"]),
        ("metadata", {"a": 1}),
    ]


def test_what_is_carried_is_taken_out_of_a_copy() -> None:
    shared: dict[str, Any] = {"a": {"b": {"c": 1, "d": 2}, "e": 3}}
    extra = dict(shared)
    assert take(extra, "a.b.c") == 1
    assert take(extra, "a.b.missing") is None
    assert take(extra, "a.e.f") is None
    assert extra == {"a": {"b": {"d": 2}, "e": 3}}
    assert take(extra, "a.b.d") == 2
    assert take(extra, "a.e") == 3
    assert extra == {}
    assert shared == {"a": {"b": {"c": 1, "d": 2}, "e": 3}}
