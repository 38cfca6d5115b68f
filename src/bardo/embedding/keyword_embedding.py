"""Embed the key words of a text with the table that ships: what a short text is about, for comparing it with other short texts.

The vector of a text as a whole (`StaticEmbedding.embed`) is near that of any other text, because all word pieces share a few directions:
they are the first components of the table, which are left out here. Each piece counts by how rare it is, and no more by how long its vector
is; a piece that comes again counts less (as in BM25).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from functools import lru_cache
from operator import mul

from bardo.embedding.static_embedding import StaticEmbedding, pieces_of_words, shortened, wide_embedding, words

_SHARED = 8
"""Components that are left out. Of 0, 4, 8, 12 and 16 this number compared tools best (decision 0043)."""
_SATURATION = 1.2
_A = 1e-3
"""A piece weighs A / (A + p), where p is the share of its rank by Zipf's law, as in the table."""
_SCALE = 1 << 19
"""Weights are whole numbers, so that rows are added as large integers: 2,000 pieces of the greatest weight fit into 32 bits a component."""
_MIDDLE = 128
_MOST_KEPT = 4_096


class KeywordEmbedding:
    """Embeds the words of a text that are not `stop_words`. Nothing that it returns ever changes, and so it is shared by all requests."""

    def __init__(self, table: StaticEmbedding, stop_words: frozenset[str]) -> None:
        self._table = table
        self._stop_words = stop_words
        self._pieces: dict[int, tuple[int, float]] = {}
        self._zipf = math.log(max(2, len(table.vocabulary)))
        digest = hashlib.sha256(" ".join(sorted(stop_words)).encode()).hexdigest()[:6]
        self.dimensions = table.dimensions - _SHARED
        self.fingerprint = f"{table.fingerprint}-keywords-{digest}"

    def embed(self, text: str) -> tuple[float, ...]:
        """Return `dimensions` components of a vector of length 1; all are 0 where no word is known."""
        said = [word for word in words(shortened(text)) if word.isalnum() and word not in self._stop_words]
        total = weights = 0
        for piece, count in Counter(pieces_of_words(said, self._table.vocabulary)).items():
            lanes, weight = self._piece(piece)
            times = round(weight * count / (count + _SATURATION))
            total += lanes * times
            weights += times
        sums = struct.unpack(f"<{self.dimensions}I", total.to_bytes(4 * self.dimensions, "little"))
        middle = _MIDDLE * weights
        centred = [value - middle for value in sums]
        length = math.sqrt(sum(map(mul, centred, centred))) or 1.0
        return tuple([value / length for value in centred])

    def _piece(self, piece: int) -> tuple[int, float]:
        """Return the row of a piece as one integer of 32 bits a component, and its weight. Those of the pieces met first are kept."""
        kept = self._pieces.get(piece)
        if kept is not None:
            return kept
        row = self._table.row(piece)[_SHARED:]
        lanes = bytearray(4 * len(row))
        lanes[::4] = row
        length = math.sqrt(sum([(value - _MIDDLE) ** 2 for value in row])) or 1.0
        rarity = _A / (_A + 1 / ((piece + 2) * self._zipf))
        made = int.from_bytes(lanes, "little"), _SCALE * rarity / length
        if len(self._pieces) < _MOST_KEPT:
            self._pieces[piece] = made
        return made


@lru_cache(maxsize=4)
def keyword_embedding(stop_words: frozenset[str]) -> KeywordEmbedding:
    """Return the embedding of key words that layers use, with the table of 384 dimensions."""
    return KeywordEmbedding(wide_embedding(), stop_words)
