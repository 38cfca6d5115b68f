"""The bus of inference events never waits for those who read it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.services.facts.event_feed import EventBus
from bardo.values.inference_events import SchemaFallback

pytestmark = pytest.mark.each_python


def event(number: int) -> SchemaFallback:
    return SchemaFallback(subsystem="risk", schema_name=str(number))


async def names(bus: EventBus, most: int, count: int) -> tuple[list[str], int]:
    stream = bus.subscribe(most)
    bus.publish("r", (event(number) for number in range(count)))
    stream.close()
    return [one.event.schema_name async for one in stream if isinstance(one.event, SchemaFallback)], stream.dropped


@given(most=st.integers(1, 20), count=st.integers(0, 60))
def test_the_newest_are_held_and_the_others_counted(most: int, count: int) -> None:
    held, dropped = asyncio.run(names(EventBus(), most, count))
    assert held == [str(number) for number in range(max(0, count - most), count)]
    assert dropped == max(0, count - most)


def test_nothing_is_made_while_nobody_listens() -> None:
    bus = EventBus()
    assert not bus.active
    bus.publish("r", [event(1)])
    stream = bus.subscribe()
    listening = bus.active
    stream.close()
    assert (listening, bus.active) == (True, False)


async def _waited() -> list[str]:
    bus = EventBus()
    async with bus.subscribe() as stream, asyncio.TaskGroup() as group:
        first = group.create_task(anext(stream))
        await asyncio.sleep(0)
        bus.publish("r1", [event(1)])
        found = await first
        return [found.request_id]


def test_a_reader_waits_for_the_next_event() -> None:
    assert asyncio.run(_waited()) == ["r1"]


async def _ended() -> None:
    bus = EventBus()
    stream = bus.subscribe()
    bus.close()
    await anext(stream)


def test_the_end_of_the_bus_ends_its_readers() -> None:
    with pytest.raises(StopAsyncIteration):
        asyncio.run(_ended())
