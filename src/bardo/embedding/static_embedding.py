"""Embed a text as the weighted sum of one vector for each of its word pieces, or by its key words.

Two tables ship with bardo: `tools/build_token_table.py` made them of the weights of all-MiniLM-L6-v2 (Apache-2.0), one run of the model
for each piece, reduced to its principal components, weighted by the rank of the piece and rounded to eight bits.

Key words tell what a short text is about, for comparing it with other short texts. The vector of a text as a whole
(`StaticEmbedding.embed`) is near that of any other text, because all word pieces share a few directions: they are the first components
of the table, which are left out for key words. Each piece counts by how rare it is there, and no more by how long its vector is; a piece
that comes again counts less (as in BM25).
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import unicodedata
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from operator import add, mul
from typing import Self

import msgspec

LONGEST_WORD = 100
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ASCII_WORDS = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_SPACE = re.compile(r"[ \t\n\r]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def word_pieces(text: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of the pieces of `text`, in order. Linear in the length of the text.

    The rule is that of BERT's uncased tokenizer (google-research/bert, tokenization.py): accents and case are dropped, punctuation stands
    alone, each word becomes the longest pieces of the vocabulary from its beginning on. A word that cannot be so cut is left out.
    """
    return pieces_of_words(words(text), vocabulary)


