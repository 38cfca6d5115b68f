"""Token counts: Anthropic's `input_tokens` leave the cache out and `output_tokens` include the thinking; ours include both."""

from __future__ import annotations

from bardo.dialects.shared.json_values import JsonObject, JsonValue
from bardo.dialects.shared.usage import anthropic_details, doubted, output_with_reasoning, token_count
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage

_INPUTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def merge_usage(total: JsonObject, newer: JsonObject) -> JsonObject:
    """Return the totals so far: `message_start` reports provisionally, `message_delta` finally, and neither reports all fields."""
    return total | {name: value for name, value in newer.items() if value is not None or name not in total}


def decode_usage(raw: JsonObject, *, excludes_reasoning: bool | None = None) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts in our algebra, and what could not be believed.

    Thinking tokens stand in `output_tokens_details.thinking_tokens`; where they are missing they are not known.
    """
    fresh, cached, written = (token_count(raw.get(name)) for name in _INPUTS)
    details = raw.get("output_tokens_details")
    thought = details.get("thinking_tokens") if isinstance(details, dict) else None
    output, reasoning, corrected = output_with_reasoning(
        token_count(raw.get("output_tokens")),
        token_count(thought),
        prompt=None,
        total=None,
        excludes_reasoning=excludes_reasoning,
    )
    usage = Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        details=anthropic_details(raw),
        raw=raw,
    )
    doubts = [doubt for name in (*_INPUTS, "output_tokens") for doubt in doubted(f"usage.{name}", raw.get(name))]
    return usage, (*doubts, *doubted("usage.reasoning_tokens", thought), *corrected)


def encode_usage(usage: Usage) -> JsonObject:
    """Return the usage object for a client. Counts that were not reported are 0 where the dialect must have a number."""
    raw: JsonObject = usage.raw if _is_own(usage.raw) else {}
    if raw and decode_usage(raw)[0] == usage:
        return raw
    cached, written = usage.cached_input_tokens, usage.cache_write_tokens
    counts: JsonObject = {"input_tokens": max(0, (usage.input_tokens or 0) - (cached or 0) - (written or 0))}
    if written is not None:
        counts["cache_creation_input_tokens"] = written
        hour = None if usage.details is None else usage.details.cache_write_1h_tokens
        if hour is not None:
            rest = max(0, written - hour)
            counts["cache_creation"] = {"ephemeral_5m_input_tokens": rest, "ephemeral_1h_input_tokens": hour}
    if cached is not None:
        counts["cache_read_input_tokens"] = cached
    counts["output_tokens"] = usage.output_tokens or 0
    if usage.reasoning_tokens is not None:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return {**raw, **counts} if raw else counts


def _is_own(raw: JsonValue) -> bool:
    # OpenAI's Responses use the same two names, with a total and details beside them.
    return (
        isinstance(raw, dict)
        and "output_tokens" in raw
        and "total_tokens" not in raw
        and "input_tokens_details" not in raw
    )
