"""What came of each request, and by which count of tokens all of them can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Outcome = Literal["answered", "refused", "failed"]
Measure = Literal["reported", "estimated", "output"]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its reply.

    `answered`: a whole reply came. `refused`: the provider does not take the request as it is (a status of 4xx that another try does not
    mend). `failed`: anything else; it says nothing, and is sent again. `reasoning_tokens` is None where the provider reports none and
    none can be estimated from what is shown.
    """

    cell: str
    round: int
    outcome: Outcome
    reasoning_tokens: int | None = None
    reported: bool = False
    text_seen: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    finish: str = ""
    status: int = 200
    message: str = ""
    seconds: float = 0.0


def measure_of(trials: Sequence[Trial]) -> Measure:
    """Return the best count that every answer has: reported reasoning tokens, else their estimate
    from the text shown where they are not reported, else all output.

    Where thinking is shown in some replies, one without any has none. Where it is never shown nor counted, only the output is left.
    """
    answered = [trial for trial in trials if trial.outcome == "answered"]
    if answered and all(trial.reported for trial in answered):
        return "reported"
    if any(trial.text_seen or trial.reasoning_tokens for trial in answered):
        return "estimated"
    return "output"


def value_of(trial: Trial, measure: Measure) -> float | None:
    """Return the trial's count; None where it has none."""
    if trial.outcome != "answered":
        return None
    return trial.output_tokens if measure == "output" else trial.reasoning_tokens or 0
