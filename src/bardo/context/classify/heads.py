"""Linear heads: which of some labels a text has, by the weighted sum of the components of its vector.

Heads are trained with `bardo classify train` and kept in a file of JSON. They belong to the embedding that they were trained with.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from operator import mul
from typing import Annotated

import msgspec

from bardo.context.classify.labels import Guess

MOST_LABELS = 1_000
_Weights = Annotated[bytes, msgspec.Meta(max_length=2 * 4_096 * MOST_LABELS)]
# Components of a vector of length 1 are brought to whole numbers by this. With weights of 16 bits a sum of 4,096 products of components
# below 2**20 stays below 2**47.
_SCALE = 1 << 15
_LANE = 8
_MIDDLE = 1 << 62


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides one question, such as the domain.

    `weights` are whole numbers of 16 bits, little-endian, one for each label of each component of a vector; `scale` is what they are
    multiplied by, and `bias` what is added for each label. `sharpness` turns scores into probabilities. `accuracy` is what was measured
    by cross-validation over `rows` texts, with its 95 % interval.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    labels: Annotated[tuple[str, ...], msgspec.Meta(min_length=2, max_length=MOST_LABELS)]
    weights: _Weights
    scale: Annotated[float, msgspec.Meta(gt=0)]
    bias: tuple[float, ...]
    sharpness: Annotated[float, msgspec.Meta(gt=0)]
    rows: int = 0
    accuracy: float | None = None
    interval: tuple[float, float] | None = None


class HeadFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of some heads. `embedding` is the fingerprint of the embedding that they were trained with, of so many `dimensions`."""

    embedding: str
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=4_096)]
    heads: Annotated[tuple[Head, ...], msgspec.Meta(min_length=1, max_length=64)]


class Heads:
    """Answers the questions of some heads at once. Raises ValueError where the parts of a head do not fit together."""

    def __init__(self, file: HeadFile) -> None:
        self.embedding = file.embedding
        self.dimensions = file.dimensions
        self.heads = file.heads
        names = [head.name for head in file.heads]
        if len(names) != len(set(names)):
            raise ValueError("two heads have one name")
        for head in file.heads:
            _check(head, file.dimensions)

    def guesses(self, vector: Sequence[float]) -> dict[str, Guess]:
        """Return the likeliest label of each head, with its probability. A vector of zeros has no label."""
        found = self.probabilities(vector)
        best = {name: max(labels, key=labels.__getitem__) for name, labels in found.items()}
        return {name: Guess(label=label, probability=found[name][label]) for name, label in best.items()}

    def probabilities(self, vector: Sequence[float]) -> dict[str, dict[str, float]]:
        """Return how probable each label of each head is. A vector of zeros has no label."""
        return self.probabilities_of([round(value * _SCALE) for value in vector], _SCALE)

    def probabilities_of(self, components: Sequence[int], length: float) -> dict[str, dict[str, float]]:
        """Return how probable each label of each head is, for a vector of whole numbers below 2**20 and its length."""
        if not any(components):
            return {}
        scores = self._sums(components)
        found, first = {}, 0
        for head in self.heads:
            last = first + len(head.labels)
            found[head.name] = dict(zip(head.labels, _probabilities(head, scores[first:last], length), strict=True))
            first = last
        return found

    def _sums(self, components: Sequence[int]) -> list[int]:
        """Return the sum of component x weight for each label of all heads.

        The weights of a component are one large integer with 64 bits for each label, so that all labels are summed at once.
        """
        total = sum(map(mul, components, self._rows)) + self._middles
        count = sum(len(head.labels) for head in self.heads)
        return [value - _MIDDLE for value in struct.unpack(f"<{count}Q", total.to_bytes(_LANE * count, "little"))]

    @cached_property
    def _middles(self) -> int:
        """A number that keeps the sum of each label above zero, so that none borrows from the next."""
        count = sum(len(head.labels) for head in self.heads)
        return int.from_bytes(struct.pack("<Q", _MIDDLE) * count, "little")

    @cached_property
    def _rows(self) -> list[int]:
        found = []
        for component in range(self.dimensions):
            lanes = b"".join(
                struct.pack("<Q", _MIDDLE + weight) for head in self.heads for weight in _weights(head, component)
            )
            found.append(int.from_bytes(lanes, "little") - self._middles)
        return found


def decode_heads(content: bytes) -> Heads:
    """Return the heads of a file. Raises ValueError for a file that holds none, or whose parts do not fit together."""
    try:
        return Heads(msgspec.json.decode(content, type=HeadFile))
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise ValueError(str(problem)) from problem


@cache
def shipped_heads() -> Heads:
    """Return the heads that ship with bardo, for the wide table of vectors."""
    return decode_heads(files("bardo.context.classify").joinpath("data/heads.json").read_bytes())


def _weights(head: Head, component: int) -> Sequence[int]:
    count = len(head.labels)
    return struct.unpack_from(f"<{count}h", head.weights, 2 * count * component)


def _probabilities(head: Head, sums: Sequence[int], length: float) -> list[float]:
    factor = head.sharpness * head.scale / length
    scores = [value * factor + head.sharpness * bias for value, bias in zip(sums, head.bias, strict=True)]
    best = max(scores)
    odds = [math.exp(score - best) for score in scores]
    total = sum(odds)
    return [value / total for value in odds]


def _check(head: Head, dimensions: int) -> None:
    count = len(head.labels)
    if len(head.bias) != count or len(head.weights) != 2 * count * dimensions:
        raise ValueError(
            f"the head {head.name!r} has not one weight for each of {count} labels x {dimensions} components"
        )
    if len(set(head.labels)) != count:
        raise ValueError(f"the head {head.name!r} has a label twice")
    if not all(map(math.isfinite, (*head.bias, head.scale, head.sharpness))):
        raise ValueError(f"the head {head.name!r} has a number that is none")
