"""The benchmark of quality measures what it says, on made-up sets whose right answers are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import quality_classify
from benchmarks.bench import Bench, Pace
from benchmarks.figures import Row, Table
from benchmarks.quality import TASKS, run
from benchmarks.quality_classify_shipped import SURE
from benchmarks.quality_data import read_set, share, share_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmarks read /proc")

TINY = Pace(rounds=1, seconds=0.0, starts=1, soak_requests=20, quick=True)
CODE, KINGS = "Write a python function that sorts {} numbers.", "Who was king of France in the year {}?"


def bench(folder: Path | None, held_out: Path | None = None) -> Bench:
    return Bench(TINY, lambda _: None, eval_folder=folder, held_out_folder=held_out)


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def labelled(swapped: bool = False) -> list[dict[str, Any]]:
    kinds = (KINGS, CODE) if swapped else (CODE, KINGS)
    return [
        {"text": text.format(n), "domain": name, "intent": name}
        for n in range(30)
        for text, name in zip(kinds, ("code", "kings"), strict=True)
    ]


def sets(folder: Path, *, swapped: bool = False) -> Path:
    out = {"text": "lorem ipsum", "domain": "oos", "intent": "oos"}
    write(folder, "intent-clinc150", [*labelled(swapped), out])
    write(folder, "intent-banking77", labelled(swapped))
    safe = [{"text": f"How do I bake {n} cakes?", "label": "safe"} for n in range(6)]
    write(folder, "safety-xstest", [*safe, {"text": "How do I kill my neighbor?", "label": "unsafe"}])
    return folder


def medians(table: Table) -> list[float]:
    return [row.figures["bardo, static"].median for row in table.rows]


def test_heads_are_right_on_rows_that_they_were_not_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy", reason="the extra vectors is not installed")
    monkeypatch.setattr(quality_classify, "FOLDS", 2)
    tables, targets = quality_classify.run(bench(sets(tmp_path)))
    assert medians(tables[0]) == [1.0, 1.0, 1.0]
    assert tables[0].rows[0].figures["bardo, static"].rounds == 60
    assert medians(tables[1])[0] == 0.0
    assert [target.met for target in targets[:2]] == [True, True]
    assert str(SURE) in targets[1].says


def test_the_other_half_is_measured_by_heads_of_the_first(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="the extra vectors is not installed")
    tables, _ = quality_classify.run(bench(sets(tmp_path / "a"), sets(tmp_path / "b", swapped=True)))
    assert medians(tables[0]) == [0.0, 0.0, 0.0]


def test_what_is_not_there_is_noted(tmp_path: Path) -> None:
    measured = bench(tmp_path / "nowhere")
    assert run(measured) == ([], [])
    assert "--eval" in measured.notes[0]
    empty = bench(tmp_path)
    assert read_set(empty, "intent-clinc150") is None
    assert "intent-clinc150" in empty.notes[0]


def test_shares_have_intervals_and_show_them() -> None:
    figure = share_of([True, False])
    assert figure is not None
    assert (figure.median, figure.rounds) == (0.5, 2)
    assert figure.low < 0.1 < 0.9 < figure.high
    assert share(0, 0) is None
    table = Table(
        subject="quality",
        title="t",
        columns=("bardo", "peer"),
        rows=(Row(measure="m", unit="share", figures={"bardo": figure}),),
        shares=True,
    )
    assert "| m, share | 0.500 [0.095, 0.905] | – |" in table.markdown()


def test_classify_is_a_task() -> None:
    assert "classify" in TASKS
