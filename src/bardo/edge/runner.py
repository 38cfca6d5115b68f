"""Runs exchanges: sends each attempt, reads the reply, and writes the log. The gateway and the library share it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import msgspec

from bardo.dialects import dialect
from bardo.edge.directory import Directory
from bardo.edge.http import Call, Deadlines, Reply, Transport
from bardo.edge.keys import Keyring
from bardo.edge.log.row import CallOutcome, LogRow
from bardo.edge.record import Timing, log_row
from bardo.engine.exchange import Attempt, attempts
from bardo.engine.pipeline import ReplyReader
from bardo.engine.receipt import ForeignContent, extension
from bardo.streams.frames import Frame
from bardo.values.errors import BardoError, MalformedReply, ProviderError, UpstreamRefused
from bardo.values.events import Degraded, Event, Extension, ReplyStart, UsageUpdate
from bardo.values.request import Request
from bardo.values.response import Response

_ERROR_BODY_LIMIT = 1024 * 1024


class LogSink(Protocol):
    """Where finished calls are noted."""

    def write(self, row: LogRow) -> None: ...


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a call may take and how large a whole reply may be."""

    deadlines: Deadlines = Deadlines()
    max_reply_bytes: int = 64 * 1024 * 1024
    keep_content: bool = False


class Step(msgspec.Struct, frozen=True, gc=False):
    """What one network read of a reply gave: events, and the bytes to forward where frames are forwarded."""

    events: list[Event]
    raw: bytes = b""


