"""How certain it is that a sentence asks an assistant for something: a linear probe over its features and, where there is one, its vector.

The weights ship with bardo (`tools/build_injection_probe.py`). They were fitted to sentences of BIPIA (MIT) and of our own; a vector
counts only where it is of the embedding that they were fitted with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from bardo.context.injection.sentences import features

Tier = Literal["words", "static", "onnx", "provider"]
_USUAL_SENTENCES = 12
"""How many sentences the texts have for which `boundary` was set."""
_MAY_BE, _MORE = 1.0, 2.0
"""How far below the boundary a sentence may still be a request, and how fast the boundary rises with their number."""


class ProbeWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of one tier. `fingerprint` is that of the embedding, empty for words alone.

    `boundary` is the value above which one of a hundred ordinary texts has a sentence.
    """

    fingerprint: str
    bias: float
    boundary: float
    features: tuple[float, ...]
    vector: tuple[float, ...] = ()

    def value(self, sentence: str, vector: Sequence[float] = ()) -> float:
        """Return the log-odds, less the boundary, that a sentence asks for something."""
        own = sum([weight * one for weight, one in zip(self.features, features(sentence), strict=True)])
        beside = sum([weight * one for weight, one in zip(self.vector, vector, strict=True)]) if self.vector else 0.0
        return self.bias + own + beside - self.boundary


def certainty(values: Sequence[float]) -> float:
    """Return how certain it is, from 0 to 1, that one of a text's sentences asks for something; 0.5 is the boundary.

    Of many sentences one is high by chance: the boundary rises with the logarithm of their number, so that one of a hundred ordinary texts
    is above it whatever their length. It rises further where more than two sentences may be requests: recipes, rules and manuals are made
    of such, and what is planted stands among others.
    """
    if not values:
        return 0.0
    more = sum([value > -_MAY_BE for value in values]) - 1
    height = max(values) - math.log(max(1.0, len(values) / _USUAL_SENTENCES)) - _MORE * math.log(max(1, more))
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, height))))


@cache
def probe_weights() -> tuple[ProbeWeights, ...]:
    """Return the weights that come with bardo: those for words alone last."""
    content = files("bardo.context.injection").joinpath("data/probe.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[ProbeWeights, ...])


def weights_for(fingerprint: str) -> ProbeWeights:
    """Return the weights for an embedding: those for words alone where there are none for it."""
    return next((one for one in probe_weights() if one.fingerprint == fingerprint), probe_weights()[-1])
