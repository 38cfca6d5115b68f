"""The layer `classify`: it labels a request, refuses it where the operator says so, and tells routing what it needs.

The labels come from linear heads over a vector of the text. Without heads, or without a vector, rules give them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bardo.catalog.layer_rows import ClassifyRows, NeedRow, OmittedText, PairRow, SignRow, SizeOf, SizeRow
from bardo.context.classify.heads import Classification, Guess, Heads, Tier
from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import Effect, EffectFailed, LayerFacts, LayerSteps, Passed, Receipt
from bardo.embedding.static_embedding import StaticEmbedding
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request

LONGEST = 800
"""Characters. A longer text is classified by its beginning and its end, where prompts state the question."""


def asked_text(request: Request, omitted: Sequence[OmittedText]) -> str:
    """Return the text of the last message of the user that has one once `omitted` parts are left out; empty where none has.

    Results of tools are no text of the user. In an agent's loop the last message is often one of the program's, so that an earlier one
    counts.
    """
    for message in reversed(request.messages):
        if message.role == "user":
            text = message.paragraphs
            for part in omitted:
                text = without(text, part.begin, part.end)
            if text.strip():
                return text.strip()
    return ""


def shortened(text: str) -> str:
    """Return the text, or the beginning and the end of a long one."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} {text[-half:]}"


def without(text: str, begin: str, end: str) -> str:
    """Return the text without all that stands between two marks, and the marks. A mark without its end stays."""
    if begin not in text:
        return text
    pieces, place = [], 0
    while (first := text.find(begin, place)) >= 0:
        last = text.find(end, first + len(begin))
        if last < 0:
            break
        pieces.append(text[place:first])
        place = last + len(end)
    pieces.append(text[place:])
    return "".join(pieces)


_WORDS = re.compile(r"[\w/+#'-]+(?:;\w+)?")
Places = Mapping[str, Sequence[int]]


