"""Token counts: thoughts stand beside the output, what tools brought in beside the input, and cached tokens inside it.

`total_tokens` is the sum of the first four in all recorded replies.
"""

from __future__ import annotations

from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.usage import (
    doubted,
    interactions_details,
    modalities_of_input,
    output_with_reasoning,
    token_count,
)
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage

_COUNTS = ("input", "tool_use", "output", "thought", "cached")


def decode_usage(raw: JsonObject, excludes_reasoning: bool | None = None) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts in our algebra, and what could not be believed. `excludes_reasoning` None: the total tells about thoughts."""
    given = {name: raw.get(f"total_{name}_tokens") for name in _COUNTS}
    prompt, tool, answer, thoughts, cached = (token_count(given[name]) for name in _COUNTS)
    read = tool if prompt is None else prompt + (tool or 0)
    total = token_count(raw.get("total_tokens"))
    if excludes_reasoning is None:
        excludes_reasoning = answer is None or total is None or total != (read or 0) + answer
    output, reasoning, corrected = output_with_reasoning(
        answer, thoughts, prompt=read, total=total, excludes_reasoning=excludes_reasoning
    )
    usage = Usage(
        input_tokens=read,
        output_tokens=reasoning if output is None else output,
        reasoning_tokens=reasoning,
        cached_input_tokens=cached,
        details=interactions_details(raw),
        raw=raw,
    )
    doubts = [doubt for name, value in given.items() for doubt in doubted(f"usage.total_{name}_tokens", value)]
    return usage, (*doubts, *corrected)


def encode_usage(usage: Usage) -> JsonObject | None:
    """Return the `usage` object, or None if nothing was reported. The dialect's own object comes back as it was."""
    raw = usage.raw if _is_ours(usage.raw) else {}
    if raw and _numbers(decode_usage(raw)[0]) == _numbers(usage):
        return dict(raw)
    if not usage.reported:
        return None
    thoughts = usage.reasoning_tokens
    counts: JsonObject = {
        "total_input_tokens": usage.input_tokens,
        "total_cached_tokens": usage.cached_input_tokens,
        "total_output_tokens": None if usage.output_tokens is None else usage.output_tokens - (thoughts or 0),
        "total_thought_tokens": thoughts,
        "total_tool_use_tokens": None if usage.input_tokens is None else 0,
        "total_tokens": usage.total_tokens,
        "input_tokens_by_modality": modalities_of_input(usage, "tokens", str.lower),
    }
    others = {name: value for name, value in raw.items() if not name.startswith("total_")}
    return {**others, **{name: value for name, value in counts.items() if value is not None}}


def _is_ours(raw: object) -> bool:
    return isinstance(raw, dict) and any(
        isinstance(name, str) and name.startswith("total_") and name.endswith("_tokens") for name in raw
    )


def _numbers(usage: Usage) -> tuple[int | None, ...]:
    return (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_input_tokens)
