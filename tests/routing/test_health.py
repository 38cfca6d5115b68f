"""The health of targets: when one goes down, who may try it, how it comes back, and what counts for whom."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bardo.routing.circuit import (
    ABANDONED,
    TRIAL_SECONDS,
    AttemptOutcome,
    ErrorClass,
    HealthPolicy,
    error_class,
    outcome_of,
    wilson_lower_bound,
)
from bardo.routing.health import MOST_MODELS, HealthStore, MemoryHealth, state_of
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    InvalidRequest,
    MalformedReply,
    MissingKey,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)
from support.two_gateways import TwoGateways

OK = AttemptOutcome(seconds=0.5)
SERVER = AttemptOutcome(error="server", status=500)
LOST = AttemptOutcome(error="connection")
POLICY = HealthPolicy()


@pytest.fixture(params=["memory", "redis", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HealthStore]:
    """Return the store under test: in one process, or two gateways over a server or a file, of which each makes every second call."""
    if request.param == "memory":
        yield MemoryHealth()
        return
    place = tmp_path / "health.db" if request.param == "file" else request.getfixturevalue("redis_url")
    gateways = TwoGateways(str(place))
    yield gateways
    gateways.close()


def note(
    store: HealthStore, *outcomes: AttemptOutcome, model: str = "m", now: float = 0.0, provider: str = "p"
) -> None:
    for outcome in outcomes:
        store.note(provider, model, outcome, now)


def state(store: HealthStore, model: str = "m", now: float = 0.0) -> str:
    rest = store.rests.rest_of_all("p", model, now)
    return state_of(store.circuit("p", model, now), store.circuit("p", "", now), rest)


def test_nothing_is_known_of_a_target_before_enough_calls(store: HealthStore) -> None:
    assert state(store) == "unknown"
    note(store, *[OK] * 4)
    assert state(store) == "unknown"
    note(store, OK)
    assert state(store) == "healthy"


def test_fewer_calls_than_the_least_never_take_a_target_down(store: HealthStore) -> None:
    note(store, *[SERVER] * (POLICY.least_calls - 1))
    assert state(store) == "unknown"
    assert not store.troubled


def test_a_target_goes_down_when_it_is_certain_that_too_many_calls_fail(store: HealthStore) -> None:
    note(store, *[OK] * 30, *[SERVER] * 3)
    assert wilson_lower_bound(3, 33) < 0.05
    assert state(store) == "degraded"
    note(store, SERVER, SERVER)
    assert wilson_lower_bound(5, 35) > 0.05
    assert state(store) == "down"
    assert store.down("p", "m", 0.0) == POLICY.rest_seconds


def test_failures_that_are_older_than_the_window_count_no_more(store: HealthStore) -> None:
    note(store, *[SERVER] * 4)
    note(store, SERVER, now=301.0)
    assert state(store, now=301.0) == "unknown"


def test_a_fault_of_one_model_is_not_one_of_another(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    assert (state(store, "m"), state(store, "other")) == ("down", "unknown")


def test_connections_that_fail_count_for_every_model_of_the_provider(store: HealthStore) -> None:
    for model in ("a", "b", "c", "d", "e"):
        note(store, LOST, model=model)
    assert {state(store, model) for model in ("a", "b", "never asked")} == {"down"}
    assert store.circuit("q", "", 0.0) is None


def test_an_answer_of_any_kind_shows_that_there_is_a_connection(store: HealthStore) -> None:
    note(store, *[LOST] * 5)
    note(store, AttemptOutcome(error="caller", status=400), now=16.0)
    assert state(store, now=16.0) == "unknown"


@pytest.mark.parametrize("error", ["caller", "abandoned", "rate_limited", "key_refused"])
def test_what_is_no_fault_of_the_provider_takes_nothing_down(store: HealthStore, error: ErrorClass) -> None:
    note(store, *[AttemptOutcome(error=error, status=400)] * 100)
    assert store.down("p", "m", 0.0) is None
    assert store.circuit("p", "m", 0.0) is None


def test_a_target_that_is_down_is_tried_by_one_call_when_it_is_due(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    assert not store.claim("p", "m", 14.9)
    assert store.claim("p", "m", 15.0)
    assert not store.claim("p", "m", 15.0)
    note(store, OK, now=16.0)
    assert store.down("p", "m", 16.0) is None
    assert store.claim("p", "m", 16.0)
    assert store.claim("p", "m", 16.0)


def test_each_failure_of_the_call_that_tries_doubles_the_rest_up_to_its_bound(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    now, rests = 0.0, []
    for _ in range(7):
        due = store.down("p", "m", now)
        assert due is not None
        rests.append(due - now)
        now = due
        assert store.claim("p", "m", now)
        note(store, SERVER, now=now)
    assert rests == [15.0, 30.0, 60.0, 120.0, 240.0, 300.0, 300.0]


def test_a_target_that_falls_down_again_soon_rests_twice_as_long(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    note(store, OK, now=20.0)
    note(store, *[SERVER] * 5, now=30.0)
    assert store.down("p", "m", 30.0) == 60.0
    note(store, OK, now=61.0)
    note(store, *[SERVER] * 5, now=1000.0)
    assert store.down("p", "m", 1000.0) == 1015.0


def test_a_late_answer_to_an_earlier_call_does_not_bring_a_target_back(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    note(store, OK, now=3.0)
    assert store.down("p", "m", 3.0) == 15.0


def test_a_call_that_nobody_waited_for_lets_another_one_try(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    assert store.claim("p", "m", 20.0)
    note(store, ABANDONED, now=21.0)
    assert store.claim("p", "m", 21.0)
    assert not store.claim("p", "m", 22.0)
    assert store.claim("p", "m", 21.0 + TRIAL_SECONDS)


def test_a_target_whose_provider_is_down_too_is_tried_when_both_are_due(store: HealthStore) -> None:
    note(store, *[SERVER] * 5)
    note(store, *[LOST] * 6, now=10.0)
    assert store.down("p", "m", 10.0) == 25.0
    assert not store.claim("p", "m", 20.0)
    assert store.claim("p", "m", 25.0)


@pytest.mark.parametrize("jump", [-1e6, -10.0, 1e6])
def test_no_jump_of_the_clock_keeps_a_target_down(store: HealthStore, jump: float) -> None:
    now = 2e6
    note(store, *[SERVER] * 5, now=now)
    note(store, AttemptOutcome(error="rate_limited", rest_seconds=60.0), now=now, model="limited")
    now += jump
    assert store.claim("p", "m", now)
    note(store, OK, now=now)
    assert store.down("p", "m", now) is None
    assert store.rests.rest_of_all("p", "limited", now) is None


def test_a_rate_limit_is_a_rest_and_no_fault(store: HealthStore) -> None:
    note(store, *[AttemptOutcome(error="rate_limited", status=429, rest_seconds=30.0)] * 20)
    assert state(store) == "degraded"
    assert store.rests.rest_of_all("p", "m", 29.9) is not None
    assert store.rests.rest_of_all("p", "m", 30.0) is None
    assert store.rests.rest_of_all("p", "other", 0.0) is None


def test_a_refused_key_takes_the_provider_down_for_longer_each_time(store: HealthStore) -> None:
    refused = AttemptOutcome(error="key_refused", status=401)
    note(store, refused)
    assert (state(store), state(store, now=59.0), state(store, now=60.0)) == ("down", "down", "unknown")
    note(store, refused, now=60.0)
    assert state(store, now=179.0) == "down"
    note(store, OK, now=180.0)
    assert not store.troubled


def test_a_refusal_that_may_be_about_one_request_counts_when_it_comes_back(store: HealthStore) -> None:
    flagged = AttemptOutcome(error="key_refused", status=403)
    note(store, flagged, flagged)
    assert state(store) != "down"
    note(store, OK, flagged, flagged)
    assert state(store) != "down"
    note(store, flagged)
    assert state(store) == "down"


def test_memory_is_bounded_whatever_models_clients_name() -> None:
    store = MemoryHealth()
    note(store, *[SERVER] * 5, model="broken")
    for place in range(100_000):
        store.note("p", f"m{place}", OK, place / 1000)
    assert len(list(store.targets())) <= MOST_MODELS + 1
    assert len(store._down) <= MOST_MODELS
    assert store.down("p", "broken", 14.0) is not None, "what is down is not forgotten for names that somebody makes up"


def test_rests_of_models_that_clients_make_up_are_bounded() -> None:
    store = MemoryHealth()
    for place in range(10_000):
        store.note("p", f"m{place}", AttemptOutcome(error="rate_limited", rest_seconds=3600.0), 0.0)
    key = store.rests.states.get(("p", ""))
    assert key is not None
    assert len(key.rests) <= 256


def test_latency_is_known_after_enough_calls(store: HealthStore) -> None:
    note(store, *[OK] * 9)
    assert store.latency("p", "m").p95_ms is None
    for tenths in range(1, 101):
        note(store, AttemptOutcome(first_token_seconds=tenths / 10, seconds=60.0))
    found = store.latency("p", "m")
    assert (found.p50_ms, found.p90_ms, found.p95_ms, found.first_token_p95_ms) == (5000, 9000, 9500, 9500)
    assert store.p90_ms("p", "m") is not None


def test_the_revision_follows_what_routing_goes_by(store: HealthStore) -> None:
    before = store.revision
    note(store, *[OK] * 10)
    assert store.revision == before + 1
    note(store, *[OK] * 20)
    assert store.revision == before + 1
    note(store, *[SERVER] * 20)
    assert store.revision == before + 2
    assert store.count_due(14.0) == 0
    assert store.count_due(15.0) == 1


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Unreachable("no"), "connection"),
        (UpstreamTimeout("late"), "timeout"),
        (BrokenStream("cut"), "broken"),
        (MalformedReply("page"), "malformed"),
        (InvalidRequest("no"), "caller"),
        (MissingKey("none"), "caller"),
        (UpstreamRefused("bad", status=400), "caller"),
        (UpstreamRefused("no such model", status=404), "caller"),
        (UpstreamRefused("unprocessable", status=422), "caller"),
        (UpstreamRefused("maximum context length is 10 tokens", status=500), "caller"),
        (UpstreamRefused("no", status=401), "key_refused"),
        (UpstreamRefused("pay", status=402), "key_refused"),
        (UpstreamRefused("forbidden", status=403), "key_refused"),
        (UpstreamRefused("quota", status=429, upstream_code="insufficient_quota"), "key_refused"),
        (UpstreamRefused("Your credit balance is too low to access the API", status=400), "key_refused"),
        (UpstreamRefused("slow down", status=429), "rate_limited"),
        (UpstreamRefused("late", status=408), "timeout"),
        (UpstreamRefused("boom", status=500), "server"),
        (UpstreamRefused("gateway", status=502), "server"),
        (UpstreamRefused("busy", status=503), "overloaded"),
        (UpstreamRefused("busy", status=529), "overloaded"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{type(value).__name__}-{getattr(value, 'status', '')}",
)
def test_an_error_says_whose_fault_it_is(problem: BardoError, expected: str) -> None:
    assert error_class(problem) == expected
    assert outcome_of(problem).error == expected


def test_words_that_a_refusal_quotes_of_the_request_say_nothing_of_the_key() -> None:
    refused = UpstreamRefused("Invalid 'user': 'Your credit balance is too low'", status=400)
    refused.own_words = "Invalid 'user': '…'"
    assert error_class(refused) == "caller"


ERRORS: list[ErrorClass | None] = [
    None,
    "connection",
    "timeout",
    "overloaded",
    "server",
    "malformed",
    "broken",
    "rate_limited",
    "key_refused",
    "caller",
    "abandoned",
]


class HealthMachine(RuleBasedStateMachine):
    """Any sequence of outcomes, at a clock that runs and jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryHealth()
        self.now = 1000.0
        self.faults = dict.fromkeys("ab", 0)
        self.lost = 0
        self.tried: dict[str, float] = {}

    @rule(model=st.sampled_from("ab"), error=st.sampled_from(ERRORS), times=st.integers(1, 7))
    def end_attempts(self, model: str, error: ErrorClass | None, times: int) -> None:
        for _ in range(times):
            self.store.note("p", model, AttemptOutcome(error=error, seconds=1.0, status=429), self.now)
        if error in ("timeout", "overloaded", "server", "malformed", "broken"):
            self.faults[model] += times
        self.lost += times if error == "connection" else 0
        self.tried.clear()

    @rule(seconds=st.floats(0, 400))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(seconds=st.floats(0, 1e5))
    def set_the_clock_back(self, seconds: float) -> None:
        self.now -= seconds
        self.tried.clear()

    @rule(model=st.sampled_from("ab"))
    def try_one(self, model: str) -> None:
        is_down = self.store.down("p", model, self.now) is not None
        may = self.store.claim("p", model, self.now)
        if is_down and may:
            since = self.tried.get(model)
            assert since is None or self.now - since >= TRIAL_SECONDS, "two calls try one target at once"
            self.tried[model] = self.now

    @invariant()
    def few_faults_take_nothing_down(self) -> None:
        for model in "ab":
            circuit = self.store.circuit("p", model, self.now)
            # Of the least number of calls at least two must fail: one of five is not certain to be more than 5 %.
            assert circuit is None or circuit.down_since is None or self.faults[model] >= 2
        whole = self.store.circuit("p", "", self.now)
        assert whole is None or whole.down_since is None or self.lost >= 2

    @invariant()
    def who_is_not_down_may_be_tried(self) -> None:
        for model in "ab":
            if self.store.down("p", model, self.now) is None:
                assert self.store.claim("p", model, self.now)

    @invariant()
    def a_target_is_due_within_the_longest_rest(self) -> None:
        for model in "ab":
            due = self.store.down("p", model, self.now)
            assert due is None or due - self.now <= POLICY.most_rest_seconds


TestHealthMachine = HealthMachine.TestCase
TestHealthMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_target_is_down_exactly_when_wilson_said_so_of_some_beginning(calls: list[bool]) -> None:
    store = MemoryHealth()
    certain = False
    for count, (failed, total) in enumerate(
        zip(itertools.accumulate(calls), itertools.count(1), strict=False), start=1
    ):
        store.note("p", "m", SERVER if calls[count - 1] else OK, 0.0)
        certain = certain or (
            calls[count - 1] and total >= POLICY.least_calls and wilson_lower_bound(failed, total) > POLICY.error_rate
        )
        assert (store.down("p", "m", 0.0) is not None) == certain
