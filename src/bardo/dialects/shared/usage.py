"""Token counts as providers report them, brought under bardo's algebra, and what only the price of a call depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bardo.dialects.shared.json_values import JsonObject
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage, UsageDetails

_LARGEST = 1 << 53


def token_count(value: object) -> int | None:
    """Return a token count, or None if it is absent, negative, absurdly large, or no whole number."""
    if value is None:
        return None
    if type(value) is int:
        return value if 0 <= value < _LARGEST else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _LARGEST and value == int(value) else None


def token_counts(*values: object) -> list[int | None]:
    """Return several token counts, as `token_count` gives each."""
    counts: list[int | None] = []
    for value in values:
        is_count = value is None or (type(value) is int and 0 <= value < _LARGEST)
        counts.append(value if is_count else token_count(value))  # type: ignore[arg-type]
    return counts


def doubted(name: str, value: object) -> tuple[Degradation, ...]:
    """Report a count that cannot be true."""
    if value is None or token_count(value) is not None:
        return ()
    return (Degradation(name, asked=value, sent=None, why="the provider reported an impossible count"),)


def output_with_reasoning(
    output: int | None, reasoning: int | None, *, prompt: int | None, total: int | None, excludes_reasoning: bool | None
) -> tuple[int | None, int | None, tuple[Degradation, ...]]:
    """Return (output including reasoning, reasoning, what had to be corrected).

    `excludes_reasoning` is the provider's fact: its output count leaves reasoning out. Where that is not known, the reply's total decides:
    prompt + output + reasoning means that it is left out, prompt + output that it is included. Where the total decides nothing, reasoning
    above the output is left out of it. Reasoning above an output that includes it is capped there. A total that holds more than prompt and
    output, where no reasoning is named, holds reasoning.
    """
    if reasoning is None and excludes_reasoning is not False:
        # Take what a total holds beside prompt and output for reasoning: Gemini's Chat Completions route names it nowhere else.
        if output is None or prompt is None or total is None or total <= prompt + output:
            return output, None, ()
        rest = total - prompt - output
        why = "the provider's own total holds this much more than input and output"
        return output + rest, rest, (Degradation("usage.reasoning_tokens", sent=rest, why=why),)
    if output is None or not reasoning:
        return output, reasoning, ()
    if excludes_reasoning is None:
        told = None if prompt is None or total is None else total - prompt
        excludes_reasoning = told == output + reasoning or (reasoning > output and told != output)
    if excludes_reasoning:
        return output + reasoning, reasoning, ()
    if reasoning > output:
        why = "the provider reports more reasoning than output, which includes it"
        return output, output, (Degradation("usage.reasoning_tokens", asked=reasoning, sent=output, why=why),)
    return output, reasoning, ()


def cache_within_input(
    prompt: int | None, cached: int | None, written: int | None = None
) -> tuple[int | None, int | None, tuple[Degradation, ...]]:
    """Return (cached, written, what had to be corrected): both are parts of the input, so together they are not more than that."""
    if prompt is None:
        return cached, written, ()
    read = None if cached is None else min(cached, prompt)
    bound = None if written is None else min(written, prompt - (read or 0))
    if read == cached and bound == written:
        return read, bound, ()
    why = "the provider reports more of it than input, which includes it"
    pairs = (("usage.cached_input_tokens", cached, read), ("usage.cache_write_tokens", written, bound))
    return read, bound, tuple(Degradation(what, asked=was, sent=now, why=why) for what, was, now in pairs if was != now)


# Google's words for how a call was served, in `usageMetadata` (cloud.google.com/vertex-ai, "GenerateContentResponse", 2026-11).
_TRAFFIC = {"ON_DEMAND": "", "ON_DEMAND_FLEX": "flex", "ON_DEMAND_PRIORITY": "priority"}
_LONGEST_WORD = 64


class ToolCounts(NamedTuple):
    """How often a provider ran tools of its own in a reply: searches of the web, and others that it bills by a price of their own."""

    searches: int | None = None
    unpriced: int | None = None


NO_TOOLS = ToolCounts()


def openai_details(
    raw: JsonObject, into: JsonObject, out: JsonObject, tier: object, tools: ToolCounts = NO_TOOLS
) -> UsageDetails | None:
    """Return what OpenAI's dialects count beside the usual, or None if that is nothing. `into` and `out` are the details of `raw`."""
    if len(into) + len(out) + (tier is not None) == 0 and "server_tool_use" not in raw and tools is NO_TOOLS:
        return None
    heard, seen, spoken, drawn = token_counts(
        into.get("audio_tokens"), into.get("image_tokens"), out.get("audio_tokens"), out.get("image_tokens")
    )
    searches = _searches(raw) if "server_tool_use" in raw else None
    return _reported(
        UsageDetails(
            audio_input_tokens=heard,
            image_input_tokens=seen,
            audio_output_tokens=spoken,
            image_output_tokens=drawn,
            searches=tools.searches if searches is None else searches,
            unpriced_tools=tools.unpriced,
            service_tier=_short_text(tier),
        )
    )


def anthropic_details(raw: JsonObject) -> UsageDetails | None:
    """Return what Messages counts beside the usual. A fast answer is a tier of its own (platform.claude.com, "Fast mode", 2026-11)."""
    created = raw.get("cache_creation")
    hour = token_count(created.get("ephemeral_1h_input_tokens")) if isinstance(created, dict) else None
    tier = "fast" if raw.get("speed") == "fast" else _short_text(raw.get("service_tier"))
    return _reported(UsageDetails(cache_write_1h_tokens=hour, searches=_searches(raw), service_tier=tier))


