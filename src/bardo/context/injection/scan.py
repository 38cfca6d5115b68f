"""How certain it is that a piece of text holds instructions, by all that is known of it: its words, what is hidden in it, its sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, TypeVar

import msgspec

from bardo.catalog.injection_rows import OverrideRow, injection_rows
from bardo.context.embed import Embed, TextVectors
from bardo.context.injection.hidden import find_hidden
from bardo.context.injection.languages import foreign_signs
from bardo.context.injection.probe import ProbeWeights, Tier, certainty, weights_for
from bardo.context.injection.provenance import Span
from bardo.context.injection.sentences import LONGEST, sentences_of
from bardo.context.layer import Effect, EffectFailed, Pause

T = TypeVar("T")
Steps = Generator[Effect, Any, T]
"""Work that yields effects and returns a value."""
WeightsFor = Callable[[str], ProbeWeights]
"""The weights of the probe for the fingerprint of an embedding: those for words alone where there are none for it."""
LONGEST_SPAN = 100_000
"""Characters of one piece of text that are looked at: of a longer one its beginning and its end."""
_SIGNS = {"template_tokens": 1.0, "tag_letters": 0.9, "invisible_letters": 0.4, "direction_override": 0.3}
_HIDDEN_INSTRUCTION = 0.4
"""What it adds that an instruction is hidden."""
_NEAR = 4.0
"""A sentence is embedded where its words alone are at most so far below the boundary: few are, and a vector moves it no further."""
_MOST_EMBEDDED = 64
_ENOUGH, _MOST_WEIGHT = 0.5, 1.9
"""A weight of 1 makes it as certain as the boundary of the probe."""
_UNTYPED = frozenset({"tag_letters"})
"""Signs that count in a user's own words too: nobody types letters that have no glyph."""
_BEFORE = 24
"""Characters before a match in which what takes it back is looked for."""
_PART, _OVERLAP, _SENTENCES = 16_384, 400, 200
"""Characters and sentences that are looked at before other calls have their turn; an override is shorter than the overlap."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one piece of text: how certain it is from 0 to 1, by which rules, and by which tier of the probe.

    `sentences` are those above the boundary: they are for the layer alone, and go into no receipt.
    """

    span: Span
    certainty: float
    rules: tuple[str, ...] = ()
    tier: Tier = "words"
    sentences: tuple[str, ...] = ()


def scan(span: Span, weights: WeightsFor = weights_for) -> Steps[Finding]:
    """Return what a piece of text holds. Vectors are asked for of sentences in doubt; other calls have their turn."""
    hidden = find_hidden(_bounded(span.text))
    overrides = yield from _overrides(hidden.visible, trusted=span.trusted)
    rules = [f"hidden:{sign}" for sign in hidden.rules] + list(overrides)
    weight = sum(overrides.values()) + sum(
        [_SIGNS[sign] for sign in hidden.rules if not span.trusted or sign in _UNTYPED]
    )
    tier: Tier = "words"
    sentences: list[str] = []
    probed = 0.0
    if not span.trusted:
        probed, tier, sentences = yield from _probed(sentences_of(hidden.visible), weights)
        for piece in hidden.pieces:
            inner, instructions = yield from _hidden_instruction(piece.text, weights)
            if inner:
                rules.append(f"hidden:{piece.rule}")
                weight += inner + _HIDDEN_INSTRUCTION
                sentences += instructions
    if probed >= _ENOUGH:
        rules.append("probe")
    return Finding(
        span=span,
        certainty=1 - (1 - _ENOUGH * min(_MOST_WEIGHT, weight)) * (1 - probed),
        rules=tuple(dict.fromkeys(rules)),
        tier=tier,
        sentences=tuple(sentences),
    )


def _hidden_instruction(text: str, weights: WeightsFor) -> Steps[tuple[float, list[str]]]:
    """Return how much it weighs that a hidden text asks for something, and the sentences that do; 0 where none does."""
    probed, _, instructions = yield from _probed(sentences_of(text) or [text[:LONGEST]], weights)
    weight = sum(find_overrides(text, trusted=False).values())
    return (max(probed, weight), instructions or [text[:LONGEST]]) if probed >= _ENOUGH or weight else (0.0, [])


def _overrides(text: str, *, trusted: bool) -> Steps[dict[str, float]]:
    """Return what a text attempts, looked for in one part of it after the other."""
    found: dict[str, float] = {}
    for begin in range(0, len(text) or 1, _PART):
        if begin:
            yield Pause()
        found |= find_overrides(text[max(0, begin - _OVERLAP) : begin + _PART], trusted=trusted)
    return found


def find_overrides(text: str, *, trusted: bool) -> dict[str, float]:
    """Return the names and weights of what a text attempts, of what counts where it comes from."""
    flat = " ".join(text.split())
    found = {
        row.name: row.weight
        for row, pattern, unless in _patterns()
        if (row.trusted or not trusted) and _matches(flat, pattern, unless)
    }
    return found | foreign_signs(flat, trusted=trusted)


def _matches(flat: str, pattern: re.Pattern[str], unless: re.Pattern[str] | None) -> bool:
    if unless is None:
        return pattern.search(flat) is not None
    return any(
        unless.search(flat[max(0, found.start() - _BEFORE) : found.start()]) is None for found in pattern.finditer(flat)
    )


@cache
def _patterns() -> tuple[tuple[OverrideRow, re.Pattern[str], re.Pattern[str] | None], ...]:
    return tuple(
        (
            row,
            re.compile(row.pattern, re.IGNORECASE),
            re.compile(row.unless_after, re.IGNORECASE) if row.unless_after else None,
        )
        for row in injection_rows().overrides
    )


def _probed(sentences: list[str], weights: WeightsFor) -> Steps[tuple[float, Tier, list[str]]]:
    """Return how certain it is that one of the sentences asks for something, by which tier, and which do."""
    words = weights("")
    values: list[float] = []
    for begin in range(0, len(sentences), _SENTENCES):
        if begin:
            yield Pause()
        values += [words.value(one) for one in sentences[begin : begin + _SENTENCES]]
    near = sorted((place for place, value in enumerate(values) if value > -_NEAR), key=lambda place: -values[place])
    tier: Tier = "words"
    if near:
        chosen = near[:_MOST_EMBEDDED]
        made = yield from _embedded([sentences[place] for place in chosen])
        found = None if made is None else weights(made.fingerprint)
        if made is not None and found is not None and found.fingerprint:
            tier = made.tier
            for place, vector in zip(chosen, made.vectors, strict=True):
                values[place] = found.value(sentences[place], vector)
    return certainty(values), tier, [one for one, value in zip(sentences, values, strict=True) if value > 0]


def _embedded(texts: list[str]) -> Steps[TextVectors | None]:
    """Return the vectors of texts; None where there is no embedding."""
    try:
        made: TextVectors = yield Embed(tuple(texts))
    except EffectFailed:
        return None
    return made


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_SPAN:
        return text
    half = LONGEST_SPAN // 2
    return f"{text[:half]}\n{text[-half:]}"
