"""The effect by which a layer asks for vectors of texts. All layers have the same embedding, which the operator chooses."""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.context.layer import Effect

Tier = Literal["onnx", "provider", "static"]


class Embed(Effect, frozen=True):
    """Ask for one vector for each of some texts. Whoever runs layers sends back `TextVectors`.

    With `stop_words` the table that ships embeds the key words of the texts, which are all words but these, rare ones most. A model of the
    operator's reads whole texts in any case.
    """

    texts: tuple[str, ...]
    stop_words: frozenset[str] | None = None


class TextVectors(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of texts, in the order of the texts, each of length 1, or of zeros where a text has nothing that is known.

    Two vectors may be compared where they have the same `fingerprint`. `tier` is `onnx` for a model of the operator's, `provider`
    for one that a provider was asked for, and `static` for the table that ships with bardo.
    """

    vectors: tuple[tuple[float, ...], ...]
    fingerprint: str
    tier: Tier
