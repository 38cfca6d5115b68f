"""The rank test: exact against counting by hand, and the laws it must keep."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bardo.operators.probe.samples import ALPHA, Comparison, compare, least_chance, rank_test

counts = some.lists(some.integers(0, 6), min_size=1, max_size=6)


def by_counting(values: list[int], others: list[int]) -> float:
    """Go through every way to divide the values, as the test's definition says."""
    pool = sorted([*values, *others])
    rank = {
        value: sum(place for place, one in enumerate(pool, 1) if one == value) / pool.count(value) for value in pool
    }
    everyone = [*values, *others]
    expected = len(values) * (len(everyone) + 1) / 2
    distance = abs(sum(rank[value] for value in values) - expected)
    sums = [sum(rank[everyone[at]] for at in chosen) for chosen in combinations(range(len(everyone)), len(values))]
    return sum(abs(one - expected) >= distance - 1e-9 for one in sums) / len(sums)


@given(counts, counts)
def test_it_is_the_share_of_ways_that_are_at_least_so_extreme(values: list[int], others: list[int]) -> None:
    assert rank_test(values, others) == pytest.approx(by_counting(values, others))


@given(counts, counts)
def test_which_sample_comes_first_makes_no_difference(values: list[int], others: list[int]) -> None:
    assert rank_test(values, others) == pytest.approx(rank_test(others, values))


@given(counts, counts)
def test_only_the_order_of_values_counts(values: list[int], others: list[int]) -> None:
    assert rank_test([v**3 + 1 for v in values], [v**3 + 1 for v in others]) == rank_test(values, others)


@given(counts)
def test_a_sample_does_not_differ_from_itself(values: list[int]) -> None:
    assert rank_test(values, values) == 1.0


# Values of published tables of the exact two-sided test.
TABLE = {
    "three apart": ([1, 2, 3], [4, 5, 6], 0.1),
    "four apart": ([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70),
    "five apart": ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
    "five with one crossing": ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10], 4 / 252),
    "all alike": ([7, 7, 7], [7, 7, 7], 1.0),
    "nothing to compare": ([], [1, 2], 1.0),
}


@pytest.mark.parametrize(("values", "others", "p"), TABLE.values(), ids=TABLE)
def test_known_chances(values: list[float], others: list[float], p: float) -> None:
    assert rank_test(values, others) == pytest.approx(p)


@pytest.mark.parametrize(("size", "other"), [(1, 1), (3, 3), (5, 5), (3, 10)])
def test_the_least_chance_is_that_of_samples_apart(size: int, other: int) -> None:
    assert least_chance(size, other) == pytest.approx(rank_test(range(size), range(100, 100 + other)))


def test_large_samples_are_counted_too() -> None:
    assert 0 < rank_test(range(10), range(5, 65)) < 1


def of(values: list[float], others: list[float]) -> Comparison:
    return compare("one", "other", values, others)


def test_a_difference_must_be_neither_chance_nor_small() -> None:
    assert of([100, 101, 102, 103, 104], [200, 201, 202, 203, 204]).moved
    sure_and_small = of([100, 101, 102, 103, 104], [110, 111, 112, 113, 114])
    assert sure_and_small.p <= ALPHA
    assert not sure_and_small.moved
    assert not of([100, 300, 100, 300, 100], [200, 100, 300, 500, 100]).moved
    assert not of([0] * 5, [0] * 5).moved


def test_from_nothing_any_thinking_is_a_difference() -> None:
    found = of([0] * 5, [40, 41, 42, 43, 44])
    assert found.moved
    assert found.rises
    assert found.ratio is None


def test_too_few_values_can_show_nothing() -> None:
    assert not of([1, 2, 3, 4], [50, 60, 70, 80]).powered
    assert of([1, 2, 3, 4, 5], [50, 60, 70, 80, 90]).powered