def pieces_of_words(lower: Iterable[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of the pieces of words that `words` returned, in order."""
    numbers: list[int] = []
    for word in lower:
        number = vocabulary.get(word)
        if number is None:
            numbers += (vocabulary[piece] for piece in _pieces(word, vocabulary))
        else:
            numbers.append(number)
    return numbers


def words(text: str) -> list[str]:
    """Return the words and the signs of punctuation of a text, in lower case and without accents."""
    clean = _CONTROL.sub("", text) if _CONTROL.search(text) else text
    if clean.isascii():
        return _ASCII_WORDS.findall(clean.lower())
    found_words: list[str] = []
    for part in _ASCII_SPACE.split(clean):
        found_words += _ASCII_WORDS.findall(part.lower()) if part.isascii() else _other_words(part)
    return found_words


def _other_words(text: str) -> list[str]:
    spaced = "".join(f" {sign} " if _is_ideograph(sign) else sign for sign in _without_control(text))
    plain = "".join(sign for sign in unicodedata.normalize("NFD", spaced) if unicodedata.category(sign) != "Mn")
    return [part for word in plain.lower().split() for part in _at_punctuation(word)]


def _without_control(text: str) -> str:
    return "".join(sign for sign in text if unicodedata.category(sign)[0] != "C")


def _is_ideograph(sign: str) -> bool:
    return sign >= "\u3400" and any(low <= ord(sign) <= high for low, high in _IDEOGRAPHS)


def _at_punctuation(word: str) -> Iterator[str]:
    begin = 0
    for place, sign in enumerate(word):
        if sign in _PUNCTUATION or unicodedata.category(sign)[0] == "P":
            if begin < place:
                yield word[begin:place]
            yield sign
            begin = place + 1
    if begin < len(word):
        yield word[begin:]


def _pieces(word: str, vocabulary: Container[str]) -> list[str]:
    if len(word) > LONGEST_WORD:
        return []
    pieces: list[str] = []
    begin = 0
    while begin < len(word):
        mark = "##" if begin else ""
        ends = range(len(word), begin, -1)
        end = next((end for end in ends if mark + word[begin:end] in vocabulary), None)
        if end is None:
            return []
        pieces.append(mark + word[begin:end])
        begin = end
    return pieces


# A longer text is embedded by its beginning and its end, where prompts state the question.
LONGEST_TEXT = 4_000
_MIDDLE = 128
_MOST_LESS = 3
"""How much smaller a component may be than the scales of two tables let expect: both were rounded."""
_MOST_KEPT = 4_096
_AT_ONCE = 257
"""How many rows can be added with 16 bits for each component: 257 x 255 is 65,535."""


class TokenTable(msgspec.Struct, frozen=True, kw_only=True):
    """The file of the table: pieces separated by line breaks, and `dimensions` columns with one byte for each piece, compressed.

    A byte is a component plus 128; the table has one scale, which is lost when a sum is brought to length 1. Columns compress by a quarter:
    the bytes of one component are alike, those of a piece are not.

    With a `ratio` the table is stored by another one of the same pieces, whose columns are its first ones on another scale: `ratio` / 65536
    of that one. Those columns are stored as the differences to what they are expected to be, and the pieces are not stored again.
    """

    fingerprint: str
    dimensions: int
    pieces: str = ""
    columns: bytes
    ratio: int = 0

    @classmethod
    def of_rows(
        cls, rows: bytes, *, fingerprint: str, dimensions: int, pieces: str, narrow: TokenTable | None = None
    ) -> Self:
        """Return the table of rows of `dimensions` bytes, one for each piece; `narrow` is the table by which it is stored."""
        ordered = b"".join([rows[column::dimensions] for column in range(dimensions)])
        if narrow is None:
            return cls(fingerprint=fingerprint, dimensions=dimensions, pieces=pieces, columns=_packed(ordered))
        if narrow.pieces != pieces:
            raise ValueError("the other table has other pieces")
        ratio = _ratio(ordered, zlib.decompress(narrow.columns))
        columns = _packed(_differences(ordered, zlib.decompress(narrow.columns), ratio))
        return cls(fingerprint=fingerprint, dimensions=dimensions, columns=columns, ratio=ratio)

    def rows(self, narrow: TokenTable | None = None) -> bytes:
        """Return one row of `dimensions` bytes for each piece. `narrow` is the table by which this one is stored, where it is."""
        columns = zlib.decompress(self.columns)
        if narrow is not None:
            columns = _sums(columns, zlib.decompress(narrow.columns), self.ratio)
        count = len(columns) // self.dimensions
        rows = bytearray(len(columns))
        for column in range(self.dimensions):
            rows[column :: self.dimensions] = columns[column * count : (column + 1) * count]
        return bytes(rows)


def _packed(columns: bytes) -> bytes:
    # No byte repeats in a pattern, so that only their frequencies are used.
    packer = zlib.compressobj(9, memLevel=9, strategy=zlib.Z_HUFFMAN_ONLY)
    return packer.compress(columns) + packer.flush()


def _ratio(columns: bytes, narrow: bytes) -> int:
    """Return by how much larger a component is than that of a narrower table, in parts of 65,536 (least squares)."""
    pairs = [(column - _MIDDLE, other - _MIDDLE) for column, other in zip(columns, narrow, strict=False)]
    return (sum(column * other for column, other in pairs) << 16) // sum(other * other for _, other in pairs)


def _differences(columns: bytes, narrow: bytes, ratio: int) -> bytes:
    """Return columns, the first of them less the values that a narrower table predicts. Raises ValueError where one is less than that."""
    expected = narrow.translate(_expected(ratio))
    return bytes([column - other for column, other in zip(columns, expected, strict=False)]) + columns[len(narrow) :]


def _sums(columns: bytes, narrow: bytes, ratio: int) -> bytes:
    """Undo `_differences`. Numbers of a million bytes are added at once: no sum of two bytes is above 255."""
    size = len(narrow)
    expected = int.from_bytes(narrow.translate(_expected(ratio)), "little")
    return (int.from_bytes(columns[:size], "little") + expected).to_bytes(size, "little") + columns[size:]


def _expected(ratio: int) -> bytes:
    """Return, for each byte of a narrower table, the least that the same component has on the other scale."""
    components = (((byte - _MIDDLE) * ratio >> 16) - _MOST_LESS for byte in range(256))
    return bytes([min(255, max(0, _MIDDLE + component)) for component in components])


class StaticEmbedding:
    """Embeds texts with a table. Nothing that it returns ever changes, and so it is shared by all requests."""

    slow = False

    def __init__(self, table: TokenTable, narrow: TokenTable | None = None) -> None:
        self.fingerprint = table.fingerprint
        self.dimensions = table.dimensions
        self._rows = table.rows(narrow)
        self._kept: dict[int, int] = {}
        self._numbers: Mapping[str, int] = {piece: n for n, piece in enumerate((narrow or table).pieces.split("\n"))}

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
    def decode(cls, content: bytes, narrow: bytes = b"") -> Self:
        """Return the embedding of a table and of the table by which it is stored. Raises msgspec.ValidationError for another form."""
        stored_by = msgspec.msgpack.decode(narrow, type=TokenTable) if narrow else None
        return cls(msgspec.msgpack.decode(content, type=TokenTable), stored_by)

    def embed(self, text: str) -> tuple[float, ...]:
        """Return `dimensions` components of a vector of length 1; all are 0 where no piece is known."""
        sums, length = self.sums(text)
        return tuple([value / length for value in sums])

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
        cached = self._kept.get(piece)
        if cached is not None:
            return cached
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
    return StaticEmbedding.decode(_file("token_table.msgpack"))


@cache
def wide_embedding() -> StaticEmbedding:
    """Return the embedding by which layers know texts: 384 dimensions, a table of 11 MB. It is loaded where a layer needs it."""
    return StaticEmbedding.decode(_file("token_table_384.msgpack"), _file("token_table.msgpack"))


def _file(name: str) -> bytes:
    return files("bardo.embedding").joinpath("data", name).read_bytes()


_SHARED = 8
"""Components that are left out. Of 0, 4, 8, 12 and 16 this number compared tools best (decision 0043)."""
_SATURATION = 1.2
_A = 1e-3
"""A piece weighs A / (A + p), where p is the share of its rank by Zipf's law, as in the table."""
_SCALE = 1 << 19
"""Weights are whole numbers, so that rows are added as large integers: 2,000 pieces of the greatest weight fit into 32 bits a component."""


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
        keywords = [word for word in words(shortened(text)) if word.isalnum() and word not in self._stop_words]
        total = weights = 0
        for piece, count in Counter(pieces_of_words(keywords, self._table.vocabulary)).items():
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
        entry = self._pieces.get(piece)
        if entry is not None:
            return entry
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
