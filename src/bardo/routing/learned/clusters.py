"""Clusters of requests: two levels of centroids over a request's text and form, and how far a request belongs to each.

A request is a point: its static embedding, and its form scaled by what the fitted prompts vary by. It belongs to the clusters near it in
shares that fall with the squared distance, so that a point between two clusters has evidence from both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from operator import mul
from random import Random
from typing import Protocol

import msgspec

from bardo.embedding.static_embedding import shortened

_QUESTION_WORD = re.compile(r"(who|what|where|when|which|how|why)\b")
_OPTIONS = re.compile(r"^\s{0,8}\(?A[.):]", re.MULTILINE)
_MARKS = ("$", "\\", "def ", "_", "```", "= ", "(", '"')
_PHRASES = ("how many", "how much", "following")
_CODE_WORDS = ("write a", "function", "python")

FORM_FEATURES = 30


Point = tuple[float, ...]
FINE, COARSE = 64, 16
MOST_FITTED = 3_000
_ROUNDS = 12
# Chosen by five-fold cross-validation on the development half of the nine models' outcomes (docs/explanation/learned-routing.md).
_FORM_WEIGHT = 0.1
_SHARPNESS = 20.0
_LEAST_SHARE = 0.02


class Embedding(Protocol):
    """Makes a vector of a text. `fingerprint` changes with what the vectors depend on; `slow`: a text takes a millisecond or more."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def slow(self) -> bool: ...

    def embed(self, text: str) -> tuple[float, ...]:
        """Return a vector of length 1, the same number of components for each text; all are 0 where nothing is known of the text."""
        ...


class Share(msgspec.Struct, frozen=True, array_like=True):
    """How far a request belongs to a cluster; the shares of a request add up to 1."""

    cluster: int
    share: float


