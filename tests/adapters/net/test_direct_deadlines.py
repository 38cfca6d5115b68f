"""Each reply that is waited for has a deadline of its own, though one timer looks after all of them."""

from __future__ import annotations

import asyncio

import pytest

from bardo.adapters.net.connection import FirstByteDeadlines, HttpConnection, Incoming
from bardo.values.errors import BardoError, UpstreamTimeout

pytestmark = pytest.mark.each_python


def late(name: str) -> BardoError:
    return UpstreamTimeout(name)


def incoming() -> Incoming:
    return Incoming(HttpConnection(asyncio.get_running_loop(), lambda connection: None))


async def failed(one: Incoming) -> str:
    """Return the error of a reply that fails."""
    while one.failure is None:
        await one.wait()
    return str(one.failure)


def test_replies_fail_in_the_order_of_their_deadlines_whichever_came_first() -> None:
    async def told() -> None:
        loop = asyncio.get_running_loop()
        deadlines, order = FirstByteDeadlines(), list[str]()

        async def watch(name: str) -> None:
            order.append(await failed(replies[name]))

        replies = {name: incoming() for name in ("late", "soon", "sooner", "answered", "much later")}
        begun = loop.time()
        for name, seconds in (
            ("late", 0.15),
            ("soon", 0.1),
            ("sooner", 0.05),
            ("answered", 0.02),
            ("much later", 600.0),
        ):
            deadlines.add(replies[name], begun + seconds, lambda name=name: late(name))  # type: ignore[misc]
        deadlines.remove(replies["answered"])
        await asyncio.gather(*(watch(name) for name in ("late", "soon", "sooner")))
        assert [one.partition(" ")[0] for one in order] == ["sooner", "soon", "late"]
        assert loop.time() - begun >= 0.14
        assert replies["answered"].failure is None
        assert replies["much later"].failure is None
        deadlines.close()

    asyncio.run(told())


def test_a_deadline_that_has_passed_is_over_at_once() -> None:
    async def told() -> None:
        loop = asyncio.get_running_loop()
        deadlines, one = FirstByteDeadlines(), incoming()
        deadlines.add(one, loop.time() - 1, lambda: late("over"))
        assert (await failed(one)).startswith("over")

    asyncio.run(told())
