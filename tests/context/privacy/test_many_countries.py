"""Personal data of many countries is found, in digits of any script, and the same forms without a word beside them are left alone."""

from __future__ import annotations

import pytest

from bardo.context.privacy.detect import find, in_usual_signs

VALUES = [
    ("Mi móvil es 612 34 56 78", "612 34 56 78"),
    ("手机号13812345678", "13812345678"),
    ("0044 7911 123456", "0044 7911 123456"),
    ("Sozialversicherungsnummer 65 170839 J 003", "65 170839 J 003"),
    ("CNPJ 11.222.333/0001-81", "11.222.333/0001-81"),
    ("マイナンバー 123456789018", "123456789018"),
    ("CURP HEGG560427MVZRRL04", "HEGG560427MVZRRL04"),
    ("RFC HEGG560427AB1", "HEGG560427AB1"),
    ("RUT 12.345.678-5", "12.345.678-5"),
    ("CUIT 20-12345678-6", "20-12345678-6"),
    ("passport number C01X00T47", "C01X00T47"),
    ("passport: A12345678", "A12345678"),
    ("SWIFT DEUTDEFF500", "DEUTDEFF500"),
    ("ИНН 7707083893", "7707083893"),
    ("СНИЛС 112-233-445 95", "112-233-445 95"),
    ("паспорт 4509 123456", "4509 123456"),
    ("date of birth 1985-07-21", "1985-07-21"),
    ("geboren am 21.07.1985", "21.07.1985"),
    ("DOB: 21 July 1985", "21 July 1985"),
    ("sort code 20-00-00", "20-00-00"),
    ("IMEI 490154203237518", "490154203237518"),
    ("VIN 1HGCM82633A004352", "1HGCM82633A004352"),
    ("phone ４１５-555-2671", "４１５-555-2671"),
    ("Thai ID 1-1017-00203-45-0", "1-1017-00203-45-0"),
    ("teudat zehut 000000018", "000000018"),
    ("Irish PPS 1234567FA", "1234567FA"),
    ("AMKA 01013099997", "01013099997"),
    ("EGN 7523169263", "7523169263"),
    ("CNP 1800101221144", "1800101221144"),
    ("OIB 69435151530", "69435151530"),
    ("rodné číslo 736028/5163", "736028/5163"),
    ("NIF 123456789", "123456789"),
    ("isikukood 37605030299", "37605030299"),
    ("fødselsnummer 01010750160", "01010750160"),
    ("kennitala 120174-3399", "120174-3399"),
    ("MRN 12345678", "12345678"),
    ("هاتف +٩٧١٥٠١٢٣٤٥٦٧", "+٩٧١٥٠١٢٣٤٥٦٧"),
    ("mail ｊａｎｅ＠example.com", "ｊａｎｅ＠example.com"),
    ("card 4111\u20131111\u20131111\u20131111", "4111\u20131111\u20131111\u20131111"),
    ("card 4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111\u00a01111\u00a01111"),
    ("生年月日 1985年7月21日", "1985年7月21日"),
    ("née le 3 février 1971 à Lyon", "3 février 1971"),
    ("born on July 4th, 1990", "July 4th, 1990"),
]
OTHERS = [
    "The release of 2024-05-03 fixed it.",
    "Batch 77070838931 of 12 parts was sold on 21.07.2023.",
    "See RFC 2616, section 14, and RFC 7230.",
    "A run of 1234567-8 units at the plant.",
    "The suspect was fined 046454 roubles in 1998.",
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_value_is_found_as_it_is_written(text: str, value: str) -> None:
    assert value in [text[one.start : one.end] for one in find(text)]


@pytest.mark.parametrize("text", OTHERS)
def test_the_same_forms_are_no_data_by_themselves(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize("text", ["abc", "٠١٢ ３ — x", "a\u2028b\u00a0c", "𝟘𝟙 ﬁ"])
def test_usual_signs_keep_every_place(text: str) -> None:
    assert len(in_usual_signs(text)) == len(text)
