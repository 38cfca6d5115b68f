"""Personal data is found in text: values, look-alikes, words beside them, and time that grows with the text only."""

from __future__ import annotations

import pytest

from bardo.catalog.layer_rows import PiiEntity, PiiPattern, pii_entities
from bardo.context.privacy.detect import Detector, find
from bardo.values.errors import ConfigError
from support.growth import check_growth

VALUES = [
    ("Write to jane.doe@example.org, please.", "EMAIL_ADDRESS", "jane.doe@example.org"),
    ("The card 4111 1111 1111 1111 was used.", "CREDIT_CARD", "4111 1111 1111 1111"),
    ("Pay to GB29 NWBK 6016 1331 9268 19 now", "IBAN_CODE", "GB29 NWBK 6016 1331 9268 19"),
    ("pay to gb29nwbk60161331926819.", "IBAN_CODE", "gb29nwbk60161331926819"),
    ("from 192.0.2.17 to", "IP_ADDRESS", "192.0.2.17"),
    ("from [2001:db8::7]:443 to", "IP_ADDRESS", "2001:db8::7"),
    ("SSN 536-90-4399", "US_SSN", "536-90-4399"),
    ("device 00:1b:44:11:3a:b7", "MAC_ADDRESS", "00:1b:44:11:3a:b7"),
    ("send to 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "CRYPTO", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
    ("call +44 20 7946 0958 today", "PHONE_NUMBER", "+44 20 7946 0958"),
    ("CPF 529.982.247-25.", "BR_CPF", "529.982.247-25"),
    ("hetu 131052-308T", "FI_PERSONAL_IDENTITY_CODE", "131052-308T"),
    (r'{"text": "first\n536-90-4399"}', "US_SSN", "536-90-4399"),
]


@pytest.mark.parametrize(
    ("text", "entity", "value"), VALUES, ids=[f"{one[1]}-{place}" for place, one in enumerate(VALUES)]
)
def test_a_value_is_found_whole(text: str, entity: str, value: str) -> None:
    assert [(span.entity, text[span.start : span.end]) for span in find(text)] == [(entity, value)]


@pytest.mark.parametrize(
    "text",
    [
        "The card 4111 1111 1111 1112 was used.",
        "GB29 NWBK 6016 1331 9268 18",
        "GB29 nwbk 6016 1331 9268 19",
        "std::vector<int>::iterator",
        "version 1.2.3 of 2024-05-01",
        "order 12345678, page 5, 1,234.50 in total",
        "logo@2x.png and @app.route and user@host",
        "SSN 000-12-3456",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
        "12:30:45",
    ],
)
def test_a_look_alike_is_left_alone(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    ("bare", "beside"),
    [
        ("use 912803456", "passport no. 912803456"),
        ("A123456780 again", "Versichertennummer A123456780"),
        ("12345678 and", "the account number is 12345678"),
    ],
)
def test_a_word_beside_a_number_says_what_it_is(bare: str, beside: str) -> None:
    assert find(bare) == []
    assert len(find(beside)) == 1


def test_a_word_does_not_count_as_a_part_of_another() -> None:
    assert find("pandas 12345 ABCDE1234F") == find("ABCDE1234F")


def test_of_two_readings_of_one_value_the_likelier_counts() -> None:
    [span] = find("my card 4012888888881881 is a bank account")
    assert span.entity == "CREDIT_CARD"


HOSTILE = [
    "1",
    "1 ",
    "a@",
    "@a.",
    ":",
    "::",
    "1:",
    "http://",
    "www.a.",
    "A1-",
    "+1 ",
    "(",
    "0-",
    "account 1 ",
    "x" * 40 + " ",
    "4111 ",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text_only(piece: str) -> None:
    count = 20_000 // len(piece)
    check_growth(find, piece * count, piece * count * 4, below=8)


def test_every_pattern_of_the_rows_begins_as_its_row_says() -> None:
    for entity in pii_entities().values():
        Detector([entity], least=0)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (PiiPattern(match="(", score=1), "no regular expression"),
        (PiiPattern(match="(a)(b)", score=1), "2 groups"),
        (PiiPattern(match="a", score=1, check="none"), "unknown check"),
    ],
)
def test_a_wrong_row_is_named(pattern: PiiPattern, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Detector([PiiEntity(name="OWN", label="OWN", patterns=(pattern,))])
