"""A plain call costs at once what it costs step by step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bardo.accounting.cost import PER_MILLION, Price, Rates, Schedule, Tier, estimate, plain_cost, step_by_step
from bardo.values.usage import Usage, UsageDetails

RATE = st.integers(0, 10**6).map(lambda nanos: nanos * PER_MILLION)
OTHER = st.one_of(st.none(), RATE)
TIERS = ("", "default", "priority", "flex", "unheard-of")
COUNT = st.one_of(st.none(), st.integers(0, 10**7))
RATES = st.builds(Rates, RATE, OTHER, OTHER, OTHER, RATE, OTHER, OTHER)


def ascending(tiers: list[Tier]) -> tuple[Tier, ...]:
    return tuple(sorted(tiers, key=lambda tier: tier.above))


PRICES = st.builds(
    Price,
    schedule=st.builds(
        Schedule,
        rates=RATES,
        tiers=st.lists(st.builds(Tier, above=st.integers(0, 10**7), rates=RATES), max_size=2).map(ascending),
    ),
    variants=st.sampled_from([{}, {"priority": Schedule(rates=Rates(input=PER_MILLION, output=PER_MILLION))}]),
    source=st.just("catalog"),
)
DETAILS = st.builds(
    UsageDetails,
    service_tier=st.sampled_from(TIERS),
    searches=st.sampled_from([None, 0, 1]),
    audio_input_tokens=st.sampled_from([None, 0, 5]),
    billed_input_tokens=st.sampled_from([None, None, 0, 7]),
    cache_write_1h_tokens=st.sampled_from([None, 0, 5]),
)
USAGES = st.builds(
    Usage,
    input_tokens=COUNT,
    output_tokens=COUNT,
    reasoning_tokens=COUNT,
    cached_input_tokens=COUNT,
    cache_write_tokens=COUNT,
    details=st.one_of(st.none(), DETAILS),
)
PLAIN = Price(schedule=Schedule(rates=Rates(input=2500 * PER_MILLION, output=15_000 * PER_MILLION)), source="catalog")


@given(PRICES, USAGES)
def test_both_ways_give_the_same(price: Price, usage: Usage) -> None:
    plain = plain_cost(price, usage)
    assert plain is None or plain == step_by_step(price, usage)


@given(PRICES, st.integers(0, 10**7), st.integers(0, 10**7))
def test_an_estimate_is_the_cost_of_all_tokens(price: Price, given_tokens: int, most: int) -> None:
    usage = Usage(input_tokens=given_tokens, output_tokens=most)
    assert estimate(price, given_tokens, most) == step_by_step(price, usage).nanos


def test_a_usual_call_is_plain() -> None:
    details = UsageDetails(service_tier="default", audio_input_tokens=0, audio_output_tokens=0)
    usage = Usage(input_tokens=1000, output_tokens=100, reasoning_tokens=20, cached_input_tokens=0, details=details)
    cost = plain_cost(PLAIN, usage)
    assert cost is not None
    assert cost.parts == {"input": 2_500_000, "answer": 1_200_000, "thinking": 300_000}


def test_long_requests_fees_and_fractions_are_not_plain() -> None:
    rates = PLAIN.schedule.rates
    tiered = Price(schedule=Schedule(rates=rates, tiers=(Tier(above=1, rates=rates),)))
    dear = Price(schedule=PLAIN.schedule, request_fee=5)
    fine = Price(schedule=Schedule(rates=Rates(input=PER_MILLION + 1, output=PER_MILLION)))
    for price in (tiered, dear, fine):
        assert plain_cost(price, Usage(input_tokens=2, output_tokens=1)) is None
