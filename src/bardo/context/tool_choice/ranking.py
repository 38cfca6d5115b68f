"""How well each of many tools fits a text: several comparisons, each brought to the same scale, and added by the weights of the rows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import msgspec

from bardo.catalog.layer_rows import tool_choice_rows
from bardo.context.effects import Tier
from bardo.context.tool_choice.word_index import description_of, sentences, split_identifier, word_index
from bardo.values.request import Tool

Vector = Sequence[float]
COMPARED_AT_ONCE = 32
"""Tools that are compared before other calls have their turn: one or two milliseconds with vectors of 400 numbers."""
_MOST_BY_PURPOSE, _PURPOSES_AT_ONCE = 60, 8
"""Tools that are compared by each purpose of their uses: the best by all else, so many before other calls have their turn."""
CENTROID_LENGTH = 127
"""The length of a centroid, so that its components are bytes."""
_KEPT_SQUARES = 4_096
_NARROWNESS = 20.0
"""How much more the best tool counts than the next when the query is widened: the exponent of a cosine."""
_FEW_USES = 2
"""Uses that count as much as the tool's own description."""
_OWN_LENGTH = 0.5
"""How long the mean of the vectors of a tool's uses is, usually; each vector has length 1."""


class ToolText(msgspec.Struct, frozen=True):
    """The texts by which one tool is compared: its name in words, what it says of itself, and the sentences of that."""

    name: str
    description: str
    sentences: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """The texts that vectors are made of: name and description together, the name, the sentences."""
        return (f"{self.name}: {self.description}", self.name, *self.sentences)


class ToolVectors(msgspec.Struct, frozen=True, eq=False):
    """The vectors of one tool's texts, made by the embedding of this fingerprint.

    `general` is how near the tool is to the rows' texts of tools for any question.
    """

    fingerprint: str
    whole: Vector
    name: Vector
    sentences: tuple[Vector, ...] = ()
    general: float = 0.0


class UseCentroid(msgspec.Struct, frozen=True, eq=False):
    """What some texts have in common for which a tool was called: a vector of length 127, in whole numbers, and of how many calls it is."""

    vector: Sequence[int]
    count: int


class ToolUses(msgspec.Struct, frozen=True, eq=False):
    """The mean of the vectors of texts for which a tool was called, not of length 1, and of how many calls it is.

    `centroids` are those of unlike texts: a tool may be called for several purposes, and their mean is near none of them.
    """

    mean: Vector
    count: int
    centroids: tuple[UseCentroid, ...] = ()


class ToolQuery(NamedTuple):
    """The query that tools are compared with: a text, its vector, and the tier that made the vectors."""

    text: str
    vector: Vector
    tier: Tier


class ComparedTool(NamedTuple):
    """One tool as it is compared: its texts, their vectors, and what it was used for, or None if that is not known."""

    text: ToolText
    vectors: ToolVectors | None = None
    uses: ToolUses | None = None


def text_of(tool: Tool) -> ToolText:
    """Return the texts by which a tool is compared."""
    return ToolText(split_identifier(tool.name), description_of(tool), tuple(sentences(tool.description)))


def indexed_words(texts: Sequence[ToolText]) -> tuple[tuple[str, str], ...]:
    """Return the name and the description of each tool, by which its index of words is kept."""
    return tuple([(text.name, text.description) for text in texts])


def word_scores(texts: Sequence[ToolText], query: str, tier: Tier = "onnx") -> list[float]:
    """Return how well each tool fits a text by its words alone, with the weights that words have beside vectors of this tier."""
    weights = tool_choice_rows().weights[tier]
    index = word_index(indexed_words(texts))
    by_words, by_letters = _standard(index.by_words(query)), _standard(index.by_letters(query))
    return [weights.words * own + weights.letters * other for own, other in zip(by_words, by_letters, strict=True)]


def score_tools(query: ToolQuery, tools: Sequence[ComparedTool]) -> list[float]:
    """Return how well each tool fits a text, in the order of the tools. The work is that of `scoring_steps`, without pauses."""
    steps = scoring_steps(query, tools)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            scores: list[float] = done.value
            return scores


