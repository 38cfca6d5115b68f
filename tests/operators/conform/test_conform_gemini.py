"""What the check of a server reads in a reply of Gemini's generateContent."""

from __future__ import annotations

import pytest

from bardo.operators.conform.checks import Gemini

COUNTS = {
    "thinking and answer": ({"thoughtsTokenCount": 30, "candidatesTokenCount": 12}, 42),
    "no thinking": ({"candidatesTokenCount": 12}, 12),
    "thinking alone": ({"thoughtsTokenCount": 30}, 30),
    "neither": ({}, None),
}


@pytest.mark.parametrize(("counts", "output"), COUNTS.values(), ids=COUNTS)
def test_output_tokens_are_those_of_the_thinking_and_of_the_answer(counts: dict[str, int], output: int | None) -> None:
    usage = {"promptTokenCount": 5, "totalTokenCount": 5 + (output or 0), **counts}
    reading = Gemini().read_whole({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage})
    assert (reading.faults, reading.output_tokens) == ([], output)
