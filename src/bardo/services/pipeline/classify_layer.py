"""Make the layer `classify` of its settings: heads from their file, and the embedding that these were trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bardo.adapters.config.paths import named_path
from bardo.catalog.layer_rows import classify_rows
from bardo.context.classify.heads import Heads, decode_heads, shipped_heads
from bardo.context.classify.layer import Classify
from bardo.embedding.static_embedding import wide_embedding
from bardo.services.pipeline.embeddings import perform_embed
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from bardo.adapters.config.pipeline import PipelineSettings
    from bardo.services.pipeline.parts import LayerParts


MOST_BYTES = 64 * 1024 * 1024


def make_classify(parts: LayerParts) -> Classify:
    """Return the layer, with somebody who makes vectors for it where it asks for them. Raises ConfigError as `classify_of` does."""
    made = classify_of(parts.pipeline)
    if made.asks:
        perform_embed(parts)
    return made


def classify_of(pipeline: PipelineSettings) -> Classify:
    """Return the layer of these settings.

    Raises ConfigError for a file of heads that cannot be read, or that belongs to a model while no model is named.
    """
    settings = pipeline.classify
    rows = classify_rows()
    if settings.rules_only:
        return Classify(rows, block=settings.block, needs=settings.needs)
    heads = open_heads(settings.heads)
    if heads.embedding != shipped_heads().embedding:
        if not pipeline.embedding:
            message = f"the heads in {settings.heads} were trained with a model, and [inference.pipeline] names none"
            hint = "name the model's folder with embedding, or train them anew with `bardo classify train`"
            raise ConfigError(message, hint=hint)
        return Classify(rows, heads=heads, block=settings.block, needs=settings.needs)
    # The weights are set side by side with the first vector: not for a call.
    heads.probabilities_of([1] * heads.dimensions, 1.0)
    return Classify(
        rows,
        heads=heads,
        static=wide_embedding(),
        with_rules=not settings.heads,
        block=settings.block,
        needs=settings.needs,
    )


def open_heads(file: str) -> Heads:
    """Return the heads of a file, or those that ship. Raises ConfigError."""
    if not file:
        return shipped_heads()
    path = named_path(file)
    hint = "write it with `bardo classify train FILE --out HEADS`"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path} has more than {MOST_BYTES:,} bytes", hint=hint)
        return decode_heads(path.read_bytes())
    except OSError as problem:
        raise ConfigError(
            f"the heads of classify cannot be read from {path}: {problem.strerror}", hint=hint
        ) from problem
    except ValueError as problem:
        raise ConfigError(f"{path} holds no heads: {problem}", hint=hint) from problem
