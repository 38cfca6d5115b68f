"""Bytes become the same text wherever they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import Utf8Feed

pytestmark = pytest.mark.each_python

BROKEN = {
    "a byte that begins nothing": b"a\xffb",
    "a code point cut short by text": b"a\xe2\x82b",
    "a code point cut short by the end": b"a\xf0\x9f\xa7",
    "an overlong form": b"\xc0\xafa",
    "a surrogate": b"\xed\xa0\x80a",
}


def read(pieces: list[bytes]) -> tuple[str, bool]:
    feed = Utf8Feed()
    text = "".join([feed.feed(piece) for piece in pieces]) + feed.finish()
    return text, feed.replaced


def test_a_code_point_is_held_until_it_is_complete() -> None:
    feed = Utf8Feed()
    assert [feed.feed(bytes([byte])) for byte in "a🧠é".encode()] == ["a", "", "", "", "🧠", "", "é"]
    assert not feed.replaced


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_not_utf8_is_replaced_and_reported(data: bytes) -> None:
    assert read([data]) == (data.decode(errors="replace"), True)
    for at in range(len(data) + 1):
        assert read([data[:at], data[at:]]) == read([data])


def test_a_replacement_character_that_was_sent_is_no_error() -> None:
    assert read([b"a\xef\xbf\xbdb"]) == ("a\ufffdb", False)


@given(st.one_of(st.binary(max_size=20), st.text(max_size=8).map(lambda text: text.encode("utf-8", "ignore"))))
def test_any_cut_of_any_bytes_gives_the_same_text(data: bytes) -> None:
    assert read([bytes([byte]) for byte in data]) == read([data])
