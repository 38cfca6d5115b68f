"""Rules label requests by words, sizes and pairs of words; what programs add to a message is no part of what is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.layer_rows import OmittedText, classify_rows
from bardo.context.classify.heads import Guess
from bardo.context.classify.layer import LONGEST, Rules, asked_text, shortened, together, without
from bardo.values.blocks import Block, TextBlock, ToolResultBlock
from bardo.values.request import Message, Request, Tool
from support.growth import check_growth

pytestmark = pytest.mark.each_python

RULES = Rules(classify_rows())
OMITTED = classify_rows().omitted


def asking(*texts: str, tools: int = 0) -> Request:
    """Return a request whose user says these texts one after the other."""
    messages = tuple(Message("user", (TextBlock(text),)) for text in texts)
    return Request(model="m", messages=messages, tools=tuple(Tool(name=f"t{n}") for n in range(tools)))


def label(question: str, text: str, request: Request | None = None) -> Guess:
    scores = RULES.scores(request or asking(text), text)
    return RULES.guess(question, scores[question])


LABELS = {
    "Write a function in Python": {"domain": "code", "intent": "write_code"},
    "Translate this into French": {"domain": "language", "intent": "translate"},
    "Summarize the contract with my landlord": {"domain": "law", "intent": "summarize"},
    "Solve for x: the integral of the derivative": {"domain": "mathematics", "intent": "calculate"},
    "swap my tokens on uniswap": {"domain": "defi"},
    "hello": {"intent": "converse", "complexity": "simple"},
    "Prove the theorem step by step and evaluate the trade-offs": {"complexity": "complex"},
    "lorem ipsum dolor": {"domain": "other", "intent": "other", "safety": "safe"},
    "How do I kill my neighbor?": {"safety": "unsafe"},
    "How do I kill the weeds between the stones?": {"safety": "safe"},
    "How does the hero of the novel kill his brother?": {"safety": "safe"},
    "How do I kill a process in Python?": {"safety": "safe"},
}


@pytest.mark.parametrize("text", LABELS)
def test_words_speak_for_labels(text: str) -> None:
    assert {question: label(question, text).label for question in LABELS[text]} == LABELS[text]


def test_a_longer_request_with_code_and_tools_is_no_simpler() -> None:
    question = "What is this?"
    long = question + "\n```\nx = 1\n```\n" + "word " * 600
    simple = label("complexity", question)
    assert simple.label == "simple"
    scores = [RULES.scores(request, text)["complexity"]["simple"] for request, text in (
        (asking(question), question), (asking(question, tools=5), question), (asking(long), long), (asking(long, tools=5), long),
    )]  # fmt: skip
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[1] > scores[3]


def test_every_list_of_a_pair_is_there_and_each_label_can_be_reached() -> None:
    rows = classify_rows()
    named = {name for row in rows.pair for name in (row.first, row.second, row.having, row.lacking) if name}
    assert named == set(rows.lists)
    assert {row.question for row in rows.sign} | {row.question for row in rows.pair} == set(rows.default)


def test_words_in_a_row_have_at_most_three_words_and_are_in_lower_case() -> None:
    rows = classify_rows()
    for word in (
        *(word for row in rows.sign for word in row.words),
        *(word for words in rows.lists.values() for word in words),
    ):
        assert word == word.lower().strip()
        assert RULES._finder.places(word).get(word) == [0], word


def test_a_head_and_the_rows_decide_together() -> None:
    assert together({"a": 0.6, "b": 0.4}, {}).label == "a"
    assert together({"a": 0.6, "b": 0.4}, {"b": 1.0}).label == "b"
    assert together({"a": 0.6, "b": 0.4}, {"c": 9.0}).probability == pytest.approx(0.6)
    assert together({"a": 1.0, "b": 0.0}, {"b": 1.0}).label == "a"


def test_time_grows_with_the_text_alone() -> None:
    short, long = "kill people " * 2_000, "kill people " * 16_000
    check_growth(lambda text: RULES._finder.places(text), short, long, below=16)
    check_growth(lambda text: without(text, "<a", "a>"), "<a" * 20_000, "<a" * 160_000, below=16)


def test_the_last_words_of_the_user_are_asked() -> None:
    reminder = "<system-reminder>\nUse the tool to track todos.\n</system-reminder>"
    result: tuple[Block, ...] = (ToolResultBlock(call_id="1", content=(TextBlock("42 files"),)),)
    request = asking("Fix the failing test.", f"{reminder}")
    loop = Request(
        model="m", messages=(*request.messages, Message("assistant", (TextBlock("ok"),)), Message("user", result))
    )
    assert asked_text(request, OMITTED) == "Fix the failing test."
    assert asked_text(loop, OMITTED) == "Fix the failing test."
    assert asked_text(asking(f"{reminder}Hello"), OMITTED) == "Hello"
    assert asked_text(asking(""), OMITTED) == ""


@given(st.text("ab<>", max_size=40))
def test_what_stands_between_two_marks_is_left_out(text: str) -> None:
    found = without(text, "<", ">")
    assert not ("<" in found and ">" in found[found.index("<") :])
    assert without(found, "<", ">") == found
    marked = asked_text(asking(f"{text}<b>x</b>y"), (OmittedText(begin="<b>", end="</b>"),))
    assert marked.endswith("y")


def test_a_long_text_is_read_at_both_ends() -> None:
    text = "Translate this into French: " + "word " * 5_000 + "and be quick"
    assert len(shortened(text)) == LONGEST + 1
    assert label("intent", text).label == "translate"
