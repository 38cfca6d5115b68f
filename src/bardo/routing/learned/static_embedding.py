"""Embed a text as the weighted sum of one vector for each of its word pieces.

The table ships with bardo: `tools/build_token_table.py` made it of the weights of all-MiniLM-L6-v2 (Apache-2.0), one run of the model for
each piece, reduced to its principal components, weighted by the rank of the piece and rounded to eight bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Self

import msgspec

from bardo.routing.learned.word_pieces import word_pieces

# A longer text is embedded by its beginning and its end, where prompts say what is asked.
LONGEST_TEXT = 4_000
_MIDDLE = 128


class TokenTable(msgspec.Struct, frozen=True, kw_only=True):
    """The file of the table: pieces separated by line breaks, and one row of `dimensions` bytes for each.

    A byte is a component plus 128; the table has one scale, which is lost when a sum is brought to length 1.
    """

    fingerprint: str
    dimensions: int
    pieces: str
    rows: bytes


class StaticEmbedding:
    """Embeds texts with a table. Immutable, and so shared by all requests."""

    slow = False

    def __init__(self, table: TokenTable) -> None:
        self.fingerprint = table.fingerprint
        self.dimensions = table.dimensions
        self._rows = table.rows
        self._numbers: Mapping[str, int] = {piece: n for n, piece in enumerate(table.pieces.split("\n"))}

    @property
    def pieces(self) -> tuple[str, ...]:
        """The word pieces that have a vector, in the order of their numbers."""
        return tuple(self._numbers)

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Return the embedding of a table's file. Raises msgspec.ValidationError for a file of another form."""
        return cls(msgspec.msgpack.decode(content, type=TokenTable))

    def embed(self, text: str) -> tuple[float, ...]:
        """Return `dimensions` components of a vector of length 1; all are 0 where no piece is known."""
        pieces = word_pieces(shortened(text), self._numbers)
        size, total = self.dimensions, 0
        lanes = bytearray(4 * size)
        # Whole rows are added as one large integer with 32 bits for each component, which no text of this length can overflow.
        for piece in pieces:
            lanes[::4] = self._rows[piece * size : (piece + 1) * size]
            total += int.from_bytes(lanes, "little")
        middle = _MIDDLE * len(pieces)
        sums = [value - middle for value in struct.unpack(f"<{size}I", total.to_bytes(4 * size, "little"))]
        length = math.sqrt(sum(value * value for value in sums)) or 1.0
        return tuple(value / length for value in sums)


def shortened(text: str) -> str:
    """Return the text, or the beginning and the end of a long one."""
    half = LONGEST_TEXT // 2
    return text if len(text) <= LONGEST_TEXT else f"{text[:half]} {text[-half:]}"


@cache
def shipped_embedding() -> StaticEmbedding:
    """Return the embedding of the table that ships with bardo."""
    return StaticEmbedding.decode(files("bardo.routing.learned").joinpath("data/token_table.msgpack").read_bytes())
