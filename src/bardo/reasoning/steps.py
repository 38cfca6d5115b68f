"""Cut a text of thinking into steps, and say of each what it does.

A step begins with every paragraph, and with every sentence that opens with a marker of another kind than the step it stands in. The
markers are rows of `catalog/data/reasoning_steps.toml`. Code between fences is never cut. The same text always gives the same steps, in
time that grows with its length. Nothing is measured, so `confidence` stays None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec
import tomli

from bardo.values.reasoning import ReasoningChain, ReasoningStep, ReasoningStepType
from bardo.values.response import Response

_PARAGRAPH = 2
"""So many line breaks begin a paragraph."""
_FENCES = ("```", "~~~")
# The whole stretch between two sentences or lines. Every repetition is bounded, or takes all there is and cannot fail after it.
_BREAK = re.compile(r"""\n\s*|[.!?…]["'”’)\]*_]{0,3}\s+|[。！？；][”’」』）]{0,3}\s*""")
# What may stand before the first word: list marks, numbers, headings, emphasis, quotes.
_ORNAMENT = r"""[-+*#>•·–—"'“‘「『(\[_ \t]{0,8}(?:\d{1,3}[.)、:][ \t]{0,3})?[*_"“]{0,3}"""


class Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The step of thinking that begins with a sentence with one of these words."""

    kind: ReasoningStepType
    opens: tuple[str, ...]


class MarkerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows of `reasoning_steps.toml`. `skipped` words may stand before a marker."""

    skipped: tuple[str, ...]
    marker: tuple[Marker, ...]


class SteppedChain(ReasoningChain, frozen=True, kw_only=True, dict=True):
    """A chain that finds its steps when they are first asked for."""

    @cached_property
    def steps(self) -> tuple[ReasoningStep, ...]:
        """The steps of `content`, covering it exactly once."""
        return segment_steps(self.content or "")


def segment_steps(text: str) -> tuple[ReasoningStep, ...]:
    """Return the steps of `text`, in order; joined, their contents are the text. An empty text has none."""
    steps = list(_steps(text))
    ends = [*(start for start, _ in steps), len(text)][1:]
    return tuple(
        ReasoningStep(step_type=kind, content=text[start:end], start=start, end=end)
        for (start, kind), end in zip(steps, ends, strict=True)
    )


def with_steps(response: Response) -> Response:
    """Return the response with chains, those of its alternatives too, that find their steps when asked."""
    return msgspec.structs.replace(
        response,
        reasoning=stepped(response.reasoning),
        alternatives=tuple(with_steps(other) for other in response.alternatives),
    )


def chain_fields(chain: ReasoningChain) -> dict[str, Any]:
    """Return everything a chain holds as plain values, its steps found."""
    return {**msgspec.to_builtins(chain), "steps": msgspec.to_builtins(list(stepped(chain).steps))}


def stepped(chain: ReasoningChain) -> ReasoningChain:
    """Return the chain as one that finds its steps when asked."""
    return SteppedChain(**{name: getattr(chain, name) for name in ReasoningChain.__struct_fields__})


def _steps(text: str) -> Iterator[tuple[int, ReasoningStepType]]:
    """Yield where each step begins and its kind."""
    markers = _markers()
    current = None
    for start, paragraph in _sentences(text):
        marked = markers.kind_at(text, start)
        kind = marked or ReasoningStepType.ANALYSIS
        if paragraph or marked not in (None, current):
            # White space at the beginning belongs to the first step.
            yield (start if current else 0), kind
            current = kind


def _sentences(text: str) -> Iterator[tuple[int, bool]]:
    """Yield where each sentence outside code begins, and whether a paragraph does."""
    if not text:
        return
    start = len(text) - len(text.lstrip())
    yield start, True
    fenced = text.startswith(_FENCES, start)
    for match in _BREAK.finditer(text, start):
        start = match.end()
        breaks = match[0].count("\n")
        fence = breaks > 0 and text.startswith(_FENCES, start)
        if not fenced and start < len(text):
            yield start, breaks >= _PARAGRAPH
        fenced = fenced is not fence


@cache
def _markers() -> _Markers:
    source = files("bardo.catalog").joinpath("data", "reasoning_steps.toml").read_text(encoding="utf-8")
    return _Markers(msgspec.convert(tomli.loads(source), MarkerTable))


class _Markers:
    """All markers as one pattern, longest first."""

    def __init__(self, table: MarkerTable) -> None:
        self._kinds = {words: row.kind for row in table.marker for words in row.opens}
        skipped = rf"(?:{_any_of(table.skipped)}[,.…，、！ \t]{{0,3}}){{0,2}}"
        self._pattern = re.compile(rf"{_ORNAMENT}{skipped}({_any_of(self._kinds)})", re.IGNORECASE)

    def kind_at(self, text: str, start: int) -> ReasoningStepType | None:
        match = self._pattern.match(text, start)
        return self._kinds[match[1].lower().replace("’", "'")] if match else None


def _any_of(phrases: Iterable[str]) -> str:
    longest_first = sorted(phrases, key=lambda words: (-len(words), words))
    return f"(?:{'|'.join(map(_spelled, longest_first))})"


def _spelled(words: str) -> str:
    """Return the pattern of a phrase: whole words, where its script has spaces between them."""
    pattern = re.escape(words).replace("'", "['’]")
    return pattern if ord(words[-1]) > 0x2E80 else rf"{pattern}(?!\w)"
