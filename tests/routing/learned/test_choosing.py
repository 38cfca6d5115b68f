"""Choices: repeatable from their record, inside the regret budget, and measured beside the best single model."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.outcomes import Estimate
from bardo.routing.learned.router import (
    Budget,
    Choice,
    LearnedRouter,
    LearnedState,
    Sums,
    choose,
    compare,
    in_comparison,
    repeat,
    seed_of,
)

pytestmark = pytest.mark.each_python

positive = st.floats(0.01, 1000)
estimates = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(Estimate, alpha=positive, beta=positive, cost=st.none() | st.floats(0, 10)),
    min_size=1,
)


def sure(success: float, cost: float | None = None) -> Estimate:
    return Estimate(alpha=success * 10_000, beta=(1 - success) * 10_000, cost=cost)


@given(estimates, st.text(max_size=20), st.floats(0, 1), st.floats(0, 0.2))
def test_a_recorded_choice_is_made_again(
    found: dict[str, Estimate], request: str, weight: float, regret: float
) -> None:
    choice = choose(found, seed=seed_of(request), price_weight=weight, budget=Budget(per_choice=regret))
    read = msgspec.json.decode(msgspec.json.encode(choice), type=Choice)
    assert repeat(read) == choice.model
    assert sorted(choice.order) == sorted(found)


@given(estimates, st.lists(st.text(max_size=8), min_size=1, max_size=30), st.floats(0, 0.1))
def test_exploring_never_loses_more_than_the_budget(
    found: dict[str, Estimate], requests: list[str], regret: float
) -> None:
    budget = Budget(per_choice=regret)
    for request in requests:
        choice = choose(found, seed=seed_of(request), price_weight=0.1, budget=budget)
        budget = budget.after(choice.regret)
        assert budget.spent <= regret * budget.choices + 1e-9


def test_without_a_budget_the_best_mean_is_asked() -> None:
    found = {"good": Estimate(alpha=3, beta=2, cost=None), "bad": Estimate(alpha=2, beta=3, cost=None)}
    choices = [choose(found, seed=n, price_weight=0, budget=Budget(per_choice=0)) for n in range(50)]
    assert {one.model for one in choices} == {"good"}


def test_what_is_unsure_is_tried() -> None:
    found = {"good": sure(0.6), "new": Estimate(alpha=1, beta=1, cost=None)}
    asked = {choose(found, seed=n, price_weight=0, budget=Budget(per_choice=1)).model for n in range(50)}
    assert asked == {"good", "new"}


def test_a_price_counts_as_much_as_it_weighs() -> None:
    found = {"dear": sure(0.80, 1.0), "cheap": sure(0.75, 0.1)}
    for weight, model in ((0.0, "dear"), (0.5, "cheap")):
        assert choose(found, seed=1, price_weight=weight, budget=Budget()).model == model


def test_a_price_that_is_not_known_is_no_gift() -> None:
    found = {"known": sure(0.7, 0.1), "unknown": sure(0.7, None), "dear": sure(0.1, 1.0)}
    assert choose(found, seed=1, price_weight=0.2, budget=Budget()).model == "known"


def test_a_choice_needs_a_candidate() -> None:
    with pytest.raises(ValueError, match="no candidate"):
        choose({}, seed=1, price_weight=0, budget=Budget())


def sums(values: list[float]) -> Sums:
    found = Sums()
    for value in values:
        found = found.after(value, value, 0.0)
    return found


@pytest.mark.parametrize(
    ("routed", "single", "verdict"),
    [
        pytest.param([1.0, 0.8] * 50, [0.3, 0.5] * 50, "pays", id="pays"),
        pytest.param([0.3, 0.5] * 50, [1.0, 0.8] * 50, "costs", id="costs"),
        pytest.param([0.0, 1.0] * 50, [1.0, 0.0] * 50, "unproven", id="no difference"),
        pytest.param([1.0, 0.9] * 10, [0.0, 0.1] * 10, "unproven", id="too few"),
    ],
)
def test_the_comparison_says_what_its_interval_shows(routed: list[float], single: list[float], verdict: str) -> None:
    assert compare(sums(routed), sums(single)).verdict == verdict


def test_a_stated_share_of_the_requests_is_compared() -> None:
    found = sum(in_comparison(f"call_{n}", 0.1) for n in range(5_000))
    assert 400 < found < 600
    assert not any(in_comparison(f"call_{n}", 0) for n in range(100))


COSTS = {"a/small": 0.001, "b/large": 0.01}
CODE, CHAT = "Write a python function to reverse a list.", "Who was king of France in 1515?"


def play(router: LearnedRouter, success: dict[tuple[str, str], float], calls: int) -> list[str]:
    """Ask about code and history in turn, answer as `success` says, and return the models of the last hundred calls about code."""
    asked = []
    for number in range(calls):
        prompt = (CODE, CHAT)[number % 2]
        pending = router.choose(prompt, COSTS, request_id=f"call_{number}", at=number, route="r", cost_sensitivity=0.1)
        model = pending.choice.asked
        router.learn(pending, success=success[prompt, model], cost=COSTS[model], at=number)
        if prompt == CODE and pending.group == "routed":
            asked.append(model)
    return asked[-100:]


def test_each_kind_of_prompt_finds_its_model_and_routing_pays() -> None:
    router = LearnedRouter(shipped_embedding())
    success = {(CODE, "a/small"): 1.0, (CODE, "b/large"): 0.0, (CHAT, "a/small"): 0.0, (CHAT, "b/large"): 1.0}
    asked = play(router, success, 1500)
    assert asked.count("a/small") > 90
    assert router.state.routes["r"].comparison().verdict == "pays"


def test_a_route_where_routing_loses_asks_the_best_single_model() -> None:
    state = LearnedRouter(shipped_embedding()).state
    lost = {
        "budget": {},
        "routed": msgspec.to_builtins(sums([0.0, 0.1] * 50)),
        "single": msgspec.to_builtins(sums([0.9, 1.0] * 50)),
    }
    kept = msgspec.convert({**msgspec.to_builtins(state), "routes": {"r": lost}}, LearnedState, str_keys=True)
    router = LearnedRouter(shipped_embedding(), kept)
    for number in range(3):
        pending = router.choose(CODE, COSTS, request_id=f"call_{number}", at=0, route="r")
        router.learn(pending, success=float(pending.choice.asked == "b/large"), cost=None, at=0)
    assert router.state.routes["r"].off
    later = router.choose(CODE, COSTS, request_id="later", at=0, route="r")
    assert later.group == "single"
    assert repeat(later.choice) == later.choice.asked


def test_the_state_survives_being_written() -> None:
    router = LearnedRouter(shipped_embedding())
    play(router, {(prompt, model): 0.5 for prompt in (CODE, CHAT) for model in COSTS}, 50)
    read = msgspec.json.decode(msgspec.json.encode(router.state), type=LearnedState)
    again = LearnedRouter(shipped_embedding(), read).choose(CODE, COSTS, request_id="x", at=50)
    assert again == router.choose(CODE, COSTS, request_id="x", at=50)
