"""Who is asked first: what is cached, how busy each server is, and what the call costs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bardo.context.affinity.layer import first_of_each
from bardo.context.affinity.server_order import LoadBounds, ServerOrder, ServerState, order_targets, saved_nanos
from bardo.context.layer import TargetFacts

PODS = [TargetFacts(provider="pods", model="m", dialect="openai_chat", address=f"{name}:1") for name in "abcd"]


def hosted(name: str, read: int, *, model: str = "m", input_price: int = 3_000_000_000) -> TargetFacts:
    return TargetFacts(provider=name, model=model, dialect="d", input_nanos=input_price, cache_read_nanos=read)


def ordered(targets: list[TargetFacts], *states: dict[str, Any], tokens: int = 10_000) -> ServerOrder:
    return order_targets(targets, [ServerState(**one) for one in states], LoadBounds(), lambda: tokens)


def warm(tokens: int, **more: Any) -> dict[str, Any]:
    return {"warm_tokens": tokens, "session_tokens": tokens, **more}


def test_a_session_goes_back_to_its_server() -> None:
    found = ordered(PODS, {}, {}, warm(5000), {})
    assert found.places[0] == 2
    assert found.why == "warm"


def test_it_goes_elsewhere_where_it_would_wait_longer_than_reading_takes() -> None:
    busy = {"in_flight": 6, "tokens_per_call": 1000.0}
    assert ordered(PODS, warm(5000, **busy), {}, {}, {}).places[0] == 1
    assert ordered(PODS, warm(7000, **busy), {}, {}, {}).places[0] == 0


def test_a_server_at_its_bound_is_passed_over_whatever_it_has() -> None:
    found = ordered(PODS, warm(1_000_000, in_flight=9), {}, {}, {})
    assert found.places[0] != 0
    assert found.why == "loaded"
    assert found.places[-1] == 0


def test_a_server_that_is_down_comes_last() -> None:
    assert ordered(PODS, warm(1_000_000, ready=False), {}, {}, {}).places[-1] == 0


def test_new_sessions_go_where_least_was_sent_lately() -> None:
    states = [{"placed_tokens": amount} for amount in (9000.0, 500.0, 8000.0, 7000.0)]
    found = ordered(PODS, *states)
    assert found.places == (1, 3, 2, 0)
    assert found.why == "spread"


def test_a_shared_beginning_gathers_new_sessions_until_the_server_has_had_much_more() -> None:
    shared = {"warm_tokens": 2000}
    assert ordered(PODS, {**shared, "placed_tokens": 7000.0}, {}, {}, {}).places[0] == 0
    assert ordered(PODS, {**shared, "placed_tokens": 9000.0}, {}, {}, {}).places[0] == 1


def test_what_was_sent_lately_moves_no_session_that_is_warm() -> None:
    assert ordered(PODS, warm(2000, placed_tokens=1e6), {}, {}, {}).places[0] == 0


def test_a_provider_that_has_the_prompt_and_costs_less_so_comes_first() -> None:
    targets = [hosted("one", 300_000_000), hosted("two", 300_000_000)]
    found = ordered(targets, {}, warm(8000))
    assert found.places == (1, 0)
    assert found.why == "cheaper"


def test_a_provider_stays_behind_whose_warm_prompt_still_costs_more() -> None:
    targets = [hosted("one", 30_000_000, input_price=300_000_000), hosted("two", 1_500_000_000)]
    assert ordered(targets, {}, warm(8000)).places == (0, 1)


def test_another_model_does_not_stand_equal_and_unknown_prices_decide_nothing() -> None:
    assert ordered([hosted("one", 3, model="x"), hosted("two", 3)], {}, warm(8000)).places == (0, 1)
    unpriced = TargetFacts(provider="one", model="m", dialect="d")
    assert ordered([unpriced, hosted("two", 3)], {}, warm(8000)).places == (0, 1)


def test_the_servers_of_a_provider_stay_together() -> None:
    targets = [*PODS[:2], hosted("cloud", 3)]
    assert ordered(targets, {}, warm(10), {}).places == (1, 0, 2)


def test_the_worth_of_a_warm_prefix() -> None:
    assert saved_nanos(hosted("one", 300_000_000), 1_000_000) == 2_700_000_000
    assert saved_nanos(TargetFacts(provider="x", model="m", dialect="d"), 1000) == 0


@given(
    st.lists(st.builds(
        ServerState,
        warm_tokens=st.integers(0, 10**6),
        session_tokens=st.integers(0, 10**6),
        in_flight=st.integers(0, 50),
        tokens_per_call=st.floats(0, 1e5),
        placed_tokens=st.floats(0, 1e8),
        ready=st.booleans(),
    ), min_size=1, max_size=4)
)  # fmt: skip
def test_nobody_is_lost_and_a_ready_server_comes_first(states: list[ServerState]) -> None:
    found = order_targets(PODS[: len(states)], states, LoadBounds(), lambda: 100)
    assert sorted(found.places) == list(range(len(states)))
    assert states[found.places[0]].ready or not any(one.ready for one in states)


def test_no_more_servers_of_one_provider_are_tried_than_asked_for() -> None:
    targets = [*PODS, hosted("cloud", 3)]
    assert first_of_each(targets, (3, 2, 1, 0, 4), 2) == (3, 2, 4)
