"""The scores of tools at once, for tests that need no pause."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.context.tool_choice.ranking import ComparedTool, ToolQuery, scoring_steps


def score_tools(query: ToolQuery, tools: Sequence[ComparedTool]) -> list[float]:
    """Return how well each tool fits a text, in the order of the tools. The work is that of `scoring_steps`, without pauses."""
    steps = scoring_steps(query, tools)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            scores: list[float] = done.value
            return scores
