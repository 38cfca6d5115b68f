"""Leases on limits: several processes together never give out more than there is, in whatever order things happen."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.accounting.limits import (
    COUNTED_SECONDS,
    Allowance,
    Demand,
    KeyLimits,
    LeasedUsage,
    LeaseRequest,
    LimitName,
    Period,
    Reservation,
    day_number,
    is_counted,
    leased,
    next_day,
    next_month,
    seconds_until,
)

pytestmark = pytest.mark.each_python

NOON = 1_795_435_200.0
"""2026-11-23 12:00 UTC."""


class SharedState:
    """What the state database does, in memory: rows by process and period, and money that is counted elsewhere."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, Period], int] = {}
        self.spent: dict[int, int] = defaultdict(int)

    def claim(self, process: int, allowance: Allowance, demand: Demand, now: float) -> Reservation | None:
        wants = allowance.renew(demand, now)
        self.store(process, allowance)
        granted: dict[Period, int] = {}
        left: dict[LimitName, int] = {}
        for want in wants:
            amount = leased(want, self.total(want.name, now))
            if amount is None:
                return None
            granted[want.name, want.period] = amount
            left[want.name] = 0
        for want in wants:
            self.rows[process, (want.name, want.period)] = want.used + granted[want.name, want.period]
        allowance.lease(granted, left, now)
        return allowance.take(demand, now)

    def store(self, process: int, allowance: Allowance) -> None:
        for period, gauge in allowance.gauges.items():
            self.rows[process, period] = max(0, gauge.used)

    def total(self, name: LimitName, now: float) -> int:
        leases: dict[LimitName, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (_, period), amount in self.rows.items():
            leases[period[0]][period[1]] += amount
        today = day_number(now)
        month = sum(nanos for day, nanos in self.spent.items() if day // 100 == today // 100)
        return LeasedUsage(leases, self.spent[today], month).total(name, now)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["call", "call", "call", "end", "wait", "shrink"]),
        st.integers(0, 40),
        st.integers(0, 50),
    ),
    max_size=120,
)


@given(STEPS, st.integers(1, 30))
def test_no_sixty_seconds_hold_more_calls_than_the_limit(steps: list[tuple[int, str, int, int]], limit: int) -> None:
    limits = KeyLimits(requests_per_minute=limit)
    state, processes = SharedState(), [Allowance(limits) for _ in range(3)]
    now, calls = NOON, list[float]()
    for process, step, tenths, _ in steps:
        now += tenths / 10 if step == "wait" else 0.01
        own = processes[process]
        if step == "call" and (own.take(Demand(), now) or state.claim(process, own, Demand(), now)):
            calls.append(now)
        elif step == "shrink":
            own.shrink(now)
            state.store(process, own)
        assert sum(one > now - 60 for one in calls) <= limit


@given(STEPS, st.integers(1, 5))
def test_no_more_calls_run_at_a_time_than_the_limit(steps: list[tuple[int, str, int, int]], limit: int) -> None:
    limits = KeyLimits(concurrency=limit)
    state, processes = SharedState(), [Allowance(limits) for _ in range(3)]
    now, running = NOON, list[tuple[int, Reservation]]()
    for process, step, tenths, _ in steps:
        now += tenths / 10
        own = processes[process]
        if step == "call":
            taken = own.take(Demand(), now) or state.claim(process, own, Demand(), now)
            running += [(process, taken)] if taken else []
        elif step == "end" and running:
            whose, taken = running.pop(0)
            processes[whose].settle(taken, tokens=0, nanos=0, now=now)
        elif step == "shrink":
            own.shrink(now)
            state.store(process, own)
        assert len(running) <= limit


