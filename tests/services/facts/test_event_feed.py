"""A feed of events: readers get what they want, in order, and a reader that comes back gets what it missed, or is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from bardo.services.facts.event_feed import MOST_KEPT, EventBus, EventFeed, EventFilter, FeedEvent, event_name
from bardo.values.inference_events import CacheStats, ReasoningText
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python


def text(number: int, subsystem: str = "") -> ReasoningText:
    return ReasoningText(subsystem=subsystem, text=str(number))


async def take(events: AsyncGenerator[FeedEvent, None], count: int) -> list[FeedEvent]:
    return [await asyncio.wait_for(anext(events), PATIENCE) for _ in range(count)]


async def started(
    feed: EventFeed, wanted: EventFilter | None = None, after: str = ""
) -> tuple[AsyncGenerator[FeedEvent, None], asyncio.Future[FeedEvent]]:
    events = feed.read(wanted or EventFilter(), after)
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    return events, first


def said(found: FeedEvent) -> str:
    assert found.event is not None
    assert isinstance(found.event.event, ReasoningText)
    return found.event.event.text


def test_nothing_is_kept_before_somebody_reads() -> None:
    async def run() -> None:
        bus = EventBus()
        EventFeed(bus)
        assert not bus.active

    asyncio.run(run())


def test_readers_get_what_they_want_in_order() -> None:
    async def run() -> None:
        bus = EventBus(lambda: 5.0)
        feed = EventFeed(bus)
        everything, first = await started(feed)
        _own, mine = await started(feed, EventFilter(key_id="k1", names=("call:",), subsystem="dream"))
        bus.publish("r1", [text(1)], "k1")
        bus.publish("r2", [text(2, "dream")], "k2")
        bus.publish("r3", [CacheStats(subsystem="dream", cached_tokens=1, total_tokens=2, savings_usd=None)], "k1")
        bus.publish("r4", [text(4, "dream")], "k1")
        found = [await first, *await take(everything, 3)]
        assert [one.event and one.event.request_id for one in found] == ["r1", "r2", "r3", "r4"]
        assert found[0].event is not None
        assert (event_name(found[0].event), found[0].event.at) == ("call:reasoning", 5.0)
        assert said(await mine) == "4"

    asyncio.run(run())


def test_a_reader_that_comes_back_gets_what_it_missed() -> None:
    async def run() -> None:
        bus = EventBus()
        feed = EventFeed(bus)
        events, first = await started(feed)
        bus.publish("r", [text(1), text(2), text(3)])
        seen = await first
        await events.aclose()
        bus.publish("r", [text(4)])
        again, second = await started(feed, after=seen.id)
        found = [await second, *await take(again, 2)]
        assert [said(one) for one in found] == ["2", "3", "4"]

    asyncio.run(run())


@pytest.mark.parametrize("after", ["other-5", "nonsense", "-", "x-99999999999999999999"])
def test_a_reader_with_an_id_of_another_process_is_told(after: str) -> None:
    async def run() -> None:
        feed = EventFeed(EventBus())
        _, first = await started(feed, after=after)
        assert (await first).event is None

    asyncio.run(run())


def test_a_reader_that_is_too_slow_is_told_and_goes_on() -> None:
    async def run() -> None:
        bus = EventBus()
        feed = EventFeed(bus)
        events, first = await started(feed)
        bus.publish("r", [text(0)])
        assert said(await first) == "0"
        bus.publish("r", [text(number) for number in range(1, MOST_KEPT + 11)])
        missed, then = await take(events, 2)
        assert missed.event is None
        assert said(then) == "11"

    asyncio.run(run())
