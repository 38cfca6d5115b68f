"""`bardo classify`: label a text as the layer `classify` does, and train heads on labelled texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from bardo.adapters.config.settings import Settings, load_settings
from bardo.adapters.embedding.embeddings import Embeddings, TextEmbedding, embedding_at
from bardo.context.classify.heads import Classification, Head, HeadFile
from bardo.context.classify.layer import shortened
from bardo.context.effects import Embed
from bardo.context.layer import LayerFacts
from bardo.services.pipeline.classify_layer import classify_of
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Request

TEXT = "text"


class Action(StrEnum):
    """What is done."""

    RUN = "run"
    TRAIN = "train"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("classify", epilog="Example: bardo classify train rows.jsonl --out heads.json")(classify)


def classify(
    action: Annotated[Action, typer.Argument(help="run: classify a text. train: train heads on labelled texts.")],
    given: Annotated[str, typer.Argument(metavar="TEXT|FILE", help="run: the text. train: a file of JSON lines.")],
    out: Annotated[Path, typer.Option("--out", help="train: the file for the heads.")] = Path("heads.json"),
    label: Annotated[
        list[str] | None, typer.Option("--label", help="train: the fields that are labels; by default all.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Classify a text, or train heads for the layer classify.

    Each line of a file is an object with `text` and labels, such as `domain` or a name of your own; each label needs five rows. Training
    says how often the heads are right on rows they were not trained on, with its 95 % interval. It needs bardo[vectors].

    Turn the heads on with heads = "heads.json" under [inference.pipeline.classify].
    """
    settings = load_settings(config)
    if action is Action.TRAIN:
        embedding = embedding_at(settings.inference.pipeline.embedding)
        heads = train_heads(Path(given), embedding, label or ())
        file = HeadFile(embedding=embedding.fingerprint, dimensions=embedding.dimensions, heads=heads)
        out.write_bytes(msgspec.json.encode(file) + b"\n")
        _show_heads(heads, as_json=as_json)
        print_stderr(f"{out} belongs to the embedding {embedding.fingerprint}")
        return
    found = labels_of(given, settings)
    if as_json:
        show_json({"tier": found.tier, "labels": msgspec.to_builtins(found.guesses), "needs": found.needs})
        return
    table = Table("question", "label", "probability", title=f"tier: {found.tier}")
    for name, guess in found.guesses.items():
        table.add_row(name, guess.label, f"{guess.probability:.2f}")
    show(table)


def train_heads(path: Path, embedding: TextEmbedding, labels: Sequence[str]) -> tuple[Head, ...]:
    """Return a head for each label of a file. Raises InvalidRequest naming the line that cannot be read, and ConfigError without numpy."""
    # numpy is loaded for training alone.
    from bardo.adapters.embedding.head_training import LabelledTexts, train

    rows = list(_rows(path))
    names = list(labels) or sorted({name for row in rows for name in row if name != TEXT})
    if not rows or not names:
        raise InvalidRequest(f"{path} has no labelled texts", hint=_LINE, param="TEXT|FILE")
    vectors = [embedding.embed(shortened(row[TEXT])) for row in rows]
    heads = []
    for name in names:
        places = [place for place, row in enumerate(rows) if name in row]
        heads.append(
            train(LabelledTexts(name, [vectors[place] for place in places], [rows[place][name] for place in places]))
        )
    return tuple(heads)


def labels_of(text: str, settings: Settings) -> Classification:
    """Return what the layer says of a text with these settings, whatever is blocked. Raises ConfigError."""
    pipeline = settings.inference.pipeline
    own = msgspec.structs.replace(pipeline.classify, block={})
    layer = classify_of(msgspec.structs.replace(pipeline, classify=own))
    request = Request(model="", messages=(Message("user", (TextBlock(text),)),))
    facts = LayerFacts(tenant="", session="", now=0, profile="", count_tokens=lambda _, __: 0, dry=True)
    steps = layer.steps(request, facts)
    try:
        effect = next(steps)
        assert isinstance(effect, Embed)
        steps.send(Embeddings(pipeline.embedding).embedded(effect.texts))
    except StopIteration as done:
        found: Classification = done.value.found
        return found
    raise AssertionError("the layer asks for vectors once")


_LINE = 'a line is {"text": "…", "domain": "…"}'


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        content = path.read_bytes()
    except OSError as problem:
        hint = "name a file of JSON lines"
        raise InvalidRequest(f"{path} cannot be read: {problem.strerror}", hint=hint, param="TEXT|FILE") from problem
    decoder = msgspec.json.Decoder(dict[str, str])
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise InvalidRequest(f"{path}, line {number}: {problem}", hint=_LINE, param="TEXT|FILE") from problem
        if TEXT not in row:
            raise InvalidRequest(f"{path}, line {number}: no text", hint=_LINE, param="TEXT|FILE")
        yield row


def _show_heads(heads: Sequence[Head], *, as_json: bool) -> None:
    if as_json:
        heads_as_fields = [
            {
                "question": head.name,
                "labels": list(head.labels),
                "rows": head.rows,
                "accuracy": head.accuracy,
                "interval": head.interval,
            }
            for head in heads
        ]
        show_json({"heads": heads_as_fields})
        return
    table = Table("question", "labels", "rows", "right", "95 % interval")
    for head in heads:
        low, high = head.interval or (0.0, 1.0)
        table.add_row(
            head.name, str(len(head.labels)), str(head.rows), f"{head.accuracy:.3f}", f"{low:.3f} to {high:.3f}"
        )
    show(table)