class Runner:
    """Opens exchanges over one transport."""

    def __init__(
        self,
        directory: Directory,
        transport: Transport,
        keyring: Keyring,
        *,
        limits: Limits | None = None,
        log: LogSink | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.transport = transport
        self.keyring = keyring
        self.limits = limits or Limits()
        self.clock = clock
        self._log = log

    async def open(self, request: Request) -> LiveReply:
        """Send a request until a provider takes it, and return its reply with the first piece read.

        Raises BardoError where nobody takes it; the call is in the log then too.
        """
        live = LiveReply(self, request)
        try:
            targets = await self.directory.targets(request.model)
            course = attempts(request, targets)
            attempt = next(course)
            while True:
                try:
                    await live.begin(attempt)
                except BardoError as problem:
                    attempt = _next_attempt(course.send, problem)
                else:
                    return live
        except BardoError as problem:
            live.note("error", problem)
            raise
        except BaseException:
            await live.abandon()
            raise

    def write(self, row: LogRow) -> None:
        """Note a finished call."""
        if self._log is not None:
            self._log.write(row)


def _next_attempt(send: Callable[[BardoError], Attempt], problem: BardoError) -> Attempt:
    try:
        return send(problem)
    except StopIteration:
        raise problem from None


class LiveReply:
    """One reply as it arrives. Iterate over `steps` to its end, or `close` it before."""

    def __init__(self, runner: Runner, request: Request) -> None:
        self._runner = runner
        self.request = request
        self.request_id = f"req_{os.urandom(12).hex()}"
        self._started = runner.clock()
        self._first_byte: float | None = None
        self._attempts = 0
        self._attempt: Attempt | None = None
        self._reader: ReplyReader | None = None
        self._reply: Reply | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._primed: list[Step] = []
        self._noted = False

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

    async def begin(self, attempt: Attempt) -> None:
        """Send one attempt and read until its reply has begun. Raises BardoError."""
        self._attempts += 1
        self._attempt, self._reader, self._primed = attempt, None, []
        provider = attempt.target.provider
        headers = {
            "content-type": "application/json",
            **provider.row.headers,
            **attempt.wire.headers,
            **self._runner.keyring.headers(provider),
        }
        call = Call(method="POST", url=attempt.url, headers=headers, body=attempt.wire.body, provider=provider.id)
        reply = self._reply = await self._runner.transport.send(call, self._runner.limits.deadlines)
        if reply.status >= 300:
            raise await self._refusal(reply)
        streamed = self.request.stream and not _is_json(reply)
        self._reader = self._open_reader(attempt, streamed=streamed)
        if streamed:
            await self._prime(reply)
        else:
            await self._read_whole(reply)

    async def steps(self) -> AsyncIterator[Step]:
        """Yield what each network read gives, to the end of the reply; then the call is noted."""
        for step in self._primed:
            yield step
        self._primed = []
        if self._chunks is not None:
            async for step in self._rest(self._chunks):
                yield step
        last = self._extension()
        if last:
            yield Step(last)
        failure = self.reader.failure
        self.note("ok" if failure is None else "broken", failure)
        await self._release()

    async def close(self, outcome: CallOutcome = "cancelled") -> None:
        """Let go of the reply, whatever is left of it."""
        self.note(outcome, None)
        await self._release()

    async def abandon(self) -> None:
        """Close after a failure that has not been noted yet."""
        await self.close("cancelled")

    def note(self, outcome: CallOutcome, error: BardoError | None) -> None:
        """Write the call into the log, once."""
        if self._noted:
            return
        self._noted = True
        runner = self._runner
        timing = Timing(
            started_at=self._started,
            seconds=max(0.0, runner.clock() - self._started),
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
            keep_content=runner.limits.keep_content,
        )
        runner.write(row)

    def _open_reader(self, attempt: Attempt, *, streamed: bool) -> ReplyReader:
        provider = attempt.target.provider
        stamp = ReplyStart(id=self.request_id, model=attempt.target.model, created=int(self._started))
        reader = ReplyReader(
            provider.row,
            streamed=streamed,
            provider=provider.id,
            model=attempt.target.model,
            omit_reasoning=self.request.options.omit_reasoning,
            stamp=stamp,
            further=(ForeignContent(self.request.dialect),) if not attempt.forward else (),
        )
        for degradation in attempt.degraded:
            reader.fold.feed(Degraded(degradation))
        return reader

    async def _refusal(self, reply: Reply) -> UpstreamRefused:
        provider = self.attempt.target.provider
        try:
            body = await reply.read(_ERROR_BODY_LIMIT)
        finally:
            await self._release()
        return dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)

    async def _prime(self, reply: Reply) -> None:
        """Read the first piece, so that a reply that breaks before it can still go elsewhere."""
        self._chunks = reply.chunks()
        async for step in self._rest(self._chunks):
            self._first_byte = self._runner.clock() - self._started
            failure = self.reader.failure
            if failure is not None and not self.reader.fold.response().blocks:
                await self._release()
                raise failure
            self._primed.append(step)
            return

    async def _read_whole(self, reply: Reply) -> None:
        try:
            body = await reply.read(self._runner.limits.max_reply_bytes)
        finally:
            await self._release()
        self._first_byte = self._runner.clock() - self._started
        events = [*self.reader.feed(body), *self.reader.finish()]
        if self.reader.failure is not None:
            raise self.reader.failure
        self._primed.append(Step(events, body))

    async def _rest(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Step]:
        reader, forward = self.reader, self.attempt.forward
        try:
            async for chunk in chunks:
                step = self._forwarded(chunk) if forward else Step(reader.feed(chunk))
                if step.events or step.raw:
                    yield step
                if reader.failure is not None:
                    self._chunks = None
                    return
        except ProviderError as problem:
            yield Step(reader.fail(problem))
        else:
            yield self._ending()
        self._chunks = None

    def _forwarded(self, chunk: bytes) -> Step:
        return self._forward(self.reader.frames(chunk))

    def _ending(self) -> Step:
        step = self._forward(self.reader.last_frames())
        return Step([*step.events, *self.reader.close()], step.raw)

    def _forward(self, frames: Sequence[Frame]) -> Step:
        """Read frames, and keep the bytes of those the client gets: not of one that broke the reply."""
        reader, withhold = self.reader, self.attempt.withhold_usage
        events: list[Event] = []
        raw: list[bytes] = []
        for frame in frames:
            given = reader.read(frame)
            events += given
            only_usage = withhold and given and all(type(event) is UsageUpdate for event in given)
            if not only_usage and reader.failure is None:
                raw.append(frame.raw)
        return Step(events, b"".join(raw))

    def _extension(self) -> list[Event]:
        if not self.request.options.include or self.reader.failure is not None:
            return []
        fields = extension(self.request, self.response(), self.attempt, self.request_id)
        event = Extension(fields)
        self.reader.fold.feed(event)
        return [event]

    async def _release(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.close()


def _is_json(reply: Reply) -> bool:
    """Whether a reply to a streaming request came whole. Raises MalformedReply for a page."""
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "text/plain", "application/xml"):
        raise MalformedReply(f"the provider answered with {kind}, not with a reply")
    return kind == "application/json"
