"""Usage in Chat Completions, read and written.

The object of a reply is kept whole beside its counts, and its names are those of many servers, so it is read as it is.
"""

from __future__ import annotations

from bardo.dialects.openai_chat.wire import Reply
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.usage import (
    cache_within_input,
    doubted,
    openai_details,
    output_with_reasoning,
    token_count,
    token_counts,
)
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage

_TICKS_PER_DOLLAR = 10_000_000_000
_LARGEST = 1 << 53
_COSTS = frozenset({"cost", "cost_in_usd_ticks"})


def decode_usage(
    raw: JsonObject,
    *,
    excludes_reasoning: bool | None,
    cost: object = None,
    tier: object = None,
    google: JsonObject | None = None,
) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts of one `usage` object, and what in it could not be true.

    `cost` and the service `tier` are what stands beside it, `google` Google's own counts of the same reply, which tell whether the output
    includes reasoning.
    """
    # Writer and some replies of Mistral spell the details of the prompt in the singular.
    into = _object(raw, "prompt_tokens_details", "prompt_token_details", "input_tokens_details")
    out = _object(raw, "completion_tokens_details", "output_tokens_details")
    asked, output = raw.get("prompt_tokens"), raw.get("completion_tokens")
    asked = raw.get("input_tokens") if asked is None else asked
    output = raw.get("output_tokens") if output is None else output
    reported = out.get("reasoning_tokens")
    if reported is None:
        # Copilot and Perplexity put the count at the top level.
        reported = raw.get("reasoning_tokens")
    cached = into.get("cached_tokens")
    for name in ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens") if cached is None else ():
        cached = raw.get(name) if cached is None else cached
    written = into.get("cache_write_tokens")
    written = into.get("cache_creation_input_tokens") if written is None else written
    prompt, completion, thought, total, cached, written = token_counts(
        asked, output, reported, raw.get("total_tokens"), cached, written
    )
    doubts: tuple[Degradation, ...] = ()
    if prompt is None or completion is None or thought is None:
        doubts = doubted("usage.input_tokens", asked) + doubted("usage.output_tokens", output)
        doubts += doubted("usage.reasoning_tokens", reported)
    if google is not None and (told := _beside_by_google(google, completion, thought)) is not None:
        excludes_reasoning = told
    completion, thought, corrected = output_with_reasoning(
        completion, thought, prompt=prompt, total=total, excludes_reasoning=excludes_reasoning
    )
    capped: tuple[Degradation, ...] = ()
    if cached is not None or written is not None:
        cached, written, capped = cache_within_input(prompt, cached, written)
    usage = Usage(
        input_tokens=prompt,
        output_tokens=completion,
        reasoning_tokens=thought,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        cost_usd=None if cost is None and _COSTS.isdisjoint(raw) else _dollars(raw, cost),
        details=openai_details(raw, into, out, tier),
        raw=raw,
    )
    return usage, corrected + capped + doubts


def google_counts(frame: Reply) -> JsonObject | None:
    """Return Google's `usageMetadata` where a gateway hands it on: in `provider_metadata` of the reply, a choice or its message."""
    for choice in frame.choices or ():
        for holder in () if choice is None else (choice, choice.delta, choice.message):
            if holder is not None and holder.provider_metadata and (counts := _google_counts(holder.provider_metadata)):
                return counts
    return _google_counts(frame.provider_metadata) if frame.provider_metadata else None


def _google_counts(metadata: JsonObject) -> JsonObject | None:
    counts = (told.get("usageMetadata") for told in metadata.values() if isinstance(told, dict))
    return next((count for count in counts if isinstance(count, dict)), None)


def _beside_by_google(google: JsonObject, output: int | None, reasoning: int | None) -> bool | None:
    """Return whether `output` is Google's answer alone, or None if its counts are about something else."""
    answer, thoughts = (
        token_count(google.get("candidatesTokenCount")) or 0,
        token_count(google.get("thoughtsTokenCount")),
    )
    if output is None or not thoughts or thoughts != reasoning:
        return None
    return {answer: True, answer + thoughts: False}.get(output)


def _dollars(raw: JsonObject, usd: object) -> float | None:
    """Return the price a host names: OpenRouter's `cost`, Perplexity's `total_cost`, Venice's `usd`, xAI's ticks."""
    ticks = _amount(raw.get("cost_in_usd_ticks"))
    if ticks is not None:
        return ticks / _TICKS_PER_DOLLAR
    for cost, name in ((raw.get("cost"), "total_cost"), (usd, "usd")):
        amount = _amount(cost.get(name) if isinstance(cost, dict) else cost)
        if amount is not None:
            return amount + _upstream_cost(raw)
    return None


def _upstream_cost(raw: JsonObject) -> float:
    """Return what the maker charges besides, where a gateway used the caller's own key: its `cost` is its fee alone then.

    Source: openrouter.ai/docs, "Usage accounting" and "BYOK", 2026-11.
    """
    if raw.get("is_byok") is not True:
        return 0.0
    return _amount(_object(raw, "cost_details").get("upstream_inference_cost")) or 0.0


def _amount(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return float(value)
    return None


def encode_usage(usage: Usage) -> JsonObject | None:
    """Return a `usage` object in bardo's algebra, the provider's further fields of this dialect kept, or None if nothing is known.

    Clients must get three counts: an unknown one is 0, and the total is then that of the known ones, or the provider's own.
    """
    if not usage.reported:
        return None
    raw = usage.raw if isinstance(usage.raw, dict) and "prompt_tokens" in usage.raw else {}
    prompt, completion = usage.input_tokens or 0, usage.output_tokens or 0
    total = usage.total_tokens if usage.total_tokens is not None else token_count(raw.get("total_tokens"))
    return {
        **raw,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion if total is None else total,
        **_details(raw, "completion_tokens_details", {"reasoning_tokens": usage.reasoning_tokens}),
        **_details(
            raw,
            "prompt_tokens_details",
            {"cached_tokens": usage.cached_input_tokens, "cache_write_tokens": usage.cache_write_tokens},
        ),
    }


def _details(raw: JsonObject, name: str, ours: dict[str, int | None]) -> JsonObject:
    counts = {field: count for field, count in ours.items() if count is not None}
    merged = {**_object(raw, name), **counts}
    return {name: merged} if merged else {}


def _object(raw: JsonObject, *names: str) -> JsonObject:
    """Return the first of these objects that says something."""
    for name in names:
        value = raw.get(name)
        if value and isinstance(value, dict):
            return value
    return {}
