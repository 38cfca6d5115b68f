"""Workers of one gateway tell each other what happens in them, while somebody looks on."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bardo.server import worker_events
from bardo.server.worker_events import WorkerEvents
from bardo.services.facts.event_feed import EventBus, EventFeed, EventFilter
from bardo.values.inference_events import CallFinished, CallStarted, PublishedEvent, ReasoningText
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python


class Sink:
    """What a page or a feed is for a bus."""

    def __init__(self) -> None:
        self.events: list[PublishedEvent] = []
        self.missed = 0

    @property
    def names(self) -> set[str]:
        return {event.request_id for event in self.events}

    def add(self, event: PublishedEvent) -> None:
        self.events.append(event)

    def miss(self) -> None:
        self.missed += 1

    def close(self) -> None: ...


def started() -> CallStarted:
    return CallStarted(
        subsystem="dream", provider="p", model="m", model_asked="x", client_dialect="d", streamed=True, cause="first"
    )


def thought(text: str) -> ReasoningText:
    return ReasoningText(subsystem="", text=text)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a short name: those of sockets may not be long."""
    with tempfile.TemporaryDirectory(prefix="b", dir="/tmp") as name:
        yield Path(name)


@asynccontextmanager
async def worker(folder: Path, name: str) -> AsyncIterator[EventBus]:
    bus = EventBus()
    events = WorkerEvents(bus, folder, name)
    await events.start()
    try:
        yield bus
    finally:
        await events.stop()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.01)


async def until_connected(bus: EventBus) -> None:
    """Wait until the other workers tell what happens in them."""
    assert isinstance(bus._watcher, WorkerEvents)
    await asyncio.wait_for(bus._watcher._connected.wait(), PATIENCE)


def test_who_looks_on_in_one_worker_is_told_of_the_others(folder: Path) -> None:
    async def run() -> None:
        async with worker(folder, "a") as one, worker(folder, "b") as two, worker(folder, "c") as three:
            page = Sink()
            one.attach(page)
            await until(lambda: two.active and three.active)
            two.publish("r2", [started(), thought("é\n\u2028")], "k2")
            three.publish("r3", [thought("three")])
            one.publish("r1", [thought("one")])
            await until(lambda: len(page.events) == 4)
            found = {event.request_id: event for event in page.events}
            assert set(found) == {"r1", "r2", "r3"}
            assert found["r2"].event == thought("é\n\u2028")
            assert found["r2"].key_id == "k2"

    asyncio.run(run())


def test_events_go_one_step_and_nobody_is_told_twice(folder: Path) -> None:
    async def run() -> None:
        async with worker(folder, "a") as one, worker(folder, "b") as two:
            first, second = Sink(), Sink()
            one.attach(first)
            two.attach(second)
            library = one.subscribe()
            await until_connected(one)
            await until_connected(two)
            # What was sent on, or twice, would be there before the events of the second round, which come by the same way.
            for names in ({"r1", "r2"}, {"r3", "r4"}):
                for bus, name in zip((one, two), sorted(names), strict=True):
                    bus.publish(name, [thought(name)])
                await until(lambda: names <= first.names & second.names)  # noqa: B023
            assert len(first.events) == len(second.events) == 4
            assert [event.request_id for event in library.take()] == ["r1", "r3"]

    asyncio.run(run())


def test_nothing_is_sent_while_nobody_looks_on(folder: Path) -> None:
    async def run() -> None:
        async with worker(folder, "a") as one, worker(folder, "b") as two:
            await asyncio.sleep(0.1)
            assert not one.active
            assert not two.active
            page = Sink()
            one.attach(page)
            await until(lambda: two.active)
            one.remove(page)
            await until(lambda: not two.active)
            one.attach(page)
            await until(lambda: two.active)

    asyncio.run(run())


def test_a_worker_that_begins_later_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_events, "LOOK_SECONDS", 0.05)

    async def run() -> None:
        async with worker(folder, "a") as one:
            page = Sink()
            one.attach(page)
            async with worker(folder, "b") as two:
                await until(lambda: two.active)
                two.publish("r", [thought("x")])
                await until(lambda: len(page.events) == 1)

    asyncio.run(run())
    assert list(folder.iterdir()) == []


def test_the_calls_of_a_worker_that_ended_have_ended(folder: Path) -> None:
    async def run() -> None:
        page = Sink()
        async with worker(folder, "a") as one:
            one.attach(page)
            async with worker(folder, "b") as two:
                await until(lambda: two.active)
                two.publish("r", [started()], "k")
                await until(lambda: len(page.events) == 1)
            await until(lambda: len(page.events) == 2)
        ended = page.events[1]
        assert isinstance(ended.event, CallFinished)
        assert (ended.request_id, ended.key_id, ended.event.outcome, ended.event.model) == ("r", "k", "broken", "m")
        assert (ended.event.error, ended.event.cost_usd, ended.event.subsystem) == ("WorkerEnded", None, "dream")

    asyncio.run(run())


def test_who_is_sent_too_much_is_told_that_events_were_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_events, "MOST_WAITING", 10)

    async def run() -> None:
        async with worker(folder, "a") as one, worker(folder, "b") as two:
            page, feed = Sink(), EventFeed(one)
            one.attach(page)
            reader = feed.read(EventFilter(request_id="another"))
            coming = asyncio.ensure_future(anext(reader))
            await until(lambda: two.active)
            two.publish("r", [thought(str(number)) for number in range(50)])
            assert (await asyncio.wait_for(coming, PATIENCE)).event is None
            await reader.aclose()
            assert page.missed == 1
            assert [event.event for event in page.events] == [thought(str(number)) for number in range(40, 50)]

    asyncio.run(run())


def test_a_folder_without_room_for_a_socket_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        folder = tmp_path / ("x" * 200)
        folder.mkdir()
        async with worker(folder, "a") as bus:
            assert not bus.has_other_workers
        assert "does not tell the others" in caplog.text

    asyncio.run(run())
