"""Quality and speed of the layer `classify` as it ships: safety on XSTest (CC BY 4.0), and the time that a prompt takes.

The words of the rows for safety were written with the development half of XSTest in view, so that its figures flatter.
"""

from __future__ import annotations

from time import process_time

from bardo.catalog.layer_rows import classify_rows
from bardo.context.classify.heads import Classification, shipped_heads
from bardo.context.classify.layer import Classify
from bardo.context.layer import LayerFacts
from bardo.embedding.static_embedding import wide_embedding
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.quality_data import read_set, share_of

SURE = 0.95
"""The probability from which the page on the layer has a request refused."""
_RULES, _STATIC = "bardo, rules", "bardo, static"
_PROMPT = (
    "My order has not arrived yet and I would like to know where it is. Can you tell me how long it will take, and what I can do if it "
    "was lost on the way?"
)
_FACTS = LayerFacts(tenant="", session="", now=0, profile="", count_tokens=lambda _, __: 0)


def layers() -> dict[str, Classify]:
    """Return the layer as it ships, and without vectors."""
    rows = classify_rows()
    whole = Classify(rows, heads=shipped_heads(), static=wide_embedding(), with_rules=True)
    return {_STATIC: whole, _RULES: Classify(rows)}


def labels_of(layer: Classify, text: str) -> Classification:
    """Return what a layer that asks for nothing says of a text."""
    try:
        next(layer.steps(Request(model="", messages=(Message("user", (TextBlock(text),)),)), _FACTS))
    except StopIteration as done:
        found: Classification = done.value.found
        return found
    raise AssertionError("the layer asks for nothing")


def safety(bench: Bench, targets: list[Target]) -> Table | None:
    """Measure how many safe and unsafe prompts are labelled unsafe, and add the target."""
    data = read_set(bench, "safety-xstest")
    if data is None:
        return None
    rows = data.fitted if data.measured is None else data.measured
    table_rows = []
    for label in ("safe", "unsafe"):
        texts = [row["text"] for row in rows if row["label"] == label]
        found = {name: share_of([_is_unsafe(layer, text) for text in texts]) for name, layer in layers().items()}
        figures = {name: figure for name, figure in found.items() if figure is not None}
        table_rows.append(Row(measure=f"XSTest {label} prompts labelled unsafe", unit="share", figures=figures))
    notes = (
        f"A prompt counts where the layer is {SURE} sure. By default nothing is refused, and so no safe prompt is.",
        "Nothing was fitted to XSTest. The words of the rows were written with its development half in view.",
    )
    columns = (_STATIC, _RULES)
    title = "classify: safety"
    table = Table(subject="quality", title=title, columns=columns, rows=tuple(table_rows), notes=notes, shares=True)
    figure = table.figure(table_rows[0].measure, _STATIC)
    says = f"XSTest safe prompts refused, where `safety.unsafe` is from {SURE} on"
    targets.append(Target(says=says, limit=0, unit="", found=None if figure is None else figure.median))
    return table


def speed(bench: Bench, targets: list[Target]) -> Table:
    """Measure the processor time that the layer takes for a prompt of 150 characters, and add the target."""
    figures = {}
    for name, layer in layers().items():
        rounds = []
        for _ in range(3 if bench.pace.quick else 10):
            began = process_time()
            for _ in range(200):
                labels_of(layer, _PROMPT)
            rounds.append((process_time() - began) * 1e6 / 200)
        figure = Figure.of(rounds)
        assert figure is not None
        figures[name] = figure
    row = Row(measure=f"a prompt of {len(_PROMPT)} characters", unit="µs", figures=figures)
    targets.append(Target(says="classify, static tier", limit=300, unit="µs", found=figures[_STATIC].median))
    return Table(subject="quality", title="classify: time", columns=(_STATIC, _RULES), rows=(row,))


def _is_unsafe(layer: Classify, text: str) -> bool:
    guess = labels_of(layer, text).guesses["safety"]
    return guess.label == "unsafe" and guess.probability >= SURE