def scoring_steps(query: ToolQuery, tools: Sequence[ComparedTool]) -> Generator[None, None, list[float]]:
    """Return how well each tool fits a text by its words, its vectors and its earlier uses; yield now and then, where a pause may be made.

    A tool without vectors is compared by its words alone.
    """
    weights = tool_choice_rows().weights[query.tier]
    total = word_scores([tool.text for tool in tools], query.text, query.tier)
    by_place = {place: tool.vectors for place, tool in enumerate(tools) if tool.vectors is not None}
    if not by_place or not any(query.vector):
        return total
    near: list[_Nearness] = []
    for place, vectors in by_place.items():
        uses = tools[place].uses
        whole = dot(query.vector, vectors.whole)
        sentence = max([dot(query.vector, part) for part in vectors.sentences], default=whole)
        near.append(
            _Nearness(whole, sentence, dot(query.vector, vectors.name), _near_uses(query.vector, whole, vectors, uses))
        )
        if len(near) % COMPARED_AT_ONCE == 0:
            yield
    by_vectors = _standard(
        [
            weights.description * score.whole + weights.sentences * score.sentence + weights.name * score.name
            for score in near
        ]
    )
    if weights.neighbours:
        widened = yield from _widened([score.whole for score in near], [*by_place.values()])
        _add(by_vectors, _standard(widened), weights.neighbours)
    _add(by_vectors, _standard([vectors.general for vectors in by_place.values()]), weights.general)
    if any(tool.uses is not None for tool in tools):
        _add(by_vectors, _standard([score.uses for score in near]), weights.uses)
    for place, score in zip(by_place, by_vectors, strict=True):
        total[place] += score
    if weights.centroids and any(tool.uses is not None and tool.uses.centroids for tool in tools):
        yield from _add_purposes(total, query.vector, tools, dict(zip(by_place, near, strict=True)), weights.centroids)
    return total


def _add_purposes(
    total: list[float], vector: Vector, tools: Sequence[ComparedTool], near: Mapping[int, _Nearness], weight: float
) -> Generator[None, None, None]:
    """Add to the scores of the best tools how near the text is to the nearest purpose for which each was called, or to what it says."""
    best = sorted(near, key=lambda place: -total[place])[:_MOST_BY_PURPOSE]
    nearest: list[float] = []
    for place in best:
        uses = tools[place].uses
        purposes = [] if uses is None else [dot(vector, centre.vector) / CENTROID_LENGTH for centre in uses.centroids]
        nearest.append(max([near[place].whole, *purposes]))
        if len(nearest) % _PURPOSES_AT_ONCE == 0:
            yield
    for place, score in zip(best, _standard(nearest), strict=True):
        total[place] += weight * score


class _Nearness(NamedTuple):
    """How near a text is to one tool: to its description, to the best of its sentences, to its name, and to the centre of its uses."""

    whole: float
    sentence: float
    name: float
    uses: float


def _near_uses(vector: Vector, whole: float, tool: ToolVectors, uses: ToolUses | None) -> float:
    """Return how near a text is to the centre of a tool's uses, by their distance.

    The centre begins at the tool's own description, to which the text is as near as `whole` says, and each use moves it.
    """
    if uses is None or len(uses.mean) != len(vector):
        return _OWN_LENGTH * whole - _OWN_LENGTH**2 / 2
    share, rest = _shares(uses)
    return share * dot(vector, uses.mean) + rest * whole - _centre_square(uses, tool) / 2


def _shares(uses: ToolUses) -> tuple[float, float]:
    """Return how much of a tool's centre is the mean of its uses, and how much its own description."""
    share = uses.count / (uses.count + _FEW_USES)
    return share, (1 - share) * _OWN_LENGTH


@lru_cache(maxsize=_KEPT_SQUARES)
def _centre_square(uses: ToolUses, tool: ToolVectors) -> float:
    """Return the square of the length of a tool's centre, which is the same for all texts. Both are compared as objects."""
    share, rest = _shares(uses)
    return share**2 * dot(uses.mean, uses.mean) + 2 * share * rest * dot(uses.mean, tool.whole) + rest**2


def _widened(whole: Sequence[float], vectors_of_tools: Sequence[ToolVectors]) -> Generator[None, None, list[float]]:
    """Return how near each tool is to the mean of the tools that fit best: tools of the same kind find each other."""
    most = max(whole)
    shares = [math.exp(_NARROWNESS * (score - most)) for score in whole]
    centre = [0.0] * len(vectors_of_tools[0].whole)
    for share, vectors in zip(shares, vectors_of_tools, strict=True):
        if share > 0.01:
            centre = [value + share * own for value, own in zip(centre, vectors.whole, strict=True)]
    near: list[float] = []
    for vectors in vectors_of_tools:
        near.append(dot(centre, vectors.whole))
        if len(near) % (2 * COMPARED_AT_ONCE) == 0:
            yield
    return near


def vectors_of(text: ToolText, made: Sequence[Vector], general: Sequence[Vector], fingerprint: str) -> ToolVectors:
    """Return the vectors of a tool, made of `text.all`. They are kept in single precision: there are thousands of tools."""
    whole, name, *sentences = [array("f", vector) for vector in made]
    near = max((dot(whole, other) for other in general), default=0.0)
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
