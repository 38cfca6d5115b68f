"""A reply of which nobody knows whether it begins inside thinking is decided by its first closing delimiter, or by its end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import find_format
from bardo.reasoning.inline import InlineReasoning, ThinkingPlace
from bardo.reasoning.undecided import LIKELY_ANSWER_LIMIT, LIKELY_THINKING_LIMIT, UndecidedSplitter
from bardo.values.blocks import ReasoningBlock, TextBlock
from bardo.values.errors import BrokenStream
from bardo.values.events import ContentChunk, Event, Failed, Finish, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.fold import fold
from bardo.values.response import Response

STOP, LENGTH = Finish("stop", "stop"), Finish("length", "length")
THINKING, ANSWER = True, False


def read(
    pieces: Sequence[str],
    end: Event | None = STOP,
    *,
    likely: bool = THINKING,
    name: str = "qwen3",
    streamed: bool = True,
) -> tuple[Response, ThinkingPlace | None]:
    held = LIKELY_THINKING_LIMIT if likely else LIKELY_ANSWER_LIMIT
    stage = InlineReasoning(find_format(name), starts_inside=likely, undecided=True, limit=held if streamed else None)
    events: list[Event] = [*(ContentChunk(0, piece) for piece in pieces), *([] if end is None else [end])]
    out = [told for event in events for told in stage.feed(event)] + list(stage.finish())
    return fold(out), stage.place


def parts(response: Response) -> tuple[str | None, str]:
    return response.reasoning.content, response.text


REPLIES: dict[str, tuple[str, Event | None, tuple[str | None, str], tuple[str | None, str]]] = {
    # The text, how it ends, and what it is where thinking is likely, and where the answer is.
    "thinking that is closed": ("hm</think>yes", STOP, ("hm", "yes"), ("hm", "yes")),
    "an empty thought": ("</think>\n\nyes", STOP, (None, "\n\nyes"), (None, "\n\nyes")),
    "a finished reply that closes nothing": ("yes", STOP, (None, "yes"), (None, "yes")),
    "JSON": ('{"a": 1}', STOP, (None, '{"a": 1}'), (None, '{"a": 1}')),
    "a reply cut at its limit": ("hm", LENGTH, ("hm", ""), (None, "hm")),
    "a reply that broke": ("hm", None, ("hm", ""), (None, "hm")),
    "a reply that failed": ("hm", Failed(BrokenStream("gone")), ("hm", ""), (None, "hm")),
    "an answer cut after the thinking": ("hm</think>y", LENGTH, ("hm", "y"), ("hm", "y")),
    "an opener of its own": ("<think>hm</think>yes", STOP, ("hm", "yes"), ("hm", "yes")),
    "an opener after white space": ("\n<think>hm</think>yes", STOP, ("hm", "\nyes"), ("hm", "\nyes")),
    "an opener after words": ("Well. <think>hm</think>yes", STOP, ("hm", "Well. yes"), ("hm", "Well. yes")),
    "an empty pair": ("<think>\n\n</think>\n\nyes", STOP, (None, "\n\nyes"), (None, "\n\nyes")),
    "a call that ends thinking": ("hm<tool_call>{}", STOP, ("hm", "<tool_call>{}"), (None, "hm<tool_call>{}")),
    "a closer that is quoted": ("write `</think>` here", STOP, ("write `", "` here"), (None, "write `</think>` here")),
    "a closer in fenced code": (
        "so:\n```\nhm</think>\n```\n",
        STOP,
        ("so:\n```\nhm", "\n```\n"),
        (None, "so:\n```\nhm</think>\n```\n"),
    ),
    "the beginning of a closer": ("a </thi", STOP, (None, "a </thi"), (None, "a </thi")),
    "white space": ("\n", STOP, (None, "\n"), (None, "\n")),
}


@pytest.mark.parametrize(("text", "end", "thinking", "answer"), REPLIES.values(), ids=REPLIES)
def test_the_first_closer_or_the_end_decides(
    text: str, end: Event | None, thinking: tuple[str | None, str], answer: tuple[str | None, str]
) -> None:
    assert parts(read([text], end)[0]) == thinking
    assert parts(read([text], end, likely=ANSWER)[0]) == answer


@given(st.data(), st.sampled_from(sorted(REPLIES)), st.booleans(), st.booleans())
def test_any_cut_of_a_reply_is_decided_alike(data: st.DataObject, name: str, likely: bool, streamed: bool) -> None:
    text, end, *_ = REPLIES[name]
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True) if b > a]
    whole, place = read([text], end, likely=likely, streamed=streamed)
    cut, cut_place = read(pieces, end, likely=likely, streamed=streamed)
    assert (parts(cut), cut_place, cut.degraded) == (parts(whole), place, whole.degraded)


def test_thinking_in_a_field_of_its_own_makes_the_text_an_answer_at_once() -> None:
    stage = InlineReasoning(find_format("qwen3"), starts_inside=True, undecided=True)
    for event in (ThinkStart(0), ThinkChunk(0, "hm"), ThinkEnd(0)):
        stage.feed(event)
    assert stage.feed(ContentChunk(1, "yes")) == [ContentChunk(1, "yes")]
    assert stage.place == "field"


def test_a_stream_gives_thinking_as_soon_as_it_is_closed_or_long() -> None:
    splitter = UndecidedSplitter(find_format("qwen3"), likely_inside=True, limit=LIKELY_THINKING_LIMIT)
    assert splitter.feed("x" * LIKELY_THINKING_LIMIT) == ()
    assert [one.reasoning for one in splitter.feed("y")] == [True, True]
    assert [one.text for one in splitter.feed("z")] == ["z"]


def test_a_long_answer_is_given_as_an_answer_and_cannot_be_taken_back() -> None:
    splitter = UndecidedSplitter(find_format("qwen3"), likely_inside=False, limit=LIKELY_ANSWER_LIMIT)
    assert splitter.feed("x" * LIKELY_ANSWER_LIMIT) == ()
    assert [one.reasoning for one in splitter.feed("y")] == [False]
    assert [one.text for one in splitter.feed("</think>")] == ["</think>"]


def test_a_long_answer_that_was_shown_as_thinking_is_given_as_the_answer_too() -> None:
    text = "word " * LIKELY_THINKING_LIMIT
    response, place = read([text[:9_000], text[9_000:]])
    assert parts(response) == (text, text)
    assert [one.what for one in response.degraded] == ["inline_reasoning"]
    assert place == "unclosed"


@pytest.mark.parametrize("likely", [THINKING, ANSWER])
def test_a_whole_reply_is_decided_however_long_it_is(likely: bool) -> None:
    long = "word " * LIKELY_ANSWER_LIMIT
    assert parts(read([long], likely=likely, streamed=False)[0]) == (None, long)
    assert parts(read([f"{long}</think>yes"], likely=likely, streamed=False)[0]) == (long, "yes")


@pytest.mark.parametrize("likely", [THINKING, ANSWER])
def test_where_the_limit_falls_makes_no_difference_to_a_cut(likely: bool) -> None:
    limit = LIKELY_THINKING_LIMIT if likely else LIKELY_ANSWER_LIMIT
    for before in range(limit - 12, limit + 3):
        text = "x" * before + "</think>yes"
        whole = parts(read([text], likely=likely)[0])
        assert parts(read([text[: limit - 3], *text[limit - 3 :]], likely=likely)[0]) == whole


def test_a_reply_that_surely_begins_inside_but_closes_nothing_is_never_silently_empty() -> None:
    stage = InlineReasoning(find_format("qwen3"), starts_inside=True)
    out = [told for event in (ContentChunk(0, "yes"), STOP) for told in stage.feed(event)]
    response = fold(out)
    assert response.text == "yes"
    assert [one.what for one in response.degraded] == ["inline_reasoning"]


def test_a_reply_that_ends_inside_thinking_which_it_opened_says_so() -> None:
    response, _ = read(["<think>hm"])
    assert parts(response) == ("hm", "")
    assert "no answer" in response.degraded[0].why


PLACES: dict[str, tuple[str, Event | None, ThinkingPlace | None]] = {
    "closed, though not opened": ("hm</think>yes", STOP, "text"),
    "opened by the reply": ("<think>hm</think>yes", STOP, None),
    "nowhere": ("yes", STOP, "none"),
    "nowhere yet": ("yes", None, None),
}


@pytest.mark.parametrize(("text", "end", "place"), PLACES.values(), ids=PLACES)
def test_a_reply_says_where_its_thinking_stood(text: str, end: Event | None, place: ThinkingPlace | None) -> None:
    assert read([text], end, likely=ANSWER)[1] == place


def test_an_empty_block_of_thinking_is_no_thinking() -> None:
    response, _ = read(["<think>\n", "\n</think>yes"])
    assert response.blocks == (TextBlock("yes"),)
    assert response.reasoning.empty
    thought, _ = read(["<think>\nhm</think>yes"])
    assert thought.blocks == (ReasoningBlock(text="\nhm", format="think-tags"), TextBlock("yes"))
    assert not thought.reasoning.empty


def test_an_empty_block_that_was_cut_says_nothing() -> None:
    assert not read(["<think>\n"], LENGTH)[0].reasoning.empty


def test_suffixed_delimiters_are_decided_too() -> None:
    assert parts(read(["hm</think:x>yes"], name="hy_v3")[0]) == ("hm", "yes")
    assert parts(read(["<think:x>hm</think:x>yes"], name="hy_v3")[0]) == ("hm", "yes")
    assert parts(read(["yes"], name="hy_v3")[0]) == (None, "yes")
