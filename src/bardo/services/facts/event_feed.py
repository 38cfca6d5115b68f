"""Events of a gateway's calls: how they are made of a call, a bus within the process, and a feed that a reader can take up again.

Publishing never waits: a subscriber that does not keep up loses the oldest events. Nothing is made or kept without a listener. Events are
published and read in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.adapters.stores.log.row import LogRow
from bardo.planning.attempt import Attempt
from bardo.structured import Provenance
from bardo.values.blocks import Carried, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ThinkStart, ToolCallChunk, ToolCallStart
from bardo.values.inference_events import (
    CacheStats,
    CallFinished,
    CallProgress,
    CallStarted,
    InferenceEvent,
    ProfileApplied,
    ProfileDegraded,
    PublishedEvent,
    ReasoningCaptured,
    ReasoningText,
    SchemaFallback,
    SchemaValidated,
    WebSearchUsed,
)
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import TokenEstimate, estimate_tokens, usd

_IN_PROMPT = "prompt_guided"
_ADDRESSES = ("url", "uri")
_MOST_LOOKED_AT = 10_000


def events_of_plan(attempt: Attempt, cause: str = "first") -> Iterator[InferenceEvent]:
    """Yield the events of an attempt that is about to be sent; `cause` says why it is made."""
    request = attempt.request
    if request is None:
        return
    target = attempt.target
    yield CallStarted(
        subsystem=_subsystem(request),
        provider=target.provider.id,
        model=target.model,
        model_asked=request.model,
        client_dialect=request.dialect,
        streamed=request.stream,
        cause=cause,
    )
    subsystem, profile = _subsystem(request), request.options.profile
    if profile is not None:
        written = attempt.written or request
        plan = attempt.control
        yield ProfileApplied(
            subsystem=subsystem,
            temperature=written.sampling.temperature,
            reasoning_effort=None if plan is None or not plan.fields else plan.emitted,
            structured=attempt.answer is not None,
            cached=bool(profile.prompt_cache_key or profile.cache_control),
        )
        if attempt.degraded:
            yield ProfileDegraded(subsystem=subsystem, degraded=tuple(map(_line, attempt.degraded)))
    if attempt.answer is not None and attempt.answer.plan.mode == _IN_PROMPT:
        yield SchemaFallback(subsystem=subsystem, schema_name=attempt.answer.plan.name)


def events_of_reply(
    attempt: Attempt, response: Response, provenance: Provenance | None, saved_nanos: int | None = None
) -> Iterator[InferenceEvent]:
    """Yield the events of a reply that has ended; `provenance` tells how its typed answer came about, or None if there was none.

    `saved_nanos` is what the provider's cache saved, as the receipt says, or None if that is not known.
    """
    request = attempt.request
    if request is None:
        return
    subsystem, usage = _subsystem(request), response.usage
    if attempt.answer is not None and provenance is not None:
        name = attempt.answer.plan.name
        yield SchemaValidated(subsystem=subsystem, schema_name=name, valid=provenance.error is None)
    chain = response.reasoning
    if chain.content:
        content = usage.answer_tokens
        yield ReasoningCaptured(
            subsystem=subsystem,
            reasoning_tokens=chain.reasoning_tokens or estimate_tokens(chain.content),
            content_tokens=estimate_tokens(response.text) if content is None else content,
        )
    pages = cited_pages(response)
    searched = request.options.profile is not None and bool(request.options.profile.web_search)
    if pages or searched:
        yield WebSearchUsed(subsystem=subsystem, query=_query(response), results_count=len(pages))
    if usage.cached_input_tokens is not None and usage.input_tokens is not None:
        yield CacheStats(
            subsystem=subsystem,
            cached_tokens=usage.cached_input_tokens,
            total_tokens=usage.input_tokens,
            savings_usd=None if saved_nanos is None else usd(saved_nanos),
        )


def cited_pages(response: Response) -> frozenset[str]:
    """Return the addresses of the web pages that a reply cites, in whatever form its provider cites."""
    carried = [
        response.carried,
        response.choice_carried,
        *(getattr(block, "carried", None) for block in response.blocks),
    ]
    addresses: set[str] = set()
    waiting: list[Any] = [part.fields for part in carried if isinstance(part, Carried)]
    waiting += [block.value for block in response.blocks if isinstance(block, UnknownBlock)]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        item = waiting.pop()
        if isinstance(item, dict):
            addresses |= {item[name] for name in _ADDRESSES if isinstance(item.get(name), str)}
        waiting += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return frozenset(address for address in addresses if address.startswith(("http://", "https://")))


def _query(response: Response) -> str:
    """Return what was searched for, where the reply says it."""
    for block in response.blocks:
        asked = block.value.get("input") if isinstance(block, UnknownBlock) and isinstance(block.value, dict) else None
        if isinstance(asked, dict) and isinstance(asked.get("query"), str):
            return str(asked["query"])
    return ""


def _subsystem(request: Request) -> str:
    return "" if request.options.intent is None else request.options.intent.subsystem


def _line(lost: Degradation) -> str:
    """Return a difference as the documents write it: `min_p -> top_p`."""
    sent = lost.sent
    if isinstance(sent, dict) and len(sent) == 1:
        sent = next(iter(sent))
    return f"{lost.what} -> {'unsupported' if sent is None else sent}"


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
        """Publish the events of an attempt that is about to be sent; nothing is made without a listener."""
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
        """Publish the events of a reply that has ended; nothing is made without a listener."""
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
        self._have(tuple(other for other in self._subscribers if other is not subscription))
        if subscription in self._sinks:
            self._sinks = tuple(sink for sink in self._sinks if sink is not subscription)
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
        """Take no more events. Waiting events can still be read."""
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


MOST_KEPT = 2_000
"""Events that are kept for readers that come back; one of them is at most a piece of thinking."""
KEPT_SECONDS = 300.0
"""How long after its last reader left a feed goes on to keep events."""
_MOST_NAMES = 20


class FeedEvent(NamedTuple):
    """One event with its id. `event` is None if the reader missed some: how many is not known."""

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
    """Keeps the last events of a bus, and gives them to readers. Nothing is kept before the first reader comes.

    Each event has an id of this process and a number: a reader that comes back with the last id it saw gets the events that it missed, or
    is told that it missed some.
    """

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
        """End the events."""
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
        degraded=tuple([str(loss.get("what", "")) for loss in row.degraded[:_MOST_NAMES]]),
    )


_EVERY_SECONDS = 0.5


class ProgressReporter:
    """Reports on one reply: each change of its phase, and its tokens from time to time."""

    def __init__(self, subsystem: str) -> None:
        self._subsystem = subsystem
        self._phase = ""
        self._last_state = ("", 0, 0)
        self._reported_at = 0.0
        self._reasoning = TokenEstimate()
        self._answer = TokenEstimate()

    def after(self, events: Iterable[Event], now: float) -> CallProgress | None:
        """Take further events of the reply at time `now`. Returns the reports that are due."""
        for event in events:
            self._take(event)
        state = (self._phase, self._reasoning.tokens, self._answer.tokens)
        changed = state[0] != self._last_state[0]
        if not state[0] or state == self._last_state or (not changed and now - self._reported_at < _EVERY_SECONDS):
            return None
        self._last_state, self._reported_at = state, now
        phase, reasoning, answer = state
        return CallProgress(subsystem=self._subsystem, phase=phase, reasoning_tokens=reasoning, answer_tokens=answer)

    def _take(self, event: Event) -> None:
        match event:
            case ThinkStart():
                self._phase = "thinking"
            case ThinkChunk(text=text):
                self._phase = "thinking"
                self._reasoning.add(text)
            case ContentChunk(text=text) | RefusalChunk(text=text):
                self._phase = "answering"
                self._answer.add(text)
            case ToolCallStart():
                self._phase = "tools"
            case ToolCallChunk(arguments=text):
                self._phase = "tools"
                self._answer.add(text)
            case _:
                return


class ProgressPublisher:
    """Publishes how far the reply of one call has come, and what was thought where `keep_content`. `watch` counts seconds."""

    def __init__(
        self,
        bus: EventBus,
        watch: Callable[[], float],
        request_id: str,
        subsystem: str,
        key_id: str | None,
        *,
        keep_content: bool,
    ) -> None:
        self._bus = bus
        self._watch = watch
        self._keep_content = keep_content
        self._request_id = request_id
        self._subsystem = subsystem
        self._key_id = key_id
        self._reporter = ProgressReporter(subsystem)

    def publish(self, events: Sequence[Event]) -> None:
        """Send listeners the reports that are due after further events of the reply."""
        told = self._reporter.after(events, self._watch())
        if told is not None:
            self._bus.publish(self._request_id, (told,), self._key_id)
        text = "".join([event.text for event in events if type(event) is ThinkChunk])
        if text and self._keep_content:
            piece = ReasoningText(subsystem=self._subsystem, text=text)
            self._bus.publish(self._request_id, (piece,), self._key_id)
