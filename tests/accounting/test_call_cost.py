"""The cost of a call is that of its attempts, by cause: its parts add up to it, and what nobody knows makes it unknown."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.accounting.cost import NO_COST, AttemptCost, as_part, call_cost, with_escalations
from bardo.values.attempts import AttemptCause
from bardo.values.usage import CallCost, Cause

_KINDS: tuple[Cause, ...] = ("input", "cache_read", "cache_write", "answer", "thinking", "fee")
_PARTS = st.dictionaries(st.sampled_from(_KINDS), st.integers(1, 10**15))
_KNOWN = st.builds(
    lambda parts, reported: CallCost(
        nanos=sum(parts.values()),
        parts=parts,
        reported_nanos=sum(parts.values()) if reported else None,
        computed_nanos=sum(parts.values()),
        source="provider" if reported else "catalog",
    ),
    _PARTS,
    st.booleans(),
)
_UNKNOWN = st.builds(lambda parts: CallCost(parts=parts), _PARTS)
_ATTEMPTS = st.lists(
    st.builds(
        AttemptCost,
        cause=st.sampled_from(get_args(AttemptCause)),
        cost=_KNOWN | _UNKNOWN | st.just(NO_COST),
        answered=st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


@given(_ATTEMPTS)
def test_parts_add_up_to_the_total_and_nothing_that_was_spent_is_missing(attempts: list[AttemptCost]) -> None:
    cost = call_cost(attempts)
    known = sum(sum(one.cost.parts.values()) for one in attempts)
    assert sum(cost.parts.values()) == known
    if any(one.cost.nanos is None for one in attempts):
        assert cost.nanos is None
    else:
        assert cost.nanos == known


@given(_ATTEMPTS)
def test_an_escalated_call_is_one_part(attempts: list[AttemptCost]) -> None:
    cost = call_cost(attempts)
    known = sum(cost.parts.values())
    assert as_part(cost, "escalation").parts == ({"escalation": known} if known else {})
    assert as_part(cost, "escalation").nanos == cost.nanos


def spent(nanos: int) -> CallCost:
    return CallCost(nanos=nanos, parts={"answer": nanos})


@pytest.mark.parametrize(
    ("attempts", "parts"),
    [
        ([("first", 5, True)], {"answer": 5}),
        ([("first", 1, False), ("retry", 5, True)], {"retry": 1, "answer": 5}),
        ([("first", 1, False), ("failover", 5, True)], {"failover": 1, "answer": 5}),
        ([("first", 1, False), ("retry", 2, False), ("failover", 5, True)], {"retry": 1, "failover": 2, "answer": 5}),
        ([("first", 5, True), ("repair", 2, True), ("repair", 3, True)], {"answer": 5, "repair": 5}),
        ([("first", 5, True), ("repair", 2, False)], {"answer": 5, "repair": 2}),
        ([("first", 5, True), ("search", 2, True)], {"answer": 7}),
        ([("first", 5, True), ("hedge", 2, False)], {"answer": 5, "hedge": 2}),
        ([("first", 2, False), ("hedge", 5, True)], {"answer": 5, "hedge": 2}),
        ([("first", 1, False), ("failover", 5, False)], {"failover": 1, "answer": 5}),
    ],
    ids=lambda value: "+".join(one[0] for one in value) if isinstance(value, list) else "",
)
def test_what_an_attempt_cost_that_did_not_answer_goes_under_what_it_led_to(
    attempts: list[tuple[AttemptCause, int, bool]], parts: dict[str, int]
) -> None:
    cost = call_cost([AttemptCost(cause, spent(nanos), answered) for cause, nanos, answered in attempts])
    assert cost.parts == parts
    assert cost.nanos == sum(parts.values())


def test_free_attempts_leave_the_providers_figure_and_that_of_the_prices_as_they_are() -> None:
    told = CallCost(nanos=7, parts={"answer": 7}, reported_nanos=7, computed_nanos=6, source="provider")
    cost = call_cost([AttemptCost("first", NO_COST, False), AttemptCost("failover", told)])
    assert (cost.nanos, cost.reported_nanos, cost.difference_nanos, cost.source) == (7, 7, 1, "provider")


def test_a_call_that_was_refused_before_any_work_cost_nothing() -> None:
    assert call_cost([AttemptCost("first", NO_COST, False), AttemptCost("retry", NO_COST, False)]).nanos == 0


def test_a_request_that_escalated_cost_all_its_calls() -> None:
    assert with_escalations(spent(5), [3, 4]) == CallCost(nanos=12, parts={"answer": 5, "escalation": 7})
    assert with_escalations(spent(5), [3, None]).nanos is None
    assert with_escalations(spent(5), [0]).parts == {"answer": 5}
