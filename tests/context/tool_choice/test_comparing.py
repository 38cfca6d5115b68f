"""Tools are compared by words, vectors and uses, in linear time, and by what is left where something is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from bardo.catalog.layer_rows import tool_choice_rows
from bardo.context.tool_choice.ranking import (
    ComparedTool,
    ToolQuery,
    ToolUses,
    score_tools,
    text_of,
    vectors_of,
    word_scores,
)
from bardo.context.tool_choice.word_index import letter_runs, named_in, sentences, split_identifier, stems
from bardo.embedding.static_embedding import keyword_embedding, wide_embedding
from bardo.services.pipeline.tool_memory import first_use, with_use
from bardo.values.request import Tool
from support.growth import check_growth


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getWeather_v2", "get Weather v2"),
        ("HTTPServer", "HTTP Server"),
        ("mcp__files__read-all", "mcp files read all"),
        ("PDF&URLTool", "PDF URL Tool"),
        ("weather", "weather"),
        ("__", ""),
    ],
)
def test_identifiers_are_split(name: str, words: str) -> None:
    assert split_identifier(name) == words


def test_words_are_compared_without_their_endings() -> None:
    assert stems("Cooking recipes for the parties") == stems("cook recipe party")


def test_one_sentence_is_not_compared_twice() -> None:
    assert sentences("Finds the cheapest flight.") == []
    assert sentences("Finds the cheapest flight. Books it at once.") == [
        "Finds the cheapest flight.",
        "Books it at once.",
    ]


TEXTS = [
    text_of(Tool(name=name, description=said))
    for name, said in (
        ("sky_report", "Forecast of rain, wind and temperature."),
        ("ledger", "Bookkeeping of invoices and payments."),
        ("strology", "Povides strology services."),
    )
]


def test_misspelt_words_are_found_by_their_letters() -> None:
    assert max(zip(word_scores(TEXTS, "an astrology reading"), TEXTS, strict=True))[1].name == "strology"


def compared(embed: Callable[[str], Sequence[float]], uses: dict[int, ToolUses] | None = None) -> list[ComparedTool]:
    return [
        ComparedTool(text, vectors_of(text, [embed(part) for part in text.all], [], "f"), (uses or {}).get(place))
        for place, text in enumerate(TEXTS)
    ]


def test_vectors_find_what_words_do_not_and_uses_what_vectors_do_not() -> None:
    query = "Shall I take an umbrella?"
    embed = wide_embedding().embed
    asked = ToolQuery(query, embed(query), "static")
    assert word_scores(TEXTS, query) == [0.0] * 3
    cold = score_tools(asked, compared(embed))
    assert cold.index(max(cold)) == 0
    used = score_tools(asked, compared(embed, {1: ToolUses(asked.vector, 20)}))
    assert used.index(max(used)) == 1


def test_a_tool_of_two_purposes_is_found_by_each_of_them() -> None:
    embed = keyword_embedding(tool_choice_rows().stop_words).embed
    said = ["rain in Bergen", "pay the landlord", "a tide table for Bergen harbour"]
    uses = first_use(embed(said[0]))
    for text in said[1:] * 4:
        uses = with_use(uses, embed(text))
    only_mean = ToolUses(uses.mean, uses.count)
    asked = ToolQuery("rain tomorrow", embed("rain tomorrow"), "static")
    margins = []
    for known in (only_mean, uses):
        scores = score_tools(asked, compared(embed, {2: known}))
        margins.append(scores[2] - scores[1])
    assert margins[1] > margins[0]


def test_one_use_of_another_tool_does_not_outweigh_what_a_tool_says_of_itself() -> None:
    embed = keyword_embedding(tool_choice_rows().stop_words).embed
    known = compared(embed, {1: ToolUses(embed("send the bill to our customer"), 1)})
    made = score_tools(ToolQuery("Will it rain?", embed("Will it rain?"), "static"), known)
    assert made.index(max(made)) == 0
    again = score_tools(ToolQuery("bill a customer", embed("bill a customer"), "static"), known)
    assert again.index(max(again)) == 1


def test_a_tool_without_vectors_is_compared_by_its_words() -> None:
    query = "invoices and payments"
    embed = wide_embedding().embed
    known = compared(embed)
    known[1] = ComparedTool(TEXTS[1])
    made = score_tools(ToolQuery(query, embed(query), "onnx"), known)
    assert len(made) == 3
    assert made[1] == word_scores(TEXTS, query)[1]


def test_no_tools_and_no_text_are_compared_too() -> None:
    assert word_scores([], "hello") == []
    assert word_scores(TEXTS, "") == [0.0] * 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "work", [stems, letter_runs, sentences, split_identifier, lambda text: named_in(text, ["a_b"])]
)
@pytest.mark.parametrize("piece", ["word ", "aB", "x", ". ", "_"])
def test_time_is_linear_in_the_text(work: object, piece: str) -> None:
    assert callable(work)
    check_growth(work, piece * 20_000, piece * 80_000, below=12)
