"""The layer `classify`: it labels a request, refuses it where the operator says so, and tells routing what it needs.

The labels come from linear heads over a vector of the text, and where there are none, or no vector can be had, from rules.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from bardo.catalog.classify_rows import ClassifyRows, NeedRow
from bardo.context.classify.asked_text import asked_text, shortened
from bardo.context.classify.heads import Heads
from bardo.context.classify.labels import Classification, Guess, Tier
from bardo.context.classify.rules import Rules, together
from bardo.context.embed import Embed, TextVectors
from bardo.context.layer import Effect, EffectFailed, LayerFacts, LayerSteps, Passed, Receipt
from bardo.embedding.static_embedding import StaticEmbedding
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request

_Probabilities = tuple[Tier, Mapping[str, Mapping[str, float]], str]
_UNKNOWN = "nothing is known of the text"


class Classify:
    """The layer. `block` are labels, as `question.label`, with the probability from which a request is refused.

    `static` makes vectors where `heads` were trained with the table that ships; else they are asked for. `with_rules`: what the rows
    say counts beside the heads. `needs` go before those of the rows.
    """

    name = "classify"

    def __init__(
        self,
        rows: ClassifyRows,
        *,
        heads: Heads | None = None,
        static: StaticEmbedding | None = None,
        with_rules: bool = False,
        block: Mapping[str, float] | None = None,
        needs: Sequence[NeedRow] = (),
    ) -> None:
        self._rules = Rules(rows)
        self._omitted = rows.omitted
        self._heads = heads
        self._static = static if heads is not None and static and static.fingerprint == heads.embedding else None
        self._with_rules = with_rules
        self._block = dict(block or {})
        self._needs = (*needs, *rows.need)

    @property
    def asks(self) -> bool:
        """Whether the layer asks for vectors."""
        return self._heads is not None and self._static is None

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Label a request. Raises InvalidRequest where one of its labels is blocked."""
        text = asked_text(request, self._omitted)
        tier, probabilities, without = yield from self._probabilities(shortened(text))
        guesses = self._guesses(request, text, probabilities)
        self._refuse(guesses)
        found = Classification(tier=tier, guesses=guesses, needs=needs_of(guesses, self._needs))
        why = {"without_vector": without} if without else {}
        saw: dict[str, Any] = {"tier": tier, **why, **{name: _shown(guess) for name, guess in guesses.items()}}
        did = (
            "told routing " + ", ".join(f"{name} {value}" for name, value in found.needs.items()) if found.needs else ""
        )
        return Passed(request=request, receipt=Receipt(layer=self.name, did=did, saw=saw), found=found)

    def _probabilities(self, text: str) -> Generator[Effect, Any, _Probabilities]:
        """Return the tier that labels a text, how probable each label of each head is, and why there is no vector where there is none."""
        if self._heads is None:
            return "rules", {}, ""
        if not text:
            return "rules", {}, "no text"
        if self._static is not None:
            found = self._heads.probabilities_of(*self._static.sums(text))
            return ("static", found, "") if found else ("rules", {}, _UNKNOWN)
        try:
            embedded: TextVectors = yield Embed((text,))
        except EffectFailed:
            return "rules", {}, "none could be made"
        if embedded.fingerprint != self._heads.embedding:
            return "rules", {}, "the heads belong to another embedding"
        found = self._heads.probabilities(embedded.vectors[0])
        return (embedded.tier, found, "") if found else ("rules", {}, _UNKNOWN)

    def _guesses(self, request: Request, text: str, heads: Mapping[str, Mapping[str, float]]) -> dict[str, Guess]:
        """Return the guesses of the heads, and of the rows for what these do not answer.

        Beside the heads that ship the rows count too; those of an operator decide alone.
        """
        scores = self._rules.scores(request, text)
        guesses = {
            question: self._rules.guess(question, found) for question, found in scores.items() if question not in heads
        }
        for question, labels in heads.items():
            guesses[question] = together(labels, scores.get(question, {}) if self._with_rules else {})
        return guesses

    def _refuse(self, guesses: Mapping[str, Guess]) -> None:
        for name, least in self._block.items():
            question, _, label = name.partition(".")
            guess = guesses.get(question)
            if guess is not None and guess.label == label and guess.probability >= least:
                message = f"this gateway takes no requests that it classifies as {question}: {label}"
                hint = (
                    f"it is {guess.probability:.0%} sure; write the request otherwise, or ask whoever runs the gateway"
                )
                raise InvalidRequest(message, hint=hint, param="messages")


def needs_of(guesses: Mapping[str, Guess], rows: Sequence[NeedRow]) -> dict[str, Any]:
    """Return the fields of an intent that rows say for these labels. Of two rows that say one field the first counts."""
    found: dict[str, Any] = {}
    for row in rows:
        if all(_is(guesses.get(question), label, row.probability) for question, label in row.when.items()):
            fields = {name: getattr(row, name) for name in ("quality", "cost_sensitivity", "max_latency_ms")}
            found = {**{name: value for name, value in fields.items() if value is not None}, **found}
            if row.prefer and "prefer" not in found:
                found["prefer"] = row.prefer
    return found


def _is(guess: Guess | None, label: str, probability: float) -> bool:
    return guess is not None and guess.label == label and guess.probability >= probability


def _shown(guess: Guess) -> str:
    return f"{guess.label} {guess.probability:.2f}"
