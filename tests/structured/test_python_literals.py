"""Python literals of a model are read as Python reads them, and Python has nothing to warn of."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.structured.search import python_literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"{'pattern': '\d+\.\w'}", {"pattern": r"\d+\.\w"}),
        (r"{'path': 'C:\\new'}", {"path": r"C:\new"}),
        (r"['\777', '\101']", ["ǿ", "A"]),
        (r"[r'\d', '12or 3']", [r"\d", "12or 3"]),
        ("['3in', 0x1f, 1_000, 2.5e3]", ["3in", 31, 1000, 2500.0]),
    ],
)
def test_values_are_those_of_python(text: str, value: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = python_literal(text)
    assert read is not None
    assert read.value == value


@given(st.text(alphabet="[]{}()'\"\\ ,:.0127xdorinfeN\n", max_size=40))
@example("[1or 2]")
@example("[0x1for x]")
@example("[1.in]")
@example("['\\")
def test_no_text_makes_python_warn(text: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        python_literal(f"[{text}]")
    assert [str(one.message) for one in warned] == []
