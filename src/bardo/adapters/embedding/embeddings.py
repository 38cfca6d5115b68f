"""Perform the effect `Embed`: vectors of texts for layers, by the table that ships with bardo or a model of the operator's.

A model in ONNX is loaded with the first texts, and runs in a thread of its own, one batch after the other. The table answers at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from bardo.adapters.config.paths import named_path
from bardo.context.effects import Embed, TextVectors, Tier
from bardo.context.layer import EffectFailed
from bardo.embedding.static_embedding import keyword_embedding, wide_embedding

MOST_WAITING = 64
"""Calls that may wait for the thread. The layers of further ones do without vectors, so that a slow model does not slow every call down."""
_AT_ONCE = 4_000
"""Characters that the table embeds without leaving the event loop: a millisecond. More go to the thread too."""


class TextEmbedding(Protocol):
    """Makes a vector of a text. `fingerprint` changes with what vectors depend on."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, text: str) -> tuple[float, ...]:
        """Return a vector of length 1; all components are 0 where nothing is known of the text."""
        ...


class Embeddings:
    """Makes vectors with one embedding. `folder` is that of a model in ONNX; empty: the table."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._embedding: TextEmbedding | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._waiting = 0
        self.tier: Tier = "onnx" if folder else "static"

    async def perform(self, effect: Embed) -> TextVectors:
        """Return the vectors of an effect's texts. Raises ConfigError for a model that cannot be loaded, EffectFailed where many wait."""
        if self.tier == "static" and sum(map(len, effect.texts)) <= _AT_ONCE:
            return self.embedded(effect.texts, effect.stop_words)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bardo-embed")
        if self._waiting >= MOST_WAITING:
            raise EffectFailed("too many calls wait for vectors")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, self.embedded, effect.texts, effect.stop_words)
        finally:
            self._waiting -= 1

    def embedded(self, texts: Sequence[str], stop_words: frozenset[str] | None = None) -> TextVectors:
        """Return the vectors of some texts, in this thread. Raises ConfigError for a model that cannot be loaded."""
        if stop_words is not None and self.tier == "static":
            made = keyword_embedding(stop_words)
            keywords = tuple([made.embed(text) for text in texts])
            return TextVectors(vectors=keywords, fingerprint=made.fingerprint, tier=self.tier)
        if self._embedding is None:
            self._embedding = embedding_at(self._folder)
        vectors = tuple([self._embedding.embed(text) for text in texts])
        return TextVectors(vectors=vectors, fingerprint=self._embedding.fingerprint, tier=self.tier)

    async def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)


def embedding_at(folder: str) -> TextEmbedding:
    """Return the embedding of a folder with a model in ONNX; of an empty name the table that ships. Raises ConfigError."""
    if not folder:
        return wide_embedding()
    # Loaded for those who have a model of their own.
    from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding

    return OnnxEmbedding(named_path(folder), setting="[inference.pipeline] embedding")
