"""Parsers are opened by format or model; registered ones come first, and no two replies share state."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

import pytest

from bardo.reasoning import (
    ParserConfig,
    ParserResult,
    ReasoningFormat,
    ReasoningParser,
    ReasoningParserFactory,
    UnknownFormat,
    builtin_formats,
    factory,
    find_format,
    formats,
    open_parser,
)

mine = partial(ReasoningParser, ParserConfig("<m>", "</m>"), model_type="mine")
yours = partial(ReasoningParser, ParserConfig("<y>", "</y>"), model_type="yours")


def test_a_parser_is_opened_by_format_or_by_model() -> None:
    assert open_parser(format="qwen3").model_type == "qwen3"
    assert open_parser(model="deepseek-ai/DeepSeek-R1").model_type == "deepseek_r1"
    assert open_parser(format="kimi", model="deepseek-r1").model_type == "kimi"
    assert open_parser(model="gpt-4o").model_type == "passthrough"
    assert open_parser().model_type == "think"
    assert open_parser(ReasoningFormat(name="x", start="[", end="]")).model_type == "x"


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(UnknownFormat):
        open_parser(format="unheard of")


def test_an_unknown_model_passes_through() -> None:
    for parser in (ReasoningParserFactory().create("gpt-4o"), ReasoningParserFactory().get_pooled("gpt-4o")):
        assert parser.detect_and_parse_reasoning("<think>a</think>b") == ParserResult("<think>a</think>b")


def test_registered_patterns_come_first_and_the_first_that_fits_counts() -> None:
    parsers = ReasoningParserFactory()
    parsers.register_parser("Mine", mine)
    parsers.register_parser("yours", yours)
    parsers.register_pattern("QWEN3-*-lab", "mine")
    parsers.register_pattern("lab", "yours")
    parsers.register_pattern("gpt", "deepseek-r1")
    named = {model: parsers.create(model).model_type for model in ("qwen3-4b-LAB", "a/Lab", "gpt-4o", "qwen3-4b")}
    assert named == {"qwen3-4b-LAB": "mine", "a/Lab": "yours", "gpt-4o": "deepseek_r1", "qwen3-4b": "qwen3"}


def test_a_registered_parser_takes_the_place_of_a_built_in_one() -> None:
    parsers = ReasoningParserFactory()
    assert parsers.get_pooled("qwen3-4b").model_type == "qwen3"
    parsers.register_parser("qwen3", mine)
    assert parsers.get_pooled("qwen3-4b").model_type == "mine"
    assert ReasoningParserFactory().create("qwen3-4b").model_type == "qwen3"


def test_a_format_is_registered_by_its_row() -> None:
    parsers = ReasoningParserFactory()
    parsers.register_format(ReasoningFormat(name="lab", start="[[", end="]]", patterns=("lab-",)))
    assert parsers.create("acme/lab-1").detect_and_parse_reasoning("[[a]]b") == ParserResult("b", "a")


def test_a_pattern_needs_a_parser() -> None:
    parsers = ReasoningParserFactory()
    parsers.register_parser("lab_one", mine)
    with pytest.raises(UnknownFormat) as caught:
        parsers.register_pattern("lab", "lab_two")
    assert "lab_one" in caught.value.near


def test_a_pattern_registered_later_changes_a_pooled_model() -> None:
    parsers = ReasoningParserFactory()
    parsers.get_pooled("gpt-4o")
    parsers.register_pattern("gpt", "qwen3")
    assert parsers.get_pooled("gpt-4o").model_type == "qwen3"


def test_clearing_the_pool_leaves_replies_alone() -> None:
    parsers = ReasoningParserFactory()
    parser = parsers.get_pooled("qwen3")
    parser.parse_reasoning_streaming_incremental("<think>a")
    parsers.clear_pool()
    assert parser.parse_reasoning_streaming_incremental("b") == ParserResult("", "b")
    assert parsers.get_pooled("qwen3").model_type == "qwen3"


def test_the_pool_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "POOL_LIMIT", 3)
    parsers = ReasoningParserFactory()
    for model in ("a", "b", "qwen3", "c", "d"):
        parsers.get_pooled(model)
    assert list(parsers._pool) == ["qwen3", "c", "d"]


def test_a_thousand_interleaved_replies_stay_separate() -> None:
    parsers = ReasoningParserFactory()
    streams = [parsers.get_pooled("qwen3-32b") for _ in range(1200)]
    texts = [f"<think>plan {number}</think>answer {number}" for number in range(1200)]
    results = [["", ""] for _ in streams]
    for at in range(max(map(len, texts))):
        for parser, text, result in zip(streams, texts, results, strict=True):
            step = parser.parse_reasoning_streaming_incremental(text[at : at + 1])
            result[0] += step.normal_text
            result[1] += step.reasoning_text
    assert all(parser.finish().is_empty for parser in streams)
    assert results == [[f"answer {number}", f"plan {number}"] for number in range(1200)]


def test_many_threads_may_use_one_factory() -> None:
    parsers = ReasoningParserFactory()

    def read(number: int) -> ParserResult:
        if number % 50 == 0:
            parsers.register_pattern(f"lab-{number}-", "kimi")
            parsers.clear_pool()
        parser = parsers.get_pooled(f"qwen3-{number % 7}b")
        parts = iter(f"<think>a{number}</think>b{number}")
        for part in iter(lambda: "".join(islice(parts, 20)), ""):
            parser.parse_reasoning_streaming_incremental(part)
        return parser.detect_and_parse_reasoning(f"<think>a{number}</think>b{number}")

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(read, range(1000)))
    assert results == [ParserResult(f"b{number}", f"a{number}") for number in range(1000)]


@pytest.mark.parametrize(
    ("said", "reasoning"),
    [
        ({}, ""),
        ({"starts_inside": True}, "hm"),
        ({"prompt": "<｜Assistant｜><think>"}, "hm"),
        ({"prompt": "<｜Assistant｜></think>"}, ""),
        ({"toggles": {"thinking": True}}, "hm"),
        ({"starts_inside": False, "prompt": "<｜Assistant｜><think>"}, ""),
    ],
    ids=["nothing", "caller", "open prompt", "closed prompt", "toggle", "caller before prompt"],
)
def test_a_parser_is_told_where_its_reply_begins(said: dict[str, Any], reasoning: str) -> None:
    parsers = ReasoningParserFactory()
    model = "deepseek-ai/DeepSeek-V3.1"
    made = [parsers.create(model, **said), parsers.get_pooled(model, **said), open_parser(model=model, **said)]
    assert [parser.detect_and_parse_reasoning("hm").reasoning_text for parser in made] == [reasoning] * 3
    # What one reply was told is not told to the next.
    assert parsers.get_pooled(model).detect_and_parse_reasoning("hm").reasoning_text == ""


def test_a_factory_knows_the_formats_it_is_given() -> None:
    row = ReasoningFormat(name="lab", start="[[", end="]]", patterns=("lab-",))
    known = builtin_formats().with_rows([row])
    assert ReasoningParserFactory(known).create("lab-1").model_type == "lab"
    assert open_parser(format="LAB", formats=known).model_type == "lab"
    assert ReasoningParserFactory().create("lab-1").model_type == "passthrough"


def test_the_pool_holds_formats_and_no_parser() -> None:
    parsers = ReasoningParserFactory()
    parsers.get_pooled("qwen3-4b").parse_reasoning_streaming_incremental("<think>a")
    assert list(parsers._pool.values()) == [find_format("qwen3")]


def test_parsers_may_be_registered_while_others_are_opened() -> None:
    parsers = ReasoningParserFactory()

    def work(number: int) -> str:
        row = ReasoningFormat(name=f"lab_{number}", start="[[", end="]]", patterns=(f"lab-{number}-",))
        parsers.register_format(row)
        return parsers.get_pooled(f"lab-{number}-x").model_type

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(work, range(200))) == [f"lab_{number}" for number in range(200)]
    assert len(parsers.formats.rows) == len(formats()) + 200
