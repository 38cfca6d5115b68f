"""Comparing many tools takes milliseconds: other calls have their turn meanwhile, and what no text changes is computed once."""

from __future__ import annotations

import asyncio
from typing import Any

from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import Effect, EffectFailed, Pause
from bardo.context.tool_choice import ranking
from bardo.context.tool_choice.ranking import (
    COMPARED_AT_ONCE,
    ComparedTool,
    ToolQuery,
    ToolUses,
    score_tools,
    text_of,
    vectors_of,
)
from bardo.context.tool_choice.relevance import Ranking, ranked
from bardo.context.tool_choice.session import BuildWordIndex, FindToolUses, FindToolVectors, StoreToolVectors
from bardo.context.tool_choice.word_index import word_index
from bardo.services.pipeline.tool_memory import build_word_index
from bardo.values.request import Tool

MANY = tuple(Tool(name=f"tool_{number}", description=f"Do the thing of number {number}.") for number in range(200))


def embedded(texts: tuple[str, ...]) -> tuple[tuple[float, ...], ...]:
    return tuple((float(len(text) % 7 + 1), float(len(text) % 5)) for text in texts)


class Performer:
    """Performs the effects of a ranking, and notes them."""

    def __init__(self) -> None:
        self.seen: list[type[Effect]] = []

    def perform(self, effect: Effect) -> Any:
        self.seen.append(type(effect))
        match effect:
            case Embed(texts=texts):
                return TextVectors(vectors=embedded(texts), fingerprint="f", tier="static")
            case FindToolVectors() | FindToolUses():
                return {}
            case Pause() | StoreToolVectors():
                return None
        raise EffectFailed

    def ranking(self, tools: tuple[Tool, ...]) -> Ranking:
        steps = ranked(tools, "thing number 7", "t")
        try:
            effect = next(steps)
            while True:
                try:
                    result = self.perform(effect)
                except EffectFailed as failed:
                    effect = steps.throw(failed)
                else:
                    effect = steps.send(result)
        except StopIteration as done:
            found: Ranking = done.value
            return found


def test_others_have_their_turn_while_many_tools_are_compared() -> None:
    performer = Performer()
    assert performer.ranking(MANY).order[0] == 7
    groups = len(MANY) // COMPARED_AT_ONCE
    assert performer.seen.count(Pause) >= 2 * groups, "vectors are made, and then compared"
    assert BuildWordIndex in performer.seen


def test_tools_whose_vectors_come_of_another_embedding_than_the_texts_are_compared_by_words() -> None:
    class Changing(Performer):
        def perform(self, effect: Effect) -> Any:
            made = super().perform(effect)
            # Whoever made the vector of the text failed since, and another one makes those of the tools.
            if isinstance(effect, Embed) and len(effect.texts) > 1:
                return TextVectors(vectors=tuple((*one, 1.0) for one in made.vectors), fingerprint="g", tier="static")
            return made

    performer = Changing()
    found = performer.ranking(MANY[:20])
    assert (found.tier, found.order[0]) == ("words", 7)
    assert StoreToolVectors not in performer.seen


def test_few_tools_are_compared_at_once() -> None:
    performer = Performer()
    performer.ranking(MANY[:20])
    assert Pause not in performer.seen
    assert BuildWordIndex not in performer.seen


def test_the_index_of_words_is_built_beside_the_event_loop() -> None:
    tools = tuple((f"only_here_{number}", "x") for number in range(40))
    asyncio.run(build_word_index(BuildWordIndex(tools)))
    before = word_index.cache_info().hits
    word_index(tools)
    assert word_index.cache_info().hits == before + 1


def test_the_centre_of_a_tools_uses_is_computed_once_for_all_texts() -> None:
    texts = [text_of(tool) for tool in MANY[:3]]
    tools = [ComparedTool(text, vectors_of(text, embedded(text.all), (), "f")) for text in texts]
    tools[1] = tools[1]._replace(uses=ToolUses((0.5, 0.5), 4))
    query = ToolQuery("a", (1.0, 0.0), "static")
    first = score_tools(query, tools)
    computed = ranking._centre_square.cache_info().misses
    assert score_tools(query, tools) == first
    score_tools(ToolQuery("b", (0.0, 1.0), "static"), tools)
    assert ranking._centre_square.cache_info().misses == computed
