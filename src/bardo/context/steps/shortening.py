"""The layers that shorten long texts: `dedup`, `format` and `relevance`.

Repeated texts become references, and results of tools get a shorter form that says the same. Of long texts the passages stay that are
most like the last question: passages are ranked by BM25 over words, with the passages themselves as the collection.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from bardo.context.steps.editing import Editing, Editor, Proposal, Vectors, comma_separated, without_padding
from bardo.context.steps.prompt_parts import Part, last_prompt
from bardo.context.steps.settings import DedupSettings, FormatSettings, RelevanceSettings
from bardo.values.request import Request
from bardo.values.usage import estimate_tokens

_CHARACTERS_PER_TOKEN = 4
_WHOLE = "whole:"
_LINES = "lines:"
_MARK = "[The same"
_TELLING_LINE = 12
"""Shorter lines stand in many texts, and say nothing of where a run begins."""


def dedup(settings: DedupSettings) -> Editing:
    """Return the layer.

    A long text that stands in the prompt already is replaced by a reference to where it stands first. The same holds for long runs of
    lines, as where a file is read again after a small change.
    """
    return Editing(_Dedup(settings))


class _Dedup(Editor):
    name = "dedup"

    def __init__(self, settings: DedupSettings) -> None:
        self.settings = settings
        self.least_characters = settings.least * _CHARACTERS_PER_TOKEN

    def proposals(self, parts: Sequence[Part], request: Request, vectors: Vectors) -> list[Proposal]:
        """Propose each text that an earlier one repeats, whole or in long runs of lines."""
        seen = _KeptLines(self.settings.least_lines)
        proposals: list[Proposal] = []
        for part in parts:
            if _MARK in part.text:
                continue
            recipe = seen.recipe(part)
            saved = part.tokens - estimate_tokens(self.apply(part, recipe)) if recipe else 0
            if saved > 0:
                proposals.append(Proposal(part=part, recipe=recipe, saved=saved))
            else:
                seen.add(part)
        return proposals

    def apply(self, part: Part, recipe: str) -> str:
        """Return the reference, or the text with a reference in place of each run that the recipe names."""
        if recipe.startswith(_WHOLE):
            return f"{_MARK} text as in {recipe.removeprefix(_WHOLE)} above]"
        return "\n".join(_with_references(part.text.split("\n"), recipe.removeprefix(_LINES)))

    def describe(self, parts: Sequence[Part]) -> str:
        """Return how many texts were replaced."""
        return f"{len(parts)} texts that stand in the prompt already were replaced by references"


class _KeptLines:
    """Texts that stay whole, and where each of their lines stands first."""

    def __init__(self, least_lines: int) -> None:
        self._least = least_lines
        self._whole: dict[str, Part] = {}
        self._lines: dict[str, tuple[int, int]] = {}
        self._texts: list[tuple[Part, list[str]]] = []

    def add(self, part: Part) -> None:
        """Remember a text that stays."""
        number, lines = len(self._texts), part.text.split("\n")
        self._texts.append((part, lines))
        self._whole.setdefault(part.text, part)
        for place, line in enumerate(lines):
            if len(line) >= _TELLING_LINE:
                self._lines.setdefault(line, (number, place))

    def recipe(self, part: Part) -> str:
        """Return how a text is made shorter; empty where nothing in it is known."""
        first = self._whole.get(part.text)
        if first is not None:
            return f"{_WHOLE}{first.source}"
        runs = list(self._runs(part.text.split("\n")))
        return _LINES + ";".join(runs) if runs else ""

    def _runs(self, lines: Sequence[str]) -> Iterator[str]:
        place = 0
        while place < len(lines):
            number, begin = self._lines.get(lines[place], (-1, 0))
            length = self._length(lines, place, number, begin) if number >= 0 else 0
            if length >= self._least:
                source = self._texts[number][0].source.replace(";", ",").replace("=", " ")
                yield f"{place}-{place + length}={begin + 1} to {begin + length} of {source}"
                place += length
            else:
                place += 1

    def _length(self, lines: Sequence[str], place: int, number: int, begin: int) -> int:
        earlier = self._texts[number][1]
        length, most = 0, min(len(lines) - place, len(earlier) - begin)
        while length < most and lines[place + length] == earlier[begin + length]:
            length += 1
        return length


def _with_references(lines: Sequence[str], runs: str) -> Iterator[str]:
    done = 0
    for run in runs.split(";"):
        span, _, source = run.partition("=")
        begin, _, end = span.partition("-")
        yield from lines[done : int(begin)]
        yield f"{_MARK} as lines {source} above]"
        done = int(end)
    yield from lines[done:]


def format_results(settings: FormatSettings) -> Editing:
    """Return the layer.

    It writes results of tools in a shorter form that says the same.
    """
    return Editing(_Format(settings))


class _Format(Editor):
    name = "format"

    def __init__(self, settings: FormatSettings) -> None:
        self.settings = settings
        self.least_characters = settings.least * _CHARACTERS_PER_TOKEN

    def proposals(self, parts: Sequence[Part], request: Request, vectors: Vectors) -> list[Proposal]:
        """Propose each result of a tool that has a shorter form. What a user wrote is left alone: its space may be meant."""
        proposals = [self._proposal(part) for part in parts if part.kind == "result"]
        return [proposal for proposal in proposals if proposal.saved > 0]

    def apply(self, part: Part, recipe: str) -> str:
        """Return the text in the form that the recipe names."""
        return (comma_separated(part.text) if recipe == "csv" else "") or without_padding(part.text)

    def describe(self, parts: Sequence[Part]) -> str:
        """Return how many results were written shorter."""
        return f"{len(parts)} results of tools were written in a shorter form"

    def _proposal(self, part: Part) -> Proposal:
        recipe = "csv" if self.settings.csv and comma_separated(part.text) else "plain"
        return Proposal(part=part, recipe=recipe, saved=part.tokens - estimate_tokens(self.apply(part, recipe)))


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
    words_found = _WORD.findall(text)
    words = [word.lower()[:_STEM] for word in words_found]
    mixed = [word for word in words_found if not (word.islower() or word.istitle() or word.isupper())]
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
    return [1 / (60 + rank) + 1 / (60 + other) for rank, other in zip(by_rank(first), by_rank(second), strict=True)]


_PASSAGE = 800
"""About how many characters a passage has: a few sentences, or twenty lines of code."""
_MOST_QUESTION = 4_000
_MOST_EMBEDDED = 512
_LEFT_OUT = "[... passages left out that are least like the question ...]"


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
        texts = [passage for part in parts if _LEFT_OUT not in part.text for passage in passages_of(part.text)]
        return (question, *texts) if len(texts) <= _MOST_EMBEDDED else ()

    def proposals(self, parts: Sequence[Part], request: Request, vectors: Vectors) -> list[Proposal]:
        """Propose each long text. Nothing is proposed where no question was asked, or a text has nothing of it."""
        question = _question(request)
        proposals: list[Proposal] = []
        begin = 1
        for part in parts if question else ():
            if _LEFT_OUT in part.text:
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
                proposals.append(Proposal(part=part, recipe=recipe, saved=saved))
        return proposals

    def apply(self, part: Part, recipe: str) -> str:
        """Return the passages that the recipe names, with a mark in each place where some are left out."""
        passages = passages_of(part.text)
        written: list[str] = []
        done = 0
        for span in recipe.split(","):
            begin, _, end = span.partition("-")
            if int(begin) > done:
                written.append(f"{_LEFT_OUT}\n")
            written += passages[int(begin) : int(end)]
            done = int(end)
        if done < len(passages):
            written.append(_LEFT_OUT)
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
                room -= len(passages[place]) + len(_LEFT_OUT)
        return sorted(chosen)


def passages_of(text: str) -> list[str]:
    """Return a text in passages of a few hundred characters that end at a line's end where there is one. Together they are the text."""
    passages: list[str] = []
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + _PASSAGE)
        if end < len(text):
            line_end = text.rfind("\n", begin + _PASSAGE // 2, end)
            end = end if line_end < 0 else line_end + 1
        passages.append(text[begin:end])
        begin = end
    return passages


def _question(request: Request) -> str:
    place = last_prompt(request.messages)
    return request.messages[place].paragraphs[-_MOST_QUESTION:] if place >= 0 else ""


def _likeness(question: Sequence[float], passages: Sequence[Sequence[float]]) -> list[float]:
    return [sum(number * other for number, other in zip(question, passage, strict=True)) for passage in passages]
