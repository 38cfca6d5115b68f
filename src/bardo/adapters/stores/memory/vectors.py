"""Vectors of episodes in few bytes: a signature of signs finds what may be similar, eight bits for each component say how similar.

A search reads the signatures of all episodes that it may find, and the vectors of the nearest only: 100,000 are searched in a fraction of a
second by plain Python.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from bardo.adapters.embedding.embeddings import TextEmbedding, embedding_at
from bardo.embedding.static_embedding import shortened

_LARGEST = 127


class StoredVector(NamedTuple):
    """A vector as the memory keeps it, and the fingerprint of the embedding that made it."""

    embedding: str
    signature: bytes
    vector: bytes


class EpisodeVectors:
    """Makes vectors, with one embedding that is loaded when it is first needed. Any thread may call."""

    def __init__(self, folder: str) -> None:
        """`folder` holds a model in ONNX; empty: the table that ships with bardo."""
        self._folder = folder
        self._embedding: TextEmbedding | None = None
        self._lock = threading.Lock()

    def of_text(self, text: str) -> tuple[str, tuple[float, ...]] | None:
        """Return the embedding's fingerprint and a vector; None where it knows nothing of the text. Raises ConfigError."""
        with self._lock:
            if self._embedding is None:
                self._embedding = embedding_at(self._folder)
            vector = self._embedding.embed(text)
            return (self._embedding.fingerprint, vector) if any(vector) else None

    def of_episode(self, question: str, thinking: str) -> StoredVector | None:
        """Return the vector of an episode: that of its question, since the vectors of long texts are all alike."""
        made = self.of_text(shortened(question.strip() or thinking))
        return None if made is None else StoredVector(made[0], signature_of(made[1]), packed(made[1]))


def signature_of(vector: Sequence[float]) -> bytes:
    """Return one bit for each component: whether it is above 0."""
    bits = sum(1 << place for place, value in enumerate(vector) if value > 0)
    return bits.to_bytes((len(vector) + 7) // 8, "little")


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector with eight bits for each component; its length is lost, which no similarity needs."""
    scale = _LARGEST / (max(map(abs, vector)) or 1.0)
    return array("b", [round(value * scale) for value in vector]).tobytes()


def cosine(vector: Sequence[float], stored: bytes) -> float:
    """Return how similar a vector of length 1 is to one that was packed; 0 where they differ in size."""
    values = array("b")
    values.frombytes(stored)
    if len(values) != len(vector):
        return 0.0
    length = math.sqrt(sum(map(mul, values, values))) or 1.0
    return float(sum(map(mul, vector, values)) / length)


def differing_bits(signature: bytes, asked: int) -> int:
    """Return in how many components two vectors differ in sign."""
    return (int.from_bytes(signature, "little") ^ asked).bit_count()
