"""The layer `compress`: old, long texts keep their beginning and their end, and a conversation that is longer still is compacted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.context.layer import LayerFacts
from bardo.context.steps.compaction import compacted
from bardo.context.steps.editing import Editing, EditingSteps, Editor, Proposal, Vectors, recall_session
from bardo.context.steps.plain_forms import cut_middle, without_blobs, without_padding
from bardo.context.steps.prompt_parts import TEXTS, Part
from bardo.context.steps.settings import CompressSettings
from bardo.values.degradation import Degradation
from bardo.values.request import Request

_CHARACTERS_PER_TOKEN = 4
_CUT = "cut:"
_OUT = "out"
_MOST_READ = 6
"""How many times the length that stays is looked at: padding and encoded data are taken out of it before it is cut."""


class Compress:
    """The layer."""

    name = "compress"

    def __init__(self, settings: CompressSettings) -> None:
        self._settings = settings
        self._editing = Editing(_Compress(settings))

    def steps(self, request: Request, facts: LayerFacts) -> EditingSteps:
        """Compact the conversation where that is configured and due, and shorten its old texts."""
        if not self._settings.compact:
            return (yield from self._editing.steps(request, facts))
        before = facts.count_tokens(request, facts.targets[0] if facts.targets else None)
        kept = yield from recall_session(self.name, facts)
        done = yield from compacted(request, facts, self._settings, (kept.sent_tokens, kept.sent_at))
        passed = yield from self._editing.steps(done.request, facts)
        receipt = passed.receipt
        did = "; ".join(filter(None, (done.did, receipt.did)))
        found = passed.found if done.changed_from is None else done.changed_from
        again = msgspec.structs.replace(receipt, did=did, saw={**receipt.saw, **done.saw}, tokens_before=before)
        degraded = passed.degraded
        if done.did:
            degraded = (Degradation("messages", asked=f"{before} tokens", why=done.did), *degraded)
        return msgspec.structs.replace(passed, receipt=again, degraded=degraded, found=found)


class _Compress(Editor):
    name = "compress"

    def __init__(self, settings: CompressSettings) -> None:
        self.settings = settings
        self.least_characters = settings.longest * _CHARACTERS_PER_TOKEN + 1
        self.kinds = TEXTS | {"picture"} if settings.pictures else TEXTS

    def proposals(self, parts: Sequence[Part], request: Request, vectors: Vectors) -> list[Proposal]:
        """Propose each long text. The recipe holds the length, so that another setting does not change what was sent."""
        recipe = f"{_CUT}{self.settings.longest * _CHARACTERS_PER_TOKEN}"
        found = [
            Proposal(part=part, recipe=_OUT, saved=part.tokens - 10)
            if part.kind == "picture"
            else Proposal(part=part, recipe=recipe, saved=part.tokens - self.settings.longest)
            for part in parts
        ]
        return [one for one in found if one.saved > 0]

    def apply(self, part: Part, recipe: str) -> str:
        """Return a text without padding and encoded data, and of at most the length that the recipe names, beside its mark."""
        if recipe == _OUT:
            return "[a picture was left out here]"
        length = recipe.removeprefix(_CUT)
        if not length.isdecimal():
            return part.text
        # Room for the mark, so that what was shortened is not shortened again.
        longest = max(1, int(length) - 80)
        text = _ends(part.text, _MOST_READ * longest)
        return cut_middle(without_blobs(without_padding(text)), longest, gone=len(part.text) - len(text))

    def describe(self, parts: Sequence[Part]) -> str:
        """Return how many texts were shortened, and how many pictures left out."""
        pictures = sum(part.kind == "picture" for part in parts)
        texts = len(parts) - pictures
        clauses = [f"{texts} old texts were shortened to their beginning and end"] if texts else []
        return "; ".join([*clauses, f"{pictures} old pictures were left out"] if pictures else clauses)


def _ends(text: str, most: int) -> str:
    """Return the beginning and the end of a very long text: of the rest nothing would be left anyway."""
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-(most // 2) :]}"
