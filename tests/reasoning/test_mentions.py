"""A tag that a model only writes about does nothing; one that stands where a tag does something is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bardo.reasoning import find_format, lacks_opener
from bardo.reasoning.machines import splitter_for
from bardo.reasoning.undecided import UndecidedSplitter
from bardo.surfaces.library.decoding import parse

CALL = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'

IN_THOUGHT = {
    "a call": ("qwen35", f"hm{CALL}", "hm", CALL),
    "a call after a space": ("qwen35", "hm<tool_call> {}", "hm", "<tool_call> {}"),
    "a name at once": ("glm47", "hm<tool_call>clock</tool_call>", "hm", "<tool_call>clock</tool_call>"),
    "the end of a reply": ("qwen35", "hm<tool_call>", "hm", "<tool_call>"),
    "in back-ticks": ("qwen35", "use `<tool_call>` now</think>42", "use `<tool_call>` now", "42"),
    "in a sentence": ("glm47", "the <tool_call> tag</think>42", "the <tool_call> tag", "42"),
    "at the end of a sentence": ("qwen35", f"no <tool_call>. But{CALL}", "no <tool_call>. But", CALL),
    "with a suffix": ("hy_v3", "no <tool_calls:x>. hm</think:x>42", "no <tool_calls:x>. hm", "42"),
    "a list of calls at the start": (
        "minimax_m2",
        "<tool_calls>\n{}\n</tool_calls>",
        "",
        "<tool_calls>\n{}\n</tool_calls>",
    ),
    "a special token": ("kimi_k2", "hm<|tool_calls_section_begin|> x", "hm", "<|tool_calls_section_begin|> x"),
    "both markers": ("minimax_m3", "<think>hm</mm:think>42", "hm", "42"),
}


def pieces_of(text: str) -> Iterator[list[str]]:
    yield from ([text[:at], text[at:]] for at in range(len(text) + 1))
    yield list(text)


@pytest.mark.parametrize(("name", "text", "thought", "answer"), IN_THOUGHT.values(), ids=IN_THOUGHT)
def test_only_a_tag_that_begins_a_call_ends_a_thought(name: str, text: str, thought: str, answer: str) -> None:
    for pieces in pieces_of(text):
        splitter = splitter_for(find_format(name), starts_inside=True)
        segments = [segment for piece in pieces for segment in splitter.feed(piece)] + list(splitter.finish())
        assert "".join(segment.text for segment in segments if segment.reasoning) == thought, pieces
        assert "".join(segment.text for segment in segments if not segment.reasoning) == answer, pieces


UNOPENED = {
    "a closer": ("deepseek_r1", "hm</think>42", True),
    "a block of its own": ("deepseek_r1", "<think>hm</think>42", False),
    "a block after words": ("deepseek_r1", "Well. <think>hm</think>42", False),
    "a block on a line of its own": ("deepseek_r1", "Well.\n<think> hm</think>42", False),
    "a quoted opener": ("deepseek_r1", "what is `<think>`? hm</think>42", True),
    "an opener in a sentence": ("deepseek_r1", "the <think> tag. hm</think>42", True),
    "an opener in a sentence of a model that opens": ("qwen3", "the <think> tag. hm</think>42", False),
    "a closer after an answer": ("mistral", "42[/THINK]", False),
    "a closer after an answer, of a model that writes its openers": ("minimax_m3", "42</mm:think>", False),
    "a closer of a channel": ("gemma4", "hm<channel|>42", True),
}


@pytest.mark.parametrize(("name", "text", "lacks"), UNOPENED.values(), ids=UNOPENED)
def test_a_mentioned_opener_opens_no_block(name: str, text: str, lacks: bool) -> None:
    assert lacks_opener(text, find_format(name)) is lacks


def test_a_reply_that_names_the_opener_while_it_thinks_is_split_at_its_end() -> None:
    for pieces in pieces_of("the <think> tag. hm</think>42"):
        splitter = UndecidedSplitter(find_format("deepseek_r1"), likely_inside=True)
        segments = [segment for piece in pieces for segment in splitter.feed(piece)] + list(splitter.finish())
        assert "".join(segment.text for segment in segments if segment.reasoning) == "the <think> tag. hm", pieces


ANSWERS = {
    "a closer after an answer is content": ("mistralai/Magistral-Small", "42 [/THINK] x", None, "42 [/THINK] x"),
    "a channel's closer is structure": (
        "google/gemma-4-31b-it",
        "<|channel>thought\n<channel|>42<channel|>",
        None,
        "42",
    ),
    "an empty channel": ("google/gemma-4-31b-it", "<|channel>thought<channel|>42", None, "42"),
    "a channel that opens twice": ("google/gemma-4-31b-it", "<|channel><|channel>thought\nhm<channel|>42", "hm", "42"),
    "the end of a turn": ("inclusionAI/Ling-3.0", "42<|role_end|>", None, "42"),
    "thinking before a list": ("Salesforce/Llama-xLAM-2-8b-fc-r", "<think>hm</think>[1]", "hm", "[1]"),
    "the end of a message": ("ai-sage/GigaChat3-10B-A1.8B", "42<|message_sep|>\n\n", None, "42"),
    "the end of a turn after a final response": ("ServiceNow-AI/Apriel-1.6-15b-Thinker", "42<|end|>", None, "42"),
    "the frame of a turn": ("c4ai-command-r-plus", "<|CHATBOT_TOKEN|>42<|END_OF_TURN_TOKEN|>", None, "42"),
}


@pytest.mark.parametrize(("model", "text", "thought", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_what_stands_around_an_answer(model: str, text: str, thought: str | None, answer: str) -> None:
    response = parse(text, model=model)
    assert (response.reasoning.content or None, response.text) == (thought, answer)