class PhraseFinder:
    """Finds phrases. Time is linear in the length of the text, whatever the number of phrases.

    A phrase is a word of the rows, or up to three in a row.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._phrases = frozenset(phrases)
        # How many words the phrases have that begin with a word.
        self._lengths: dict[str, tuple[int, ...]] = {}
        for phrase in self._phrases:
            parts = phrase.split()
            lengths = self._lengths.get(parts[0], ())
            self._lengths[parts[0]] = tuple(sorted({*lengths, len(parts)}))

    def places(self, text: str) -> dict[str, list[int]]:
        """Return the phrases that a text has, each with the numbers of the words at which it begins."""
        words = _WORDS.findall(text.lower().replace("\u2019", "'"))
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                phrase = word if length == 1 else " ".join(words[place : place + length])
                if phrase in self._phrases and place + length <= len(words):
                    places.setdefault(phrase, []).append(place)
        return places


class _Pair(NamedTuple):
    """A row with the words of its lists."""

    row: PairRow
    first: frozenset[str]
    second: frozenset[str]
    having: frozenset[str]
    lacking: frozenset[str]


class Pairs:
    """The pairs of the rows, with the words of their lists. Raises KeyError for a list that no row has."""

    def __init__(self, rows: Sequence[PairRow], lists: Mapping[str, Sequence[str]]) -> None:
        def phrases_in(name: str) -> frozenset[str]:
            return frozenset(lists[name]) if name else frozenset()

        self._pairs = [_Pair(row, *map(phrases_in, (row.first, row.second, row.having, row.lacking))) for row in rows]

    def met(self, places: Places) -> list[PairRow]:
        """Return the pairs that the phrases of a text meet."""
        return [
            pair.row
            for pair in self._pairs
            if (not pair.having or not pair.having.isdisjoint(places))
            and pair.lacking.isdisjoint(places)
            and _near(pair.first, pair.second, pair.row.within, places)
        ]


def _near(first: frozenset[str], second: frozenset[str], within: int, places: Places) -> bool:
    """Whether a phrase of the second list begins within so many words behind one of the first."""
    ends = {place + len(phrase.split()) for phrase, ends_of in places.items() if phrase in first for place in ends_of}
    starts = [place for phrase, positions in places.items() if phrase in second for place in positions]
    return any(place - gap in ends for place in starts for gap in range(within))


COMPLEXITY = "complexity"
_MOST_MET = 3
_LEAST = 1e-6
_NOTHING_MET = 0.34
"""How probable a default label is said to be: as good as none."""


class Rules:
    """Answers the questions of the rows. Time is linear in the length of the text.

    They look at words, at the length of the request, at its tools and its code; the rows are in `classify.toml`.
    """

    def __init__(self, rows: ClassifyRows) -> None:
        self._default = rows.default
        self._sizes = rows.size
        self._pairs = Pairs(rows.pair, rows.lists)
        self._signs: dict[str, list[SignRow]] = {}
        for row in rows.sign:
            for word in row.words:
                self._signs.setdefault(word, []).append(row)
        self._finder = PhraseFinder((*self._signs, *(word for words in rows.lists.values() for word in words)))
        self._base: dict[str, dict[str, float]] = {}
        named = [(row.question, row.label) for some in (rows.base, rows.sign, rows.pair) for row in some]
        for question, label in named:
            self._base.setdefault(question, {}).setdefault(label, 0.0)
        for base in rows.base:
            self._base[base.question][base.label] += base.weight

    def guess(self, question: str, scores: Mapping[str, float]) -> Guess:
        """Return the guess for a question by the scores of its labels alone."""
        if any(scores.values()):
            return likeliest(scores)
        return Guess(label=self._default[question], probability=_NOTHING_MET)

    def scores(self, request: Request, text: str) -> dict[str, dict[str, float]]:
        """Return the score of each label of each question. `text` is what the user asks; of a long one its beginning and end count."""
        scores = {question: dict(labels) for question, labels in self._base.items()}
        places = self._finder.places(shortened(text))
        met: dict[tuple[str, str], int] = {}
        for phrase in places:
            for row in self._signs.get(phrase, ()):
                times = met[row.question, row.label] = met.get((row.question, row.label), 0) + 1
                if times <= _MOST_MET:
                    scores[row.question][row.label] += row.weight
        for pair in self._pairs.met(places):
            scores[pair.question][pair.label] += pair.weight
        for size in _holding(self._sizes, _sizes(request, text)):
            for label, value in size.scores.items():
                scores[COMPLEXITY][label] += value
        return scores


def together(probabilities: Mapping[str, float], scores: Mapping[str, float]) -> Guess:
    """Return the likeliest label where the probabilities of a head and the scores of the rows are taken together."""
    return likeliest(
        {label: math.log(max(value, _LEAST)) + scores.get(label, 0.0) for label, value in probabilities.items()}
    )


def likeliest(scores: Mapping[str, float]) -> Guess:
    """Return the label of the highest score, and its probability as if scores were logarithms of odds."""
    best = max(scores, key=scores.__getitem__)
    return Guess(label=best, probability=1 / sum(math.exp(value - scores[best]) for value in scores.values()))


def _sizes(request: Request, text: str) -> dict[SizeOf, int]:
    return {
        "text": len(text),
        "conversation": sum(len(message.text) for message in request.messages),
        "tools": len(request.tools),
        "code": text.count("```") // 2,
    }


def _holding(rows: Sequence[SizeRow], sizes: Mapping[SizeOf, int]) -> list[SizeRow]:
    """Return for each size the last row that holds."""
    return list({row.of: row for row in rows if sizes[row.of] >= row.least}.values())


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
        result = Classification(tier=tier, guesses=guesses, needs=needs_of(guesses, self._needs))
        why = {"without_vector": without} if without else {}
        seen = {name: f"{guess.label} {guess.probability:.2f}" for name, guess in guesses.items()}
        saw: dict[str, Any] = {"tier": tier, **why, **seen}
        did = (
            "told routing " + ", ".join(f"{name} {value}" for name, value in result.needs.items())
            if result.needs
            else ""
        )
        return Passed(request=request, receipt=Receipt(layer=self.name, did=did, saw=saw), found=result)

    def _probabilities(self, text: str) -> Generator[Effect, Any, _Probabilities]:
        """Return the tier that labels a text, how probable each label of each head is, and why there is no vector where there is none."""
        if self._heads is None:
            return "rules", {}, ""
        if not text:
            return "rules", {}, "no text"
        if self._static is not None:
            probabilities = self._heads.probabilities_of(*self._static.sums(text))
            return ("static", probabilities, "") if probabilities else ("rules", {}, _UNKNOWN)
        try:
            embedded: TextVectors = yield Embed((text,))
        except EffectFailed:
            return "rules", {}, "none could be made"
        if embedded.fingerprint != self._heads.embedding:
            return "rules", {}, "the heads belong to another embedding"
        probabilities = self._heads.probabilities(embedded.vectors[0])
        return (embedded.tier, probabilities, "") if probabilities else ("rules", {}, _UNKNOWN)

    def _guesses(self, request: Request, text: str, heads: Mapping[str, Mapping[str, float]]) -> dict[str, Guess]:
        """Return the guesses of the heads, and of the rows for what these do not answer.

        Beside the heads that ship the rows count too; those of an operator decide alone.
        """
        scores = self._rules.scores(request, text)
        guesses = {
            question: self._rules.guess(question, votes) for question, votes in scores.items() if question not in heads
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
    needs: dict[str, Any] = {}
    for row in rows:
        if all(_is(guesses.get(question), label, row.probability) for question, label in row.when.items()):
            fields = {name: getattr(row, name) for name in ("quality", "cost_sensitivity", "max_latency_ms")}
            needs = {**{name: value for name, value in fields.items() if value is not None}, **needs}
            if row.prefer and "prefer" not in needs:
                needs["prefer"] = row.prefer
    return needs


def _is(guess: Guess | None, label: str, probability: float) -> bool:
    return guess is not None and guess.label == label and guess.probability >= probability
