"""What users of other parsers rely on, and what they report as broken: each behaviour is a test here.

Where parsers disagree, the reading counts that loses no text and does not depend on chunks: whitespace stays, nested and stray
tags are text, text before an opener is answer, a single block is not opened again, the first end counts, and one echo of the
opener after a prefill is swallowed.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

import bardo
from bardo.reasoning import ParserResult, ReasoningParser, Splitter, find_format, formats, open_parser
from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.phases import STRIPPED
from bardo.reasoning.splitter import MALFORMED
from bardo.reasoning.starting import starting_state
from bardo.values.events import ContentChunk, Degraded, Event, Finish
from bardo.values.fold import fold
from support.splitting import cuts, notes, read

K3 = "<|close|>think<|sep|>"


class Case(NamedTuple):
    format: str
    text: str
    expected: str
    inside: bool | None = None


FACTS = {
    "01 without an end the rest is reasoning": Case("k2_horizon", "plan", "‹plan›"),
    "01 without an end the rest is reasoning, olmo3": Case("olmo3", "plan", "‹plan›", True),
    "02 prefilled, and at once over": Case("qwen3_thinking", "</think>answer", "‹›answer"),
    "03 an empty block leaves the answer alone": Case("qwen3", "<think>\n\n</think>\n\nanswer", "‹\n\n›\n\nanswer"),
    "04 nothing after the end": Case("qwen3", "<think>plan</think>", "‹plan›"),
    "05 an end without a beginning is text": Case("qwen3", "plan</think>answer", "plan</think>answer"),
    "06 a second end is text": Case("qwen3", "<think>a</think>b</think>c", "‹a›b</think>c"),
    "07 a nested beginning is text": Case("deepseek_r1", "a<think>b</think>c", "‹a<think>b›c"),
    "08 an echoed opener is swallowed once": Case("deepseek_r1", "<think><think>a</think>b", "‹<think>a›b"),
    "09 text before the opener is answer": Case("qwen3", "Sure. <think>a</think>b", "Sure. ‹a›b"),
    "10 a second block of a single format is text": Case("qwen3", "<think>a</think>b<think>c", "‹a›b<think>c"),
    "10 a second block of a multi format": Case("glm45", "<think>a</think>b<think>c", "‹a›b‹c›"),
    "10 a second block of mistral": Case("mistral", "[THINK]a[/THINK]b[THINK]c[/THINK]d", "‹a›b‹c›d"),
    "11 the first opener of a call ends the block": Case(
        "kimi_k2",
        "a<|tool_calls_section_begin|>b<|tool_calls_section_begin|></think>",
        "‹a›<|tool_calls_section_begin|>b<|tool_calls_section_begin|></think>",
        True,
    ),
    "12 elsewhere calls in a block are reasoning": Case("lfm25", "<think><tool_call>a</think>b", "‹<tool_call>a›b"),
    "12 elsewhere, ministral": Case("mistral", "[THINK]a[TOOL_CALLS]b[/THINK]c", "‹a[TOOL_CALLS]b›c"),
    "12 elsewhere, reka": Case("reka_edge", "<think><tool_call>a</think>b", "‹<tool_call>a›b"),
    "13 whitespace stays": Case("granite42", "<think> a \n</think>\n\n b \n", "‹ a \n›\n\n b \n"),
    "14 a tag that turns into text is released whole": Case("qwen3", "<think>a</answer>", "‹a</answer>›"),
    "15 a partial tag at the end is given back": Case("kimi_k3", "a<|close|>thi", "‹a<|close|>thi›", True),
    "15 a partial opener at the end is given back": Case("gemma4", "a<|chan", "a<|chan"),
    "16 near misses, case": Case("qwen3", "<THINK>a</THINK>", "<THINK>a</THINK>"),
    "16 near misses, inner spaces": Case("qwen3", "<think >a</ think>", "<think >a</ think>"),
    "16 near misses, a longer name": Case("qwen3", "<thinker>a</thinker>", "<thinker>a</thinker>"),
    "16 near misses, gemma's label": Case("gemma4", "<|channel>thousand<channel|>a", "‹thousand›a"),
    "17 analysis with a recipient is a call": Case(
        "gpt_oss",
        "<|channel|>analysis to=functions.f<|message|>{}<|call|>",
        "<|channel|>analysis to=functions.f<|message|>{}<|call|>",
    ),
    "17 several analysis messages": Case(
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>",
        "‹a›‹b›",
    ),
    "17 stray commentary headers": Case(
        "gpt_oss", "<|channel|>commentary<|channel|>analysis<|message|>a<|end|>", "‹a›"
    ),
    "18 turned off, and the model thinks anyway": Case("lfm25", "<think>a</think>b", "‹a›b", False),
    "18 turned off, answer only, is no reasoning": Case("nemotron_3", '{"a": 1}', '{"a": 1}', False),
    "22 characters of several bytes at the boundary": Case("kimi", "◁think▷🧠◁/think▷é◁", "‹🧠›é◁"),
    "23 one answer for gemma, streamed or not": Case(
        "gemma4", "<|channel>thought\na<channel|>b<|channel>thought\nc<channel|>d", "‹a›b‹c›d"
    ),
}


@pytest.mark.parametrize("case", FACTS.values(), ids=FACTS.keys())
def test_a_behaviour_others_pin(case: Case) -> None:
    row = find_format(case.format)
    assert {read(row, pieces, inside=case.inside) for pieces in cuts(case.text)} == {case.expected}


def test_19_a_partial_turn_is_continued_where_it_stands() -> None:
    row, header = find_format("qwen3"), "<|im_start|>assistant\n"
    assert starting_state(row, prompt=header + "<think>\nThe user")
    assert not starting_state(row, prompt=header + "<think>\nThe user</think>It")


def test_20_markers_in_earlier_turns_decide_nothing() -> None:
    earlier = "<|im_start|>assistant\n<think>a<|im_end|>\n<|im_start|>user\n<think><|im_end|>\n"
    assert not starting_state(find_format("qwen3"), prompt=earlier + "<|im_start|>assistant\n")


def test_21_reasoning_is_counted_without_its_markers_and_from_the_start_when_prefilled() -> None:
    opened = events("deepseek_r1", "<think>plan</think>answer")
    prefilled = events("deepseek_r1", "plan</think>answer")
    off = fold(through(InlineReasoning(find_format("deepseek_r1"), starts_inside=False), "answer"))
    assert fold(opened).reasoning.content == fold(prefilled).reasoning.content == "plan"
    assert fold(opened).reasoning.reasoning_tokens == fold(prefilled).reasoning.reasoning_tokens > 0
    assert off.reasoning.reasoning_tokens == 0


COMPLAINTS = {
    "a split closer leaks": Case("qwen3", "<think>a</think>b", "‹a›b"),
    "a failed match is not looked at again": Case("qwen3", "<think>a<</</think>b", "‹a<</›b"),
    "held text is lost at the end": Case("qwen3", "<think>a</thin", "‹a</thin›"),
    "a held prefix is dropped when it diverges": Case("qwen3", "a <thin air", "a <thin air"),
    "text before the opener goes elsewhere": Case("deepseek_v31", "Hi <think>a</think>b", "Hi ‹a›b"),
    "structured output lands in reasoning": Case("qwen3_thinking", '{"answer": 4}', '{"answer": 4}', False),
    "a call inside unclosed thinking is lost": Case(
        "glm47", "a<tool_call>f</tool_call>", "‹a›<tool_call>f</tool_call>", True
    ),
    "harmony, text without structure is lost": Case("gpt_oss", "Hello", "Hello"),
    "harmony, unterminated commentary vanishes": Case("gpt_oss", "<|channel|>commentary<|message|>Hello", "Hello"),
    "harmony, a cut inside an end moves the answer": Case(
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
        "‹a›b",
    ),
    "harmony, a malformed header strands the text": Case("gpt_oss", "<|channel|><|end|>a", "<|channel|><|end|>a"),
    "cohere, cuts lose the answer": Case("cohere_cmd4", "a<|END_THINKING|><|START_TEXT|>b<|END_TEXT|>", "‹a›b", True),
    "a literal closer is quoted in the answer": Case("qwen3", "<think>a</think>`</think>`", "‹a›`</think>`"),
    "a literal opener in an answer of JSON": Case(
        "deepseek_r1", 'a</think>{"tag": "<think>"}', '‹a›{"tag": "<think>"}'
    ),
    "granite's phrases, cut": Case("granite32", "Here is my thought process: a Here is my response: b", "‹ a › b"),
    "kimi_k3, a preamble": Case("kimi_k3", f"Hi <|open|>think<|sep|>a{K3}b", "Hi ‹a›b"),
    "a cut right after the first character": Case("deepseek_v4", "<think>a<", "‹a<›"),
    "whitespace is trimmed": Case("qwen3", "<think>\na\n</think>\n\nb\n", "‹\na\n›\n\nb\n"),
}


@pytest.mark.parametrize("case", COMPLAINTS.values(), ids=COMPLAINTS.keys())
def test_a_reported_defect_is_not_here(case: Case) -> None:
    row = find_format(case.format)
    assert {read(row, pieces, inside=case.inside) for pieces in cuts(case.text)} == {case.expected}


def test_turned_off_by_the_request_the_answer_is_answer() -> None:
    for name in ("qwen3", "glm47", "deepseek_v31", "nemotron_3", "qwen3_thinking", "granite42"):
        parser = open_parser(name, starts_inside=starting_state(find_format(name), toggles={"enable_thinking": False}))
        assert parser.detect_and_parse_reasoning('{"a": 1}') == ParserResult('{"a": 1}')


def test_one_chunk_may_cross_many_boundaries_and_keeps_their_order() -> None:
    segments = Splitter(find_format("glm45")).feed("a<think>b</think>c<think>d<tool_call>e")
    assert [(segment.reasoning, segment.text) for segment in segments] == [
        (False, "a"),
        (True, "b"),
        (False, "c"),
        (True, "d"),
        (False, "<tool_call>e"),
    ]


def test_a_header_that_cannot_be_read_is_told_to_the_caller() -> None:
    out = events("gpt_oss", "<|channel|>nonsense<|message|>a")
    assert [event.degradation.why for event in out if isinstance(event, Degraded)] == [MALFORMED]
    assert fold(out).text == "<|channel|>nonsense<|message|>a"


@pytest.mark.parametrize(("name", "text"), [("gpt_oss", "analysisWe"), ("gemma4", "thought\nWe")])
def test_special_tokens_that_the_server_stripped_are_told_to_the_caller(name: str, text: str) -> None:
    assert {tuple(notes(find_format(name), pieces)) for pieces in cuts(text)} == {(STRIPPED,)}
    assert [event.degradation.why for event in events(name, text) if isinstance(event, Degraded)] == [STRIPPED]
    parser = open_parser(name)
    assert parser.parse_reasoning_streaming_incremental(text) == ParserResult(text)
    assert parser.notes == (STRIPPED,)


def test_no_stop_string_counts_inside_a_thought() -> None:
    assert read(find_format("qwen3"), ["<think>Observation: <|im_end|>", "</think>b"]) == "‹Observation: <|im_end|>›b"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_both_names_of_the_field_are_read(field: str) -> None:
    message = {"role": "assistant", "content": "b", field: "a"}
    response = bardo.decode(
        b'{"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": '
        + str(message).replace("'", '"').encode()
        + b', "finish_reason": "stop"}]}',
        provider="vllm",
    )
    assert (response.reasoning.content, response.text) == ("a", "b")


@pytest.mark.parametrize("name", ["qwen3", "glm45", "gpt_oss", "muse", "think", "hy_v3"])
def test_no_state_grows_with_the_reply(name: str) -> None:
    row = find_format(name)
    splitter = Splitter(row)
    for _ in range(20_000):
        splitter.feed(" <a to=b ")
    assert len(splitter._held) + len(splitter._fence._line) < 2_000


def test_a_thousand_replies_of_one_model_that_are_read_at_once_stay_apart() -> None:
    texts = [f"<think>plan {number}</think>answer {number}" for number in range(1000)]
    parsers: list[ReasoningParser] = [open_parser("qwen3") for _ in texts]
    found = [("", "")] * len(texts)

    def add(number: int, result: ParserResult) -> None:
        reasoning, answer = found[number]
        found[number] = (reasoning + result.reasoning_text, answer + result.normal_text)

    for at in range(0, max(map(len, texts)), 5):
        for number, text in enumerate(texts):
            add(number, parsers[number].parse_reasoning_streaming_incremental(text[at : at + 5]))
    for number, parser in enumerate(parsers):
        add(number, parser.finish())
    assert found == [(f"plan {number}", f"answer {number}") for number in range(1000)]


def test_choices_of_one_reply_stay_apart() -> None:
    stage = InlineReasoning(find_format("gpt_oss"))
    pieces = ["<|channel|>ana", "lysis<|message|>plan<|e", "nd|>hi"]
    out = [made for piece in pieces for choice in (0, 1) for made in stage.feed(ContentChunk(0, piece, choice))]
    response = fold([*out, *stage.feed(Finish("stop")), *stage.feed(Finish("stop", choice=1))])
    assert response.text == "hi"
    assert [other.blocks for other in response.alternatives] == [response.blocks]


@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("data", [b"", b"\xff\xfe<think>\xe2\x82", b"<" * 50, "◁🧠".encode()[:-1]])
def test_no_text_is_refused(name: str, data: bytes) -> None:
    whole = open_parser(name).detect_and_parse_reasoning(data)
    parser = open_parser(name)
    parts = [parser.parse_reasoning_streaming_incremental(data[at : at + 1]) for at in range(len(data))]
    parts.append(parser.finish())
    assert "".join(part.normal_text for part in parts) == whole.normal_text
    assert "".join(part.reasoning_text for part in parts) == whole.reasoning_text


def through(stage: InlineReasoning, text: str) -> list[Event]:
    return [*stage.feed(ContentChunk(0, text)), *stage.feed(Finish("stop")), *stage.finish()]


def events(name: str, text: str) -> list[Event]:
    return through(InlineReasoning(find_format(name)), text)
