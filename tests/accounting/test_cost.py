"""The arithmetic of one call's cost: exact, split by cause, unknown where something is not known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.accounting.cost import Price, Rates, Schedule, Tier, computed_cost, cost_of, estimate
from bardo.values.usage import Usage, UsageDetails

pytestmark = pytest.mark.each_python

RATE = st.one_of(st.none(), st.integers(0, 10**12))
COUNT = st.one_of(st.none(), st.integers(0, 10**9))


def rates(draw_rate: st.SearchStrategy[int | None] = RATE) -> st.SearchStrategy[Rates]:
    return st.builds(Rates, st.integers(0, 10**12), *[draw_rate] * 3, st.integers(0, 10**12), *[draw_rate] * 6)


PRICES = st.builds(
    Price,
    schedule=st.builds(
        Schedule, rates=rates(), tiers=st.lists(st.builds(Tier, above=st.integers(0, 10**6), rates=rates()), max_size=2).map(tuple)
    ),
    request_fee=st.integers(0, 10**10),
    search_fee=st.one_of(st.none(), st.integers(0, 10**8)),
)  # fmt: skip
USAGES = st.builds(
    Usage,
    input_tokens=COUNT,
    output_tokens=COUNT,
    reasoning_tokens=COUNT,
    cached_input_tokens=COUNT,
    cache_write_tokens=COUNT,
    cost_usd=st.one_of(st.none(), st.floats(0, 1000)),
    details=st.one_of(
        st.none(),
        st.builds(
            UsageDetails,
            cache_write_1h_tokens=COUNT,
            audio_input_tokens=COUNT,
            cached_audio_tokens=COUNT,
            image_input_tokens=COUNT,
            audio_output_tokens=COUNT,
            image_output_tokens=COUNT,
            searches=st.one_of(st.none(), st.integers(0, 50)),
        ),
    ),
)
PRICE = Price(
    schedule=Schedule(
        rates=Rates(3_000_000_000, 300_000_000, 3_750_000_000, 6_000_000_000, 15_000_000_000),
        tiers=(Tier(above=200_000, rates=Rates(6_000_000_000, 600_000_000, 7_500_000_000, None, 22_500_000_000)),),
    ),
    variants={"batch": Schedule(rates=Rates(1_500_000_000, None, None, None, 7_500_000_000))},
    search_fee=10_000_000,
    source="catalog",
)


@given(PRICES, USAGES)
def test_the_parts_of_a_known_cost_add_up_to_it(price: Price, usage: Usage) -> None:
    cost = cost_of(price, usage)
    assert all(nanos > 0 for nanos in cost.parts.values())
    if cost.nanos is not None:
        assert sum(cost.parts.values()) == cost.nanos


@given(USAGES)
def test_a_cost_that_only_the_provider_knows_has_parts_too(usage: Usage) -> None:
    cost = cost_of(None, usage)
    assert (cost.nanos is None) == (usage.cost_usd is None)
    assert sum(cost.parts.values()) == (cost.nanos or 0)


@given(PRICES, st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_output_never_costs_less(price: Price, read: int, written: int, more: int) -> None:
    usage = Usage(input_tokens=read, output_tokens=written)
    longer = Usage(input_tokens=read, output_tokens=written + more)
    least, most = computed_cost(price, usage).nanos, computed_cost(price, longer).nanos
    assert least is not None
    assert most is not None
    assert least <= most


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_tokens_in_the_cache_are_counted_once(read: int, cached: int, written: int) -> None:
    one_price = Price(schedule=Schedule(rates=Rates(1_000_000, None, None, None, 0)))
    usage = Usage(
        input_tokens=read + cached + written, output_tokens=0, cached_input_tokens=cached, cache_write_tokens=written
    )
    assert computed_cost(one_price, usage).nanos == read + cached + written


CASES: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("plain", {"input_tokens": 1000, "output_tokens": 100}, {"input": 3_000_000, "answer": 1_500_000}),
    (
        "thinking",
        {"input_tokens": 1000, "output_tokens": 100, "reasoning_tokens": 60},
        {"input": 3_000_000, "answer": 600_000, "thinking": 900_000},
    ),
    (
        "cache",
        {"input_tokens": 1000, "output_tokens": 0, "cached_input_tokens": 600, "cache_write_tokens": 300},
        {"input": 300_000, "cache_read": 180_000, "cache_write": 1_125_000},
    ),
    (
        "cache of an hour",
        {"input_tokens": 300, "output_tokens": 0, "cache_write_tokens": 300, "details": UsageDetails(cache_write_1h_tokens=200)},
        {"cache_write": 375_000 + 1_200_000},
    ),
    ("at the threshold", {"input_tokens": 200_000, "output_tokens": 0}, {"input": 600_000_000}),
    ("above it, all tokens", {"input_tokens": 200_001, "output_tokens": 1}, {"input": 1_200_006_000, "answer": 22_500}),
    (
        "searches",
        {"input_tokens": 0, "output_tokens": 0, "details": UsageDetails(searches=3)},
        {"fee": 30_000_000},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_kind_of_token_costs_its_rate(counts: dict[str, Any], parts: dict[str, int]) -> None:
    cost = cost_of(PRICE, Usage(**counts))
    assert cost.parts == parts
    assert cost.nanos == sum(parts.values())


def test_a_batch_costs_the_price_of_batches() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100)
    assert cost_of(PRICE, usage, batch=True).nanos == 2_250_000
    assert cost_of(Price(schedule=PRICE.schedule), usage, batch=True).nanos is None


@pytest.mark.parametrize("tier", ["flex", "priority"])
def test_a_service_tier_without_a_price_costs_nobody_knows_what(tier: str) -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, details=UsageDetails(service_tier=tier))
    assert cost_of(PRICE, usage).nanos is None


@pytest.mark.parametrize("tier", ["", "default", "standard"])
def test_the_usual_service_tiers_cost_the_usual_price(tier: str) -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, details=UsageDetails(service_tier=tier))
    assert cost_of(PRICE, usage).nanos == 4_500_000


UNKNOWN: list[tuple[str, dict[str, Any]]] = [
    ("no input", {"output_tokens": 1}),
    ("no output", {"input_tokens": 1}),
    ("nothing", {}),
]  # fmt: skip


@pytest.mark.parametrize("counts", [case[1] for case in UNKNOWN], ids=[case[0] for case in UNKNOWN])
def test_a_count_that_is_missing_makes_the_cost_unknown(counts: dict[str, Any]) -> None:
    assert cost_of(PRICE, Usage(**counts)).nanos is None


def test_searches_without_a_fee_make_the_cost_unknown() -> None:
    price = Price(schedule=PRICE.schedule)
    usage = Usage(input_tokens=1, output_tokens=1, details=UsageDetails(searches=1))
    assert cost_of(price, usage).nanos is None


def test_without_a_price_the_cost_is_unknown() -> None:
    assert cost_of(None, Usage(input_tokens=1, output_tokens=1)).nanos is None


def test_the_figure_of_the_provider_is_the_cost_and_ours_stands_beside_it() -> None:
    cost = cost_of(PRICE, Usage(input_tokens=1000, output_tokens=100, cost_usd=0.009))
    assert (cost.nanos, cost.reported_nanos, cost.computed_nanos) == (9_000_000, 9_000_000, 4_500_000)
    assert cost.difference_nanos == 4_500_000
    assert cost.parts == {"input": 6_000_000, "answer": 3_000_000}
    assert cost.source == "provider"


def test_a_reported_cost_without_any_count_is_a_fee() -> None:
    assert cost_of(None, Usage(cost_usd=0.005)).parts == {"fee": 5_000_000}


def test_vectors_need_no_price_of_output() -> None:
    price = Price(schedule=Schedule(rates=Rates(20_000_000)))
    assert cost_of(price, Usage(input_tokens=1_000_000)).nanos == 20_000_000


def test_what_the_cache_saved_is_beside_plain_input() -> None:
    read = Usage(input_tokens=1000, output_tokens=0, cached_input_tokens=1000, cache_write_tokens=0)
    written = Usage(input_tokens=1000, output_tokens=0, cached_input_tokens=0, cache_write_tokens=1000)
    assert cost_of(PRICE, read).saved_nanos == 2_700_000
    assert cost_of(PRICE, written).saved_nanos == -750_000
    assert cost_of(PRICE, Usage(input_tokens=1000, output_tokens=0)).saved_nanos is None


def test_what_the_provider_leaves_out_of_its_bill_costs_nothing() -> None:
    billed = UsageDetails(billed_input_tokens=2, billed_output_tokens=9)
    usage = Usage(input_tokens=500, output_tokens=12, cached_input_tokens=480, details=billed)
    assert cost_of(PRICE, usage).parts == {"cache_read": 600, "answer": 135_000}


def test_an_estimate_is_the_cost_of_the_longest_answer() -> None:
    assert estimate(PRICE, 1000, 100) == 4_500_000
    assert estimate(None, 1000, 100) is None
    assert estimate(PRICE, None, 100) is None
