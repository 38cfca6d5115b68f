"""The benchmark of routing quality measures what it says, on a made-up set whose right answers are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
from benchmarks.bench import Bench, Pace
from benchmarks.figures import in_digits
from benchmarks.routing_data import Outcomes, Split, halves, load, splits
from benchmarks.routing_methods import METHODS
from benchmarks.routing_online import stream, worth_of
from benchmarks.routing_quality import _at_prices, _expected, _measured, _score_at, apgr, run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmarks read /proc")

TINY = Pace(rounds=1, seconds=0.0, starts=1, soak_requests=20, quick=True)
CODE, KINGS = "Write a python function that sorts {} numbers.", "Who was king of France in the year {}?"
# One cheap model that is good at code alone, and a dear one that is good at kings alone.
# Enough that the 80 nearest neighbours of a prompt can all be of its kind.
COUNT = 240


def made_up(name: str = "nine-models") -> Outcomes:
    prompts = [text.format(n) for n in range(1400, 1400 + COUNT // 2) for text in (CODE, KINGS)]
    code = [text.startswith("Write") for text in prompts]
    return Outcomes(
        name=name,
        models=("cheap", "dear"),
        prompts=tuple(prompts),
        tasks=tuple("code" if one else "kings" for one in code),
        scores=tuple((1.0, 0.0) if one else (0.0, 1.0) for one in code),
        prices=(0.2, 0.9),
    )


def test_each_row_is_measured_once_and_never_fitted_to_itself() -> None:
    parts = splits(COUNT, 1)
    assert sorted(_measured(parts)) == list(range(COUNT))
    assert all(not set(part.fit) & set(part.measure) for part in parts)
    assert all(len(part.fit) + len(part.measure) == COUNT for part in parts)


def test_the_other_half_is_measured_with_its_models_in_the_same_order() -> None:
    fitted = made_up()
    turned = tuple((dear, cheap) for cheap, dear in fitted.scores)
    both, (part,) = halves(fitted, msgspec.structs.replace(fitted, models=("dear", "cheap"), scores=turned))
    assert both.scores == fitted.scores * 2
    assert part == Split(fit=tuple(range(COUNT)), measure=tuple(range(COUNT, 2 * COUNT)))


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_see_the_prompt_choose_the_right_model(name: str) -> None:
    data = made_up()
    parts = splits(COUNT, 1)
    expected, rows = _expected(name, data, parts), _measured(parts)
    right = sum((one[0] > one[1]) == (data.tasks[row] == "code") for one, row in zip(expected, rows, strict=True))
    assert len(expected) == COUNT
    assert right == COUNT


def test_a_score_at_a_price_is_that_of_the_best_mixture() -> None:
    curve = [(0.2, 0.4), (0.4, 0.5), (1.0, 0.8)]
    assert _score_at(curve, 0.6) == pytest.approx(0.6)
    assert _score_at(curve, 2.0) == 0.8
    # Nothing is so cheap: the score of the cheapest stands.
    assert _score_at(curve, 0.1) == 0.4


def test_the_oracle_reaches_all_at_the_mean_price_and_half_where_only_the_cheap_model_is_paid() -> None:
    data, parts = made_up(), splits(COUNT, 1)
    at = _at_prices(data, _measured(parts), _expected("oracle", data, parts), 20)
    assert at[0].median == 1.0
    assert at[-1].median == pytest.approx(0.5)
    assert all(one.low <= one.median <= one.high for one in at)


def test_apgr_is_one_half_at_random_and_more_where_the_gains_come_first() -> None:
    assert apgr([1.0] * 1000) == pytest.approx(0.5, abs=0.001)
    assert apgr([1.0] * 10 + [0.0] * 990) > 0.99
    assert apgr([0.0] * 990 + [1.0] * 10) < 0.01
    assert apgr([0.0, 0.0]) == 0.0


def test_learning_as_it_goes_beats_each_single_model() -> None:
    data = made_up()
    single = max(sum(worth_of(data, row, model) for row in range(COUNT)) / COUNT for model in (0, 1))
    assert stream(data, 0) > single + 0.1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = made_up()
    for name in ("nine-models", "routellm-gsm8k", "routellm-mmlu", "routerarena"):
        (tmp_path / f"router-{name}").mkdir()
        lines = [
            {"prompt": prompt, "task": task, "score": {"model-70b-x": row[1], "model-9b": row[0]}}
            for prompt, task, row in zip(data.prompts, data.tasks, data.scores, strict=True)
        ]
        (tmp_path / f"router-{name}" / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def test_a_set_is_read_with_its_models_from_the_worst_to_the_best(folder: Path) -> None:
    found = load(folder, "nine-models")
    assert (found.models, found.prices) == (("model-70b-x", "model-9b"), (0.9, 0.2))
    assert found.scores[0] == (0.0, 1.0)


def test_a_run_gives_every_table_and_its_target(folder: Path) -> None:
    with Bench(TINY, lambda _: None, eval_folder=folder) as bench:
        (quality, online), (target,) = run(bench)
    assert [row.measure for row in quality.rows][-2:] == ["gsm8k, weak and strong", "mmlu, weak and strong"]
    assert all(set(row.figures) >= set(METHODS) for row in quality.rows)
    assert len(online.rows) == 4
    assert target.found == 1.0


def test_without_its_files_it_says_what_is_missing(tmp_path: Path) -> None:
    with Bench(TINY, lambda _: None, eval_folder=tmp_path) as bench:
        assert run(bench) == ([], [])
        assert "--eval" in bench.notes[0]


def test_scores_below_one_keep_three_digits() -> None:
    # The interval of a score is about 0.02, and methods differ by less.
    assert [in_digits(value) for value in (0.7046, -0.5, 0.0, 1.234, 12.34, 1234.0)] == [
        "0.705",
        "-0.500",
        "0.00",
        "1.23",
        "12.3",
        "1,234",
    ]
