"""Heads are trained on labelled rows: they find what the rows have in common, and state how often they are right on others."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("numpy", reason="the extra vectors is not installed")

from bardo.adapters.embedding.head_training import FOLDS, LabelledTexts, train
from bardo.context.classify.heads import HeadFile, Heads
from bardo.values.errors import InvalidRequest
from bardo.values.intervals import wilson


def cloud(random: Random, centre: tuple[float, ...], count: int, spread: float) -> list[tuple[float, ...]]:
    return [tuple(random.gauss(value, spread) for value in centre) for _ in range(count)]


def rows(spread: float, counts: tuple[int, int, int] = (40, 40, 40)) -> LabelledTexts:
    """Return points around three centres."""
    random = Random(3)
    centres = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    vectors = [
        point for centre, count in zip(centres, counts, strict=True) for point in cloud(random, centre, count, spread)
    ]
    return LabelledTexts(
        "topic", vectors, [name for name, count in zip("abc", counts, strict=True) for _ in range(count)]
    )


def test_what_can_be_told_apart_is() -> None:
    head = train(rows(0.1))
    assert (head.labels, head.rows, head.accuracy) == (("a", "b", "c"), 120, 1.0)
    heads = Heads(HeadFile(embedding="e", dimensions=3, heads=(head,)))
    guess = heads.guesses((0.0, 0.9, 0.1))["topic"]
    assert guess.label == "b"
    assert guess.probability > 0.8


def test_what_cannot_be_told_apart_is_said_to_be_so() -> None:
    head = train(rows(30.0))
    assert head.accuracy is not None
    assert head.accuracy < 0.6
    assert head.interval == pytest.approx(wilson(round(head.accuracy * 120), 120), abs=1e-4)
    guess = Heads(HeadFile(embedding="e", dimensions=3, heads=(head,))).guesses((1.0, 0.0, 0.0))["topic"]
    assert guess.probability < 0.6


def test_a_rare_label_is_not_drowned() -> None:
    head = train(rows(0.2, (400, 400, 8)))
    heads = Heads(HeadFile(embedding="e", dimensions=3, heads=(head,)))
    assert heads.guesses((0.0, 0.0, 1.0))["topic"].label == "c"


def test_the_same_rows_give_the_same_head() -> None:
    assert train(rows(0.5)) == train(rows(0.5))


@pytest.mark.parametrize("labels", [["a"] * 20, [*["a"] * 20, *["b"] * (FOLDS - 1)], [str(n) for n in range(20)]])
def test_too_few_rows_of_a_label_are_refused(labels: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="topic") as caught:
        train(LabelledTexts("topic", [(1.0, 0.0)] * len(labels), labels))
    assert "5 rows" in caught.value.hint


def test_an_interval_holds_its_share_and_is_narrower_with_more_rows() -> None:
    for right, count in ((0, 10), (5, 10), (10, 10), (50, 100)):
        low, high = wilson(right, count)
        assert 0 <= low <= right / count <= high <= 1
    assert wilson(50, 100)[0] > wilson(5, 10)[0]
    assert wilson(0, 0) == (0.0, 1.0)
    # Wilson 1927, as in R: binom.confint(5, 10, method = "wilson").
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
