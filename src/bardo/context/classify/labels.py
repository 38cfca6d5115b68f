"""What the layer says of a request: one label for each question, how sure it is, and what decided it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Tier = Literal["onnx", "provider", "static", "rules"]


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    """A label and how probable it is, from 0 to 1."""

    label: str
    probability: float


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one request: guesses by the name of the question, and the tier that made them.

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
