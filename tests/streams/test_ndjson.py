"""JSON lines: any cut says the same, and every byte is kept."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.frames import Frame, OversizedFrame
from bardo.streams.json_frames import NdjsonDecoder, encode_ndjson

pytestmark = pytest.mark.each_python

VALUES = st.dictionaries(st.text(max_size=4), st.text(max_size=12) | st.integers(), max_size=3)


def read(body: bytes, cuts: list[int] | None = None) -> list[Frame]:
    decoder = NdjsonDecoder()
    places = [0, *sorted(place % (len(body) + 1) for place in cuts or []), len(body)]
    return [frame for a, b in pairwise(places) for frame in decoder.feed(body[a:b])] + list(decoder.finish())


@given(st.lists(VALUES, max_size=6), st.lists(st.integers(0, 1000), max_size=20), st.sampled_from([b"", b"\r", b"\n"]))
def test_any_cut_says_the_same_and_keeps_every_byte(
    values: list[dict[str, object]], cuts: list[int], before_end: bytes
) -> None:
    body = b"".join(encode_ndjson(json.dumps(value).encode() + before_end) for value in values)
    frames = read(body, cuts)
    assert frames == read(body)
    assert [json.loads(frame.data) for frame in frames if frame.data is not None] == values
    assert b"".join(frame.raw for frame in frames) == body


def test_a_blank_line_has_no_data() -> None:
    assert read(b'\n{"a":1}\n \n') == [
        Frame(None, raw=b"\n"),
        Frame(b'{"a":1}', raw=b'{"a":1}\n'),
        Frame(None, raw=b" \n"),
    ]


def test_a_last_line_without_its_end_may_be_cut() -> None:
    assert read(b'{"a":1}\n{"b"') == [Frame(b'{"a":1}', raw=b'{"a":1}\n'), Frame(b'{"b"', raw=b'{"b"', complete=False)]


def test_lines_before_an_oversized_one_are_given() -> None:
    for body in (b"[1]\n" + b"x" * 20, b"[1]\n" + b"x" * 20 + b"\n[2]\n"):
        decoder = NdjsonDecoder(limit=10)
        assert [frame.data for frame in decoder.feed(body)] == [b"[1]"]
        for _ in range(2):
            with pytest.raises(OversizedFrame):
                decoder.feed(b"\n")


def feed_in_pieces(decoder: NdjsonDecoder, body: bytes, size: int) -> None:
    for begin in range(0, len(body) + size, size):
        decoder.feed(body[begin : begin + size])


@pytest.mark.parametrize("cut", range(1, 24))
def test_the_limit_holds_wherever_the_bytes_are_cut(cut: int) -> None:
    decoder = NdjsonDecoder(limit=10)
    body = b"[1]\n" + b"x" * 11 + b"\n" + b"[2]\n" * 3
    with pytest.raises(OversizedFrame):
        feed_in_pieces(decoder, body, cut)
