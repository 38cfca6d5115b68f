"""Of several equal calls at the same time one leads: the others get its reply, and are not failed by its failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bardo.context.layer import KeptReply
from bardo.services.pipeline.reply_cache.cache import Flights
from support.patience import PATIENCE

KEY = ("t", b"id")
REPLY = KeptReply(provider="p", model="m", dialect="d", content_type="", body=b"x", streamed=False, kept_at=0.0)


class Watch:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def started(count: int, join: Callable[[], Awaitable[KeptReply | bool]]) -> list[asyncio.Task[KeptReply | bool]]:
    """Begin several calls, and return when all of them wait."""
    tasks = [asyncio.ensure_future(join()) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def run(test: Callable[[Flights, Watch], Awaitable[None]]) -> None:
    async def bounded() -> None:
        watch = Watch()
        await asyncio.wait_for(test(Flights(60, watch), watch), PATIENCE)

    asyncio.run(bounded())


def test_all_that_wait_get_the_reply_of_the_one_that_leads() -> None:
    async def check(flights: Flights, _: Watch) -> None:
        assert await flights.join(KEY) is True
        others = await started(5, lambda: flights.join(KEY))
        flights.land(KEY, REPLY)
        assert await asyncio.gather(*others) == [REPLY] * 5
        assert await flights.join(KEY) is True, "the next call finds nobody to wait for"

    run(check)


def test_where_the_leader_fails_one_of_the_others_leads_and_then_all_go_alone() -> None:
    async def check(flights: Flights, _watch: Watch) -> None:
        assert await flights.join(KEY) is True
        others = await started(4, lambda: flights.join(KEY))
        flights.land(KEY, None)
        led, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        assert [one.result() for one in led] == [True]
        flights.land(KEY, None)
        assert sorted(map(bool, await asyncio.gather(*others))) == [False, False, False, True]

    run(check)


def test_other_requests_and_other_tenants_do_not_wait() -> None:
    async def check(flights: Flights, _: Watch) -> None:
        for key in (KEY, ("t", b"other"), ("u", b"id")):
            assert await flights.join(key) is True

    run(check)


@pytest.mark.parametrize("how", ["cancelled", "failed"])
def test_a_leader_that_is_gone_without_a_word_is_not_waited_for(how: str) -> None:
    async def check(flights: Flights, _: Watch) -> None:
        forever = asyncio.Event()

        async def lead() -> None:
            assert await flights.join(KEY) is True
            await forever.wait()
            raise RuntimeError("a mistake")

        leader = asyncio.ensure_future(lead())
        await asyncio.sleep(0)
        [other] = await started(1, lambda: flights.join(KEY))
        if how == "cancelled":
            leader.cancel()
        else:
            forever.set()
        await asyncio.wait([leader])
        assert leader.cancelled() or leader.exception() is not None
        assert await other is True

    run(check)


def test_a_leader_that_was_gone_before_anybody_waited_is_followed_by_the_next() -> None:
    async def check(flights: Flights, _: Watch) -> None:
        leader = asyncio.ensure_future(flights.join(KEY))
        await leader
        assert await flights.join(KEY, 0.001) is False, "a call whose task has ended well may have its reply elsewhere"

        async def fail() -> None:
            assert flights.lead(("t", b"other"))
            raise RuntimeError("a mistake")

        await asyncio.wait([asyncio.ensure_future(fail())])
        assert await flights.join(("t", b"other")) is True

    run(check)


def test_calls_that_ended_without_a_word_are_forgotten() -> None:
    async def check(flights: Flights, watch: Watch) -> None:
        for number in range(10_000):
            watch.now = float(number)
            assert flights.lead(("t", number.to_bytes(4, "big")))
        assert len(flights) <= 1_100
        assert not flights.lead(("t", (9_999).to_bytes(4, "big"))), "a call that is under way leads yet"

    run(check)


def test_nobody_waits_for_longer_than_allowed() -> None:
    async def check(_: Flights, watch: Watch) -> None:
        flights = Flights(0.01, watch)
        assert await flights.join(KEY) is True
        assert await flights.join(KEY) is False, "time is up, and the call goes alone"
        watch.now = 1
        assert await flights.join(KEY) is True, "a leader that takes too long is followed by another"

    run(check)


def test_a_call_with_a_deadline_waits_for_less() -> None:
    async def check(flights: Flights, _watch: Watch) -> None:
        assert await flights.join(KEY) is True
        assert await flights.join(KEY, 0.001) is False

    run(check)
