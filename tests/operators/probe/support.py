"""Cells and trials as plain values, and a model that is known by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bardo.operators.probe.cells import BASELINE, EASY, Cell
from bardo.operators.probe.samples import Trial
from bardo.reasoning.control import ControlTarget, know
from bardo.reasoning.control.target import ResolvedFacts

CELLS = (
    Cell(id=EASY, question="easy"),
    Cell(id=BASELINE),
    Cell(id="off", setting="off", form="f", value="off", fields={"effort": "none"}),
    *(Cell(id=one, setting="effort", form="f", value=one, fields={"effort": one}) for one in ("low", "medium", "high")),
    *(Cell(id=one, setting="budget", form="f", value=one, fields={"budget": int(one)}) for one in ("1024", "4096")),
)
SPREAD = (0.9, 0.95, 1.0, 1.05, 1.1)


def answers(tokens: Mapping[str, float], *, spread: Sequence[float] = SPREAD, counted: bool = True) -> list[Trial]:
    """Return answers to each cell, their tokens spread around what is given; not `counted`, there is only output."""
    return [
        Trial(
            cell=cell,
            round=turn,
            outcome="answered",
            reasoning_tokens=round(middle * factor) if counted else None,
            reported=counted,
            output_tokens=round(middle * factor) + 20,
        )
        for cell, middle in tokens.items()
        for turn, factor in enumerate(spread)
    ]


def refusals(*cells: str) -> list[Trial]:
    return [Trial(cell=cell, round=0, outcome="refused", status=400, message="not supported") for cell in cells]


def known(provider: str = "openrouter", model: str = "qwen/qwen3.6-27b", dialect: str = "openai_chat") -> ResolvedFacts:
    return know(ControlTarget(provider, dialect, model))
