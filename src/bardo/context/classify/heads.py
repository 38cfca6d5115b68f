"""Linear heads: which of some labels a text has, by the weighted sum of the components of its vector; and the classification of a request.

Heads are trained with `bardo classify train` and kept in a file of JSON. They belong to the embedding that they were trained with. A
classification is one label for each question, its probability, and the tier that decided it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from operator import mul
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

Tier = Literal["onnx", "provider", "static", "rules"]


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    """A label and how probable it is, from 0 to 1."""

    label: str
    probability: float


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """The classification of one request: guesses by the name of the question, and the tier that made them.

    `onnx` is a model of the operator's, `provider` one of a provider, `static` the table of vectors that ships with bardo, `rules` words
    and lengths alone. `needs` are fields of an intent that the labels speak for.
    """

    tier: Tier
    guesses: dict[str, Guess]
    needs: dict[str, Any] = {}

    def label(self, question: str) -> str:
        """Return the label of a question, empty where it was not asked or nothing was found."""
        guess = self.guesses.get(question)
        return "" if guess is None else guess.label


MOST_LABELS = 1_000
_Weights = Annotated[bytes, msgspec.Meta(max_length=2 * 4_096 * MOST_LABELS)]
# Components of a vector of length 1 are brought to whole numbers by this. With weights of 16 bits a sum of 4,096 products of components
# below 2**20 stays below 2**47.
_SCALE = 1 << 15


class _Lanes(NamedTuple):
    """How the sums of all labels stand side by side in one large integer: so many bytes for each, and what keeps a sum above zero."""

    size: int
    middle: int
    code: str


_WIDE, _NARROW = _Lanes(8, 1 << 62, "Q"), _Lanes(4, 1 << 31, "I")


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights that decide one question, such as the domain.

    `weights` are whole numbers of 16 bits, little-endian, one for each label of each component of a vector; `scale` is what they are
    multiplied by, and `bias` what is added for each label. `sharpness` turns scores into probabilities. `accuracy` is the result of
    cross-validation over `rows` texts, with its 95 % interval.
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
            count = len(head.labels)
            if len(head.bias) != count or len(head.weights) != 2 * count * file.dimensions:
                raise ValueError(
                    f"the head {head.name!r} has not one weight for each of {count} labels x {file.dimensions} components"
                )
            if len(set(head.labels)) != count:
                raise ValueError(f"the head {head.name!r} has a label twice")
            if not all(map(math.isfinite, (*head.bias, head.scale, head.sharpness))):
                raise ValueError(f"the head {head.name!r} has a number that is none")

    def guesses(self, vector: Sequence[float]) -> dict[str, Guess]:
        """Return the likeliest label of each head, with its probability. A vector of zeros has no label."""
        probabilities = self.probabilities(vector)
        best = {name: max(labels, key=labels.__getitem__) for name, labels in probabilities.items()}
        return {name: Guess(label=label, probability=probabilities[name][label]) for name, label in best.items()}

    def probabilities(self, vector: Sequence[float]) -> dict[str, dict[str, float]]:
        """Return how probable each label of each head is. A vector of zeros has no label."""
        return self._probabilities([round(value * _SCALE) for value in vector], _SCALE, math.inf)

    def probabilities_of(self, components: Sequence[int], length: float) -> dict[str, dict[str, float]]:
        """Return how probable each label of each head is, for a vector of whole numbers below 2**20 and its length."""
        return self._probabilities(components, length, length)

    def _probabilities(self, components: Sequence[int], length: float, longest: float) -> dict[str, dict[str, float]]:
        """Return how probable each label is. `longest` is no less than the length of the vector, infinite where that is not known."""
        if not any(components):
            return {}
        scores = self._sums(components, longest)
        by_head, first = {}, 0
        for head in self.heads:
            last = first + len(head.labels)
            by_head[head.name] = dict(zip(head.labels, _probabilities(head, scores[first:last], length), strict=True))
            first = last
        return by_head

    def _sums(self, components: Sequence[int], longest: float) -> list[int]:
        """Return the sum of component x weight for each label of all heads.

        The weights of a component are one large integer with a lane for each label, so that all labels are summed at once. A sum is at
        most the length of the vector times that of the label's weights: for a short text it fits into 32 bits.
        """
        narrow = longest * self._longest_weights < _NARROW.middle - self.dimensions
        rows, lanes = (self._narrow_rows, _NARROW) if narrow else (self._wide_rows, _WIDE)
        total = sum(map(mul, components, rows)) + self._middles(lanes)
        values = struct.unpack(f"<{self._count}{lanes.code}", total.to_bytes(lanes.size * self._count, "little"))
        return [value - lanes.middle for value in values]

    @cached_property
    def _count(self) -> int:
        return sum(len(head.labels) for head in self.heads)

    @cached_property
    def _by_component(self) -> list[list[int]]:
        """The weights of all labels, component by component."""
        return [[weight for head in self.heads for weight in _weights(head, at)] for at in range(self.dimensions)]

    @cached_property
    def _longest_weights(self) -> float:
        """The length of the longest vector of weights."""
        return math.sqrt(max(sum(map(mul, label, label)) for label in zip(*self._by_component, strict=True)))

    @cached_property
    def _wide_rows(self) -> list[int]:
        return self._rows(_WIDE)

    @cached_property
    def _narrow_rows(self) -> list[int]:
        # A weight has 16 bits, and so fits into either lane.
        return self._rows(_NARROW)

    def _middles(self, lanes: _Lanes) -> int:
        """A number that keeps the sum of each label above zero, so that none borrows from the next."""
        return self._narrow_middles if lanes is _NARROW else self._wide_middles

    @cached_property
    def _wide_middles(self) -> int:
        return self._packed(_WIDE, [0] * self._count)

    @cached_property
    def _narrow_middles(self) -> int:
        return self._packed(_NARROW, [0] * self._count)

    def _rows(self, lanes: _Lanes) -> list[int]:
        return [self._packed(lanes, weights) - self._middles(lanes) for weights in self._by_component]

    def _packed(self, lanes: _Lanes, values: Sequence[int]) -> int:
        packed = struct.pack(f"<{self._count}{lanes.code}", *[lanes.middle + value for value in values])
        return int.from_bytes(packed, "little")


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
