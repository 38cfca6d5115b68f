"""The turns of a request in dialects that take them in alternation, each with a list of blocks (Anthropic, Converse)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def add_turn(turns: list[dict[str, Any]], turn: dict[str, Any]) -> None:
    """Add a turn, or its content to the turn before it where both have one role. An empty turn without further fields is left out.

    What is given is not changed.
    """
    plain = len(turn) == 2
    if plain and not turn["content"]:
        return
    if plain and turns and turns[-1]["role"] == turn["role"] and len(turns[-1]) == 2:
        turns[-1] = {**turns[-1], "content": [*turns[-1]["content"], *turn["content"]]}
    else:
        turns.append(turn)


def answers_without_thinking(
    turns: Sequence[dict[str, Any]],
    *,
    is_result: Callable[[dict[str, Any]], bool],
    is_thinking: Callable[[dict[str, Any]], bool],
) -> bool:
    """Return whether the last turn has results of tools that were called in a turn which does not begin with thinking.

    Such a turn is refused together with a budget for thinking.
    """
    if len(turns) < 2 or turns[-2]["role"] != "assistant":
        return False
    calling, answering = _blocks(turns[-2]), _blocks(turns[-1])
    return any(map(is_result, answering)) and not any(map(is_thinking, calling[:1]))


def _blocks(turn: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a turn; none where its content is one text."""
    content = turn["content"]
    return content if isinstance(content, list) else []
