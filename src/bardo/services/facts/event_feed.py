"""The events of a gateway as a feed that can be read on from where a reader stopped: the last ones are kept, while anybody reads.

Each event has an id of this process and a number. A reader that comes back with the last id it saw gets what it missed, or is told that it
missed something.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from typing import NamedTuple

import msgspec

from bardo.adapters.stores.log.row import LogRow
from bardo.services.facts.event_bus import EventBus
from bardo.values.chance import CHANCE
from bardo.values.inference_events import CallFinished, PublishedEvent

MOST_KEPT = 2_000
"""Events that are kept for readers that come back; one of them is at most a piece of thinking."""
KEPT_SECONDS = 300.0
"""How long after its last reader left a feed goes on to keep events."""
_MOST_NAMES = 20


class FeedEvent(NamedTuple):
    """One event with its id. `event` is None where the reader missed some: how many is not known."""

    id: str
    event: PublishedEvent | None


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events a reader wants; an empty text is any. `names` are beginnings of event names; `key_id` is the reader's own key."""

    request_id: str = ""
    subsystem: str = ""
    key_id: str | None = None
    names: tuple[str, ...] = ()

    def takes(self, published: PublishedEvent) -> bool:
        """Return whether an event is wanted."""
        if self.key_id is not None and published.key_id != self.key_id:
            return False
        if self.request_id and published.request_id != self.request_id:
            return False
        if self.subsystem and published.event.subsystem != self.subsystem:
            return False
        return not self.names or event_name(published).startswith(self.names)


class EventFeed:
    """Keeps the last events of a bus, and gives them to readers. Nothing is kept before the first reader comes."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._attached = False
        self._name = f"{CHANCE.getrandbits(48):012x}"
        self._last = 0
        self._kept: deque[PublishedEvent | None] = deque(maxlen=MOST_KEPT)
        self._readers: set[asyncio.Event] = set()
        self.readers_by_key: Counter[str] = Counter()
        """How many clients read over HTTP, by the id of their key; empty for those without one."""
        self._end: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def readers(self) -> int:
        """How many read."""
        return len(self._readers)

    def add(self, event: PublishedEvent) -> None:
        """Keep an event, and wake those who read."""
        self._keep(event)

    def miss(self) -> None:
        """Have readers told that events of another worker were lost."""
        self._keep(None)

    def _keep(self, event: PublishedEvent | None) -> None:
        self._last += 1
        self._kept.append(event)
        for reader in self._readers:
            reader.set()

    def close(self) -> None:
        """End what is read."""
        self._closed = True
        self._stop()
        for reader in self._readers:
            reader.set()

    async def connected(self) -> None:
        """Wait until a reader is told what happens in all workers, but not long."""
        await self._bus.connected()

    async def read(self, event_filter: EventFilter, after: str = "") -> AsyncGenerator[FeedEvent, None]:
        """Yield the events that are wanted: those after an id, where it is given, else those from now on."""
        came = asyncio.Event()
        self._start()
        self._readers.add(came)
        try:
            place, missed = self._place_after(after)
            if missed:
                yield FeedEvent(self._id(place), None)
            while not self._closed:
                first = self._last - len(self._kept)
                if place < first:
                    place = first
                    yield FeedEvent(self._id(place), None)
                while place < self._last and place >= self._last - len(self._kept):
                    event = self._kept[place - (self._last - len(self._kept))]
                    place += 1
                    if event is None or event_filter.takes(event):
                        yield FeedEvent(self._id(place), event)
                if place >= self._last:
                    came.clear()
                    await came.wait()
        finally:
            self._readers.discard(came)
            if not self._readers:
                self._end = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._stop)

    def _place_after(self, after: str) -> tuple[int, bool]:
        """Return the number of the last event that a reader has seen, and whether it missed some since."""
        name, _, number = after.rpartition("-")
        if not after:
            return self._last, False
        if name != self._name or not number.isdecimal() or int(number) > self._last:
            return self._last, True
        return int(number), False

    def _id(self, number: int) -> str:
        return f"{self._name}-{number}"

    def _start(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if not self._attached:
            self._bus.attach(self)
            self._attached = True

    def _stop(self) -> None:
        self._end = None
        self._bus.remove(self)
        self._attached = False


def event_name(published: PublishedEvent) -> str:
    """Return the name of an event: `call:finished`, for instance."""
    return str(published.event.__struct_config__.tag)


def finished_event(row: LogRow) -> CallFinished:
    """Return the event of a call that has ended."""
    return CallFinished(
        subsystem=row.subsystem or "",
        provider=row.provider,
        model=row.model,
        model_asked=row.model_asked,
        client_dialect=row.client_dialect,
        outcome=row.outcome,
        error=row.error_class,
        seconds=row.seconds,
        attempts=row.attempts,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        reasoning_tokens=row.reasoning_tokens,
        cost_usd=row.cost_usd,
        verdict=row.reasoning_verdict,
        visibility=row.visibility,
        degraded=tuple([str(one.get("what", "")) for one in row.degraded[:_MOST_NAMES]]),
    )
