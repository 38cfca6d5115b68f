"""The words of watsonx text generation: reasons for ending, and counts of tokens."""

from __future__ import annotations

from typing import Any

from bardo.dialects.counts import doubted, whole
from bardo.values.degradation import Degradation
from bardo.values.events import Finish, FinishReason
from bardo.values.usage import Usage

NAME = "watsonx_text"
TITLE = "watsonx text generation"
UNFINISHED = "not_finished"
COUNTS = ("input_token_count", "generated_token_count")

REASONS: dict[str, FinishReason] = {
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "token_limit": "length",
    "time_limit": "length",
    "cancelled": "error",
    "error": "error",
}
_WORDS: dict[FinishReason, str] = {"length": "max_tokens", "error": "error"}


def read_usage(raw: dict[str, Any]) -> tuple[Usage, tuple[Degradation, ...]]:
    """Return the counts, and what could not be believed."""
    given = [raw.get(name) for name in COUNTS]
    usage = Usage(input_tokens=whole(given[0]), output_tokens=whole(given[1]), raw=raw)
    doubts = [one for name, value in zip(COUNTS, given, strict=True) for one in doubted(f"usage.{name}", value)]
    return usage, tuple(doubts)


def write_usage(usage: Usage) -> dict[str, int]:
    """Return the counts under the dialect's names; those nobody reported are left out."""
    counts = zip(COUNTS, (usage.input_tokens, usage.output_tokens), strict=True)
    return {name: count for name, count in counts if count is not None}


def stop_reason(finish: Finish) -> str:
    """Return the word a client knows: the provider's own where it is one of this dialect."""
    if finish.raw in REASONS:
        return finish.raw
    return "stop_sequence" if finish.stop_sequence is not None else _WORDS.get(finish.reason, "eos_token")
