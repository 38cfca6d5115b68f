"""Texts are cut into the same word pieces as by the tokenizer that BERT's models are used with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from bardo.embedding.static_embedding import shipped_embedding, word_pieces, words

pytestmark = pytest.mark.each_python

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PIECES = list(shipped_embedding().pieces)
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}
REFERENCE = Tokenizer(
    models.WordPiece({piece: number for number, piece in enumerate([*PIECES, *MARKS])}, unk_token="[UNK]")
)
REFERENCE.normalizer = normalizers.BertNormalizer(lowercase=True)
REFERENCE.pre_tokenizer = pre_tokenizers.BertPreTokenizer()


def reference(text: str) -> list[str]:
    """Return the pieces by the library tokenizers, without the marks and what it does not know."""
    return [piece for piece in REFERENCE.encode(text, add_special_tokens=False).tokens if piece not in MARKS]


TEXTS = {
    "a sentence": "What's the LCM of 6, 8 and 10?",
    "accents": "Ünïcödé naïve façade",
    "ideographs": "東京は日本の首都です mixed",
    "signs": "5€ → 3£ ∑x² a—b “quoted” …",
    "code": "def f(x_1):\n\treturn x_1**2  # ok\r\n",
    "no such word": "x" * 120 + " end",
    "unassigned and control": "a\x00b\u200bc\u0007d",
    "hangul": "한국어 텍스트",
    "arabic marks": "مُحَمَّد",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_has_the_pieces_of_the_reference(name: str) -> None:
    assert [PIECES[number] for number in word_pieces(TEXTS[name], NUMBERS)] == reference(TEXTS[name])


@given(st.text(st.characters(codec="ascii"), max_size=200))
def test_any_ascii_text_has_the_pieces_of_the_reference(text: str) -> None:
    assert [PIECES[number] for number in word_pieces(text, NUMBERS)] == reference(text)


@given(st.text(max_size=200))
def test_any_text_is_cut_into_known_pieces(text: str) -> None:
    assert all(0 <= number < len(PIECES) for number in word_pieces(text, NUMBERS))
    assert not any(sign.isspace() for word in words(text) for sign in word)


def test_a_word_that_is_too_long_has_no_pieces() -> None:
    assert word_pieces("ab" * 51, NUMBERS) == []
    assert word_pieces("ab" * 50, NUMBERS) != []
