"""Token counts of the Responses dialect, read and written.

`input_tokens` includes the cached ones and `output_tokens` the reasoning, which is bardo's own algebra.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.counts import doubted, output_with_reasoning, whole
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage

# One tick of xAI is a ten-thousand-millionth of a dollar (its recorded prices give this to the last digit).
_TICKS = 1e10


def read_usage(raw: dict[str, Any], beside: bool | None) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts, and what about them could not be believed. `beside`: whether reasoning is left out of the output count."""
    into, out = _object(raw, "input_tokens_details"), _object(raw, "output_tokens_details")
    # Copilot has been seen to count reasoning at the top level.
    told = out if "reasoning_tokens" in out else raw
    counted = whole(raw.get("input_tokens"))
    output, reasoning, corrected = output_with_reasoning(
        whole(raw.get("output_tokens")),
        whole(told.get("reasoning_tokens")),
        prompt=counted,
        total=whole(raw.get("total_tokens")),
        beside=beside,
    )
    usage = Usage(
        input_tokens=counted,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cached_input_tokens=whole(into.get("cached_tokens")),
        cache_write_tokens=whole(into.get("cache_write_tokens")),
        cost_usd=_cost(raw),
        raw=raw,
    )
    counts = {**into, **told, **{name: raw.get(name) for name in ("input_tokens", "output_tokens")}}
    doubts = [doubt for name in _COUNTS for doubt in doubted(f"usage.{name}", counts.get(name))]
    return usage, (*doubts, *corrected)


def write_usage(usage: Usage) -> dict[str, Any] | None:
    """Return the usage object for a client, or None where nothing was reported.

    A provider's own object of this shape is given as it came, as long as it still says what `usage` says. Counts the official types
    require are 0 where they are not known.
    """
    raw = usage.raw
    if isinstance(raw, dict) and _says(raw, usage):
        return raw
    if not usage.reported:
        return None
    return {
        **_additional(raw),
        "input_tokens": usage.input_tokens or 0,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens or 0,
            "cache_write_tokens": usage.cache_write_tokens or 0,
        },
        "output_tokens": usage.output_tokens or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }


def _says(raw: dict[str, Any], usage: Usage) -> bool:
    # An Anthropic object has input_tokens and output_tokens too: the total, and no cache count beside it, tell them apart.
    if not _is_own(raw):
        return False
    return any(read_usage(raw, beside)[0] == usage for beside in (None, False, True))


def _is_own(raw: dict[str, Any]) -> bool:
    named = "total_tokens" in raw or "input_tokens_details" in raw
    return named and "input_tokens" in raw and "cache_read_input_tokens" not in raw


def _additional(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict) or not _is_own(raw):
        return {}
    return {name: value for name, value in raw.items() if name not in _COUNTED}


_COUNTED = frozenset({"input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"})
_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cache_write_tokens")


def _cost(raw: dict[str, Any]) -> float | None:
    for name, unit in (("cost", 1.0), ("cost_in_usd_ticks", _TICKS)):
        value = raw.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return value / unit
    return None


def _object(raw: dict[str, Any], name: str) -> dict[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}
