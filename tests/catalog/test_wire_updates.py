"""Each correction of the collected facts, entry by entry: what the catalog says of it now, or why it is left open.

The file lies beside the project; where it does not, nothing is asked. A new entry fails until it has a line here.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from benchmarks.wire_facts import updates

from bardo.catalog.prompt_caching import least_cached
from catalog.wire_checks import (
    asked_at,
    bound,
    ciphertext_is_read,
    effort_of,
    fills_the_cache,
    finish_of,
    forced,
    fragment,
    hosts,
    how,
    ladder_of,
    limit,
    live,
    provider,
    row,
    rule,
    said_by_anthropic,
    shared,
    state_why,
    steps_are_read,
    system_turns,
    thoughts_of_agents_are_read,
    tools_off,
    usage_of,
)
from support.offenders import each_case


def keys() -> list[str]:
    """Return a name for each entry: its provider and path, numbered where they repeat."""
    seen: Counter[str] = Counter()
    found = []
    for update in updates():
        name = f"{update['provider']} {update['path']}"
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


OPEN: Mapping[str, str] = {
    "anthropic api_version": "2023-06-01 is sent; where the headers of a provider name the newer one, a refused field is repaired",
    "anthropic speed": "a faster and dearer answer that no other field asks for: it goes on as the caller wrote it, with its beta",
}
"""Entries that are no row, each with why."""

VERTEX_HOSTS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}
Check = Callable[[], bool]
CHAT, RESPONSES = "openai_chat", "openai_responses"
LOW_UP = ("low", "medium", "high", "xhigh", "max")
CHECKS: Mapping[str, Check] = {
    "openai models[+]": lambda: all(
        row("openai", name).efforts == LOW_UP and row("openai", name).off is False and limit("openai", name) == 128_000
        for name in ("gpt-6.2-astra", "gpt-6.2-sol", "gpt-6.2-astra-law")
    ),
    "openai models[+] 2": lambda: all(
        row("openai", name).control == ("effort",) and row("openai", name).omit == "on"
        for name in (
            "gpt-5.6",
            "gpt-5.6-cyber",
            "gpt-6-cyber",
            "gpt-6-rosalind",
            "gpt-rosalind-research",
            "gpt-daybreak-blue-latest",
        )
    ),
    "openai models[14].match": lambda: row("openai", "gpt-6.1-sol").off is False,
    "openai models[13].match": lambda: row("openai", "gpt-6.1-terra").efforts == ("none", *LOW_UP),
    "openai models[7].note": lambda: (
        row("openai", "gpt-5.3-codex").efforts == ("none", "low", "medium", "high", "xhigh")
        and row("openai", "gpt-5.3-codex").omit == "off"
        and row("openai", "gpt-5.3-chat-latest").control == ("fixed",)
    ),
    "openai models[1].match": lambda: (
        row("openai", "o1-pro").efforts == ("low", "medium", "high") and row("openai", "o1-mini").control == ("none",)
    ),
    "openai wire[0].values": lambda: (
        effort_of("openai", "openai_chat", "gpt-5.6-sol", "max") == {"reasoning_effort": "xhigh"}
        and effort_of("openai", "openai_responses", "gpt-5.6-sol", "max") == {"reasoning": {"effort": "max"}}
    ),
    "openai wire[+]": lambda: (
        all(tools_off(name, "high") for name in ("gpt-5.4", "gpt-5.5", "gpt-5.6-sol")) and tools_off("gpt-5.6-sol")
    ),
    "openai response.responses_extra": lambda: finish_of("openai_responses", "max_messages") == "length",
    "openai usage.cached_write": lambda: (
        usage_of({"prompt_tokens": 9, "prompt_tokens_details": {"cache_write_tokens": 4}})[1] == 4
    ),
    "openai endpoints": lambda: provider("openai").counts_tokens,
    "anthropic introspection.fields": lambda: (
        said_by_anthropic(disabled=False, between_tools=True).nearest_off == "between_tools"
        and said_by_anthropic().output_limit == 128_000
        and said_by_anthropic().shutdown == datetime.date(2027, 1, 31)
    ),
    "anthropic introspection.missing": lambda: (
        said_by_anthropic(disabled=False).off is False and said_by_anthropic(disabled=True).off is True
    ),
    "anthropic models[6].forced_tool": lambda: (
        forced("claude-fable-5") is None and forced("claude-fable-5-1") == forced("claude-opus-5-5") == "never"
    ),
    "anthropic models[*].max_output": lambda: (
        all(
            limit("anthropic", name) == 128_000
            for name in (
                "claude-opus-4-6",
                "claude-opus-4-8",
                "claude-sonnet-5",
                "claude-haiku-5-5",
                "claude-mythos-preview",
            )
        )
        and all(
            limit("anthropic", name) == 64_000
            for name in (
                "claude-opus-4-5",
                "claude-sonnet-4-5",
                "claude-haiku-4-5",
                "claude-sonnet-4-0",
                "claude-3-7-sonnet",
            )
        )
        and all(limit("anthropic", name) == 32_000 for name in ("claude-opus-4-0", "claude-opus-4-1"))
    ),
    "anthropic models[9].off_condition": lambda: row("anthropic", "claude-sonnet-5-5").off_up_to == "high",
    "anthropic replay.preserved_thinking.models": lambda: bound("claude-mythos-5-2") and not bound("claude-mythos-5-1"),
    "anthropic params.max_tokens": fills_the_cache,
    "anthropic messages[].role": lambda: (
        all(
            map(
                system_turns,
                (
                    "claude-fable-5",
                    "claude-mythos-5-2",
                    "claude-opus-4-8",
                    "claude-opus-5",
                    "claude-sonnet-5-5",
                    "claude-haiku-5-5",
                ),
            )
        )
        and not any(map(system_turns, ("claude-sonnet-5", "claude-opus-4-7")))
    ),
    "anthropic stop_reason": lambda: (
        finish_of("anthropic_messages", "model_context_window_exceeded") == "length"
        and finish_of("anthropic_messages", "compaction") == "pause"
    ),
    "google models[+]": lambda: row("google", "gemini-4-hydrogen").efforts == ("low", "medium", "high", "xhigh"),
    "google models[+] 2": lambda: row("google", "gemini-4-carbon").efforts == ("low", "medium", "high"),
    "google models[+] 3": lambda: all(
        row("google", name).control == ("none",)
        for name in (
            "gemini-2.5-flash-image",
            "gemini-2.5-flash-image-preview",
            "gemini-2.5-flash-preview-tts",
            "gemini-2.5-pro-preview-tts",
        )
    ),
    "google models[+] 4": lambda: row("google", "gemini-3.1-flash-lite-image").efforts == ("minimal", "high"),
    "google sampling.note": lambda: (
        all(
            "gemini-fixed" in (row("google", name).rules or ())
            for name in ("gemini-3.5-flash-lite", "gemini-3.6-flash", "gemini-4-argon")
        )
        and row("google", "gemini-3.5-flash").rules is None
    ),
    "mistral models[0].match": lambda: all(
        row("mistral", name).efforts == ("none", "high")
        for name in (
            "mistral-medium-3-5",
            "mistral-medium",
            "magistral-small-latest",
            "labs-leanstral-1-5-2609",
            "mistral-vibe-cli-latest",
        )
    ),
    "mistral models[1]": lambda: row("mistral", "magistral-medium-2509").control == ("fixed",),
    "mistral models[+]": lambda: (
        row("mistral", "mistral-large-4").efforts == ("low", "medium", "high")
        and not row("mistral", "mistral-large-4").off
    ),
    "mistral models[+] 2": lambda: row("mistral", "zai-glm-latest").efforts == ("low", "high", "max"),
    "mistral sampling.top_k": lambda: not {"top_k", "repetition_penalty"} & set(rule("mistral").drop),
    "mistral usage": lambda: (
        usage_of({"prompt_tokens": 9, "num_cached_tokens": 5})[0] == 5
        and usage_of({"prompt_tokens": 9, "prompt_token_details": {"cached_tokens": 5}})[0] == 5
    ),
    "mistral wire[0].values": lambda: (
        effort_of("mistral", "openai_chat", "zai-glm-latest", "max") == {"reasoning_effort": "max"}
    ),
    "xai models[7]": lambda: row("xai", "grok-4.7").efforts == ("low", "medium", "high", "xhigh"),
    "xai models[1]": lambda: all(
        row("xai", name).efforts == ("none", "low", "medium", "high")
        for name in ("grok-4-0709", "grok-4-fast-reasoning", "grok-3", "grok-latest")
    ),
    "xai models[0].efforts": lambda: row("xai", "grok-3-mini").efforts == ("none", "low", "high"),
    "xai models[+]": lambda: (
        all(
            row("xai", name).control == ("effort",)
            for name in ("grok-4.20", "grok-4.20-0309", "grok-4-latest", "grok-4-1-fast", "grok-4-fast")
        )
        and row("xai", "grok-4.20-0309-reasoning").control == ("model_id",)
    ),
    "groq models[+]": lambda: (
        row("groq", "qwen/qwen3.8-27b").efforts == ("low", "medium", "high")
        and bool(row("groq", "qwen/qwen3.8-27b").off)
    ),
    "deepseek structured.native": lambda: (
        ladder_of("deepseek-responses", "deepseek-v4") == "json_schema" != ladder_of("deepseek", "deepseek-v4")
    ),
    "perplexity usage.reasoning_in_output": lambda: provider("perplexity").quirks.output_excludes_reasoning is True,
    "perplexity response.field": steps_are_read,
    "writer (new provider)": lambda: (
        provider("writer").base_url == "https://api.writer.com/v1" and provider("writer").auth == "bearer"
    ),
    "watsonx (new provider)": lambda: (
        effort_of("watsonx", "openai_chat", "granite-4", "low") == {"reasoning_effort": "low"}
    ),
    "bedrock wire[4]": lambda: (
        fragment("zai.glm-4.7", "high") == fragment("deepseek.v3.2", "high") == {"reasoning_effort": "high"}
        and fragment("zai.glm-5.3", "max") == {"reasoning_effort": "max"}
        and fragment("zai.glm-5", "off") == {"reasoning_effort": "none"}
    ),
    "bedrock wire[5].values": lambda: fragment("qwen.qwen3-32b-v1:0", "medium") == {"reasoning_config": "medium"},
    "bedrock wire[+]": lambda: (
        fragment("openai.gpt-5.6-sol", "max") == fragment("xai.grok-4.6", "xhigh") == {"reasoning": {"effort": "xhigh"}}
        and "bedrock-fixed" in (row("bedrock", "xai.grok-4.7").rules or ())
    ),
    "bedrock structured.models": lambda: (
        "json_schema"
        not in {
            ladder_of("bedrock", name)
            for name in ("anthropic.claude-opus-4-1", "anthropic.claude-fable-5", "xai.grok-4.6")
        }
    ),
    "bedrock geo_prefixes": lambda: all(
        row("bedrock", f"{place}.anthropic.claude-opus-5") is row("bedrock", "anthropic.claude-opus-5")
        for place in ("us", "eu", "apac", "jp", "au", "ca", "in", "global", "us-gov")
    ),
    "bedrock count_tokens": lambda: provider("bedrock").counts_tokens,
    "openrouter response.format": lambda: (
        not state_why("bedrock-xai-responses-v1", "x-ai/grok-4.6")
        and bool(state_why("bedrock-xai-responses-v1", "openai/gpt-5.6"))
        and not state_why("bedrock-openai-responses-v1", "openai/gpt-5.6")
    ),
    "cerebras models[+]": lambda: all(
        row("cerebras", name).efforts == ("low", "high", "max") and row("cerebras", name).off is False
        for name in ("kimi-k3", "zai-glm-5.3")
    ),
    "cerebras models[+] 2": lambda: (
        effort_of("cerebras", "openai_chat", "qwen-3.8-27b", "off") == {"reasoning_effort": "none"}
    ),
    "cerebras introspection.fields": lambda: (
        live("cerebras", supported_features=["tools"], max_output_length=8_000).control == ("none",)
        and live("cerebras", supported_features=["tools", "reasoning"], max_output_length=8_000).output_limit == 8_000
    ),
    "cerebras sampling.presence_penalty": lambda: (
        not {"presence_penalty", "frequency_penalty"} & set(rule("cerebras").drop)
        and "logit_bias" in rule("cerebras").drop
    ),
    "moonshot models[+]": lambda: (
        row("moonshot", "kimi-k3.1-pro").efforts == ("low", "high", "max")
        and row("moonshot", "kimi-k3.1-pro").default_effort == "max"
    ),
    "moonshot tool_choice": lambda: row("moonshot", "kimi-k3").forced_tool == "named",
    "fireworks models[+]": lambda: (
        row("fireworks", "accounts/fireworks/models/minimax-m2p5").efforts == ("low", "medium", "high")
        and row("fireworks", "accounts/fireworks/models/deepseek-v3p1").omit == "off"
        and row("fireworks", "accounts/fireworks/models/deepseek-v3p2").omit == "on"
        and row("fireworks", "accounts/fireworks/models/gpt-oss-120b").off is False
    ),
    "zai wire[1].values": lambda: (
        row("zai", "glm-5.2").efforts == ("high", "max") and row("zai", "glm-5.3").efforts == ("low", "high", "max")
    ),
    "google vertex": lambda: (
        asked_at("vertex", "gemini-3.6-flash", {"location": "europe-west4", "project": "p"})
        == "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4/publishers/google"
        "/models/gemini-3.6-flash:generateContent"
        and hosts("vertex") == VERTEX_HOSTS
        and provider("vertex").auth == "google"
        and effort_of("vertex", "gemini", "gemini-3.1-pro-preview", "off")
        == {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}
        and effort_of("gemini", "gemini", "gemini-3.1-pro-preview", "off")
        == {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}
    ),
    "vertex-anthropic (new provider)": lambda: (
        asked_at("vertex-anthropic", "claude-opus-5", {"location": "us", "project": "p"})
        == "https://aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/publishers/anthropic"
        "/models/claude-opus-5:rawPredict"
        and hosts("vertex-anthropic") == VERTEX_HOSTS
    ),
    "azure (new provider)": lambda: (
        asked_at("azure", "gpt-5.2", {"resource": "r"}) == "https://r.openai.azure.com/openai/v1/responses?[hidden]"
        and provider("azure").auth == "api-key"
        and asked_at("azure-anthropic", "claude-opus-5", {"resource": "r"})
        == "https://r.services.ai.azure.com/anthropic/v1/messages"
    ),
    "openai response.responses": ciphertext_is_read,
    "openai caching.fields[2]": lambda: (
        shared("openai", RESPONSES, CHAT, prompt_cache_options={"mode": "explicit", "ttl": "30m"}) == ()
        and shared("openai", RESPONSES, CHAT, prompt_cache_options={"ttl": "12h"}) == ("prompt_cache_options.ttl",)
    ),
    "openai service_tier": lambda: (
        shared("openai", RESPONSES, CHAT, service_tier="fast") == ()
        and shared("openai", RESPONSES, CHAT, service_tier="ultrafast") == ("service_tier",)
    ),
    "anthropic caching.min_tokens": lambda: all(
        least_cached(name) == tokens
        for name, tokens in (
            ("claude-opus-5", 512),
            ("claude-fable-5", 512),
            ("claude-mythos-5-2", 512),
            ("claude-sonnet-5", 1024),
            ("claude-sonnet-4-6", 1024),
            ("claude-opus-4-8", 1024),
            ("claude-opus-4-7", 2048),
            ("claude-opus-4-6", 4096),
            ("claude-haiku-4-5", 4096),
        )
    ),
    "google wire[1].values": lambda: (
        effort_of("gemini", "gemini", "gemini-4-hydrogen", "xhigh")
        == {"generationConfig": {"thinkingConfig": {"thinkingLevel": "xhigh"}}}
    ),
    "google wire[3].values": lambda: (
        effort_of("gemini-interactions", "gemini_interactions", "gemini-4-hydrogen", "xhigh")
        == {"generation_config": {"thinking_level": "xhigh"}}
    ),
    "google finish": lambda: finish_of("gemini", "CONTINUATION") == "pause",
    "mistral endpoints": lambda: (
        provider("mistral-responses").dialect == RESPONSES
        and provider("mistral-responses").counts_tokens
        and effort_of("mistral-responses", RESPONSES, "mistral-large-4", "medium")
        == {"reasoning": {"effort": "medium"}}
    ),
    "perplexity endpoints": lambda: (
        provider("perplexity-agent").base_url == "https://api.perplexity.ai/v1" and thoughts_of_agents_are_read()
    ),
    "bedrock serviceTier": lambda: (
        shared("bedrock", CHAT, "bedrock_converse", service_tier="priority") == ()
        and shared("bedrock", CHAT, "bedrock_converse", service_tier="scale") == ("serviceTier.type",)
    ),
    "openrouter wire[+]": lambda: shared("openrouter", RESPONSES, CHAT, reasoning={"mode": "pro"}) == (),
    "dashscope endpoints": lambda: (
        asked_at("qwen-workspace", "qwen3-max", {"workspace": "w", "region": "eu-central-1"})
        == "https://w.eu-central-1.maas.aliyuncs.com/compatible-mode/v1/chat/completions"
        and row("qwen-workspace", "qwen3-max") is row("qwen", "qwen3-max")
    ),
    "claude-on-google-cloud (new provider)": lambda: (
        asked_at("claude-google-cloud", "claude-opus-5", {"project": "p", "location": "global", "workspace": "w"})
        == "https://claude.googleapis.com/v1/projects/p/locations/global/workspaces/w/invoke/v1/messages"
        and provider("claude-google-cloud").auth == "google"
    ),
    "bedrock-mantle (base url)": lambda: (
        asked_at("bedrock-mantle-anthropic", "anthropic.claude-opus-5", {"region": "us-east-1"})
        == "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages"
        and provider("bedrock-mantle-anthropic").auth == "aws"
        and row("bedrock-mantle-anthropic", "anthropic.claude-opus-5") is row("anthropic", "claude-opus-5")
    ),
    "together base_url": lambda: provider("together").base_url == "https://api.together.ai/v1",
}


@pytest.mark.skipif(not updates(), reason="the collected facts are not beside the project")
def test_every_entry_is_applied_or_left_open_with_a_reason() -> None:
    assert set(keys()) == CHECKS.keys() | OPEN.keys()
    assert not CHECKS.keys() & OPEN.keys()
    assert all(OPEN.values())


@each_case("entry", CHECKS)
def test_an_applied_entry_is_what_the_catalog_says(entry: str) -> None:
    assert CHECKS[entry]()


def test_a_model_that_the_update_leaves_open_is_marked_assumed() -> None:
    assert how("openai", "gpt-rosalind-research") == "assumed"
