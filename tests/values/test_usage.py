"""Token counts under one algebra, where not reported is not 0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.usage import Usage, estimate_tokens

pytestmark = pytest.mark.each_python

counts = st.none() | st.integers(0, 10_000)


@given(counts, counts, counts)
def test_sums_are_known_only_where_both_parts_are(asked: int | None, output: int | None, reasoning: int | None) -> None:
    usage = Usage(input_tokens=asked, output_tokens=output, reasoning_tokens=reasoning)
    assert usage.reported is not (asked is None and output is None)
    assert usage.total_tokens == (None if asked is None or output is None else asked + output)
    assert usage.answer_tokens == (None if output is None or reasoning is None else output - reasoning)


def test_a_reported_0_is_reported() -> None:
    assert Usage(output_tokens=0).reported
    assert not Usage().reported
    assert not Usage(reasoning_tokens=0).reported


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("four", 1), ("a" * 400, 100), ("思考", 1), ("思" * 15, 10), ("ab" * 8 + "思" * 3, 6)],
)
def test_estimates(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text())
def test_text_is_never_free(text: str) -> None:
    assert (estimate_tokens(text) > 0) is bool(text)
