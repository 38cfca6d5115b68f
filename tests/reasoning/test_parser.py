"""The parser gives reasoning and answer side by side, from text or bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import ParserConfig, ParserResult, ReasoningParser, open_parser

pytestmark = pytest.mark.each_python

REPLY = "<think>plän 🧠</think>\n\nanswer ◁ é"
READ = ParserResult("\n\nanswer ◁ é", "plän 🧠")


def stream(parser: ReasoningParser, chunks: list[str] | list[bytes]) -> ParserResult:
    results = [*map(parser.parse_reasoning_streaming_incremental, chunks), parser.finish()]
    return ParserResult(
        "".join(result.normal_text for result in results), "".join(result.reasoning_text for result in results)
    )


def whole_block_parser(size: int) -> ReasoningParser:
    return ReasoningParser(ParserConfig(stream_reasoning=False, max_buffer_size=size))


def test_the_defaults_are_think_tags_that_the_reply_opens() -> None:
    assert ParserConfig() == ParserConfig("<think>", "</think>", True, 65536, False)
    assert ReasoningParser().detect_and_parse_reasoning(REPLY) == READ


def test_tags_and_beginning_come_from_the_configuration() -> None:
    parser = ReasoningParser(ParserConfig("<r>", "</r>", initial_in_reasoning=True), model_type="mine")
    assert parser.detect_and_parse_reasoning("a</r>b<r>c") == ParserResult("b<r>c", "a")
    assert parser.model_type == "mine"


def test_what_the_caller_knows_of_the_prompt_overrules_the_format() -> None:
    assert open_parser("deepseek_r1", starts_inside=False).detect_and_parse_reasoning("a").normal_text == "a"
    assert open_parser("qwen3", starts_inside=True).detect_and_parse_reasoning("a").reasoning_text == "a"


def test_bytes_may_be_cut_anywhere() -> None:
    data = REPLY.encode()
    for at in range(len(data) + 1):
        assert stream(open_parser("qwen3"), [data[:at], data[at:]]) == READ
    assert stream(open_parser("qwen3"), [bytes([byte]) for byte in data]) == READ


def test_a_delimiter_of_long_code_points_may_be_cut_inside_them() -> None:
    data = "◁think▷a◁/think▷b◁".encode()
    assert stream(open_parser("kimi"), [bytes([byte]) for byte in data]) == ParserResult("b◁", "a")


def test_invalid_bytes_are_replaced_and_reported_for_the_reply() -> None:
    parser = open_parser("qwen3")
    assert stream(parser, [b"<think>a\xff", b"\xff</think>b\xe2\x82"]) == ParserResult("b\ufffd", "a\ufffd\ufffd")
    assert parser.replaced
    parser.reset()
    assert not parser.replaced


def test_text_after_half_a_code_point_ends_it() -> None:
    parser = open_parser("passthrough")
    assert parser.parse_reasoning_streaming_incremental(b"a\xe2").normal_text == "a"
    assert parser.parse_reasoning_streaming_incremental("b").normal_text == "\ufffdb"
    assert parser.replaced


def test_a_chunk_that_decides_nothing_gives_nothing() -> None:
    parser = open_parser("qwen3")
    assert parser.parse_reasoning_streaming_incremental("<thi").is_empty
    assert parser.parse_reasoning_streaming_incremental("").is_empty
    assert parser.parse_reasoning_streaming_incremental("s>") == ParserResult("<this>")
    assert parser.finish().is_empty


def test_finish_gives_back_what_was_held() -> None:
    parser = open_parser("qwen3")
    assert parser.parse_reasoning_streaming_incremental("<think>a</th") == ParserResult("", "a")
    assert parser.finish() == ParserResult("", "</th")
    assert parser.finish().is_empty


def test_a_reset_parser_reads_the_next_reply() -> None:
    parser = open_parser("qwen3")
    parser.parse_reasoning_streaming_incremental(b"<think>a</thi\xe2")
    parser.reset()
    assert stream(parser, [REPLY]) == READ


def test_reading_a_whole_reply_leaves_the_stream_alone() -> None:
    parser = whole_block_parser(100)
    parser.parse_reasoning_streaming_incremental("<think>a")
    assert parser.detect_and_parse_reasoning(REPLY) == READ
    assert parser.parse_reasoning_streaming_incremental("b</think>c") == ParserResult("c", "ab")


def test_reasoning_may_be_given_in_one_piece_when_it_ends() -> None:
    parser = whole_block_parser(100)
    assert parser.parse_reasoning_streaming_incremental("x<think>one") == ParserResult("x")
    assert parser.parse_reasoning_streaming_incremental(" two").is_empty
    assert parser.parse_reasoning_streaming_incremental(" three</think>answer") == ParserResult(
        "answer", "one two three"
    )


def test_reasoning_that_never_ends_is_given_at_the_finish() -> None:
    parser = whole_block_parser(100)
    assert parser.parse_reasoning_streaming_incremental("<think>one</thi").is_empty
    assert parser.finish() == ParserResult("", "one</thi")


def test_a_full_buffer_gives_what_is_certain() -> None:
    parser = whole_block_parser(4)
    assert parser.parse_reasoning_streaming_incremental("<think>one").is_empty
    assert parser.parse_reasoning_streaming_incremental("two</") == ParserResult("", "onetwo")
    assert parser.parse_reasoning_streaming_incremental("thi").is_empty
    assert parser.parse_reasoning_streaming_incremental("nk>x") == ParserResult("x")


@pytest.mark.parametrize("stream_reasoning", [True, False])
@given(
    text=st.lists(st.sampled_from(["<think>", "</think>", "<", "abc", "\n", "🧠"])).map("".join),
    size=st.integers(0, 12),
)
def test_neither_the_buffer_nor_its_size_loses_text(text: str, size: int, stream_reasoning: bool) -> None:
    config = ParserConfig(stream_reasoning=stream_reasoning, max_buffer_size=size)
    expected = ReasoningParser().detect_and_parse_reasoning(text)
    assert stream(ReasoningParser(config), list(text)) == expected
    assert stream(ReasoningParser(config), [text.encode()]) == expected


def test_a_parser_of_ones_own_needs_no_arguments() -> None:
    class Mine(ReasoningParser):
        def __init__(self) -> None:
            super().__init__(ParserConfig("<reasoning>", "</reasoning>"), model_type="mine")

    assert Mine().detect_and_parse_reasoning("<reasoning>a</reasoning>b") == ParserResult("b", "a")
