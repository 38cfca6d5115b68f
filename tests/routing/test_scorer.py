"""The score of a candidate, against numbers that were worked out by hand from the document's weights."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.routing_rows import routing_rows
from bardo.routing.candidates import Candidate, CandidateIndex, Prices
from bardo.routing.scorer import RoutingContext, choices_by_score, compute_backend_score, score
from bardo.values.request import Intent

pytestmark = pytest.mark.each_python

# Blended prices: 0.75 × input + 0.25 × output. $5 and $25: 10.0, a cost term of 1 - 10/10 = 0. $3 and $15: 6.0, so 0.4.
# $0.50 and $3: 1.125, so 0.8875. Free: 1.
OPUS = Candidate(
    provider="p",
    model="opus",
    features=frozenset({"citations", "interleaved_thinking"}),
    prices=Prices(input=5, output=25),
    rating=1.0,
    latency_ms=4000,
)
SONNET = msgspec.structs.replace(OPUS, model="sonnet", prices=Prices(input=3, output=15), rating=0.8, latency_ms=2000)
FLASH = Candidate(provider="p", model="flash", prices=Prices(input=0.5, output=3), rating=0.6, latency_ms=500)
FREE = Candidate(
    provider="p",
    model="free",
    features=frozenset({"citations"}),
    prices=Prices(input=0, output=0),
    rating=0.2,
    latency_ms=8000,
)
BARE = Candidate(provider="p", model="bare")
BOTH = ("citations", "interleaved_thinking")

# "Backend score computation": weights (cost, quality, latency, features) are (0.25, 0.40, 0.15, 0.20) at a cost sensitivity of 0, whose
# sum is 1; (0.425, 0.30, 0.15, 0.15) at 0.5, sum 1.025; (0.60, 0.20, 0.15, 0.10) at 1, sum 1.05. The bound on latency is 4000 ms.
# Each row: the terms of cost, quality, latency and features, and the total at each of the three sensitivities.
GOLDEN = [
    # features 2/2; latency 1 - 4000/4000 = 0.
    # 0: 0 + 0.40 + 0 + 0.20 = 0.60. 0.5: (0.30 + 0.15) / 1.025 = 0.45 / 1.025. 1: (0.20 + 0.10) / 1.05 = 0.30 / 1.05.
    (OPUS, BOTH, (0.0, 1.0, 0.0, 1.0), (0.60, 0.45 / 1.025, 0.30 / 1.05)),
    # latency 1 - 2000/4000 = 0.5.
    # 0: 0.10 + 0.32 + 0.075 + 0.20 = 0.695. 0.5: 0.17 + 0.24 + 0.075 + 0.15 = 0.635. 1: 0.24 + 0.16 + 0.075 + 0.10 = 0.575.
    (SONNET, BOTH, (0.4, 0.8, 0.5, 1.0), (0.695, 0.635 / 1.025, 0.575 / 1.05)),
    # latency 1 - 500/4000 = 0.875; features 0/2.
    # 0: 0.221875 + 0.24 + 0.13125 = 0.593125. 0.5: 0.3771875 + 0.18 + 0.13125 = 0.6884375. 1: 0.5325 + 0.12 + 0.13125 = 0.78375.
    (FLASH, BOTH, (0.8875, 0.6, 0.875, 0.0), (0.593125, 0.6884375 / 1.025, 0.78375 / 1.05)),
    # latency 1 - 8000/4000 = -1, clamped to 0; features 1/2.
    # 0: 0.25 + 0.08 + 0 + 0.10 = 0.43. 0.5: 0.425 + 0.06 + 0.075 = 0.56. 1: 0.60 + 0.04 + 0.05 = 0.69.
    (FREE, BOTH, (1.0, 0.2, 0.0, 0.5), (0.43, 0.56 / 1.025, 0.69 / 1.05)),
    # No wanted features: 1. 0: 0.221875 + 0.24 + 0.13125 + 0.20 = 0.793125. 0.5: 0.6884375 + 0.15. 1: 0.78375 + 0.10.
    (FLASH, (), (0.8875, 0.6, 0.875, 1.0), (0.793125, 0.8384375 / 1.025, 0.88375 / 1.05)),
    # All unknown: 0.5 each. 0: 0.125 + 0.20 + 0.075 + 0.20 = 0.60.
    # 0.5: 0.2125 + 0.15 + 0.075 + 0.15 = 0.5875. 1: 0.30 + 0.10 + 0.075 + 0.10 = 0.575.
    (BARE, (), (0.5, 0.5, 0.5, 1.0), (0.60, 0.5875 / 1.025, 0.575 / 1.05)),
]


@pytest.mark.parametrize("place", range(3), ids=["sensitivity 0", "sensitivity 0.5", "sensitivity 1"])
@pytest.mark.parametrize(
    ("backend", "wanted", "terms", "totals"), GOLDEN, ids=[f"{one[0].model}-{len(one[1])}" for one in GOLDEN]
)
def test_scores_are_those_of_the_document(
    backend: Candidate, wanted: tuple[str, ...], terms: tuple[float, ...], totals: tuple[float, ...], place: int
) -> None:
    context = RoutingContext(required_features=wanted, cost_sensitivity=(0.0, 0.5, 1.0)[place], max_latency_ms=4000)
    found = score(backend, context)
    assert (found.cost, found.quality, found.latency, found.features) == pytest.approx(terms)
    assert found.total == pytest.approx(totals[place])
    assert compute_backend_score(backend, context) == found.total


def test_the_weights_shift_as_the_document_says() -> None:
    # "Weights shift with cost sensitivity": cost 0.25 -> 0.60, quality 0.40 -> 0.20, latency 0.15, features 0.20 -> 0.10.
    weights = routing_rows().weights
    ends = [(one.at(0), one.at(1)) for one in (weights.cost, weights.quality, weights.latency, weights.features)]
    assert [tuple(round(value, 6) for value in pair) for pair in ends] == [
        (0.25, 0.60),
        (0.40, 0.20),
        (0.15, 0.15),
        (0.20, 0.10),
    ]


def test_what_is_unknown_is_said_and_not_taken_for_nothing() -> None:
    found = score(BARE, RoutingContext(max_latency_ms=1000))
    assert found.unknown == ("cost", "quality", "latency")
    assert score(BARE, RoutingContext()).unknown == ("cost", "quality")
    assert score(BARE, RoutingContext()).latency == 1
    paid = msgspec.structs.replace(BARE, payments=("diem",))
    assert score(paid, RoutingContext(diem=True)).cost == 1
    assert score(paid, RoutingContext()).cost == 0.5


def test_the_best_score_is_asked_first_and_the_order_decides_between_equals() -> None:
    twin = msgspec.structs.replace(FLASH, provider="q")
    index = CandidateIndex([OPUS, SONNET, FLASH, FREE, twin])
    cheap = [one.candidate for one in choices_by_score(index, Intent(cost_sensitivity=1.0, max_latency_ms=4000))]
    assert [(one.provider, one.model) for one in cheap[:2]] == [("p", "flash"), ("q", "flash")]
    cited = Intent(cost_sensitivity=0.0, require=BOTH, max_latency_ms=4000)
    assert next(iter(choices_by_score(index, cited))).candidate == SONNET


@given(
    st.floats(0, 1),
    st.none() | st.integers(1, 5000),
    st.none() | st.integers(0, 100_000),
    st.none() | st.floats(0, 1),
    st.none() | st.floats(0, 1000),
    st.lists(st.sampled_from(("citations", "vision")), max_size=2).map(tuple),
)
def test_every_term_and_the_score_are_within_0_and_1(
    sensitivity: float,
    most: int | None,
    latency: int | None,
    rating: float | None,
    price: float | None,
    wanted: tuple[str, ...],
) -> None:
    prices = None if price is None else Prices(input=price, output=price)
    backend = Candidate(provider="p", model="m", prices=prices, rating=rating, latency_ms=latency)
    found = score(backend, RoutingContext(required_features=wanted, cost_sensitivity=sensitivity, max_latency_ms=most))
    for term in (found.cost, found.quality, found.latency, found.features, found.total):
        assert -1e-9 <= term <= 1 + 1e-9
