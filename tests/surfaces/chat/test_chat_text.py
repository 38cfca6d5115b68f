"""Text for chats is cut where no letter, as people see them, is cut in two, and every piece is within the limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.surfaces.chat.text import cleaned, cut_place, is_blank, utf16_length
from support.hostile_text import HOSTILE

LETTERS = (
    "a",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "👍🏽",
    "🇩🇪",
    "🏴\U000e0067\U000e0062\U000e007f",
    "한",
    "\u1112\u1161\u11ab",
    "❤️",
    "𝔘",
)
TEXTS = st.lists(st.sampled_from([*LETTERS, " ", "\n", ". ", "word "])).map("".join)


def pieces(text: str, limit: int) -> list[str]:
    found, start = [], 0
    while start < len(text):
        end = cut_place(text, start, limit)
        found.append(text[start:end])
        start = end
    return found


@given(TEXTS | st.text(), st.integers(2, 60))
def test_pieces_are_within_the_limit_and_give_the_text_again(text: str, limit: int) -> None:
    found = pieces(text, limit)
    assert "".join(found) == text
    assert all(found)
    assert all(len(piece.encode("utf-16-le", "surrogatepass")) // 2 <= limit for piece in found)


@given(st.lists(st.sampled_from(LETTERS)))
def test_no_letter_is_cut_in_two(letters: list[str]) -> None:
    """The longest of the letters has 8 units; of two flags in a row the second is whole too."""
    ends, place = set(), 0
    for letter in letters:
        place += len(letter)
        ends.add(place)
    start = 0
    for piece in pieces("".join(letters), 20):
        start += len(piece)
        assert start in ends


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two three.\n\nfour five six", "one two three.\n\n"),
        ("one two three\nfour five six sev", "one two three\n"),
        ("one two three. four five", "one two three."),
        ("one two three four five", "one two three four "),
        ("x" * 30, "x" * 20),
    ],
    ids=["paragraph", "line", "sentence", "word", "nothing"],
)
def test_where_a_text_is_cut(text: str, first: str) -> None:
    assert pieces(text, 20)[0] == first


@pytest.mark.parametrize("name", HOSTILE)
def test_cleaned_text_controls_nothing(name: str) -> None:
    text = cleaned(HOSTILE[name])
    assert not any(letter < " " and letter not in "\n\t" for letter in text)
    assert not set(text) & set("\x7f\x9b\x9d\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\x00")
    text.encode()


def test_lone_surrogates_are_replaced() -> None:
    assert cleaned("a\ud83db") == "a\ufffdb"


@pytest.mark.parametrize(
    ("text", "blank"), [("", True), (" \n", True), ("\u200b\u2060\ufeff", True), ("\u200b.", False)]
)
def test_what_shows_nothing(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


def test_units_are_counted_as_utf16_has_them() -> None:
    assert utf16_length("a😀é") == 4
