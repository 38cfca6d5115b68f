"""Token counts and durations, which stand beside the message in the last line.

A prompt that was cached whole has no count, so that its count is not known. Ollama does not count reasoning apart.
"""

from __future__ import annotations

from bardo.dialects.ollama.wire import COUNTS
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.usage import doubted, token_count
from bardo.values.degradation import Degradation
from bardo.values.usage import Usage


def decode_usage(raw: JsonObject) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return what these fields of a line count, and what in them could not be believed."""
    usage = Usage(
        input_tokens=token_count(raw.get("prompt_eval_count")),
        output_tokens=token_count(raw.get("eval_count")),
        raw=raw,
    )
    tokens = ("prompt_eval_count", "eval_count")
    return usage, tuple(doubt for name in tokens for doubt in doubted(f"usage.{name}", raw.get(name)))


def time_fields(begun: float, total: float) -> JsonObject:
    """Return the durations of a reply in nanoseconds. Clients divide by them, so that none is 0; a reply that came whole is all answer."""
    read, whole = round(begun * 1e9), max(2, round(total * 1e9))
    read = read if 0 < read < whole else 1
    return {"total_duration": whole, "load_duration": 1, "prompt_eval_duration": read, "eval_duration": whole - read}


def encode_usage(usage: Usage) -> JsonObject:
    """Return the fields of the last line; counts and durations that were not reported are left out."""
    raw = usage.raw if isinstance(usage.raw, dict) and not usage.raw.keys() - set(COUNTS) else {}
    if raw and decode_usage(raw)[0] == usage:
        return raw
    counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
    return {**raw, **{name: count for name, count in counts.items() if count is not None}}
