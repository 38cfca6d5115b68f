"""A short reply in each format, so that one look shows how it marks thinking."""

from __future__ import annotations

from bardo.reasoning.formats import ReasoningFormat

THOUGHT = "6 * 7"
ANSWER = "42"


def example_of(row: ReasoningFormat) -> str:
    """Return the row's own example, else one made of its delimiters; empty where it has neither.

    A format whose replies begin inside a block shows no beginning, because the prompt holds it.
    """
    if row.example or not (row.starts and row.ends):
        return row.example
    opener = "" if row.starts_inside is True else row.starts[0]
    return f"{opener}{THOUGHT}{row.ends[0]}{ANSWER}"
