"""Requests as points: texts that mean the same are near each other, and no text is too long or too strange."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.embedding.static_embedding import LONGEST_TEXT, shipped_embedding, shortened, wide_embedding
from bardo.routing.learned.clusters import FORM_FEATURES, form_of

pytestmark = pytest.mark.each_python

EMBEDDING = shipped_embedding()


def nearness(one: str, other: str) -> float:
    return sum(a * b for a, b in zip(EMBEDDING.embed(one), EMBEDDING.embed(other), strict=True))


def test_texts_about_the_same_are_nearer_than_others() -> None:
    question = "My bank card has not arrived yet"
    assert nearness(question, "Where is the credit card that I ordered?") > nearness(
        question, "Integrate x^2 from 0 to 1"
    )


def test_case_and_accents_do_not_matter() -> None:
    assert EMBEDDING.embed("CAFÉ Olé") == EMBEDDING.embed("cafe ole")


def test_a_text_without_a_known_piece_is_at_the_origin() -> None:
    assert set(EMBEDDING.embed("")) == {0.0}
    assert set(EMBEDDING.embed("\x00 \u200b")) == {0.0}


def test_the_sum_of_the_longest_text_does_not_overflow() -> None:
    """Each component of a sum of one repeated piece is that of the piece."""
    once, often = EMBEDDING.embed("algebra"), EMBEDDING.embed("algebra " * 500)
    assert max(abs(a - b) for a, b in zip(once, often, strict=True)) < 1e-9


def test_a_long_text_counts_with_its_ends() -> None:
    text = "begin " + "x" * 1_000_000 + " end"
    assert len(shortened(text)) == LONGEST_TEXT + 1
    assert shortened(text).startswith("begin")
    assert shortened(text).endswith("end")


@given(st.text(max_size=300))
def test_every_text_is_a_point_of_length_one_with_a_finite_form(text: str) -> None:
    length = math.sqrt(sum(value * value for value in EMBEDDING.embed(text)))
    assert length == 0 or math.isclose(length, 1, rel_tol=1e-9)
    form = form_of(text)
    assert len(form) == FORM_FEATURES
    assert all(math.isfinite(value) for value in form)


@given(st.lists(st.sampled_from(["order", "king", "python", "where", "blue", "7", "?"]), min_size=1, max_size=900))
def test_many_pieces_add_up_as_few_do(pieces: list[str]) -> None:
    """Rows are added in groups, so that no sum of 16 bits overflows."""
    table = wide_embedding()
    single = {piece: table.sums(piece)[0] for piece in set(pieces)}
    found, _ = table.sums(" ".join(pieces))
    assert found == [sum(single[piece][place] for piece in pieces) for place in range(table.dimensions)]
