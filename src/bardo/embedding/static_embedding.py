"""Embed a text as the weighted sum of one vector for each of its word pieces.

Two tables ship with bardo: `tools/build_token_table.py` made them of the weights of all-MiniLM-L6-v2 (Apache-2.0), one run of the model
for each piece, reduced to its principal components, weighted by the rank of the piece and rounded to eight bits.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import add, mul
from typing import Self

import msgspec

from bardo.embedding.word_pieces import word_pieces

# A longer text is embedded by its beginning and its end, where prompts say what is asked.
LONGEST_TEXT = 4_000
_MIDDLE = 128
_MOST_KEPT = 4_096
_AT_ONCE = 257
"""How many rows can be added with 16 bits for each component: 257 x 255 is 65,535."""


class TokenTable(msgspec.Struct, frozen=True, kw_only=True):
    """The file of the table: pieces separated by line breaks, and `dimensions` columns with one byte for each piece, compressed.

    A byte is a component plus 128; the table has one scale, which is lost when a sum is brought to length 1. Columns compress by a quarter:
    the bytes of one component are alike, those of a piece are not.
    """

    fingerprint: str
    dimensions: int
    pieces: str
    columns: bytes

    @classmethod
    def of_rows(cls, rows: bytes, *, fingerprint: str, dimensions: int, pieces: str) -> Self:
        """Return the table of rows of `dimensions` bytes, one for each piece."""
        ordered = b"".join([rows[column::dimensions] for column in range(dimensions)])
        # No byte repeats in a pattern, so that only their frequencies are used.
        packer = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
        columns = packer.compress(ordered) + packer.flush()
        return cls(fingerprint=fingerprint, dimensions=dimensions, pieces=pieces, columns=columns)

    def rows(self) -> bytes:
        """Return one row of `dimensions` bytes for each piece."""
        columns = zlib.decompress(self.columns)
        count = len(columns) // self.dimensions
        rows = bytearray(len(columns))
        for column in range(self.dimensions):
            rows[column :: self.dimensions] = columns[column * count : (column + 1) * count]
        return bytes(rows)


class StaticEmbedding:
    """Embeds texts with a table. Nothing that it returns ever changes, and so it is shared by all requests."""

    slow = False

    def __init__(self, table: TokenTable) -> None:
        self.fingerprint = table.fingerprint
        self.dimensions = table.dimensions
        self._rows = table.rows()
        self._kept: dict[int, int] = {}
        self._numbers: Mapping[str, int] = {piece: n for n, piece in enumerate(table.pieces.split("\n"))}

    @property
    def pieces(self) -> tuple[str, ...]:
        """The word pieces that have a vector, in the order of their numbers."""
        return tuple(self._numbers)

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The number of each word piece that has a vector; frequent pieces have low numbers."""
        return self._numbers

    def row(self, piece: int) -> bytes:
        """Return the vector of a piece as it is in the table: `dimensions` bytes, each a component plus 128."""
        return self._rows[piece * self.dimensions : (piece + 1) * self.dimensions]

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Return the embedding of a table's file. Raises msgspec.ValidationError for a file of another form."""
        return cls(msgspec.msgpack.decode(content, type=TokenTable))

    def embed(self, text: str) -> tuple[float, ...]:
        """Return `dimensions` components of a vector of length 1; all are 0 where no piece is known."""
        found, length = self.sums(text)
        return tuple([value / length for value in found])

    def sums(self, text: str) -> tuple[list[int], float]:
        """Return a text's vector as whole numbers, and its length; all are 0, and the length 1, where no piece is known.

        A number is at most 127 for each piece of the text, of which there are `LONGEST_TEXT` at most.
        """
        pieces = word_pieces(shortened(text), self._numbers)
        sums = self._rows_added(pieces[:_AT_ONCE])
        for first in range(_AT_ONCE, len(pieces), _AT_ONCE):
            sums = list(map(add, sums, self._rows_added(pieces[first : first + _AT_ONCE])))
        middle = _MIDDLE * len(pieces)
        centred = [value - middle for value in sums]
        return centred, math.sqrt(sum(map(mul, centred, centred))) or 1.0

    def _rows_added(self, pieces: Sequence[int]) -> Sequence[int]:
        """Return the sums of the rows of up to 257 pieces: whole rows are added as one large integer, 16 bits for each component."""
        total = sum(map(self._lanes, pieces))
        return struct.unpack(f"<{self.dimensions}H", total.to_bytes(2 * self.dimensions, "little"))

    def _lanes(self, piece: int) -> int:
        """Return the row of a piece as one integer. Those of the pieces met first are kept: most texts consist of few common pieces."""
        kept = self._kept.get(piece)
        if kept is not None:
            return kept
        size = self.dimensions
        lanes = bytearray(2 * size)
        lanes[::2] = self._rows[piece * size : (piece + 1) * size]
        made = int.from_bytes(lanes, "little")
        if len(self._kept) < _MOST_KEPT:
            self._kept[piece] = made
        return made


def shortened(text: str) -> str:
    """Return the text, or the beginning and the end of a long one."""
    half = LONGEST_TEXT // 2
    return text if len(text) <= LONGEST_TEXT else f"{text[:half]} {text[-half:]}"


@cache
def shipped_embedding() -> StaticEmbedding:
    """Return the embedding by which learned routing knows requests: 64 dimensions, a table of 2 MB."""
    return _shipped("token_table.msgpack")


@cache
def wide_embedding() -> StaticEmbedding:
    """Return the embedding by which layers know texts: 384 dimensions, a table of 11 MB. It is loaded where a layer needs it."""
    return _shipped("token_table_384.msgpack")


def _shipped(name: str) -> StaticEmbedding:
    return StaticEmbedding.decode(files("bardo.embedding").joinpath("data", name).read_bytes())
