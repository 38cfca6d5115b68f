"""Train linear heads on labelled texts: ridge regression of each label on the components of the texts' vectors.

The strength of the penalty, how sure a head may be, and the accuracy that is stated come from five-fold cross-validation. numpy comes with
the extra `bardo[vectors]` and is loaded here alone.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

from bardo.context.classify.heads import MOST_LABELS, Head
from bardo.values.errors import ConfigError, InvalidRequest
from bardo.values.intervals import wilson
from bardo.values.request import how_to_install

FOLDS = 5
_PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_SHARPNESSES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
_WHOLE = 32_767
_SEED = 16


class LabelledTexts(NamedTuple):
    """The texts of one question: the vector of each, and its label."""

    name: str
    vectors: Any
    labels: Sequence[str]


def numpy() -> ModuleType:
    """Return numpy. Raises ConfigError where it is not installed."""
    try:
        return importlib.import_module("numpy")
    except ImportError as problem:
        raise ConfigError(f"training needs numpy: {problem}", hint=how_to_install("vectors")) from problem


def train(data: LabelledTexts) -> Head:
    """Return the head of one question. Raises InvalidRequest where there are too few rows of a label, or too many labels."""
    np = numpy()
    labels = _labels(data)
    numbers = np.array([labels.index(label) for label in data.labels])
    vectors = np.asarray(data.vectors, dtype="float64")
    folds = _folds(numbers, np)
    scores = {penalty: _held_out(vectors, numbers, len(labels), folds, penalty, np) for penalty in _PENALTIES}
    right = {penalty: int((score.argmax(axis=1) == numbers).sum()) for penalty, score in scores.items()}
    # Of penalties that do equally well the strongest: it leaves the least to chance.
    penalty = max(_PENALTIES, key=lambda candidate: (right[candidate], candidate))
    solved = solve(vectors, numbers, len(labels), penalty)
    scale = float(np.abs(solved[:-1]).max()) / _WHOLE or 1.0
    return Head(
        name=data.name,
        labels=tuple(labels),
        weights=np.rint(solved[:-1] / scale).astype("<i2").tobytes(),
        scale=scale,
        bias=tuple(round(float(value), 6) for value in solved[-1]),
        sharpness=_sharpness(scores[penalty], numbers, np),
        rows=len(numbers),
        accuracy=round(right[penalty] / len(numbers), 4),
        interval=tuple(round(value, 4) for value in wilson(right[penalty], len(numbers))),  # type: ignore[arg-type]
    )


def solve(vectors: Any, numbers: Any, count: int, penalty: float) -> Any:
    """Return weights, components x labels, with the biases as the last row, which are not held small.

    A row of a rare label counts for more, by the root of how rare it is.
    """
    np = numpy()
    given = np.column_stack([vectors, np.ones(len(vectors))])
    wanted = -np.ones((len(numbers), count))
    wanted[np.arange(len(numbers)), numbers] = 1
    rows = np.bincount(numbers, minlength=count)[numbers]
    weights = np.sqrt(len(numbers) / (count * rows))[:, None]
    held = penalty * np.eye(given.shape[1])
    held[-1, -1] = 1e-6
    return np.linalg.solve(given.T @ (weights * given) + held, given.T @ (weights * wanted))


def _labels(data: LabelledTexts) -> list[str]:
    counts = Counter(data.labels)
    hint = f"give each label at least {FOLDS} rows"
    if not 2 <= len(counts) <= MOST_LABELS:
        message = f"{data.name!r} has {len(counts)} labels; a head tells 2 to {MOST_LABELS:,} apart"
        raise InvalidRequest(message, hint=hint, param="FILE")
    rare = [label for label, rows in counts.items() if rows < FOLDS]
    if rare:
        named = ", ".join(repr(label) for label in sorted(rare)[:3])
        raise InvalidRequest(f"{data.name!r} has fewer than {FOLDS} rows of {named}", hint=hint, param="FILE")
    return sorted(counts)


def _folds(numbers: Any, np: Any) -> Any:
    """Return the fold of each row: the rows of a label are spread evenly over the folds."""
    shuffled = np.random.default_rng(_SEED).permutation(len(numbers))
    ordered = shuffled[np.argsort(numbers[shuffled], kind="stable")]
    folds = np.empty(len(numbers), dtype=int)
    folds[ordered] = np.arange(len(numbers)) % FOLDS
    return folds


def _held_out(vectors: Any, numbers: Any, count: int, folds: Any, penalty: float, np: Any) -> Any:
    """Return the scores of each row by a head that was trained without its fold."""
    values = np.empty((len(numbers), count))
    for fold in range(FOLDS):
        out = folds == fold
        solved = solve(vectors[~out], numbers[~out], count, penalty)
        values[out] = vectors[out] @ solved[:-1] + solved[-1]
    return values


def _sharpness(scores: Any, numbers: Any, np: Any) -> float:
    """Return the factor with which probabilities fit the rows that were held out best."""

    def loss(factor: float) -> float:
        sharp = factor * (scores - scores.max(axis=1, keepdims=True))
        likely = sharp[np.arange(len(numbers)), numbers] - np.log(np.exp(sharp).sum(axis=1))
        return float(-likely.mean())

    return min(_SHARPNESSES, key=loss)
