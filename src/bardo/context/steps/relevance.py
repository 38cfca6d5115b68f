"""The layer `relevance`: of long texts the passages stay that are most like the last question.

Passages are ranked by BM25 over words, with the passages themselves as the collection.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from bardo.context.steps.editing import Editing, Editor, Proposal, Vectors
from bardo.context.steps.prompt_parts import Part, last_prompt
from bardo.context.steps.settings import RelevanceSettings
from bardo.values.request import Request
from bardo.values.usage import estimate_tokens

_WORD = re.compile(r"[^\W\d_]++|\d++")
_CAMEL = re.compile(r"[A-Z]?[a-z]++|[A-Z]+(?![a-z])")
_K1 = 1.2
_B = 0.75
_STEM = 6
"""Of longer words only the beginning counts, so that forms of one word are the same."""


def bm25(question: str, passages: Sequence[str]) -> list[float]:
    """Return a score for each passage, 0 where it has no word of the question. Robertson's BM25 with k1 = 1.2 and b = 0.75."""
    wanted = set(words_of(question))
    counts = [Counter(words_of(passage)) for passage in passages]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    holding = {word: sum(word in count for count in counts) for word in wanted}
    rarity = {
        word: math.log(1 + (len(passages) - number + 0.5) / (number + 0.5))
        for word, number in holding.items()
        if number
    }
    return [
        sum(
            weight * count[word] * (_K1 + 1) / (count[word] + _K1 * (1 - _B + _B * length / mean))
            for word, weight in rarity.items()
            if word in count
        )
        for count, length in zip(counts, lengths, strict=True)
    ]


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, cut to their beginning; identifiers are taken apart (`read_file`, `readFile`)."""
    found = _WORD.findall(text)
    words = [word.lower()[:_STEM] for word in found]
    mixed = [word for word in found if not (word.islower() or word.istitle() or word.isupper())]
    words += [inner.lower()[:_STEM] for word in mixed for inner in _CAMEL.findall(word)]
    return words


def by_rank(scores: Sequence[float]) -> list[int]:
    """Return for each place how many have a higher score, so that scores of different scales can be put together."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    ranks = [0] * len(scores)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def fused(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return one score of two by reciprocal rank fusion with its usual constant of 60 (Cormack and others, SIGIR 2009)."""
    return [1 / (60 + one) + 1 / (60 + other) for one, other in zip(by_rank(first), by_rank(second), strict=True)]


_CHARACTERS_PER_TOKEN = 4
_PASSAGE = 800
"""About how many characters a passage has: a few sentences, or twenty lines of code."""
_MOST_QUESTION = 4_000
_MOST_EMBEDDED = 512
_MARK = "[... passages left out that are least like the question ...]"


def relevance(settings: RelevanceSettings) -> Editing:
    """Return the layer."""
    return Editing(_Relevance(settings))


class _Relevance(Editor):
    name = "relevance"

    def __init__(self, settings: RelevanceSettings) -> None:
        self.settings = settings
        self.least_characters = settings.longest * _CHARACTERS_PER_TOKEN + 1

    def texts_to_embed(self, parts: Sequence[Part], request: Request) -> tuple[str, ...]:
        """Return the question and all passages, where vectors are wanted and there are not too many."""
        question = _question(request)
        if not self.settings.embed or not question or not parts:
            return ()
        texts = [passage for part in parts if _MARK not in part.text for passage in passages_of(part.text)]
        return (question, *texts) if len(texts) <= _MOST_EMBEDDED else ()

    def proposals(self, parts: Sequence[Part], request: Request, vectors: Vectors) -> list[Proposal]:
        """Propose each long text. Nothing is proposed where no question was asked, or a text has nothing of it."""
        question = _question(request)
        found: list[Proposal] = []
        begin = 1
        for part in parts if question else ():
            if _MARK in part.text:
                continue
            passages = passages_of(part.text)
            scores = bm25(question, passages)
            if vectors is not None:
                scores = fused(scores, _likeness(vectors[0], vectors[begin : begin + len(passages)]))
                begin += len(passages)
            if not any(scores):
                continue
            places = self._best(passages, scores)
            spans: list[list[int]] = []
            for place in places:
                if spans and spans[-1][1] == place:
                    spans[-1][1] = place + 1
                else:
                    spans.append([place, place + 1])
            recipe = ",".join(f"{begin}-{end}" for begin, end in spans)
            saved = part.tokens - estimate_tokens(self.apply(part, recipe))
            if saved > 0:
                found.append(Proposal(part=part, recipe=recipe, saved=saved))
        return found

    def apply(self, part: Part, recipe: str) -> str:
        """Return the passages that the recipe names, with a mark in each place where some are left out."""
        passages = passages_of(part.text)
        written: list[str] = []
        done = 0
        for span in recipe.split(","):
            begin, _, end = span.partition("-")
            if int(begin) > done:
                written.append(f"{_MARK}\n")
            written += passages[int(begin) : int(end)]
            done = int(end)
        if done < len(passages):
            written.append(_MARK)
        return "".join(written)

    def describe(self, parts: Sequence[Part]) -> str:
        """Return how many texts were reduced."""
        return f"{len(parts)} long texts were reduced to the passages most like the question"

    def _best(self, passages: Sequence[str], scores: Sequence[float]) -> list[int]:
        """Return the places of the passages that stay, in order: the first, which says what the text is, and the best within the bound."""
        room = self.settings.keep * _CHARACTERS_PER_TOKEN - len(passages[0])
        chosen = {0}
        for place in sorted(range(1, len(passages)), key=lambda place: -scores[place]):
            if scores[place] and len(passages[place]) <= room:
                chosen.add(place)
                room -= len(passages[place]) + len(_MARK)
        return sorted(chosen)


def passages_of(text: str) -> list[str]:
    """Return a text in passages of a few hundred characters that end at a line's end where there is one. Together they are the text."""
    passages: list[str] = []
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + _PASSAGE)
        if end < len(text):
            found = text.rfind("\n", begin + _PASSAGE // 2, end)
            end = end if found < 0 else found + 1
        passages.append(text[begin:end])
        begin = end
    return passages


def _question(request: Request) -> str:
    place = last_prompt(request.messages)
    return request.messages[place].paragraphs[-_MOST_QUESTION:] if place >= 0 else ""


def _likeness(question: Sequence[float], passages: Sequence[Sequence[float]]) -> list[float]:
    return [sum(one * other for one, other in zip(question, passage, strict=True)) for passage in passages]
