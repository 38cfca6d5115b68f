"""Token counts: `tokens` is what the model read and wrote, `billed_units` leaves out what Cohere itself put in.

Output includes the reasoning, and input includes what was cached.
"""

from __future__ import annotations

from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.usage import cohere_details, doubted, output_with_reasoning, token_count
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage


def decode_usage(raw: JsonObject, *, excludes_reasoning: bool | None = None) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts in our algebra, and what could not be believed. The bill counts where the tokens are not told."""
    tokens = _object(raw, "tokens") or _object(raw, "billed_units")
    counts = {name: tokens.get(f"{name}_tokens") for name in ("input", "output", "reasoning")}
    counts["cached_input"] = raw.get("cached_tokens")
    output, reasoning, corrected = output_with_reasoning(
        token_count(counts["output"]),
        token_count(counts["reasoning"]),
        prompt=None,
        total=None,
        excludes_reasoning=excludes_reasoning,
    )
    usage = Usage(
        input_tokens=token_count(counts["input"]),
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_input_tokens=token_count(counts["cached_input"]),
        details=cohere_details(raw),
        raw=raw,
    )
    doubts = [doubt for name, count in counts.items() for doubt in doubted(f"usage.{name}_tokens", count)]
    return usage, (*doubts, *corrected)


def encode_usage(usage: Usage) -> JsonObject:
    """Return the usage object for a client; counts that were not reported are left out."""
    raw = usage.raw if isinstance(usage.raw, dict) and ("tokens" in usage.raw or "billed_units" in usage.raw) else {}
    if raw and decode_usage(raw)[0] == usage:
        return raw
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    tokens = {name: count for name, count in counts.items() if count is not None}
    written = {**raw, **({"tokens": {**_object(raw, "tokens"), **tokens}} if tokens else {})}
    if tokens and "billed_units" not in raw:
        # Cohere's own replies have both, and LangChain's client fails where one is missing (2026-11).
        billed = ("input_tokens", usage.input_tokens), ("output_tokens", usage.output_tokens)
        written["billed_units"] = {name: count for name, count in billed if count is not None}
    if usage.cached_input_tokens is not None:
        written["cached_tokens"] = usage.cached_input_tokens
    return written


def _object(raw: JsonObject, name: str) -> JsonObject:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}
