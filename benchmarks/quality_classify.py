"""Quality of the layer `classify`: heads trained on labelled rows as `bardo classify train` does, and the shipped head of safety.

Banking77 (CC BY 4.0) and CLINC150 (CC BY 3.0) have labels; rows out of CLINC150's scope are left out, because no head was asked for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from bardo.adapters.embedding.head_training import FOLDS, LabelledTexts, numpy, train
from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding
from bardo.context.classify.heads import HeadFile, Heads
from bardo.embedding.static_embedding import wide_embedding
from bardo.values.errors import ConfigError
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.quality_classify_shipped import safety, speed
from benchmarks.quality_data import LabelledSet, Rows, read_set, share_of

STATIC, ONNX = "bardo, static", "bardo, ONNX"
_SETS = (
    ("intent-clinc150", "domain", "CLINC150 domain, of 10"),
    ("intent-clinc150", "intent", "CLINC150 intent, of 150"),
    ("intent-banking77", "intent", "Banking77 intent, of 77"),
)
Part = tuple[Sequence[Sequence[float]], Rows]
_SEED = 16
_TARGETS = ((STATIC, 0.89), (ONNX, 0.92))


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure each set with the static table, and with the model of `--model` where one is named."""
    try:
        embeddings = _embeddings(bench)
        numpy()
    except ConfigError as problem:
        bench.note(f"quality of classify is left out: {problem}")
        return [], []
    rows = []
    for name, label, measure in _SETS:
        data = read_set(bench, name)
        if data is not None:
            found = {column: _accuracy(bench, data, label, embedding) for column, embedding in embeddings.items()}
            figures = {column: figure for column, figure in found.items() if figure is not None}
            rows.append(Row(measure=measure, unit="share right", figures=figures))
    notes = (
        "Heads are trained on the rows of --eval by the function of `bardo classify train`; each row is judged by one trained without it.",
    )
    table = Table(
        subject="quality",
        title="classify: labels of requests",
        columns=tuple(embeddings),
        rows=tuple(rows),
        notes=notes,
        shares=True,
    )
    targets = [_target(table, *one) for one in _TARGETS if one[0] in embeddings]
    return [table, *_further(bench, targets)], targets


def _further(bench: Bench, targets: list[Target]) -> list[Table]:
    """Return what is measured of the layer as it ships, and add its targets."""
    tables = (safety(bench, targets), speed(bench, targets))
    return [table for table in tables if table is not None]


def _embeddings(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = {STATIC: wide_embedding()}
    if bench.model_folder is not None:
        found[ONNX] = OnnxEmbedding(bench.model_folder)
    return found


def _target(table: Table, column: str, limit: float) -> Target:
    found = table.figure(_SETS[0][2], column)
    says = f"{_SETS[0][2]}, {column.removeprefix('bardo, ')}"
    return Target(says=says, limit=limit, unit="", found=None if found is None else found.median, better="higher")


def _accuracy(bench: Bench, data: LabelledSet, label: str, embedding: Any) -> Figure | None:
    bench.tell(f"quality: {data.name}, {label}")
    fitted = _in_scope(data.fitted)
    vectors = [embedding.embed(row["text"]) for row in fitted]
    if data.measured is not None:
        measured = _in_scope(data.measured)
        others = [embedding.embed(row["text"]) for row in measured]
        return share_of(_marks(label, embedding, (vectors, fitted), (others, measured)))
    marks: list[bool] = []
    for fold in range(FOLDS):
        rest = [place for place in range(len(fitted)) if place % FOLDS != fold]
        out = range(fold, len(fitted), FOLDS)
        known, asked = (([vectors[place] for place in one], [fitted[place] for place in one]) for one in (rest, out))
        marks += _marks(label, embedding, known, asked)
    return share_of(marks)


def _marks(label: str, embedding: Any, known: Part, asked: Part) -> list[bool]:
    """Return for each row that is asked whether a head that was trained on the known ones is right."""
    enough = Counter(row[label] for row in known[1])
    kept = [place for place, row in enumerate(known[1]) if enough[row[label]] >= FOLDS]
    labels = [known[1][place][label] for place in kept]
    head = train(LabelledTexts(label, [known[0][place] for place in kept], labels))
    heads = Heads(HeadFile(embedding=embedding.fingerprint, dimensions=embedding.dimensions, heads=(head,)))
    guesses = [heads.guesses(vector).get(label) for vector in asked[0]]
    return [guess is not None and guess.label == row[label] for guess, row in zip(guesses, asked[1], strict=True)]


def _in_scope(rows: Rows) -> Rows:
    """Return rows in an order that says nothing of their labels, without those that have none."""
    kept = [row for row in rows if row.get("domain") != "oos"]
    return Random(_SEED).sample(kept, len(kept))