def tools_of_response(response: JsonObject, items: Sequence[JsonObject]) -> ToolCounts:
    """Return what tools OpenAI ran in a Responses reply with these items.

    Replies of 2026 count searches and pictures in `tool_usage`; in those before, items tell. Only an action `search` is billed, not the
    opening of a page (developers.openai.com, "Web search", 2026-11).
    """
    usage = _object(response, "tool_usage")
    counted = token_count(_object(usage, "web_search").get("num_requests"))
    seen = sum(_is_search(item) for item in items)
    unpriced = sum(_short_text(item.get("type")) in _BILLED_ITEMS for item in items)
    drawn = bool(token_count(_object(usage, "image_gen").get("total_tokens")))
    counts = ToolCounts(counted or seen or None, max(unpriced, drawn) or None)
    return NO_TOOLS if counts == NO_TOOLS else counts


# Items of tools with a price of their own beside tokens (developers.openai.com, "Pricing", 2026-11); what `mcp` costs is not OpenAI's.
_BILLED_ITEMS = frozenset({"file_search_call", "code_interpreter_call", "image_generation_call", "shell_call"})


def _is_search(item: JsonObject) -> bool:
    return item.get("type") == "web_search_call" and _object(item, "action").get("type", "search") == "search"


def gemini_details(raw: JsonObject, grounding: Iterable[object] = ()) -> UsageDetails | None:
    """Return what `usageMetadata` counts beside the usual. `grounding` are the `groundingMetadata` of the candidates."""
    tools = _grounding_tools([item for item in grounding if isinstance(item, dict)])
    traffic = _short_text(raw.get("trafficType"))
    tier = _TRAFFIC.get(traffic, traffic.lower()) or _short_text(raw.get("serviceTier")).lower()
    return _reported(
        UsageDetails(
            audio_input_tokens=_of_modality(raw.get("promptTokensDetails"), "AUDIO"),
            cached_audio_tokens=_of_modality(raw.get("cacheTokensDetails"), "AUDIO"),
            image_input_tokens=_of_modality(raw.get("promptTokensDetails"), "IMAGE"),
            audio_output_tokens=_of_modality(raw.get("candidatesTokensDetails"), "AUDIO"),
            image_output_tokens=_of_modality(raw.get("candidatesTokensDetails"), "IMAGE"),
            searches=tools.searches,
            unpriced_tools=tools.unpriced,
            service_tier=tier,
        )
    )


def modalities_of_input(usage: Usage, count: str, spell: Callable[[str], str]) -> list[JsonObject] | None:
    """Return the prompt's tokens by modality, each under `count`, as Google's dialects list them, or None if they are not known."""
    if usage.input_tokens is None:
        return None
    details = usage.details or _NOTHING
    others = {"AUDIO": details.audio_input_tokens or 0, "IMAGE": details.image_input_tokens or 0}
    counts = {"TEXT": max(0, usage.input_tokens - sum(others.values())), **others}
    return [{"modality": spell(name), count: tokens} for name, tokens in counts.items() if tokens or name == "TEXT"]


def _grounding_tools(grounding: Sequence[JsonObject]) -> ToolCounts:
    """Return what Gemini looked up. Empty queries are free (ai.google.dev, "Grounding with Google Search", 2026-11)."""
    queries = [query for item in grounding for query in _as_list(item.get("webSearchQueries")) if query]
    chunks = [chunk for item in grounding for chunk in _as_list(item.get("groundingChunks")) if isinstance(chunk, dict)]
    return ToolCounts(len(queries) or None, 1 if any("maps" in chunk for chunk in chunks) else None)


def interactions_details(raw: JsonObject) -> UsageDetails | None:
    """Return what `usage` of an interaction counts beside the usual: `grounding_tool_count` has a count for each tool."""
    counts = [item for item in _as_list(raw.get("grounding_tool_count")) if isinstance(item, dict)]
    searches = sum(token_count(count.get("count")) or 0 for count in counts if count.get("type") == "google_search")
    others = sum(token_count(count.get("count")) or 0 for count in counts if count.get("type") != "google_search")
    return _reported(UsageDetails(searches=searches or None, unpriced_tools=others or None))


def bedrock_details(raw: JsonObject) -> UsageDetails | None:
    """Return what Converse counts beside the usual: `cacheDetails` has what was written by how long it is kept."""
    details = raw.get("cacheDetails")
    hour = [
        token_count(item.get("inputTokens")) or 0
        for item in (details if isinstance(details, list) else ())
        if isinstance(item, dict) and item.get("ttl") == "1h"
    ]
    return UsageDetails(cache_write_1h_tokens=sum(hour)) if hour else None


def cohere_details(raw: JsonObject) -> UsageDetails | None:
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


def _searches(raw: JsonObject) -> int | None:
    return token_count(_object(raw, "server_tool_use").get("web_search_requests"))


def _object(raw: JsonObject, name: str) -> JsonObject:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _of_modality(details: object, modality: str) -> int | None:
    counts = [
        token_count(item.get("tokenCount")) or 0
        for item in (details if isinstance(details, list) else ())
        if isinstance(item, dict) and item.get("modality") == modality
    ]
    return sum(counts) if counts else None


def _short_text(value: object) -> str:
    return value[:_LONGEST_WORD] if isinstance(value, str) else ""
