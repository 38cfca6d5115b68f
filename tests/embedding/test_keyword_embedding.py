"""The vector of a text's key words: what it says, and not that it is a text."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from operator import mul

import pytest

from bardo.adapters.embedding.embeddings import Embeddings
from bardo.context.effects import Embed
from bardo.embedding.static_embedding import KeywordEmbedding, keyword_embedding, pieces_of_words, wide_embedding

pytestmark = pytest.mark.each_python

STOP_WORDS = frozenset(("the", "for", "a", "me", "to"))
EMBEDDING = KeywordEmbedding(wide_embedding(), STOP_WORDS)


def near(one: str, other: str) -> float:
    return math.fsum(map(mul, EMBEDDING.embed(one), EMBEDDING.embed(other)))


def test_the_sum_of_large_integers_is_that_of_the_rows() -> None:
    table, text = wide_embedding(), "weather weather forecast unaffable"
    expected = [0.0] * EMBEDDING.dimensions
    for piece, count in Counter(pieces_of_words(text.split(), table.vocabulary)).items():
        row = [value - 128 for value in table.row(piece)[-EMBEDDING.dimensions :]]
        share = 1 / ((piece + 2) * math.log(len(table.vocabulary)))
        weight = 1e-3 / (1e-3 + share) / math.hypot(*row) * count / (count + 1.2)
        expected = [value + weight * own for value, own in zip(expected, row, strict=True)]
    length = math.hypot(*expected)
    assert EMBEDDING.embed(text) == pytest.approx([value / length for value in expected], abs=1e-3)


@pytest.mark.parametrize("text", ["", "the for a", "?! …", "\x00\x1b", "\ud800"])
def test_a_text_without_key_words_has_the_vector_0(text: str) -> None:
    assert EMBEDDING.embed(text) == (0.0,) * EMBEDDING.dimensions


def test_stop_words_case_and_signs_change_nothing() -> None:
    assert EMBEDDING.embed("Forecast for the weather!") == EMBEDDING.embed("forecast weather")


def test_what_texts_are_about_counts_and_not_that_they_are_texts() -> None:
    assert near("Shall I take an umbrella?", "Forecast of rain, wind and temperature.") > 0.2
    assert abs(near("Shall I take an umbrella?", "Bookkeeping of invoices and payments.")) < 0.1


def test_the_longest_text_of_the_heaviest_pieces_fits_into_a_sum() -> None:
    table = wide_embedding()
    rare = [piece for piece, number in table.vocabulary.items() if number > 20_000 and piece.isalnum()]
    assert math.hypot(*EMBEDDING.embed(" ".join(sorted(rare, key=len)[:1_900]))) == pytest.approx(1)


def test_vectors_with_other_stop_words_are_not_compared() -> None:
    prints = {keyword_embedding(words).fingerprint for words in (STOP_WORDS, frozenset(("the",)), frozenset[str]())}
    assert len({*prints, wide_embedding().fingerprint}) == 4


def test_a_layer_gets_key_words_only_where_it_names_the_words_to_leave_out() -> None:
    embeddings = Embeddings()
    whole = asyncio.run(embeddings.perform(Embed(("a forecast",))))
    keys = asyncio.run(embeddings.perform(Embed(("a forecast",), STOP_WORDS)))
    assert (whole.fingerprint, keys.fingerprint) == (wide_embedding().fingerprint, EMBEDDING.fingerprint)
    assert keys.vectors == (EMBEDDING.embed("forecast"),)
