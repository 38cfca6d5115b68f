"""JSON of providers, which is not always quite JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.bounded_json import MAX_DEPTH
from bardo.dialects.shared.json_values import as_text, decode_leniently, excerpt

MENDED: dict[str, tuple[bytes, Any]] = {
    "plain JSON": (b'{"a": [1, "x", null]}', {"a": [1, "x", None]}),
    "a lone surrogate": (rb'{"a": "x\ud800y"}', {"a": "x\ufffdy"}),
    "a lone surrogate in a name": (rb'{"\udc00": 1}', {"\ufffd": 1}),
    "a pair of surrogates": (rb'{"a": "\ud83d\ude00"}', {"a": "😀"}),
    "a control character": (b'{"a": "x\x01y\n"}', {"a": "x\x01y\n"}),
    "bytes that are no UTF-8": (b'{"a": "x\xff"}', {"a": "x\ufffd"}),
    "not a number": (b'{"a": NaN, "b": [-Infinity]}', {"a": None, "b": [None]}),
    "a number beyond all bounds": (b'{"a": 1e999}', {"a": None}),
    "an integer beyond all bounds": (b'{"a": ' + b"9" * 5000 + b"}", {"a": None}),
}


@pytest.mark.parametrize(("data", "value"), MENDED.values(), ids=MENDED.keys())
def test_what_can_be_mended_is_read(data: bytes, value: Any) -> None:
    assert decode_leniently(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b'{"a": 1} {}', b"\xff", b"{'a': 1}"])
def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decode_leniently(data)


@pytest.mark.parametrize("inner", [b"1", rb'"\ud800"'], ids=["plain", "mended"])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 5000, 100_000])
def test_deep_nesting_is_a_value_error(depth: int, inner: bytes) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        decode_leniently(b"[" * depth + inner + b"]" * depth)


@pytest.mark.parametrize("inner", [b"1", rb'"\ud800"'], ids=["plain", "mended"])
def test_nesting_within_the_limit_is_read(inner: bytes) -> None:
    depth = MAX_DEPTH
    value = decode_leniently(b"[" * depth + inner + b"]" * depth)
    for _ in range(depth):
        [value] = value
    assert value in (1, "\ufffd")


def test_width_is_not_depth() -> None:
    assert decode_leniently(b"[" + b",".join([b"[[]]"] * 1000) + b"]") == [[[]]] * 1000


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_valid_json_is_read_as_it_is(value: Any) -> None:
    assert decode_leniently(json.dumps(value).encode()) == value
    assert decode_leniently(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0dNa1-', max_size=40).map(str.encode))
def test_nothing_else_is_ever_raised(data: bytes) -> None:
    with suppress(ValueError):
        decode_leniently(data)


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt(b"  <html>\n<body>  no\xff ") == "<html> <body> no\ufffd"
    assert excerpt(b"a" * 1000, 10) == "a" * 10 + "…"


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (None, ""), ({"a": 1}, '{"a":1}'), (["x"], '["x"]'), (3, "3"), (False, "false")]
)
def test_anything_as_text(value: Any, text: str) -> None:
    assert as_text(value) == text
