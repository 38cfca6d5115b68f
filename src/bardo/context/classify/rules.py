"""Classify a request without a model: by words that it has, its length, its tools and its code. The rows are in `classify.toml`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bardo.catalog.classify_rows import ClassifyRows, SignRow, SizeOf, SizeRow
from bardo.context.classify.asked_text import shortened
from bardo.context.classify.labels import Guess
from bardo.context.classify.phrases import Pairs, PhraseFinder
from bardo.values.request import Request

COMPLEXITY = "complexity"
_MOST_MET = 3
_LEAST = 1e-6
_NOTHING_MET = 0.34
"""How probable a default label is said to be: as good as none."""


class Rules:
    """Answers the questions of the rows. Time is linear in the length of the text."""

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
        named = [(one.question, one.label) for some in (rows.base, rows.sign, rows.pair) for one in some]
        for question, label in named:
            self._base.setdefault(question, {}).setdefault(label, 0.0)
        for one in rows.base:
            self._base[one.question][one.label] += one.weight

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
    total = sum(math.exp(value - scores[best]) for value in scores.values())
    return Guess(label=best, probability=1 / total)


def _sizes(request: Request, text: str) -> dict[SizeOf, int]:
    return {
        "text": len(text),
        "conversation": sum(len(message.text) for message in request.messages),
        "tools": len(request.tools),
        "code": text.count("```") // 2,
    }


def _holding(rows: Sequence[SizeRow], sizes: Mapping[SizeOf, int]) -> list[SizeRow]:
    """Return for each size the last row that holds."""
    found = {row.of: row for row in rows if sizes[row.of] >= row.least}
    return list(found.values())
