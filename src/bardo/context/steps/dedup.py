"""The layers `dedup` and `format`: repeated texts become references, and results of tools get a shorter form that says the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.context.steps.editing import Editing, Editor, Proposal, Vectors, comma_separated, without_padding
from bardo.context.steps.prompt_parts import Part
from bardo.context.steps.settings import DedupSettings, FormatSettings
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
        found: list[Proposal] = []
        for part in parts:
            if _MARK in part.text:
                continue
            recipe = seen.recipe(part)
            saved = part.tokens - estimate_tokens(self.apply(part, recipe)) if recipe else 0
            if saved > 0:
                found.append(Proposal(part=part, recipe=recipe, saved=saved))
            else:
                seen.add(part)
        return found

    def apply(self, part: Part, recipe: str) -> str:
        """Return the reference, or the text with a reference in place of each run that the recipe names."""
        if recipe.startswith(_WHOLE):
            return f"{_MARK} text as in {recipe.removeprefix(_WHOLE)} above]"
        lines = part.text.split("\n")
        return "\n".join(_with_references(lines, recipe.removeprefix(_LINES)))

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
        found = [self._proposal(part) for part in parts if part.kind == "result"]
        return [one for one in found if one.saved > 0]

    def apply(self, part: Part, recipe: str) -> str:
        """Return the text in the form that the recipe names."""
        table = comma_separated(part.text) if recipe == "csv" else ""
        return table or without_padding(part.text)

    def describe(self, parts: Sequence[Part]) -> str:
        """Return how many results were written shorter."""
        return f"{len(parts)} results of tools were written in a shorter form"

    def _proposal(self, part: Part) -> Proposal:
        recipe = "csv" if self.settings.csv and comma_separated(part.text) else "plain"
        return Proposal(part=part, recipe=recipe, saved=part.tokens - estimate_tokens(self.apply(part, recipe)))
