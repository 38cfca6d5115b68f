"""A conversation's warm cache makes its model cheaper for the next call, and never changes who meets the requirements."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.routing.candidates import Candidate, CandidateIndex, CandidateList, Prices
from bardo.routing.decision import decide
from bardo.services.facts.call_routing import WarmCandidates
from bardo.values.request import Intent

CHEAP = Candidate(provider="one", model="cheap", prices=Prices(input=1.0, output=4.0), rating=0.6)
DEAR = Candidate(provider="two", model="dear", prices=Prices(input=1.5, output=5.0), rating=0.6)
BEATEN = Candidate(provider="one", model="beaten", prices=Prices(input=2.0, output=5.0), rating=0.6)
INTENT = Intent(cost_sensitivity=1.0)


def first(candidates: CandidateIndex, discounts: dict[tuple[str, str], float], intent: Intent = INTENT) -> str:
    made = decide(WarmCandidates(candidates, discounts), intent, strategy="score")
    names = [one.candidate.model for one in made.choices]
    assert len(names) == len(set(names))
    return names[0]


def test_the_warm_model_is_stayed_with_only_where_that_saves_more() -> None:
    index = CandidateIndex([CHEAP, DEAR])
    assert first(index, {}) == "cheap"
    assert first(index, {("two", "dear"): 0.5}) == "cheap"
    assert first(index, {("two", "dear"): 0.7}) == "dear"


def test_a_model_that_another_of_its_provider_beats_may_be_the_best_while_it_is_warm() -> None:
    index = CandidateIndex([CHEAP, BEATEN])
    assert first(index, {("one", "beaten"): 1.5}) == "beaten"


def test_a_warm_model_that_lacks_what_is_required_is_not_chosen() -> None:
    able = msgspec.structs.replace(CHEAP, features=frozenset({"vision"}))
    index = CandidateIndex([able, DEAR])
    assert first(index, {("two", "dear"): 9.0}, Intent(require=("vision",), cost_sensitivity=1.0)) == "cheap"


def test_the_estimate_of_a_call_stays_that_of_the_prices() -> None:
    plain = decide(CandidateList([DEAR]), INTENT, strategy="score")
    warm = decide(WarmCandidates(CandidateList([DEAR]), {("two", "dear"): 1.0}), INTENT, strategy="score")
    assert warm.considered[0].estimated_cost_usd == plain.considered[0].estimated_cost_usd
    assert (warm.considered[0].score or 0) > (plain.considered[0].score or 0)


@given(st.floats(0, 100), st.sampled_from([("one", "cheap"), ("two", "dear"), ("nobody", "m")]))
def test_nobody_is_lost_or_doubled(discount: float, name: tuple[str, str]) -> None:
    index = CandidateIndex([CHEAP, DEAR])
    made = decide(WarmCandidates(index, {name: discount}), INTENT, strategy="score")
    assert sorted(one.candidate.model for one in made.choices) == ["cheap", "dear"]
    assert all(one.candidate.price() == pytest.approx(max(0.0, one.candidate.price() or 0)) for one in made.choices)
