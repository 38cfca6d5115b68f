"""Quality of the semantic cache: which questions are answered by the reply to a similar one, and how many of these should not be.

The near misses are pairs of questions, each the kept one and the asked one; no word of theirs was fitted to, so all of them are measured.
The sets of intents have no pairs: half of their questions are kept, the others are asked, and a hit on another intent is false. Nothing
that is learned from compared answers takes part: these are the candidates and the guard alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from random import Random
from typing import Any

from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding
from bardo.context.cache.question import Question, read_question
from bardo.context.cache.similar import FLOORS, compare
from bardo.embedding.static_embedding import wide_embedding
from bardo.values.errors import ConfigError
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.quality_data import Rows, read_set, share_of

STATIC, ONNX, COSINE = "bardo, static", "bardo, ONNX", "cosine 0.92 alone"
_BOUND = 0.92
_PARAPHRASES, _NEAR_MISSES = "true paraphrases that are served", "near misses that are served"
_INTENTS = (("intent-clinc150", "CLINC150"), ("intent-banking77", "Banking77"))
_MOST_CANDIDATES = 8
_SEED = 16
Serves = Callable[[str, str, float], bool]


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure with the static table, and with the model of `--model` where one is named."""
    try:
        embeddings = _embeddings(bench)
        numpy = import_module("numpy")
    except (ConfigError, ImportError) as problem:
        bench.note(f"quality of cache is left out: {problem}")
        return [], []
    columns: dict[str, tuple[Any, Serves]] = {
        name: (embedding, _by_guard(FLOORS[tier])) for name, (embedding, tier) in embeddings.items()
    }
    columns[COSINE] = (list(embeddings.values())[-1][0], _by_cosine)
    rows = _near_misses(bench, columns) + [
        row for name, title in _INTENTS for row in _intents(bench, name, title, columns, numpy)
    ]
    notes = (
        "Shares with Wilson's interval of 95 %. Near misses by kind are shares of the near misses of that kind.",
        "Sets of intents: half of the questions are kept, the others asked; a question of the same intent need not have the same answer.",
    )
    table = Table(
        subject="quality",
        title="cache: similar questions",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=notes,
        shares=True,
    )
    return [table], [target for name in embeddings for target in _targets(table, name)]


def _embeddings(bench: Bench) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {STATIC: (wide_embedding(), "static")}
    if bench.model_folder is not None:
        found[ONNX] = (OnnxEmbedding(bench.model_folder), "onnx")
    return found


def _targets(table: Table, column: str) -> list[Target]:
    tier = column.removeprefix("bardo, ")
    served, wrong = table.figure(_PARAPHRASES, column), table.figure(_NEAR_MISSES, column)
    if served is None or wrong is None:
        return []
    return [
        Target(says=f"{_PARAPHRASES}, {tier}", limit=0.60, unit="", found=served.median, better="higher"),
        Target(says=f"{_NEAR_MISSES}, {tier}", limit=0.01, unit="", found=wrong.median, better="lower"),
    ]


def _by_guard(floor: float) -> Serves:
    def serves(kept: str, asked: str, cosine: float) -> bool:
        one, other = _read(kept), _read(asked)
        return cosine >= floor and one is not None and other is not None and compare(one, other) is None

    return serves


def _by_cosine(kept: str, asked: str, cosine: float) -> bool:
    return cosine > _BOUND


@cache
def _read(text: str) -> Question | None:
    return read_question(text)


def _near_misses(bench: Bench, columns: dict[str, tuple[Any, Serves]]) -> list[Row]:
    data = read_set(bench, "cache-near-miss")
    if data is None:
        return []
    rows = data.fitted if data.measured is None else data.measured
    served = {
        name: [serves(row["a"], row["b"], _cosine(embedding, row)) for row in rows]
        for name, (embedding, serves) in columns.items()
    }
    kinds = sorted({row["kind"] for row in rows if not row["same_answer"]})
    found = [
        _row(_PARAPHRASES, served, [bool(row["same_answer"]) for row in rows]),
        _row(_NEAR_MISSES, served, [not row["same_answer"] for row in rows]),
    ]
    for kind in kinds:
        chosen = [not row["same_answer"] and row["kind"] == kind for row in rows]
        found.append(_row(f"near misses: {kind}", served, chosen))
    return found


def _row(title: str, served: dict[str, list[bool]], chosen: Sequence[bool]) -> Row:
    found = {
        name: share_of([mark for mark, kept in zip(marks, chosen, strict=True) if kept])
        for name, marks in served.items()
    }
    return Row(
        measure=title, unit="share", figures={name: figure for name, figure in found.items() if figure is not None}
    )


def _cosine(embedding: Any, row: dict[str, Any]) -> float:
    return sum(map(float.__mul__, embedding.embed(row["a"]), embedding.embed(row["b"])))


def _intents(bench: Bench, name: str, title: str, columns: dict[str, tuple[Any, Serves]], numpy: Any) -> list[Row]:
    data = read_set(bench, name)
    if data is None:
        return []
    rows = Random(_SEED).sample(
        data.fitted if data.measured is None else data.measured, len(data.measured or data.fitted)
    )
    hits: dict[str, Figure] = {}
    false: dict[str, Figure] = {}
    for column, (embedding, serves) in columns.items():
        bench.tell(f"quality: cache, {title}, {column}")
        found = _hits(rows, embedding, serves, numpy)
        asked, wrong = share_of([hit is not None for hit in found]), share_of([hit is False for hit in found])
        if asked is not None and wrong is not None:
            hits[column], false[column] = asked, wrong
    return [
        Row(measure=f"{title}: questions that are served", unit="share", figures=hits),
        Row(measure=f"{title}: questions that are served with another intent's reply", unit="share", figures=false),
    ]


def _hits(rows: Rows, embedding: Any, serves: Serves, numpy: Any) -> list[bool | None]:
    """Return, for each question that is asked, whether the kept one that answers it has its intent; None where none answers it."""
    kept, asked = rows[::2], rows[1::2]
    matrix = numpy.array([embedding.embed(row["text"]) for row in kept], dtype="float32")
    found: list[bool | None] = []
    for row in asked:
        scores = matrix @ numpy.array(embedding.embed(row["text"]), dtype="float32")
        best = numpy.argsort(-scores)[:_MOST_CANDIDATES]
        hit = next((place for place in best if serves(kept[place]["text"], row["text"], float(scores[place]))), None)
        found.append(None if hit is None else kept[hit]["intent"] == row["intent"])
    return found
