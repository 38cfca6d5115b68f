"""Token counts and durations, which stand beside the message in the last line.

A prompt that was cached whole has no count, so that its count is not known. Ollama does not count reasoning apart.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.shared.usage import doubted, token_count
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage

FIELDS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)
_COUNTS = ("prompt_eval_count", "eval_count")


def decode_usage(line: dict[str, Any]) -> tuple[Usage | None, tuple[Degradation, ...]]:
    """Return the counts of a line, and what in them could not be believed; None where it has none."""
    raw = {name: line[name] for name in FIELDS if line.get(name) is not None}
    if not raw:
        return None, ()
    usage = Usage(
        input_tokens=token_count(raw.get("prompt_eval_count")),
        output_tokens=token_count(raw.get("eval_count")),
        raw=raw,
    )
    return usage, tuple(doubt for name in _COUNTS for doubt in doubted(f"usage.{name}", raw.get(name)))


def time_fields(begun: float, total: float) -> dict[str, Any]:
    """Return the durations of a reply in nanoseconds. Clients divide by them, so that none is 0; a reply that came whole is all answer."""
    read, whole = round(begun * 1e9), max(2, round(total * 1e9))
    read = read if 0 < read < whole else 1
    return {
        "total_duration": whole,
        "load_duration": 1,
        "prompt_eval_duration": read,
        "eval_duration": whole - read,
    }


def encode_usage(usage: Usage) -> dict[str, Any]:
    """Return the fields of the last line; counts and durations that nobody reported are left out."""
    raw = usage.raw if isinstance(usage.raw, dict) and not usage.raw.keys() - set(FIELDS) else {}
    if raw and decode_usage(raw)[0] == usage:
        return raw
    counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
    return {**raw, **{name: count for name, count in counts.items() if count is not None}}
