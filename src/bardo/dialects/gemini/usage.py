"""Gemini's token counts in bardo's algebra, and back.

`thoughtsTokenCount` stands beside `candidatesTokenCount`, `toolUsePromptTokenCount` beside `promptTokenCount`, and
`cachedContentTokenCount` inside it: `totalTokenCount` is the sum of the first four in all recorded replies.
"""

from __future__ import annotations

from collections.abc import Iterable

from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.usage import cache_within_input, gemini_details, modalities_of_input
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage

_COUNTS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
    "totalTokenCount",
)


def decode_usage(
    raw: JsonObject, excludes_reasoning: bool | None = None, grounding: Iterable[object] = ()
) -> tuple[Usage, list[Degradation]]:
    """Return the counts. `excludes_reasoning` is the provider's fact about thoughts; None believes the reply's own total.

    `grounding` are the `groundingMetadata` of the candidates, which tell what was searched for.
    """
    degraded: list[Degradation] = []
    prompt, tool, answer, thoughts, cached, total = (_count(raw, name, degraded) for name in _COUNTS)
    if answer is None:
        # A count of nothing is left out of the JSON.
        answer = _remaining_tokens(total, prompt, (tool, thoughts))
    output = answer
    if thoughts and answer is not None:
        if _are_beside(excludes_reasoning, total, (prompt, tool, answer)):
            output = answer + thoughts
        elif thoughts > answer:
            why = "more thoughts than output were counted"
            degraded.append(Degradation("usage.reasoning_tokens", asked=thoughts, sent=answer, why=why))
            thoughts = answer
    cached, _, capped = cache_within_input(_sum(prompt, tool), cached)
    degraded += capped
    usage = Usage(
        input_tokens=_sum(prompt, tool),
        output_tokens=thoughts if output is None else output,
        reasoning_tokens=thoughts,
        cached_input_tokens=cached,
        details=gemini_details(raw, grounding),
        raw=raw,
    )
    return usage, degraded


def encode_usage(usage: Usage) -> JsonObject | None:
    """Return `usageMetadata`, or None if nothing was reported. Gemini's own object comes back as it was."""
    raw = usage.raw if _is_ours(usage.raw) else {}
    if raw and _numbers(decode_usage(raw)[0]) == _numbers(usage):
        return dict(raw)
    if not usage.reported:
        return None
    thoughts = usage.reasoning_tokens
    counts: JsonObject = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": None if usage.output_tokens is None else usage.output_tokens - (thoughts or 0),
        "thoughtsTokenCount": thoughts,
        "cachedContentTokenCount": usage.cached_input_tokens,
        "totalTokenCount": usage.total_tokens,
        "promptTokensDetails": modalities_of_input(usage, "tokenCount", str.upper),
    }
    others = {name: value for name, value in raw.items() if name not in _COUNTS}
    return {**others, **{name: value for name, value in counts.items() if value is not None}}


def _count(raw: JsonObject, name: str, degraded: list[Degradation]) -> int | None:
    value = raw.get(name)
    if value is None or (type(value) is int and value >= 0):
        return value
    degraded.append(Degradation(f"usage.{name}", asked=value, sent=None, why="not a count"))
    return None


def _remaining_tokens(total: int | None, prompt: int | None, others: tuple[int | None, ...]) -> int | None:
    if total is None or prompt is None:
        return None
    rest = total - prompt - sum(other or 0 for other in others)
    return rest if rest >= 0 else None


def _are_beside(fact: bool | None, total: int | None, others: tuple[int | None, ...]) -> bool:
    if fact is not None:
        return fact
    return total is None or total != sum(other or 0 for other in others)


def _sum(first: int | None, second: int | None) -> int | None:
    return second if first is None else first + (second or 0)


def _is_ours(raw: object) -> bool:
    endings = ("TokenCount", "TokensDetails")
    return isinstance(raw, dict) and any(isinstance(name, str) and name.endswith(endings) for name in raw)


def _numbers(usage: Usage) -> tuple[int | None, ...]:
    return (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_input_tokens)
