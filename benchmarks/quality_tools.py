"""Quality of the layer `tools`: whether the tool that a query needs is among the first twelve of 199, without and with earlier uses.

MetaTool (MIT) has queries of users with the tool that answers them. Its labels overlap: several tools fit many queries. Each query is
compared by the layer's own ranking. Uses are those of the other rows: of half of them, measured on the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding
from bardo.catalog.layer_rows import tool_choice_rows
from bardo.context.effects import Tier
from bardo.context.tool_choice.ranking import (
    ComparedTool,
    ToolQuery,
    ToolText,
    ToolUses,
    ToolVectors,
    score_tools,
    text_of,
    vectors_of,
    word_scores,
)
from bardo.embedding.static_embedding import keyword_embedding
from bardo.services.pipeline.tool_memory import first_use, with_use
from bardo.values.errors import ConfigError
from bardo.values.request import Tool
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.quality_data import LabelledSet, Rows, read_set, share_of
from benchmarks.routing_data import EVAL

WORDS, STATIC, ONNX = "bardo, words", "bardo, static", "bardo, ONNX"
_TIERS: dict[str, Tier] = {STATIC: "static"}
FIRST = 12
_MOST_MEASURED = 2_000
_SEED = 16
_COLD, _USED, _FIRST = "right tool within 12, cold", "right tool within 12, with uses", "right tool first, cold"
_TARGETS = ((_COLD, 0.90), (_USED, 0.95))


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure by words, with the static table, and with the model of `--model` where one is named."""
    # A quick run measures fewer queries, but has the uses of all: with a seventh of them it would measure another thing.
    data = read_set(bench, "tools-metatool", "queries.jsonl", whole=True)
    most = _MOST_MEASURED // 4 if bench.pace.quick else _MOST_MEASURED
    path = (bench.eval_folder or EVAL) / "tools-metatool" / "tools.json"
    if data is None or not path.is_file():
        return [], []
    described = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    texts = [text_of(Tool(name=name, description=said)) for name, said in described.items()]
    measures: dict[str, dict[str, Figure]] = {}
    columns = _embeddings(bench)
    for column, embedding in columns.items():
        bench.tell(f"quality: tools, {column}")
        for measure, marks in (
            _Measured(texts, list(described), embedding, _TIERS.get(column, "onnx")).marks(data, most).items()
        ):
            figure = share_of(marks)
            if figure is not None:
                measures.setdefault(measure, {})[column] = figure
    rows = tuple(Row(measure=measure, unit="share", figures=figures) for measure, figures in measures.items())
    notes = (
        "The weights of the comparisons were chosen on these queries, so that cold figures are a little too good;",
        "with --held-out they are those of queries that nobody has seen, and uses are those of --eval.",
    )
    table = Table(
        subject="quality",
        title="tools: the right one of 199",
        columns=tuple(columns),
        rows=rows,
        notes=notes,
        shares=True,
    )
    best = ONNX if ONNX in columns else STATIC
    return [table], [_target(table, measure, best, limit) for measure, limit in _TARGETS]


def _embeddings(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = {WORDS: None, STATIC: keyword_embedding(tool_choice_rows().stop_words)}
    if bench.model_folder is not None:
        try:
            found[ONNX] = OnnxEmbedding(bench.model_folder)
        except ConfigError as problem:
            bench.note(f"quality of tools is measured without ONNX: {problem}")
    return found


def _target(table: Table, measure: str, column: str, limit: float) -> Target:
    found = table.figure(measure, column)
    says = f"{measure}, {column.removeprefix('bardo, ')}"
    return Target(says=says, limit=limit, unit="", found=None if found is None else found.median, better="higher")


class _Measured:
    """The tools as one embedding sees them; None compares them by their words."""

    def __init__(self, texts: Sequence[ToolText], names: Sequence[str], embedding: Any, tier: Tier) -> None:
        self._tier = tier
        self._texts = texts
        self._places = {name: place for place, name in enumerate(names)}
        self._embed: Any = None if embedding is None else embedding.embed
        self._vectors: list[ToolVectors | None] = [None] * len(texts)
        if self._embed is not None:
            self._general = [self._embed(text) for text in tool_choice_rows().general]
            self._vectors = [self._vectors_of(text, embedding.fingerprint) for text in texts]

    def _vectors_of(self, text: ToolText, fingerprint: str) -> ToolVectors:
        return vectors_of(text, [self._embed(part) for part in text.all], self._general, fingerprint)

    def marks(self, data: LabelledSet, most: int) -> dict[str, list[bool]]:
        """Return for each measure whether the right tool was found, query by query, for about `most` queries."""
        rows = Random(_SEED).sample(data.fitted, len(data.fitted))
        halves = [(rows[::2], rows[1::2]), (rows[1::2], rows[::2])]
        if data.measured is not None:
            halves = [(rows, data.measured)]
        found: dict[str, list[bool]] = {}
        for known, asked in halves:
            uses = {} if self._embed is None else self._uses(known)
            for row in asked[:: max(1, len(asked) * len(halves) // most)]:
                for measure, mark in self._one(row, uses).items():
                    found.setdefault(measure, []).append(mark)
        return found

    def _one(self, row: dict[str, Any], uses: dict[int, ToolUses]) -> dict[str, bool]:
        query, right = row["query"], {self._places[name] for name in row["tools"] if name in self._places}
        if self._embed is None:
            order = _best(word_scores(self._texts, query))
            return {_COLD: bool(right & {*order}), _FIRST: order[0] in right}
        asked = ToolQuery(query, self._embed(query), self._tier)
        cold = _best(score_tools(asked, self._compared({})))
        used = _best(score_tools(asked, self._compared(uses)))
        return {_COLD: bool(right & {*cold}), _USED: bool(right & {*used}), _FIRST: cold[0] in right}

    def _compared(self, uses: dict[int, ToolUses]) -> list[ComparedTool]:
        return [
            ComparedTool(text, vectors, uses.get(place))
            for place, (text, vectors) in enumerate(zip(self._texts, self._vectors, strict=True))
        ]

    def _uses(self, rows: Rows) -> dict[int, ToolUses]:
        found: dict[int, ToolUses] = {}
        for row in rows:
            vector = self._embed(row["query"])
            for name in row["tools"]:
                place = self._places.get(name)
                if place is not None:
                    before = found.get(place)
                    found[place] = first_use(vector) if before is None else with_use(before, vector)
        return found


def _best(made: Sequence[float]) -> list[int]:
    return sorted(range(len(made)), key=lambda place: (-made[place], place))[:FIRST]
