"""One JSON array, element by element: any cut says the same, and every byte is kept."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.frames import Frame, OversizedFrame
from bardo.streams.json_frames import JsonArrayDecoder

pytestmark = pytest.mark.each_python

LEAVES = st.none() | st.integers() | st.text(alphabet='ab"\\{}[],: é', max_size=8)
VALUES = st.dictionaries(
    st.text(max_size=3),
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)),
    max_size=3,
)


def read(body: bytes, cuts: list[int] | None = None, limit: int = 1 << 20) -> list[Frame]:
    decoder = JsonArrayDecoder(limit)
    places = [0, *sorted(place % (len(body) + 1) for place in cuts or []), len(body)]
    return [frame for a, b in pairwise(places) for frame in decoder.feed(body[a:b])] + list(decoder.finish())


@given(st.lists(VALUES, max_size=5), st.lists(st.integers(0, 2000), max_size=20), st.sampled_from([None, 1, 2]))
def test_any_cut_says_the_same_and_keeps_every_byte(
    values: list[dict[str, Any]], cuts: list[int], indent: int | None
) -> None:
    body = json.dumps(values, indent=indent, ensure_ascii=False).encode() + b"\r\n"
    frames = read(body, cuts)
    assert frames == read(body)
    assert [json.loads(frame.data) for frame in frames if frame.data is not None] == values
    assert b"".join(frame.raw for frame in frames) == body
    assert all(frame.complete for frame in frames)


def test_an_element_that_is_cut_is_incomplete() -> None:
    *frames, last = read(b'[{"a":1},\r\n{"b":"}')
    assert [frame.data for frame in frames] == [b'{"a":1}']
    assert (last.data, last.raw, last.complete) == (b'{"b":"}', b',\r\n{"b":"}', False)


def test_one_object_may_stand_where_the_array_should() -> None:
    body = b' {"error": {"code": [1, {}]}} '
    assert [json.loads(frame.data) for frame in read(body, [3, 9, 20]) if frame.data] == [{"error": {"code": [1, {}]}}]
    assert read(b'{"a":')[0].complete is False


def test_elements_before_an_oversized_one_are_given() -> None:
    decoder = JsonArrayDecoder(limit=12)
    assert [frame.data for frame in decoder.feed(b'[{"a":1},{"b":"' + b"x" * 20 + b'"},{"c":1}]')] == [b'{"a":1}']
    for _ in range(2):
        with pytest.raises(OversizedFrame):
            decoder.feed(b"]")


def feed_in_pieces(decoder: JsonArrayDecoder, body: bytes, size: int) -> None:
    for begin in range(0, len(body) + size, size):
        decoder.feed(body[begin : begin + size])


@pytest.mark.parametrize("cut", range(1, 30))
def test_the_limit_holds_wherever_the_bytes_are_cut(cut: int) -> None:
    decoder = JsonArrayDecoder(limit=12)
    body = b'[{"a":1},{"b":"' + b"x" * 6 + b'"},{"c":1}]'
    with pytest.raises(OversizedFrame):
        feed_in_pieces(decoder, body, cut)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_no_bytes_are_lost_or_raise(body: bytes, cuts: list[int]) -> None:
    assert b"".join(frame.raw for frame in read(body, cuts)) == body
