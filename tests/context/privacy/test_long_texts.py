"""What is searched in parts is found as in one search, wherever the parts end."""

from __future__ import annotations

import random
import re

import pytest

from bardo.context.privacy import detect as phones
from bardo.context.privacy import detect as scanners
from bardo.context.privacy import known_values, patterns
from bardo.context.privacy.detect import find
from bardo.context.privacy.patterns import MARGIN, PART, changed_in_parts, kinds_of, matches_in_parts
from support.sampling import seed

PATTERNS = {
    "numbers": patterns._NUMBERS,
    "phones": phones._RUN,
    "schemes": scanners._SCHEME,
    "hosts": scanners._DOTTED,
    "colons": scanners._COLONS,
    "accounts": scanners._IBAN,
    "pairs": scanners._PAIR,
    "glued": known_values._GLUED,
    "starts": known_values._STARTS,
    "starts in words": known_values._STARTS_IN_WORDS,
}
PIECES = (
    "1", "22", "0" * 30, " ", "-", ".", "+49 170 1234567", "a@b.co", "https://a.de/x", "www.b.com", "::1", "DE89 3704 0044 0532 0130 00",
    "00:1B:44:11:3A:B7", known_values.HOLE, "x", "é", "\n", "(", ")", "_", "a" * 70,
)  # fmt: skip


def random_text(length: int) -> str:
    chance = random.Random(seed())
    return "".join(chance.choices(PIECES, k=length))


@pytest.mark.parametrize("name", PATTERNS)
def test_parts_give_the_matches_of_the_whole(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(patterns, "PART", 37)
    monkeypatch.setattr(patterns, "MARGIN", 700)
    text = random_text(1_500)
    text = kinds_of(text) if name == "numbers" else text
    spans = [one.span() for one in PATTERNS[name].finditer(text)]
    assert spans
    assert [one.span() for one in matches_in_parts(PATTERNS[name], text)] == spans


@pytest.mark.parametrize("length", [1, MARGIN, PART, PART + MARGIN, 3 * PART])
def test_a_match_of_any_length_is_found_whole(length: int) -> None:
    digits = re.compile("0+")
    text = "a" * (PART - 1) + "0" * length + "a0a"
    assert [one.span() for one in matches_in_parts(digits, text)] == [one.span() for one in digits.finditer(text)]


def test_values_at_the_ends_of_parts_are_found() -> None:
    for before in range(PART - 20, PART + 1, 4):
        [span] = find(" " * before + "ann@example.org" + " ." * 100)
        assert (span.start, span.end) == (before, before + 15)


def test_characters_are_changed_in_parts_as_all_at_once() -> None:
    text = "Wörd" * PART
    assert changed_in_parts(str.upper, text) == text.upper()
