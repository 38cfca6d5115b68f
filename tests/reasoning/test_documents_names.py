"""The names of 004, `traits.rs` and `base.rs`, that programs call."""

from __future__ import annotations

from bardo.reasoning import ParserConfig, ParserResult, ReasoningParser


def test_004_a_result_is_made_of_both_texts_or_of_one() -> None:
    assert ParserResult.new("answer", "thought") == ParserResult(normal_text="answer", reasoning_text="thought")
    assert ParserResult.normal("answer") == ParserResult(normal_text="answer")
    assert ParserResult.reasoning("thought") == ParserResult(reasoning_text="thought")
    assert ParserResult.normal("").is_empty
    assert not ParserResult.reasoning("x").is_empty


def test_004_a_parser_under_another_type_reads_alike_and_apart() -> None:
    parser = ReasoningParser(ParserConfig(think_start_token="<a>", think_end_token="</a>"))
    parser.parse_reasoning_streaming_incremental("<a>half")
    named = parser.with_model_type("mymodel")
    assert (named.model_type, parser.model_type) == ("mymodel", "base")
    assert named.detect_and_parse_reasoning("<a>t</a>x") == ParserResult.new("x", "t")
    assert named.parse_reasoning_streaming_incremental("plain") == ParserResult.normal("plain")
    assert parser.parse_reasoning_streaming_incremental(" a</a>b") == ParserResult.new("b", " a")
