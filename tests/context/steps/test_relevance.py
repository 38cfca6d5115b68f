"""The layers that leave out what is not asked about, and what stands in the prompt already."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import Effect
from bardo.context.steps.settings import DedupSettings, RelevanceSettings
from bardo.context.steps.shortening import bm25, dedup, fused, passages_of, relevance, words_of
from bardo.values.request import Request
from context.steps.histories import agent_history, call, result, user
from support.layer_runs import Memory, run_layer

FILLER = "Clouds drift over the hills and the river runs to the sea. " * 12
NEEDLE = "The refund of order 4711 was paid twice on Tuesday. "
DOCUMENT = "\n".join([FILLER] * 10 + [NEEDLE + FILLER] + [FILLER] * 10)


def reader(**settings: object) -> Request:
    """Return a conversation with a long document and a question about it, reduced."""
    layer = relevance(RelevanceSettings(above_tokens=0, longest=1_000, keep=600, keep_turns=1, **settings))  # type: ignore[arg-type]
    asked = agent_history(["ok"], "Which refunds were paid twice?").messages
    request = Request(model="m", messages=(*agent_history([DOCUMENT]).messages, *asked))
    return run_layer(layer, request, perform=vectors).request


def vectors(effect: Effect) -> TextVectors:
    assert isinstance(effect, Embed)
    return TextVectors(
        vectors=tuple((1.0, 0.0) if "refund" in text else (0.0, 1.0) for text in effect.texts),
        fingerprint="f",
        tier="static",
    )


def test_the_passage_that_the_question_is_about_stays_in_its_place() -> None:
    for embed in (False, True):
        text = reader(embed=embed).messages[2].blocks[0].text  # type: ignore[union-attr]
        assert NEEDLE in text
        assert text.startswith(FILLER[:500])
        assert text.count("passages left out") == 2
        assert len(text) < len(DOCUMENT) / 3


def test_a_text_with_nothing_of_the_question_stays() -> None:
    request = Request(
        model="m", messages=(*agent_history([FILLER * 20]).messages, *agent_history(["ok"], "Refunds?").messages)
    )
    settings = RelevanceSettings(above_tokens=0, longest=1_000, keep=600, keep_turns=1)
    assert run_layer(relevance(settings), request).request is request


@given(st.text())
def test_passages_are_the_text(text: str) -> None:
    assert "".join(passages_of(text)) == text


def test_a_word_that_few_passages_have_counts_more() -> None:
    scores = bm25("the refund", ["the sea", "the refund", "the hill", "the sky"])
    assert max(range(4), key=scores.__getitem__) == 1
    assert bm25("refund", []) == []
    assert bm25("", ["a"]) == [0]


def test_identifiers_are_words_too() -> None:
    assert {"read", "file"} <= set(words_of("read_file readFile"))
    assert set(words_of("Größe")) == {"größe"}


def test_ranks_of_two_scores_are_put_together() -> None:
    both = fused([3.0, 2.0, 1.0], [0.1, 0.3, 0.2])
    assert max(range(3), key=both.__getitem__) == 1


LINES = [f"line {number} of the file, which is long enough to be told" for number in range(60)]


def repeated(first: str, second: str) -> str:
    settings = DedupSettings(above_tokens=0, least=10, least_lines=5, keep_turns=1)
    messages = (user("Read."), call(0), result(0, first), call(1), result(1, second), call(2), result(2, "ok"))
    after = run_layer(dedup(settings), Request(model="m", messages=messages), None, Memory()).request
    text: str = after.messages[4].blocks[0].text  # type: ignore[union-attr]
    assert after.messages[2] == messages[2]
    return text


def test_a_text_that_was_there_is_a_reference() -> None:
    text = "\n".join(LINES)
    assert repeated(text, text) == "[The same text as in the result of read_file above]"


def test_a_file_that_was_read_again_after_a_change_keeps_what_is_new() -> None:
    changed = [*LINES[:30], "a new line that nobody has seen before now", *LINES[31:]]
    assert repeated("\n".join(LINES), "\n".join(changed)).split("\n") == [
        "[The same as lines 1 to 30 of the result of read_file above]",
        "a new line that nobody has seen before now",
        "[The same as lines 32 to 60 of the result of read_file above]",
    ]


def test_a_few_equal_lines_stay() -> None:
    other = [f"another line {number} that is long enough to be told" for number in range(40)]
    text = "\n".join([*other[:20], *LINES[:4], *other[20:]])
    assert repeated("\n".join(LINES), text) == text