class Clusters(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Centroids of the fine clusters, and the number of each one's coarse cluster. `embedding` names the embedding they are made for.

    `means` and `scales` are what a feature of form is moved and multiplied by.
    """

    embedding: str
    means: tuple[float, ...]
    scales: tuple[float, ...]
    centroids: tuple[Point, ...]
    parents: tuple[int, ...]

    def shares(self, prompt: str, embedding: Embedding) -> tuple[Share, ...]:
        """Return the clusters that a prompt belongs to, the nearest first."""
        return self.shares_of(point_of(prompt, embedding, self.means, self.scales))

    def shares_of(self, point: Point) -> tuple[Share, ...]:
        """Return the clusters that a point belongs to, the nearest first. Shares under 2 % are left out."""
        distances = _distances(point, self.centroids, self._centroid_squares)
        nearest = min(distances)
        weights = [math.exp(-_SHARPNESS * (distance - nearest)) for distance in distances]
        least = _LEAST_SHARE * sum(weights)
        by_cluster = {number: weight for number, weight in enumerate(weights) if weight >= least}
        total = sum(by_cluster.values())
        ranked = sorted(by_cluster, key=lambda number: -by_cluster[number])
        return tuple(Share(number, by_cluster[number] / total) for number in ranked)

    @cached_property
    def _centroid_squares(self) -> list[float]:
        return _squares(self.centroids)


def point_of(prompt: str, embedding: Embedding, means: Sequence[float], scales: Sequence[float]) -> Point:
    """Return the point of a prompt: its embedding, then its scaled form."""
    form = form_of(prompt)
    scaled = ((value - mean) * scale for value, mean, scale in zip(form, means, scales, strict=True))
    return (*embedding.embed(prompt), *(max(-1.0, min(1.0, value)) for value in scaled))


def fit_clusters(
    prompts: Sequence[str], embedding: Embedding, random: Random, *, fine: int = FINE, coarse: int = COARSE
) -> Clusters:
    """Return clusters of these prompts by k-means, and the coarse clusters of their centroids.

    There are never more clusters than one for every eight prompts. At most `MOST_FITTED` prompts, evenly spread, are read. Raises
    ValueError where there is no prompt.
    """
    if not prompts:
        raise ValueError("no prompts to fit clusters to")
    prompts = prompts[:: -(-len(prompts) // MOST_FITTED)]
    means, scales = _scaling([form_of(prompt) for prompt in prompts])
    points = [point_of(prompt, embedding, means, scales) for prompt in prompts]
    centroids = k_means(points, max(1, min(fine, len(points) // 8)), random)
    above = k_means(centroids, max(1, min(coarse, len(centroids) // 2)), random)
    parents = tuple(_nearest(centroids, above))
    return Clusters(
        embedding=embedding.fingerprint, means=means, scales=scales, centroids=tuple(centroids), parents=parents
    )


def k_means(points: Sequence[Point], count: int, random: Random) -> list[Point]:
    """Return `count` centroids, or fewer where clusters fall empty. Time: points x clusters x twelve rounds."""
    centroids = random.sample(list(points), count)
    before: list[int] = []
    for _ in range(_ROUNDS):
        numbers = _nearest(points, centroids)
        if numbers == before:
            break
        before = numbers
        members: list[list[Point]] = [[] for _ in centroids]
        for number, point in zip(numbers, points, strict=True):
            members[number].append(point)
        groups = [group for group in members if group]
        centroids = [tuple(sum(values) / len(group) for values in zip(*group, strict=True)) for group in groups]
    return centroids


def _scaling(forms: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    means, scales = [], []
    for values in zip(*forms, strict=True):
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        means.append(mean)
        scales.append(_FORM_WEIGHT / spread if spread > 1e-6 else 0.0)
    assert len(means) == FORM_FEATURES
    return tuple(means), tuple(scales)


def _distances(point: Point, centroids: Sequence[Point], squares: Sequence[float]) -> list[float]:
    """Return squared distances, without the part that is the same for every centroid."""
    return [square - 2 * sum(map(mul, point, centroid)) for square, centroid in zip(squares, centroids, strict=True)]


def _squares(points: Sequence[Point]) -> list[float]:
    return [sum(map(mul, point, point)) for point in points]


def _nearest(points: Sequence[Point], centroids: Sequence[Point]) -> list[int]:
    squares = _squares(centroids)
    nearest = []
    for point in points:
        distances = _distances(point, centroids, squares)
        nearest.append(distances.index(min(distances)))
    return nearest


@cache
def shipped_clusters() -> Clusters:
    """Return the clusters that ship with bardo, for whoever has not fitted his own."""
    content = files("bardo.routing.learned").joinpath("data/clusters.json").read_bytes()
    return msgspec.json.decode(content, type=Clusters)


def form_of(prompt: str) -> tuple[float, ...]:
    """Return the `FORM_FEATURES` numbers of a prompt, not scaled. A long prompt counts with its beginning and its end.

    Its form is its length, its signs, and words by which kinds of tasks are known: whether it is a word problem, a function to write or a
    choice of four answers says more about which model answers it well than its subject. Each feature is read in one pass.
    """
    text = shortened(prompt)
    lower, words = text.lower(), text.split()
    return (*_sizes(prompt, text, words), *_signs(text, words, lower), *_normalized_words(text, words, lower))


def _sizes(prompt: str, text: str, words: list[str]) -> tuple[float, ...]:
    letters = max(1, len(text))
    count = max(1, len(words))
    return (
        math.log1p(len(prompt)),
        math.log1p(len(words) * len(prompt) / letters),
        math.log1p(text.count("\n")),
        sum(map(str.isdigit, text)) / letters,
        sum(map(str.isupper, text)) / letters,
        sum(map(str.isspace, text)) / letters,
        sum(not (sign.isalnum() or sign.isspace()) for sign in text) / letters,
        len(set(words)) / count,
        sum(map(len, words)) / count,
    )


def _signs(text: str, words: list[str], lower: str) -> tuple[float, ...]:
    end = text.rstrip()[-1:]
    count = max(1, len(words))
    ending = (end == "?", bool(end) and end in ".!")
    counts = (text.count(",") / count, text.count(".") / count)
    quotes = '"""' in text or "'''" in text
    return (*map(float, ending), *counts, float(quotes), *(float(mark in text) for mark in _MARKS))


def _normalized_words(text: str, words: list[str], lower: str) -> tuple[float, ...]:
    digits = any(sign.isdigit() for sign in text)
    code = any(word in lower for word in _CODE_WORDS)
    asks = _QUESTION_WORD.match(lower) is not None
    options = _OPTIONS.search(text) is not None
    flags = (options, digits, code, asks, text[:1].isupper(), *(phrase in lower for phrase in _PHRASES))
    return tuple(map(float, flags))
