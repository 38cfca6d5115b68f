"""The layer `format`: results of tools in a shorter form that says the same."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.context.steps.editing import Editing, Editor, Proposal, Vectors
from bardo.context.steps.plain_forms import comma_separated, without_padding
from bardo.context.steps.prompt_parts import Part
from bardo.context.steps.settings import FormatSettings
from bardo.values.request import Request
from bardo.values.usage import estimate_tokens

_CHARACTERS_PER_TOKEN = 4


def format_results(settings: FormatSettings) -> Editing:
    """Return the layer."""
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
