"""The outcomes that routing is measured with: prompts, and how well each model answered each of them.

They are files outside of the project: `--eval FOLDER` names the folder with `router-nine-models`, `router-routellm-gsm8k`,
`router-routellm-mmlu` and `router-routerarena`, each with a `rows.jsonl`. `--held-out FOLDER` names one of the same form that is measured
on with what was fitted to the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks.processes import ROOT

EVAL = ROOT.parent / "shared" / "eval"
FOLDS = 5
_LARGE_SET = 3_000
# USD per million tokens, input and output alike: ulab-uiuc/LLMRouter, data/example_data/llm_candidates/default_llm.json, commit 4e7a796.
_SMALL, _LARGE = 0.20, 0.90
_PRICES = {"gemma-2-9b-it": 0.10}
_LARGE_SIZES = ("-51b-", "-49b-", "-70b")


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """One set: `scores[row][model]` from 0 to 1, and the price of each model (or of each model on each row) in the set's own unit."""

    name: str
    models: tuple[str, ...]
    prompts: tuple[str, ...]
    tasks: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]
    prices: tuple[float, ...]

    def means(self, rows: Sequence[int]) -> tuple[float, ...]:
        """Return the mean score of each model over some rows."""
        return tuple(sum(self.scores[row][model] for row in rows) / len(rows) for model in range(len(self.models)))


def load(folder: Path, name: str, *, quick: bool = False) -> Outcomes:
    """Read one set, or in a quick run each third row of a large one. Its models stand from the worst to the best."""
    lines = (folder / f"router-{name}" / "rows.jsonl").read_bytes().splitlines()
    if quick and len(lines) > _LARGE_SET:
        lines = lines[::3]
    rows: list[dict[str, Any]] = [msgspec.json.decode(line) for line in lines]
    key = "ok" if "ok" in rows[0] else "score"
    models = sorted(rows[0][key], key=lambda model: (sum(row[key][model] for row in rows), model))
    return Outcomes(
        name=name,
        models=tuple(models),
        prompts=tuple(row["prompt"] for row in rows),
        tasks=tuple(row.get("subject") or row["task"] for row in rows),
        scores=tuple(tuple(float(row[key][model]) for model in models) for row in rows),
        prices=tuple(_price(model, rows) for model in models),
    )


def _price(model: str, rows: Sequence[Mapping[str, Any]]) -> float:
    costs = [row["cost_usd"][model] for row in rows if "cost_usd" in row]
    if costs:
        return float(sum(costs)) * 1000 / len(costs)
    if model in _PRICES:
        return _PRICES[model]
    return _LARGE if any(size in model for size in _LARGE_SIZES) else _SMALL


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Rows to fit to and rows to measure on; the latter may be of another half of the set."""

    fit: tuple[int, ...]
    measure: tuple[int, ...]


def splits(count: int, seed: int) -> list[Split]:
    """Return the folds of a cross-validation: each row is measured on once, by what was fitted without it."""
    order = list(range(count))
    Random(seed).shuffle(order)
    parts = [tuple(order[first::FOLDS]) for first in range(FOLDS)]
    return [Split(fit=tuple(row for part in parts if part is not held for row in part), measure=held) for held in parts]


def halves(fitted: Outcomes, held_out: Outcomes) -> tuple[Outcomes, list[Split]]:
    """Return both halves as one set, and the one split that fits to the first and measures on the second."""
    order = [held_out.models.index(model) for model in fitted.models]
    both = msgspec.structs.replace(
        fitted,
        prompts=fitted.prompts + held_out.prompts,
        tasks=fitted.tasks + held_out.tasks,
        scores=fitted.scores + tuple(tuple(row[place] for place in order) for row in held_out.scores),
    )
    count = len(fitted.prompts)
    return both, [Split(fit=tuple(range(count)), measure=tuple(range(count, len(both.prompts))))]
