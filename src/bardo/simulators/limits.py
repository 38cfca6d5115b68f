"""The token limit of an answer, under the names that providers use for it."""

from __future__ import annotations

from dataclasses import replace

from bardo.simulators.fields import Fields
from bardo.simulators.turns import Turn, tokens_of

_NAMES = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "maxTokens",
    "num_predict",
    "max_new_tokens",
)
_HOLDERS = ("generationConfig", "inferenceConfig", "generation_config", "options", "parameters")
_LETTERS = 4


def limit_of(body: Fields) -> int | None:
    """Return the most tokens that an answer may have; None where the request sets no limit."""
    for holder in (body, *(found for name in _HOLDERS if isinstance(found := body.get(name), dict))):
        for name in _NAMES:
            value = holder.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def truncated_turn(turn: Turn, limit: int | None) -> Turn:
    """Return a turn cut at the token limit, which includes its thinking. Tool calls, and turns with a declared usage, stay whole."""
    if limit is None or turn.tool_calls or turn.finish or turn.usage:
        return turn
    left = limit - tokens_of(len(turn.reasoning))
    if tokens_of(len(turn.text)) <= left:
        return turn
    return replace(turn, text=turn.text[: max(0, left) * _LETTERS], finish="length")
