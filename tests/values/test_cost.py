"""Costs in nano-dollars: they add up exactly, and what is unknown stays unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.usage import UNKNOWN_COST, CallCost, Cause, add_costs, apportion, nanos_of, usd

pytestmark = pytest.mark.each_python

CAUSES: tuple[Cause, ...] = ("input", "cache_read", "cache_write", "answer", "thinking", "fee")


@given(st.integers(0, 10**15), st.dictionaries(st.sampled_from(CAUSES), st.integers(0, 10**18)))
def test_a_total_is_split_exactly_and_close_to_its_weights(total: int, weights: dict[Cause, int]) -> None:
    split = apportion(total, weights)
    whole = sum(weights.values())
    assert sum(split.values()) == (total if whole else 0)
    for cause, share in split.items():
        assert abs(share * whole - total * weights[cause]) < whole


def test_a_split_gives_the_rest_to_the_largest_remainders() -> None:
    assert apportion(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert apportion(5, {"a": 0, "b": 2}) == {"b": 5}


@pytest.mark.parametrize(("total", "weights"), [(-1, {"a": 1}), (1, {"a": -1})])
def test_what_cannot_be_split_is_refused(total: int, weights: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="can be split"):
        apportion(total, weights)


@pytest.mark.parametrize(
    ("dollars", "nanos"),
    [(0.1, 100_000_000), (0.0000057, 5700), (1e-10, 0), (0.15845, 158_450_000), ("0.000000001", 1), (3, 3_000_000_000)],
)
def test_dollars_are_read_by_their_decimal_digits(dollars: float | str, nanos: int) -> None:
    assert nanos_of(dollars) == nanos


@pytest.mark.parametrize("amount", [float("nan"), float("inf")])
def test_no_number_is_no_amount(amount: float) -> None:
    with pytest.raises(ValueError, match="is no amount"):
        nanos_of(amount)


@given(st.integers(0, 10**15))
def test_dollars_read_back_as_the_nanos_they_were(nanos: int) -> None:
    assert nanos_of(usd(nanos)) == nanos


def test_a_sum_with_an_unknown_cost_is_unknown_and_keeps_the_parts() -> None:
    known = CallCost(nanos=7, parts={"input": 3, "answer": 4}, computed_nanos=7, source="catalog")
    total = add_costs([known, known, UNKNOWN_COST])
    assert total.nanos is None
    assert total.parts == {"input": 6, "answer": 8}
    assert add_costs([known, known]).nanos == 14
    assert add_costs([known, known]).source == "catalog"


def test_no_calls_cost_nothing() -> None:
    assert add_costs([]).nanos == 0


def test_the_difference_needs_both_figures() -> None:
    assert CallCost(nanos=9, reported_nanos=9, computed_nanos=7).difference_nanos == 2
    assert CallCost(nanos=9, reported_nanos=9).difference_nanos is None
