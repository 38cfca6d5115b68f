"""Rank tools by how well they fit what the user says, with the vectors and the uses that are known of them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

import msgspec

from bardo.catalog.layer_rows import tool_choice_rows
from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import EffectFailed, Pause
from bardo.context.tool_choice.ranking import (
    COMPARED_AT_ONCE,
    ComparedTool,
    ToolQuery,
    ToolText,
    ToolVectors,
    Vector,
    indexed_words,
    scoring_steps,
    text_of,
    vectors_of,
    word_scores,
)
from bardo.context.tool_choice.session import BuildWordIndex, FindToolUses, FindToolVectors, FoundUses, StoreToolVectors
from bardo.values.request import Tool

MOST_COMPARED = 1_000
"""Tools of one request that are compared by vectors; those after them are compared by their words."""


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The places of tools, best first, and their scores by place.

    `tier` says what they were compared by: `onnx`, `provider`, `static` or `words`. `vector` is that of the text, made by the embedding of
    this `fingerprint`.
    """

    order: tuple[int, ...]
    scores: tuple[float, ...]
    tier: str = "words"
    vector: Vector = ()
    fingerprint: str = ""
    used: int = 0


RankingSteps = Generator[Any, Any, Ranking]


def ranked(tools: Sequence[Tool], query: str, tenant: str, *, vectors: bool = True, uses: bool = True) -> RankingSteps:
    """Yield the effects that a ranking needs, and return it. Where vectors cannot be had, the tools are compared by words."""
    texts = [text_of(tool) for tool in tools]
    if len(texts) > COMPARED_AT_ONCE:
        with suppress(EffectFailed):
            yield BuildWordIndex(indexed_words(texts))
    if not vectors or not query.strip():
        return _ranking(word_scores(texts, query))
    try:
        return (yield from _by_vectors(tools, texts, query, tenant, uses=uses))
    except EffectFailed:
        return _ranking(word_scores(texts, query))


def _by_vectors(
    tools: Sequence[Tool], texts: Sequence[ToolText], query: str, tenant: str, *, uses: bool
) -> RankingSteps:
    asked: TextVectors = yield Embed((query,), tool_choice_rows().stop_words)
    tool_vectors = yield from _vectors_of(texts[:MOST_COMPARED], asked.fingerprint)
    by_tool: FoundUses = {}
    if uses:
        by_tool = yield FindToolUses(tenant, tuple(tool.name for tool in tools), asked.fingerprint)
    [vector] = asked.vectors
    compared = [
        ComparedTool(text, vectors, by_tool.get(tool.name))
        for tool, text, vectors in zip_longest(tools, texts, tool_vectors)
    ]
    comparing = scoring_steps(ToolQuery(query, vector, asked.tier), compared)
    while True:
        try:
            next(comparing)
        except StopIteration as done:
            ranking = _ranking(done.value)
            break
        yield Pause()
    return msgspec.structs.replace(
        ranking,
        tier=asked.tier,
        vector=vector,
        fingerprint=asked.fingerprint,
        used=sum(tool.uses is not None for tool in compared),
    )


def _vectors_of(texts: Sequence[ToolText], fingerprint: str) -> Generator[Any, Any, list[ToolVectors]]:
    """Return the vectors of tools, computed for those that have none yet."""
    digests = [blake2b(msgspec.msgpack.encode((fingerprint, text.all)), digest_size=16).digest() for text in texts]
    stored: Mapping[bytes, ToolVectors] = yield FindToolVectors(tuple(digests))
    missing = [(digest, text) for digest, text in zip(digests, texts, strict=True) if digest not in stored]
    if not missing:
        return [stored[digest] for digest in digests]
    rows = tool_choice_rows()
    parts = [part for _, text in missing for part in text.all]
    embedded: TextVectors = yield Embed((*rows.general, *parts), rows.stop_words)
    if embedded.fingerprint != fingerprint:
        # Whoever made the vector of the text failed since.
        raise EffectFailed("the vectors of tools cannot be compared with that of the text")
    vectors = iter(embedded.vectors)
    general = [next(vectors) for _ in rows.general]
    made: dict[bytes, ToolVectors] = {}
    for digest, text in missing:
        made[digest] = vectors_of(text, [next(vectors) for _ in text.all], general, fingerprint)
        if len(made) % COMPARED_AT_ONCE == 0:
            yield Pause()
    yield StoreToolVectors(made)
    whole = {**stored, **made}
    return [whole[digest] for digest in digests]


def _ranking(made: Sequence[float]) -> Ranking:
    # Equal scores keep the client's order.
    return Ranking(order=tuple(sorted(range(len(made)), key=lambda place: (-made[place], place))), scores=tuple(made))
