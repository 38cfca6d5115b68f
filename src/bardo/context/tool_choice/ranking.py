"""How well each of many tools fits a text: several comparisons, each brought to the same scale, and added by the weights of the rows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from operator import mul

import msgspec

from bardo.catalog.tool_choice_rows import Weights, tool_choice_rows
from bardo.context.embed import Tier
from bardo.context.tool_choice.word_index import word_index
from bardo.context.tool_choice.words import description_of, sentences, split_identifier
from bardo.values.request import Tool

Vector = Sequence[float]
_NARROWNESS = 20.0
"""How much more the best tool counts than the next when the query is widened: the exponent of a cosine."""
_FEW_USES = 2
"""Uses that count as much as the tool's own description."""
_OWN_LENGTH = 0.5
"""How long the mean of the vectors of a tool's uses is, usually; each vector has length 1."""


class ToolText(msgspec.Struct, frozen=True):
    """The texts by which one tool is compared: its name in words, what it says of itself, and the sentences of that."""

    name: str
    said: str
    sentences: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """The texts that vectors are made of: name and description together, the name, the sentences."""
        return (f"{self.name}: {self.said}", self.name, *self.sentences)


class ToolVectors(msgspec.Struct, frozen=True):
    """The vectors of one tool's texts, made by the embedding of this fingerprint.

    `general` is how near the tool is to the rows' texts of tools for any question.
    """

    fingerprint: str
    whole: Vector
    name: Vector
    sentences: tuple[Vector, ...] = ()
    general: float = 0.0


class ToolUses(msgspec.Struct, frozen=True):
    """The mean of the vectors of texts for which a tool was called, not of length 1, and of how many calls it is."""

    mean: Vector
    count: int


def text_of(tool: Tool) -> ToolText:
    """Return the texts by which a tool is compared."""
    return ToolText(split_identifier(tool.name), description_of(tool), tuple(sentences(tool.description)))


def word_scores(texts: Sequence[ToolText], query: str, tier: Tier = "onnx") -> list[float]:
    """Return how well each tool fits a text by its words alone, with the weights that words have beside vectors of this tier."""
    weights = tool_choice_rows().weights[tier]
    index = word_index(tuple((text.name, text.said) for text in texts))
    by_words, by_letters = _standard(index.by_words(query)), _standard(index.by_letters(query))
    return [weights.words * one + weights.letters * other for one, other in zip(by_words, by_letters, strict=True)]


def scores(
    texts: Sequence[ToolText],
    query: str,
    vector: Vector,
    vectors: Sequence[ToolVectors | None],
    *,
    uses: Mapping[int, ToolUses] | None = None,
    tier: Tier = "onnx",
) -> list[float]:
    """Return how well each tool fits a text by its words, its vectors and its earlier uses.

    `vector` is that of the text, and `tier` says what made all vectors. `uses` are by the tool's place.
    A tool without vectors is compared by its words alone.
    """
    weights = tool_choice_rows().weights[tier]
    total = word_scores(texts, query, tier)
    have = [place for place, one in enumerate(vectors) if one is not None]
    if not have or not any(vector):
        return total
    known = [one for one in vectors if one is not None]
    whole = [dot(vector, one.whole) for one in known]
    for place, score in zip(have, _by_vectors(vector, whole, known, weights), strict=True):
        total[place] += score
    if uses:
        for place, score in zip(have, _by_uses(vector, whole, known, have, uses), strict=True):
            total[place] += weights.uses * score
    return total


def _by_vectors(vector: Vector, whole: Sequence[float], known: Sequence[ToolVectors], weights: Weights) -> list[float]:
    """Return how near the text is to what each tool says of itself. `whole` is how near it is to the tool's description."""
    best = [
        max((dot(vector, part) for part in one.sentences), default=own) for one, own in zip(known, whole, strict=True)
    ]
    names = [dot(vector, one.name) for one in known]
    mixed = [
        weights.description * a + weights.sentences * b + weights.name * c
        for a, b, c in zip(whole, best, names, strict=True)
    ]
    total = _standard(mixed)
    if weights.neighbours:
        _add(total, _standard(_widened(whole, known)), weights.neighbours)
    _add(total, _standard([one.general for one in known]), weights.general)
    return total


def _widened(whole: Sequence[float], known: Sequence[ToolVectors]) -> list[float]:
    """Return how near each tool is to the mean of the tools that fit best: tools of the same kind find each other."""
    most = max(whole)
    shares = [math.exp(_NARROWNESS * (score - most)) for score in whole]
    centre = [0.0] * len(known[0].whole)
    for share, one in zip(shares, known, strict=True):
        if share > 0.01:
            centre = [value + share * own for value, own in zip(centre, one.whole, strict=True)]
    return [dot(centre, one.whole) for one in known]


def _by_uses(
    vector: Vector,
    whole: Sequence[float],
    known: Sequence[ToolVectors],
    have: Sequence[int],
    uses: Mapping[int, ToolUses],
) -> list[float]:
    """Return how near the text is to the centre of each tool's uses, by their distance.

    The centre begins at the tool's own description, and each use moves it.
    """
    near = []
    for place, own, one in zip(have, whole, known, strict=True):
        used = uses.get(place)
        if used is None or len(used.mean) != len(vector):
            near.append(_OWN_LENGTH * own - _OWN_LENGTH**2 / 2)
            continue
        share = used.count / (used.count + _FEW_USES)
        rest = (1 - share) * _OWN_LENGTH
        square = share**2 * dot(used.mean, used.mean) + 2 * share * rest * dot(used.mean, one.whole) + rest**2
        near.append(share * dot(vector, used.mean) + rest * own - square / 2)
    return _standard(near)


def vectors_of(text: ToolText, made: Sequence[Vector], general: Sequence[Vector], fingerprint: str) -> ToolVectors:
    """Return the vectors of a tool, made of `text.all`. They are kept in single precision: there are thousands of tools."""
    whole, name, *sentences = [array("f", vector) for vector in made]
    near = max((dot(whole, one) for one in general), default=0.0)
    return ToolVectors(fingerprint, whole, name, tuple(sentences), near)


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the scalar product of two vectors."""
    return float(sum(map(mul, one, other)))


def _add(total: list[float], further: Sequence[float], weight: float) -> None:
    for place, score in enumerate(further):
        total[place] += weight * score


def _standard(values: Sequence[float]) -> list[float]:
    """Return values with mean 0 and deviation 1; zeros where all are equal."""
    mean = sum(values) / max(1, len(values))
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values)))
    return [(value - mean) / deviation if deviation > 1e-12 else 0.0 for value in values]
