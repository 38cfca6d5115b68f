"""An in-process bus of inference events. Publishing never waits: a subscriber that does not keep up loses the oldest events.

Nothing is made or kept while nobody listens. Events are published and read in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol, Self

from bardo.planning.attempt import Attempt
from bardo.planning.inference_events import events_of_plan, events_of_reply
from bardo.structured import Provenance
from bardo.values.inference_events import InferenceEvent, PublishedEvent
from bardo.values.response import Response

MOST_WAITING = 1_000
"""How many events wait for one subscriber."""


class EventSink(Protocol):
    """Something that takes events as they are published."""

    def add(self, event: PublishedEvent) -> None: ...

    def miss(self) -> None:
        """Take note that events of another worker were lost."""

    def close(self) -> None: ...


class SinkWatcher(Protocol):
    """Something that gives the sinks of a bus the events of other workers."""

    def sinks_changed(self, somebody: bool) -> None: ...

    async def connected(self) -> None: ...


class EventBus:
    """Gives each published event to every subscriber.

    Sinks look on at the whole gateway: they get the events of other workers, too. Subscriptions get those of this process alone.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._subscribers: tuple[EventSink, ...] = ()
        self._sinks: tuple[EventSink, ...] = ()
        self._watcher: SinkWatcher | None = None
        self._clock = clock
        self.active = False
        """Whether anybody listens: asked several times in each call."""

    def publish(self, request_id: str, events: Iterable[InferenceEvent], key_id: str | None = None) -> None:
        """Give events to those who listen. Returns at once."""
        for event in events:
            published = PublishedEvent(request_id=request_id, event=event, key_id=key_id, at=self._clock())
            for subscriber in self._subscribers:
                subscriber.add(published)

    def publish_plan(self, request_id: str, attempt: Attempt, cause: str = "first", key_id: str | None = None) -> None:
        """Publish the events of an attempt that is about to be sent; nothing is made where nobody listens."""
        if self._subscribers:
            self.publish(request_id, events_of_plan(attempt, cause), key_id)

    def publish_reply(
        self,
        request_id: str,
        attempt: Attempt,
        response: Response,
        provenance: Provenance | None,
        key_id: str | None = None,
        saved_nanos: int | None = None,
    ) -> None:
        """Publish the events of a reply that has ended; nothing is made where nobody listens."""
        if self._subscribers:
            self.publish(request_id, events_of_reply(attempt, response, provenance, saved_nanos), key_id)

    def subscribe(self, most_waiting: int = MOST_WAITING) -> AsyncEventStream:
        """Return a subscription to all events from now on, which holds at most so many that were not read yet."""
        subscription = AsyncEventStream(self, most_waiting)
        self._have((*self._subscribers, subscription))
        return subscription

    def attach(self, sink: EventSink) -> None:
        """Give all events from now on to a sink, those of other workers among them, until it is removed."""
        self._have((*self._subscribers, sink))
        self._sinks = (*self._sinks, sink)
        self._tell_watcher()

    def remove(self, subscription: EventSink) -> None:
        """Forget a subscriber."""
        self._have(tuple(one for one in self._subscribers if one is not subscription))
        if subscription in self._sinks:
            self._sinks = tuple(one for one in self._sinks if one is not subscription)
            self._tell_watcher()

    def _have(self, subscribers: tuple[EventSink, ...]) -> None:
        self._subscribers, self.active = subscribers, bool(subscribers)

    @property
    def has_other_workers(self) -> bool:
        """Whether sinks are told what happens in the other workers of the gateway."""
        return self._watcher is not None

    def watch(self, watcher: SinkWatcher | None) -> None:
        """Tell `watcher` at each change whether any sink is attached, and now; None ends it."""
        self._watcher = watcher
        self._tell_watcher()

    def deliver(self, event: PublishedEvent) -> None:
        """Give an event of another worker to the sinks."""
        for sink in self._sinks:
            sink.add(event)

    def miss(self) -> None:
        """Tell the sinks that events of another worker were lost."""
        for sink in self._sinks:
            sink.miss()

    def _tell_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.sinks_changed(bool(self._sinks))

    async def connected(self) -> None:
        """Wait until the sinks are told what happens in all workers, but not long."""
        if self._watcher is not None:
            await self._watcher.connected()

    def close(self) -> None:
        """End every subscription: each gives what it still holds."""
        for subscriber in self._subscribers:
            subscriber.close()


class AsyncEventStream:
    """The events of one subscriber: iterate over it, and `close` it, or leave its `async with`. `dropped` counts the events it lost."""

    def __init__(self, bus: EventBus, most_waiting: int) -> None:
        self.dropped = 0
        self._bus = bus
        self._waiting: deque[PublishedEvent] = deque()
        self._most = max(1, most_waiting)
        self._came = asyncio.Event()
        self._closed = False

    def add(self, event: PublishedEvent) -> None:
        """Add an event, in the place of the oldest one where too many wait."""
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(event)
        self._came.set()

    def miss(self) -> None:
        """Do nothing: a subscription has no events of other workers."""

    def take(self) -> list[PublishedEvent]:
        """Return what waits, without waiting for more."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def take_dropped(self) -> int:
        """Return how many events were lost since this was asked last."""
        dropped, self.dropped = self.dropped, 0
        return dropped

    def close(self) -> None:
        """Take no more events. What is held can still be read."""
        self._closed = True
        self._bus.remove(self)
        self._came.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> PublishedEvent:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._came.clear()
            await self._came.wait()
        return self._waiting.popleft()
