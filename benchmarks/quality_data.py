"""Labelled rows for the quality of layers, and shares of them with their intervals.

They are files outside of the project: `--eval FOLDER` names the folder with one folder for each set; `--held-out FOLDER` names one of the
same form that is measured on with what was fitted to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bardo.values.intervals import wilson
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.routing_data import EVAL

_QUICK_ROWS = 1_500
Rows = list[dict[str, Any]]


class LabelledSet(msgspec.Struct, frozen=True, kw_only=True):
    """One set. `measured` is None where the rows that are fitted to are measured on by cross-validation."""

    name: str
    fitted: Rows
    measured: Rows | None = None


def read_set(bench: Bench, name: str, file: str = "rows.jsonl", *, whole: bool = False) -> LabelledSet | None:
    """Return a set, in a quick run some of its rows evenly spread unless it is wanted `whole`.

    None, with a note, where its file is not there.
    """
    quick = bench.pace.quick and not whole
    fitted = _rows(bench, (bench.eval_folder or EVAL) / name / file, quick)
    if fitted is None:
        return None
    held_out = bench.held_out_folder
    measured = None if held_out is None else _rows(bench, held_out / name / file, quick)
    if held_out is not None and measured is None:
        return None
    return LabelledSet(name=name, fitted=fitted, measured=measured)


def share(right: int, rows: int) -> Figure | None:
    """Return a share of rows with its 95 % interval; None where there are no rows."""
    if not rows:
        return None
    low, high = wilson(right, rows)
    return Figure(median=right / rows, low=low, high=high, rounds=rows)


def share_of(marks: Sequence[bool]) -> Figure | None:
    """Return the share of marks that are true, with its 95 % interval; None where there are none."""
    return share(sum(marks), len(marks))


def _rows(bench: Bench, path: Path, quick: bool) -> Rows | None:
    if not path.is_file():
        bench.note(f"quality: there is no {path}")
        return None
    lines = path.read_bytes().splitlines()
    if quick:
        lines = lines[:: max(1, len(lines) // _QUICK_ROWS)]
    return [msgspec.json.decode(line) for line in lines if line]
