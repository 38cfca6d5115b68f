"""One reply as it arrives: an attempt sent, the reply read, and the call noted at its end."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Protocol

import msgspec

from bardo.dialects import dialect
from bardo.edge.answering import Answering
from bardo.edge.http import Call, Deadlines, Reply, Transport
from bardo.edge.keys import Keyring
from bardo.edge.log.row import CallOutcome, LogRow
from bardo.edge.record import Timing, log_row
from bardo.engine.exchange import Attempt, asked_again
from bardo.engine.knowledge import Knowledge
from bardo.engine.pipeline import ReplyReader, Taken
from bardo.engine.receipt import ForeignContent, extension
from bardo.engine.route import Provider
from bardo.engine.structuring import Take
from bardo.reasoning.replay import Origins
from bardo.streams.stage import Stage
from bardo.values.blocks import ReplyBlock
from bardo.values.errors import BardoError, MalformedReply, ProviderError
from bardo.values.events import Degraded, Event, Extension, Failed, Finish, ReplyStart, UsageUpdate
from bardo.values.request import Message, Request
from bardo.values.response import Response

_ERROR_BODY_LIMIT = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call may take and how large a whole reply may be."""

    deadlines: Deadlines = Deadlines()
    max_reply_bytes: int = 64 * 1024 * 1024
    keep_content: bool = False


class Step(msgspec.Struct, frozen=True, gc=False):
    """What one network read of a reply gave: events, and the bytes to forward where frames are forwarded."""

    events: list[Event]
    raw: bytes = b""


class Means(Protocol):
    """What a reply needs of whoever runs it."""

    transport: Transport
    keyring: Keyring
    limits: Limits
    knowledge: Knowledge
    clock: Callable[[], float]

    async def remember(self, response: Response, request: Request, attempt: Attempt, tenant: str) -> None: ...

    def write(self, row: LogRow) -> None: ...


class Quietly:
    """Means that note nothing: a further reply belongs to the call that asked for it."""

    def __init__(self, means: Means) -> None:
        self.transport, self.keyring, self.limits = means.transport, means.keyring, means.limits
        self.knowledge, self.clock = means.knowledge, means.clock

    async def remember(self, response: Response, request: Request, attempt: Attempt, tenant: str) -> None:
        """Keep nothing."""

    def write(self, row: LogRow) -> None:
        """Write nothing."""


