"""A reply as it arrives: its thinking and its answer as separate streams, or all events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.call.open import open_call
from bardo.call.reply import LiveReply
from bardo.call.services import Services
from bardo.replies.forwarding import ReplyUpdate
from bardo.services.facts.event_feed import AsyncEventStream
from bardo.structured import Json
from bardo.surfaces.library.typed import AnswerType, TypedResponse
from bardo.values.errors import UpstreamTimeout
from bardo.values.events import ContentChunk, Event, Partial, ThinkChunk
from bardo.values.inference_events import PublishedEvent
from bardo.values.request import Request
from bardo.values.response import Response

T = TypeVar("T")


class AsyncReplyStream:
    """One streamed reply. What one stream reads past waits for the other, so they may be read in any order or side by side.

    `account` is whose limits and earlier replies the call has, where somebody asks for others.
    """

    def __init__(
        self,
        services: Callable[[], Services],
        request: Request,
        wanted: AnswerType | None = None,
        *,
        seconds: float | None = None,
        account: Account | None = None,
    ) -> None:
        self._account = account
        self._seconds = seconds
        self._ends: float | None = None
        self._services = services
        self._request = request if wanted is None else with_partials(wanted.of(request))
        self._wanted = wanted
        self._live: LiveReply | None = None
        self._updates: AsyncIterator[ReplyUpdate] | None = None
        self._texts: deque[str] = deque()
        self._thoughts: deque[str] = deque()
        self._events: deque[Event] = deque()
        self._partials: deque[Json] = deque()
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<bardo.{type(self).__name__}>"

    async def __aenter__(self) -> Self:
        validator = None if self._wanted is None else self._wanted.validate
        if self._seconds is not None:
            self._ends = asyncio.get_running_loop().time() + self._seconds
        async with within(self._seconds):
            account = self._account
            tenant = "" if account is None else account.tenant
            self._live = await open_call(
                self._services(), self._request, validator=validator, tenant=tenant, account=account
            )
        self._updates = self._live.updates()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._live is not None:
            await self._live.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event in order, as `events` does."""
        return self.events

    @property
    async def reasoning_stream(self) -> AsyncIterator[str]:
        """The thinking, piece by piece. Raises BardoError where the reply breaks."""
        while await self._wait_for(self._thoughts):
            yield self._thoughts.popleft()

    @property
    async def text_stream(self) -> AsyncIterator[str]:
        """The answer, piece by piece. Raises BardoError where the reply breaks."""
        while await self._wait_for(self._texts):
            yield self._texts.popleft()

    @property
    async def partial_stream(self) -> AsyncIterator[Json]:
        """The typed answer while it grows, as plain values: what was once there stays. Raises BardoError where the reply breaks."""
        while await self._wait_for(self._partials):
            yield self._partials.popleft()

    @property
    async def events(self) -> AsyncIterator[Event]:
        """Every event, in order."""
        while await self._wait_for(self._events):
            yield self._events.popleft()

    @property
    async def parsed(self) -> Any:
        """The value of the type that was asked for, the rest of the reply read first. Raises UnusableAnswer where there is none."""
        return (await self.typed_response()).parsed

    async def typed_response(self) -> TypedResponse[Any]:
        """Return the whole reply with its value. Raises BardoError where it broke, UnusableAnswer where there is none."""
        if self._wanted is None:
            raise TypeError("no response_type was given: client.stream(…, response_type=…)")
        await self.response()
        assert self._live is not None
        return self._wanted.typed_response(self._live)

    async def response(self) -> Response:
        """Return the whole reply, the rest of it read first. A reply that broke has `error` set."""
        while await self._pull(()):
            continue
        return self._current_response()

    def _current_response(self) -> Response:
        live = self._live
        if live is None:
            raise RuntimeError("enter the stream first: `with client.stream(…) as reply`")
        return live.response_with_receipt()

    async def _wait_for(self, waiting: deque[Any]) -> bool:
        while not waiting:
            if not await self._pull(waiting):
                failure = self._current_response().error
                if failure is not None:
                    raise failure
                return False
        return True

    async def _pull(self, waiting: Collection[Any]) -> bool:
        """Read one update of the reply, unless another stream has just read what is waited for; False at its end."""
        if self._updates is None:
            raise RuntimeError("enter the stream first: `with client.stream(…) as reply`")
        async with self._turn:
            if waiting:
                return True
            if self._ends is None:
                update = await anext(self._updates, None)
            else:
                async with within(self._seconds, ends=self._ends):
                    update = await anext(self._updates, None)
            if update is not None:
                self._sort(update.events)
        return update is not None

    def _sort(self, events: Sequence[Event]) -> None:
        self._events.extend(events)
        for event in events:
            if type(event) is Partial:
                self._partials.append(event.value)
            elif type(event) is ContentChunk and event.choice == 0:
                self._texts.append(event.text)
            elif type(event) is ThinkChunk and event.choice == 0:
                self._thoughts.append(event.text)


