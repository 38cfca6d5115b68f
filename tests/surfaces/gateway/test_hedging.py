"""Where a provider is slower than usual, a second one is asked too, and whoever begins first answers: if that is switched on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bardo.adapters.config.routing import FailoverSettings
from bardo.routing.circuit import AttemptOutcome
from bardo.services.facts.failover import Failover
from bardo.services.facts.health import HealthKeeper
from bardo.simulators import Fault
from support.any_model import Simulator
from support.gateway import House, Watched, house
from support.patience import PATIENCE
from support.talk import CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed

MODEL = "shared-model"
FIRST, SECOND = "deepseek", "anthropic"
each_client = pytest.mark.parametrize("client", CLIENTS)


def quick(provider: str) -> HealthKeeper:
    """Return what is known of a provider that has always begun to answer within milliseconds."""
    health = HealthKeeper()
    for _ in range(20):
        health.note(provider, MODEL, AttemptOutcome(seconds=0.005, first_token_seconds=0.005), 0.0)
    return health


@contextmanager
def pair(first: Simulator, second: Simulator, *, share: float = 1.0, hedge: bool = True) -> Iterator[House]:
    settings = FailoverSettings(backoff_seconds=0.01, hedge=hedge, hedge_share=share)
    with house([first, second], each={"models": (MODEL,)}, failover=Failover(settings), health=quick(FIRST)) as running:
        yield running


@each_client
@whole_and_streamed
def test_the_second_answers_for_one_that_is_slower_than_usual(client: str, stream: bool) -> None:
    slow = Watched(FIRST, silent_first=True)
    with pair(slow, Simulator(SECOND)) as running:
        answer = ask(running.address, client, MODEL, stream=stream)
        assert answer.status == 200
        assert "1161" in answer.text
        assert answer.headers["x-bardo-provider"] == SECOND
        assert slow.over.wait(PATIENCE), "the slow provider is let go of"
        row = running.log.of_model(MODEL)
        assert (row.outcome, row.attempts, row.provider) == ("ok", 2, SECOND)
        first, second = row.attempt_records
        assert (first.cause, second.cause) == ("first", "hedge")
        assert "95 of 100" in second.why
        assert first.nanos is None, "nobody knows what the attempt that was let go of cost"


@whole_and_streamed
def test_who_is_as_quick_as_usual_is_asked_alone(stream: bool) -> None:
    second = Watched(SECOND)
    settings = FailoverSettings(hedge=True, hedge_share=1.0)
    with house(
        [Simulator(FIRST), second], each={"models": (MODEL,)}, failover=Failover(settings), health=HealthKeeper()
    ) as running:
        answer = ask(running.address, "openai_chat", MODEL, stream=stream)
        assert answer.headers["x-bardo-provider"] == FIRST
        assert not second.asked.is_set()


def test_nothing_is_hedged_where_it_is_not_switched_on_or_the_share_is_used_up() -> None:
    for options in ({"hedge": False}, {"share": 0.05}):
        second = Watched(SECOND)
        slow = Simulator(FIRST, fault=Fault("slow", delay=0.02))
        with pair(slow, second, **options) as running:
            assert ask(running.address, "openai_chat", MODEL, stream=True).headers["x-bardo-provider"] == FIRST
            assert not second.asked.is_set()


def test_a_share_of_all_calls_is_hedged_at_most() -> None:
    second = Watched(SECOND)
    with pair(Simulator(FIRST, fault=Fault("slow", delay=0.02)), second, share=0.25) as running:
        for _ in range(8):
            assert ask(running.address, "openai_chat", MODEL, stream=True).status == 200
        rows = running.log.wait(lambda row: row.model_asked == MODEL)
        assert sum(row.attempts - 1 for row in rows) <= 2


def test_where_both_fail_the_third_is_asked() -> None:
    silent, broken = (
        Simulator(FIRST, fault=Fault("stall", after=0)),
        Simulator(SECOND, fault=Fault("status", status=401)),
    )
    late = {"first_token_seconds": 1.0, "first_token_seconds_at": {"gemini": PATIENCE}}
    settings = FailoverSettings(backoff_seconds=0.01, hedge=True, hedge_share=1.0, **late)  # type: ignore[arg-type]
    with house(
        [silent, broken, Simulator("gemini")],
        each={"models": (MODEL,)},
        failover=Failover(settings),
        health=quick(FIRST),
    ) as running:
        answer = ask(running.address, "openai_chat", MODEL, stream=True)
        assert answer.status == 200
        assert answer.headers["x-bardo-provider"] == "gemini"
        row = running.log.of_model(MODEL)
        assert [one.cause for one in row.attempt_records] == ["first", "hedge", "failover"]