class LiveReply:
    """One reply as it arrives. Iterate over `steps` to its end, or `close` it before.

    `take` is the caller's own look at a typed answer, `through` are stages of one who only listens.
    """

    def __init__(
        self,
        means: Means,
        request: Request,
        *,
        tenant: str = "",
        take: Take | None = None,
        through: Sequence[Stage[Event, Event]] = (),
    ) -> None:
        self._means = means
        self._tenant = tenant
        self._take = take
        self._through = through
        self._again: LiveReply | None = None
        self.answering: Answering | None = None
        self.request = request
        self.request_id = f"req_{random.getrandbits(96):024x}"
        self._started = means.clock()
        self._first_byte: float | None = None
        self._attempts = 0
        self._attempt: Attempt | None = None
        self._reader: ReplyReader | None = None
        self._reply: Reply | None = None
        self._primed: list[Step] = []
        self._coming: AsyncGenerator[Step, None] | None = None
        self._noted = False
        self._kept: tuple[ReplyBlock, ...] = ()

    @property
    def attempt(self) -> Attempt:
        """The attempt that was taken."""
        assert self._attempt is not None
        return self._attempt

    @property
    def reader(self) -> ReplyReader:
        """The reader of the reply."""
        assert self._reader is not None
        return self._reader

    def response(self) -> Response:
        """Return the reply as far as it has come."""
        return self.reader.fold.response()

    def structured(self) -> dict[str, Any] | None:
        """Return how the typed answer came about; None where none was asked for, or none was due in this turn."""
        found = None if self.answering is None else self.answering.provenance
        return None if found is None else msgspec.to_builtins(found)

    async def begin(self, attempt: Attempt) -> None:
        """Send one attempt and read until its reply has begun. Raises BardoError, and lets go of the reply then."""
        self._attempts += 1
        self._attempt, self._reader, self._primed = attempt, None, []
        self.answering = None
        reply = self._reply = await self._means.transport.send(self._call(attempt), self._means.limits.deadlines)
        try:
            await self._receive(reply, attempt)
        except BaseException:
            await self._release()
            raise

    async def steps(self) -> AsyncIterator[Step]:
        """Yield what each network read gives, to the end of the reply; then the call is noted."""
        for step in self._primed:
            await self._remember(step)
            yield step
        self._primed = []
        if self._coming is not None:
            async for step in self._coming:
                await self._remember(step)
                yield step
        if self.answering is not None:
            async for step in self._answer(self.answering):
                yield step
        last = self._extension()
        if last:
            yield Step(last)
        failure = self.reader.failure
        broken: CallOutcome = "broken" if self.request.stream else "error"
        self.note("ok" if failure is None else broken, failure)
        await self._release()
        if failure is not None and not self.request.stream:
            failure.request_id = self.request_id
            raise failure

    async def _answer(self, answering: Answering) -> AsyncIterator[Step]:
        """Yield what becomes of an answer that has a schema."""
        shown = "" if answering.held else self.response().text
        async for events in answering.finish(shown, self):
            step = Step(self.reader.settle(events))
            await self._remember(step)
            if events:
                yield step
        if answering.rewritten:
            self._attempt = msgspec.structs.replace(self.attempt, forward=False)

    async def ask_again(
        self, turns: Sequence[Message], through: Sequence[Stage[Event, Event]]
    ) -> AsyncIterator[list[Event]]:
        """Ask the model again within this call, and yield the events of its reply. Raises BardoError where there is none."""
        self._attempts += 1
        quiet = msgspec.structs.replace(self.request.options, include=())
        request = msgspec.structs.replace(self.request, options=quiet)
        again = self._again = LiveReply(Quietly(self._means), request, through=through)
        try:
            await again.begin(asked_again(self.attempt, turns, self._means.knowledge))
            async for step in again.steps():
                yield [event for event in step.events if type(event) is not Failed]
            if again.reader.failure is not None:
                raise again.reader.failure
        finally:
            await again.close()

    async def _remember(self, step: Step) -> None:
        """Keep the reply's reasoning before the client learns that the reply is over, and may go on."""
        if any(type(event) is Finish for event in step.events) or (self._kept and step.events):
            response = self.reader.heard()
            if response.blocks != self._kept:
                self._kept = response.blocks
                await self._means.remember(response, self.request, self.attempt, self._tenant)

    async def close(self) -> None:
        """Let go of the reply, whatever is left of it: a call that was not read to its end is noted as cancelled.

        A client that leaves at the last event does not wait for the connection's end: its reply was whole.
        """
        self.note("ok" if self._said_all() else "cancelled")
        if self._again is not None:
            await self._again.close()
        if self._coming is not None:
            await self._coming.aclose()
        await self._release()

    def _said_all(self) -> bool:
        if self._reader is None or self._reader.failure is not None or self._primed:
            return False
        return self.response().finish.reason not in ("unknown", "error")

    def note(self, outcome: CallOutcome, error: BardoError | None = None) -> None:
        """Write the call into the log, once."""
        if self._noted:
            return
        self._noted = True
        means = self._means
        timing = Timing(
            started_at=self._started,
            seconds=max(0.0, means.clock() - self._started),
            first_byte_seconds=self._first_byte,
        )
        row = log_row(
            self.request_id,
            self.request,
            timing,
            outcome=outcome,
            attempts=self._attempts,
            attempt=self._attempt,
            response=self.response() if self._reader is not None else None,
            error=error,
            keep_content=means.limits.keep_content,
        )
        means.write(row)

    def _open_reader(self, attempt: Attempt, *, streamed: bool) -> ReplyReader:
        provider = attempt.target.provider
        stamp = ReplyStart(id=self.request_id, model=attempt.target.model, created=int(self._started))
        reader = ReplyReader(
            provider.row,
            streamed=streamed,
            provider=provider.id,
            model=attempt.target.model,
            reading=attempt.reading,
            make_id=_call_id,
            omit_reasoning=self.request.options.omit_reasoning,
            stamp=stamp,
            further=self._further(attempt),
        )
        for degradation in attempt.degraded:
            reader.fold.feed(Degraded(degradation))
        return reader

    def _further(self, attempt: Attempt) -> list[Stage[Event, Event]]:
        answer = attempt.answer
        if answer is not None and (answer.judged or self._take is not None) and not self._through:
            partials = "partials" in self.request.options.include and self.request.stream
            self.answering = Answering(
                attempt, answer, whole=not self.request.stream, partials=partials, take=self._take
            )
        own: list[Stage[Event, Event]] = [*self._through]
        if self.answering is not None:
            own.append(self.answering.stage)
        if attempt.forward:
            return own
        stamps = [] if attempt.origin is None else [Origins(attempt.origin)]
        return [ForeignContent(self.request.dialect), *stamps, *own]

    def _call(self, attempt: Attempt) -> Call:
        provider = attempt.target.provider
        headers = {"content-type": "application/json", **provider.row.headers, **attempt.wire.headers}
        call = Call(method="POST", url=attempt.url, headers=headers, body=attempt.wire.body, provider=provider.id)
        return self._means.keyring.sign(call, provider, clock=self._means.clock)

    async def _receive(self, reply: Reply, attempt: Attempt) -> None:
        """Read the head of a reply, and as much of it as tells whether it is one."""
        provider = attempt.target.provider
        if reply.status >= 300:
            raise await self._refusal(reply, provider)
        streamed = _is_streamed(reply, provider, asked=self.request.stream)
        if streamed is not self.request.stream:
            # A provider may answer a streaming request whole, or the other way round: then its bytes are not the client's.
            attempt = self._attempt = msgspec.structs.replace(attempt, forward=False)
        self._reader = self._open_reader(attempt, streamed=streamed)
        if streamed and self.request.stream:
            await self._prime(reply)
        else:
            await self._read_whole(reply)

    async def _refusal(self, reply: Reply, provider: Provider) -> ProviderError:
        if reply.status < 400:
            message = f"the provider answered with status {reply.status}, a redirect"
            return MalformedReply(message, hint="check base_url", provider=provider.id)
        try:
            body = await reply.read(_ERROR_BODY_LIMIT)
        except ProviderError:
            body = b""  # The status says enough.
        body = self._means.keyring.without_key(body, provider.row)
        return dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)

    async def _prime(self, reply: Reply) -> None:
        """Read the first piece, so that a reply that breaks before it can still go elsewhere."""
        coming = self._coming = self._rest(reply.chunks())
        step = await anext(coming)
        self._first_byte = self._means.clock() - self._started
        failure = self.reader.failure
        if failure is not None and not self.response().blocks:
            raise failure
        self._primed.append(step)

    async def _read_whole(self, reply: Reply) -> None:
        try:
            body = await reply.read(self._means.limits.max_reply_bytes)
        finally:
            await self._release()
        self._first_byte = self._means.clock() - self._started
        events = [*self.reader.feed(body), *self.reader.finish()]
        if self.reader.failure is not None:
            raise self.reader.failure
        self._primed.append(Step(events, body))

    async def _rest(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Step, None]:
        reader, forward = self.reader, self.attempt.forward
        try:
            async for chunk in chunks:
                step = self._forwarded(reader.take(chunk, joined=True)) if forward else Step(reader.feed(chunk))
                if step.events or step.raw:
                    yield step
                if reader.failure is not None:
                    return
        except ProviderError as problem:
            yield Step(reader.fail(problem))
        else:
            yield self._forwarded(reader.take_rest())

    def _forwarded(self, taken: Sequence[Taken]) -> Step:
        """Keep the bytes the client gets: not those of usage it did not ask for."""
        withhold = self.attempt.withhold_usage
        events: list[Event] = []
        raw: list[bytes] = []
        for given, said in taken:
            events += given
            only_usage = withhold and given and all(type(event) is UsageUpdate for event in given)
            if not only_usage:
                raw.append(said)
        return Step(events, b"".join(raw))

    def _extension(self) -> list[Event]:
        if not self.request.options.include or self.reader.failure is not None:
            return []
        fields = extension(self.request, self.response(), self.attempt, self.request_id)
        if "structured" in self.request.options.include:
            fields["structured"] = self.structured()
        event = Extension(fields)
        self.reader.fold.feed(event)
        return [event]

    async def _release(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.close()


def _call_id() -> str:
    return f"call_{random.getrandbits(96):024x}"


def _is_streamed(reply: Reply, provider: Provider, *, asked: bool) -> bool:
    """Whether a reply is a stream: its content type tells, else what was `asked`. Raises MalformedReply for a page."""
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml", "application/xml", "text/xml"):
        message = f"the provider answered with {kind}, not with a reply"
        raise MalformedReply(message, hint="check base_url", provider=provider.id)
    return {"application/json": False, "text/event-stream": True, "application/x-ndjson": True}.get(kind, asked)