class ReplyStream:
    """The same for programs without asyncio."""

    def __init__(self, inner: AsyncReplyStream, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._inner = inner
        self._run = run

    def __repr__(self) -> str:
        return "<bardo.ReplyStream>"

    def __enter__(self) -> Self:
        self._run(self._inner.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._inner.__aexit__())

    def __iter__(self) -> Iterator[Event]:
        """Yield every event in order, as `events` does."""
        return self.events

    @property
    def reasoning_stream(self) -> Iterator[str]:
        """The thinking, piece by piece. Raises BardoError where the reply breaks."""
        return self._each(self._inner.reasoning_stream)

    @property
    def text_stream(self) -> Iterator[str]:
        """The answer, piece by piece. Raises BardoError where the reply breaks."""
        return self._each(self._inner.text_stream)

    @property
    def events(self) -> Iterator[Event]:
        """Every event, in order."""
        return self._each(self._inner.events)

    @property
    def partial_stream(self) -> Iterator[Json]:
        """The typed answer while it grows, as plain values: what was once there stays. Raises BardoError where the reply breaks."""
        return self._each(self._inner.partial_stream)

    @property
    def parsed(self) -> Any:
        """The value of the type that was asked for, the rest of the reply read first. Raises UnusableAnswer where there is none."""
        return self.typed_response().parsed

    def typed_response(self) -> TypedResponse[Any]:
        """Return the whole reply with its value. Raises BardoError where it broke, UnusableAnswer where there is none."""
        typed: TypedResponse[Any] = self._run(self._inner.typed_response())
        return typed

    def response(self) -> Response:
        """Return the whole reply, the rest of it read first. A reply that broke has `error` set."""
        whole: Response = self._run(self._inner.response())
        return whole

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        while True:
            try:
                yield self._run(_next(items))
            except StopAsyncIteration:
                return


class EventStream:
    """The inference events of a Client's calls: iterate over it, which waits for the next one, and `close` it."""

    def __init__(
        self, subscribe: Callable[[], AsyncEventStream], run: Callable[[Coroutine[Any, Any, Any]], Any]
    ) -> None:
        self._inner: AsyncEventStream = run(_call_in_loop(subscribe))
        self._run = run

    @property
    def dropped(self) -> int:
        """How many events were lost, because more waited than are held."""
        return self._inner.dropped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[PublishedEvent]:
        while True:
            try:
                yield self._run(_next(self._inner))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Stop collecting events. Those already held can still be read."""
        self._run(_call_in_loop(self._inner.close))


@asynccontextmanager
async def within(seconds: float | None, *, ends: float | None = None) -> AsyncIterator[None]:
    """Bound a block by `seconds` from now, or by the loop's time `ends`. Raises UpstreamTimeout where it takes longer."""
    now = asyncio.get_running_loop().time()
    left = seconds if ends is None else ends - now
    try:
        async with asyncio.timeout(left) as bound:
            yield
    except TimeoutError as problem:
        if not bound.expired():
            raise
        hint = "give a longer timeout, or ask for less"
        raise UpstreamTimeout(f"the call took longer than {seconds:g} seconds", hint=hint) from problem


def with_partials(request: Request) -> Request:
    """Return the request whose reply shows its answer while it grows."""
    options = msgspec.structs.replace(request.options, include=("partials",))
    return msgspec.structs.replace(request, options=options)


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _call_in_loop(function: Callable[[], T]) -> T:
    """Call a function in the event loop."""
    return function()
