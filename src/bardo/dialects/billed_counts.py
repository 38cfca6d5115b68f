"""What a provider counts that only the price of a call depends on: sound, pictures, searches, caches of an hour, the service tier."""

from __future__ import annotations

from typing import Any

from bardo.dialects.counts import token_count
from bardo.values.usage import UsageDetails

# Google's words for how a call was served, in `usageMetadata` (cloud.google.com/vertex-ai, "GenerateContentResponse", 2026-11).
_TRAFFIC = {"ON_DEMAND": "", "ON_DEMAND_FLEX": "flex", "ON_DEMAND_PRIORITY": "priority"}
_LONGEST_WORD = 64


def openai_details(raw: dict[str, Any], into: dict[str, Any], out: dict[str, Any], tier: Any) -> UsageDetails | None:
    """Return what OpenAI's dialects count beside the usual; None where that is nothing. `into` and `out` are the details of `raw`."""
    if len(into) + len(out) + (tier is not None) == 0 and "server_tool_use" not in raw:
        return None
    return _reported(
        UsageDetails(
            audio_input_tokens=token_count(into.get("audio_tokens")),
            image_input_tokens=token_count(into.get("image_tokens")),
            audio_output_tokens=token_count(out.get("audio_tokens")),
            image_output_tokens=token_count(out.get("image_tokens")),
            searches=_searches(raw),
            service_tier=_word(tier),
        )
    )


def anthropic_details(raw: dict[str, Any]) -> UsageDetails | None:
    """Return what Messages counts beside the usual. A fast answer is a tier of its own (platform.claude.com, "Fast mode", 2026-11)."""
    created = raw.get("cache_creation")
    hour = token_count(created.get("ephemeral_1h_input_tokens")) if isinstance(created, dict) else None
    tier = "fast" if raw.get("speed") == "fast" else _word(raw.get("service_tier"))
    return _reported(UsageDetails(cache_write_1h_tokens=hour, searches=_searches(raw), service_tier=tier))


def gemini_details(raw: dict[str, Any]) -> UsageDetails | None:
    """Return what `usageMetadata` counts beside the usual."""
    traffic = _word(raw.get("trafficType"))
    tier = _TRAFFIC.get(traffic, traffic.lower()) or _word(raw.get("serviceTier")).lower()
    return _reported(
        UsageDetails(
            audio_input_tokens=_of_modality(raw.get("promptTokensDetails"), "AUDIO"),
            cached_audio_tokens=_of_modality(raw.get("cacheTokensDetails"), "AUDIO"),
            image_input_tokens=_of_modality(raw.get("promptTokensDetails"), "IMAGE"),
            audio_output_tokens=_of_modality(raw.get("candidatesTokensDetails"), "AUDIO"),
            image_output_tokens=_of_modality(raw.get("candidatesTokensDetails"), "IMAGE"),
            service_tier=tier,
        )
    )


def bedrock_details(raw: dict[str, Any]) -> UsageDetails | None:
    """Return what Converse counts beside the usual: `cacheDetails` has what was written by how long it is kept."""
    details = raw.get("cacheDetails")
    hour = [
        token_count(one.get("inputTokens")) or 0
        for one in (details if isinstance(details, list) else ())
        if isinstance(one, dict) and one.get("ttl") == "1h"
    ]
    return UsageDetails(cache_write_1h_tokens=sum(hour)) if hour else None


def cohere_details(raw: dict[str, Any]) -> UsageDetails | None:
    """Return what Cohere bills where it differs from what it counts: its own additions to the prompt are free."""
    billed = raw.get("billed_units")
    if not isinstance(billed, dict):
        return None
    return _reported(
        UsageDetails(
            billed_input_tokens=token_count(billed.get("input_tokens")),
            billed_output_tokens=token_count(billed.get("output_tokens")),
        )
    )


_NOTHING = UsageDetails()


def _reported(details: UsageDetails) -> UsageDetails | None:
    return None if details == _NOTHING else details


def _searches(raw: dict[str, Any]) -> int | None:
    tools = raw.get("server_tool_use")
    return token_count(tools.get("web_search_requests")) if isinstance(tools, dict) else None


def _of_modality(details: Any, modality: str) -> int | None:
    counts = [
        token_count(one.get("tokenCount")) or 0
        for one in (details if isinstance(details, list) else ())
        if isinstance(one, dict) and one.get("modality") == modality
    ]
    return sum(counts) if counts else None


def _word(value: Any) -> str:
    return value[:_LONGEST_WORD] if isinstance(value, str) else ""