@given(STEPS, st.integers(1, 200))
def test_a_budget_is_never_overspent_where_no_call_costs_more_than_its_estimate(
    steps: list[tuple[int, str, int, int]], budget: int
) -> None:
    limits = KeyLimits(usd_per_day=budget, usd_per_month=3 * budget)
    state, processes = SharedState(), [Allowance(limits) for _ in range(3)]
    now, running, costs = NOON, list[tuple[int, Reservation, int]](), defaultdict[int, int](int)
    for process, step, tenths, nanos in steps:
        now += tenths * 2_000 if step == "wait" else 0.01
        own, demand = processes[process], Demand(nanos=nanos)
        if step == "call":
            taken = own.take(demand, now) or state.claim(process, own, demand, now)
            running += [(process, taken, nanos)] if taken else []
        elif step == "end" and running:
            whose, taken, estimated = running.pop(0)
            cost = estimated * tenths // 40
            spent = processes[whose].settle(taken, tokens=None, nanos=cost, now=now)
            costs[taken.day_number] += spent
            state.spent[taken.day_number] += spent
            processes[whose].forget(taken, spent)
        elif step == "shrink":
            own.shrink(now)
            state.store(process, own)
        assert all(spent <= budget for spent in costs.values())
        assert all(
            sum(spent for day, spent in costs.items() if day // 100 == month) <= 3 * budget
            for month in {day // 100 for day in costs}
        )


@pytest.mark.parametrize(
    ("calls", "need", "seconds"),
    [({0: 3}, 1, 62.0), ({0: 1, 10: 2}, 1, 62.0), ({0: 1, 10: 2}, 2, 72.0), ({0: 3}, 4, 62.0)],
    ids=["all at once", "one of three", "two of three", "more than the limit"],
)
def test_who_is_refused_is_told_when_there_is_room(calls: dict[int, int], need: int, seconds: float) -> None:
    taken = {int(NOON) + second: amount for second, amount in calls.items()}
    want = LeaseRequest("requests_per_minute", int(NOON), 3, 0, need)
    assert seconds_until(want, taken, NOON) == seconds
    if need <= 3:
        later = NOON + seconds
        left = sum(amount for second, amount in taken.items() if is_counted(("requests_per_minute", second), later))
        assert left + need <= 3


def test_budgets_begin_anew_at_midnight_and_at_the_first_of_a_month() -> None:
    assert day_number(NOON) == 20261123
    assert day_number(next_day(NOON)) == 20261124
    assert day_number(next_month(NOON)) == 20261201
    assert day_number(next_month(NOON) - 1) == 20261130
    day, month = (LeaseRequest(name, 0, 1, 0, 1) for name in ("usd_per_day", "usd_per_month"))
    assert seconds_until(day, {}, NOON) == 12 * 3600
    assert seconds_until(month, {}, NOON) == (7 * 24 + 12) * 3600


def test_tokens_are_settled_by_what_they_were() -> None:
    state, own = SharedState(), Allowance(KeyLimits(tokens_per_minute=100))
    first = state.claim(0, own, Demand(tokens=90), NOON)
    assert first is not None
    assert state.claim(0, own, Demand(tokens=20), NOON) is None
    own.settle(first, tokens=10, nanos=None, now=NOON + 1)
    second = state.claim(0, own, Demand(tokens=20), NOON + 1)
    assert second is not None
    own.settle(second, tokens=95, nanos=None, now=NOON + 5)
    assert state.claim(0, own, Demand(tokens=1), NOON + 5) is None
    assert state.claim(0, own, Demand(tokens=90), NOON + 5 + COUNTED_SECONDS) is not None


@pytest.mark.parametrize("happens", ["grows", "ends with less", "is counted elsewhere"])
def test_what_happens_to_running_calls_while_the_shared_state_is_asked_is_not_forgotten(happens: str) -> None:
    own = Allowance(KeyLimits(usd_per_day=1_000))
    running = SharedState().claim(0, own, Demand(nanos=100), NOON)
    assert running is not None
    wants = own.renew(Demand(nanos=10), NOON)
    spent = 0
    if happens == "grows":
        own.grow(running, tokens=0, nanos=300, now=NOON)
    else:
        spent = own.settle(running, tokens=None, nanos=70, now=NOON)
    if happens == "is counted elsewhere":
        own.forget(running, spent)
    (want,) = wants
    # The shared state counts what was used when it was asked, beside what it gives now.
    own.lease({(want.name, want.period): 50}, {want.name: 850}, NOON)
    assert own.spare_nanos() == {"grows": 700, "ends with less": 930, "is counted elsewhere": 930}[happens]
