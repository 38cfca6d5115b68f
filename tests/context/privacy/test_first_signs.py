"""Patterns are tried only where they may match, find the same so, and are few where a text holds the worst."""

from __future__ import annotations

import random
import re

import pytest

from bardo.catalog.layer_rows import PiiPattern, pii_entities
from bardo.context.privacy import patterns
from bardo.context.privacy.checks import digits_of, luhn, luhn_sum
from bardo.context.privacy.detect import PhoneScanner
from bardo.context.privacy.patterns import LENGTH, WORD, FirstSigns, PatternTable, kinds_of
from support.sampling import NIGHTLY, seed

ROWS = [(entity, one) for entity in pii_entities().values() for one in entity.patterns if not one.anywhere]
PARTS = (
    "12", "1", "4111", "1985", "07", "000", "(0)", "-", " ", ".", "/", ":", "+", "(", ")", "*", "#", "_", "a", "AB", "DE", "BH", "HR", "T",
    "é", "Ä", "年", "²", "ß", "\n", "\\n",
)  # fmt: skip


def random_texts(count: int) -> list[str]:
    chance = random.Random(seed())
    return ["".join(chance.choices(PARTS, k=chance.randint(1, 14))) for _ in range(count)]


def found_one_by_one(text: str) -> set[tuple[int, int, str]]:
    """Return what each pattern finds where it is tried alone at every place at which a value may begin."""
    found = set()
    for start in patterns.beginnings(text, kinds_of(text)):
        for _, row in ROWS:
            left = f"(?<![{re.escape(row.left)}])" if row.left else ""
            match = re.compile(f"{left}(?:{row.match})(?![{WORD}])", re.ASCII | re.IGNORECASE).match(text, start)
            if match and match.end() > start and not is_elsewhere(row, text[start]):
                found.add((start, match.end(), row.match))
    return found


def is_elsewhere(row: PiiPattern, first: str) -> bool:
    return bool(row.begins) and (row.begins == "digit") is not first.isdigit()


def test_each_pattern_finds_what_it_finds_alone() -> None:
    table, count = PatternTable(ROWS), 0
    for text in random_texts(5_000 if NIGHTLY else 150):
        found = {
            (start, end, row.match)
            for start, end, _, row in table.matches(text)
            if not (row.left and start and text[start - 1] in row.left)
        }
        assert found == found_one_by_one(text), text
        count += len(found)
    assert count


@pytest.mark.parametrize("part", ["1-2 ", "+1 (", "1.1.1.", "1 ", "1:", "1/", "00 ", "(1) ", "1-1-", "a1 "])
def test_few_patterns_are_tried_where_numbers_are_short(part: str) -> None:
    signs, kinds = FirstSigns([row.match for _, row in ROWS]), kinds_of(part * 10)
    assert max(len(signs.possible(kinds[at : at + LENGTH])) for at in range(10)) <= 10


@pytest.mark.parametrize(
    ("expression", "text", "may_match"),
    [
        ("[0-9]{3}", "123", True),
        ("[0-9]{3}", "123 ", True),
        ("[0-9]{3}", "12 ", False),
        ("[0-9]{3}", "123a", False),
        ("[0-9]{9}", "12345", True),
        ("[0-9]{9}", "1234", False),
        ("([ -])[0-9]\\1[0-9]", "-1-1 ", True),
        ("([ -])[0-9]\\1[0-9]", "-1.1 ", False),
        ("(?:a|[0-9]{2})x?", "12x", True),
        ("(?:a|[0-9]{2})x?", "1x", False),
        ("(?!1)[0-9]", "1", True),
        ("[^1]{2}", "+1", True),
        (".", "年", True),
        ("[0-9]*", "x", True),
        ("[0-9]+?", "1 ", True),
        ("(?>[0-9])", "x", True),
        ("[\\d]", "x", True),
    ],
)
def test_a_pattern_is_left_out_only_where_it_cannot_match(expression: str, text: str, may_match: bool) -> None:
    assert FirstSigns([expression]).possible(kinds_of(text)[:LENGTH]) == ((0,) if may_match else ())


def test_luhn_digits_are_those_of_the_sum() -> None:
    for text in random_texts(2_000):
        digits = digits_of(text)
        assert luhn(text) is (any(digits) and luhn_sum(digits) % 10 == 0), text


def test_numbers_with_a_country_code_are_told_as_the_library_tells_them() -> None:
    library = pytest.importorskip("phonenumbers")
    chance, scanner, valid, refused = random.Random(seed()), PhoneScanner(["DE"]), 0, 0
    for _ in range(20_000 if NIGHTLY else 600):
        code = chance.choice(list(library.COUNTRY_CODE_TO_REGION_CODE))
        region = chance.choice(library.COUNTRY_CODE_TO_REGION_CODE[code])
        example = library.example_number(region) or library.example_number_for_non_geo_entity(code)
        digits = list(chance.choice(["", "0", "1", "8"]) + library.national_significant_number(example))
        for _ in range(chance.randint(0, 3)):
            digits[chance.randrange(len(digits))] = chance.choice("0123456789")
        written = f"+{code} {''.join(digits)}"
        try:
            expected = library.is_valid_number(library.parse(written))
        except library.NumberParseException:
            expected = False
        assert scanner._international(written) is expected, written
        valid += expected
        refused += not expected
    assert valid
    assert refused


def test_a_number_behind_which_no_more_than_a_plan_stands_is_not_parsed_by_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = pytest.importorskip("phonenumbers")
    asked: list[str] = []
    monkeypatch.setattr(library, "parse", lambda number: asked.append(number))
    monkeypatch.setattr(library, "is_valid_number", lambda _: True)
    for place in range(200):
        PhoneScanner(["DE"])._international(f"+1 202 555 {place:04}")
    assert not asked
    assert PhoneScanner(["DE"])._international("+54 11 2034 5678")  # Whose numbers are rewritten.
    assert asked
