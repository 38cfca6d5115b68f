"""One reply as it arrives: an attempt sent, the reply read, and the call noted at its end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import msgspec

from bardo.edge.answering import Answering
from bardo.edge.http_calls import Call, Reply
from bardo.edge.lifecycle import shutdown_of
from bardo.edge.log.row import CallOutcome
from bardo.edge.means import Means, Quietly
from bardo.edge.noting import Noting
from bardo.edge.reply_bytes import Step, is_streamed, page, read_pieces, read_whole, refusal
from bardo.edge.reply_reader import answering_of, open_reader
from bardo.engine.exchange import Attempt, asked_again
from bardo.engine.pipeline import ReplyReader
from bardo.engine.reading import seen_start
from bardo.engine.receipt import extension
from bardo.engine.structuring import Take
from bardo.reasoning.undecided import closes_unopened
from bardo.streams.stage import Stage
from bardo.values.errors import BardoError
from bardo.values.events import Event, Extension, Failed, ReplyStart
from bardo.values.request import Message, Request
from bardo.values.response import Response

# Comments before the first event that are forwarded with it; a server that waits long may send any number of them.
_MOST_PRIMED_BYTES = 4096


class LiveReply:
    """One reply as it arrives. Iterate over `steps` to its end, or `close` it before.

    `take` is the caller's own look at a typed answer, `through` are stages of one who only listens. `client_key` is what the client proved
    itself with, which no error may hold. `most_text` is how many characters of a reply are held that only the log and replay look at.
    """

    def __init__(
        self,
        means: Means,
        request: Request,
        *,
        tenant: str = "",
        take: Take | None = None,
        through: Sequence[Stage[Event, Event]] = (),
        client_key: str = "",
        most_text: int | None = None,
    ) -> None:
        self.request = request
        self.request_id = f"req_{random.getrandbits(96):024x}"
        self.answering: Answering | None = None
        self._means = means
        self._take = take
        self._through = through
        self._client_key = client_key
        self._most_text = most_text
        self._noting = Noting(means, request, self.request_id, tenant)
        self._again: LiveReply | None = None
        self._attempt: Attempt | None = None
        self._reader: ReplyReader | None = None
        self._reply: Reply | None = None
        self._primed: list[Step] = []
        # Frames of a forwarded reply that wait until its answer is judged.
        self._ending: list[bytes] = []
        self._coming: AsyncGenerator[Step, None] | None = None

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
        self._noting.sent(attempt)
        self._attempt, self._reader, self._primed = attempt, None, []
        self.answering = None
        try:
            reply = self._reply = await self._means.transport.send(self._call(attempt), self._means.limits.deadlines)
            if reply.resent:
                self._noting.sent_again()
            await self._receive(reply, attempt)
        except BardoError as problem:
            self.clean(problem)
            await self._release()
            raise
        except BaseException:
            await self._release()
            raise

    def clean(self, error: BardoError) -> None:
        """Take secrets, and more text than a person reads, out of an error of this call."""
        self._means.clean(error, (self._client_key,))

    async def steps(self) -> AsyncIterator[Step]:
        """Yield what each network read gives, to the end of the reply; then the call is noted."""
        remember, reader, attempt = self._noting.remember, self.reader, self.attempt
        for step in self._primed:
            await remember(step, reader, attempt)
            yield step
        self._primed = []
        if self._coming is not None:
            async for step in self._coming:
                await remember(step, reader, attempt)
                yield step
        await self._noting.remember_rest(reader, attempt)
        if self.answering is not None:
            async for step in self._answer(self.answering):
                yield step
        last = self._extension()
        if last:
            yield Step(last)
        failure = reader.failure
        broken: CallOutcome = "broken" if self.request.stream else "error"
        self.note("ok" if failure is None else broken, failure)
        await self._release()
        if failure is not None and not self.request.stream:
            failure.request_id = self.request_id
            raise failure

    async def _answer(self, answering: Answering) -> AsyncIterator[Step]:
        """Yield what becomes of an answer that has a schema."""
        async for events in answering.finish(self):
            step = Step(self.reader.settle(events))
            await self._noting.remember(step, self.reader, self.attempt)
            if events:
                yield step
        if self._ending and self.reader.failure is None:
            yield Step([], b"".join(self._ending))
        if answering.rewritten:
            self._attempt = msgspec.structs.replace(self.attempt, forward=False)

    async def ask_again(
        self, turns: Sequence[Message], through: Sequence[Stage[Event, Event]]
    ) -> AsyncIterator[list[Event]]:
        """Ask the model again within this call, and yield the events of its reply. Raises BardoError where there is none."""
        self._noting.sent(self.attempt)
        quiet = msgspec.structs.replace(self.request.options, include=())
        request = msgspec.structs.replace(self.request, options=quiet)
        again = self._again = LiveReply(Quietly(self._means), request, through=through, client_key=self._client_key)
        try:
            await again.begin(asked_again(self.attempt, turns, self._means.knowledge))
            async for step in again.steps():
                yield [event for event in step.events if type(event) is not Failed]
            if again.reader.failure is not None:
                raise again.reader.failure
        finally:
            await again.close()

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
        self._learn_start()
        self._noting.note(outcome, attempt=self._attempt, reader=self._reader, error=error)

    def note_cancelled(self, cancelled: asyncio.CancelledError) -> None:
        """Write a call that was cancelled into the log: as failed where the server stopped, not its client."""
        stopped = shutdown_of(cancelled)
        if stopped is None:
            self.note("cancelled")
        else:
            begun = self._reader is not None and self.request.stream
            self.note("broken" if begun else "error", stopped)

    def _learn_start(self) -> None:
        """Keep where the reply's thinking stood, for the next reply of the same server."""
        place = None if self._reader is None else self._reader.thinking_place
        if place is None or self._attempt is None or self._attempt.reading.reasoning is None:
            return
        if place == "none" and closes_unopened(self.response().text, self._attempt.reading.reasoning):
            # Nobody expected thinking here, so that it was given as the answer; the next reply is read with more care.
            place = "text"
        seen = seen_start(place, off=self._attempt.off)
        if seen is not None or place == "unclosed":
            self._means.knowledge.learn_start(self._attempt.target, self._attempt.off, seen)

    def _open_reader(self, attempt: Attempt, *, streamed: bool) -> ReplyReader:
        stamp = ReplyStart(id=self.request_id, model=attempt.target.model, created=int(self._noting.started_at))
        further = [*self._through]
        if not self._through:
            self.answering = answering_of(attempt, self.request, self._take)
        if self.answering is not None:
            further.append(self.answering.stage)
        secrets = self._means.keyring.secrets_of(attempt.target.provider)
        return open_reader(
            attempt,
            self.request,
            stamp,
            streamed=streamed,
            further=further,
            secrets=secrets,
            clean=self.clean,
            most_text=None if self.answering is not None or self.request.options.include else self._most_text,
        )

    def _call(self, attempt: Attempt) -> Call:
        provider = attempt.target.provider
        headers = {"content-type": "application/json", **provider.row.headers, **attempt.wire.headers}
        call = Call(method="POST", url=attempt.url, headers=headers, body=attempt.wire.body, provider=provider.id)
        return self._means.keyring.sign(call, provider, clock=self._means.clock)

    async def _receive(self, reply: Reply, attempt: Attempt) -> None:
        """Read the head of a reply, and as much of it as tells whether it is one."""
        provider = attempt.target.provider
        if reply.status >= 300:
            raise await refusal(reply, provider)
        if (problem := await page(reply, provider)) is not None:
            raise problem
        streamed = is_streamed(reply, asked=self.request.stream)
        if streamed is not self.request.stream:
            # A provider may answer a streaming request whole, or the other way round: then its bytes are not the client's.
            attempt = self._attempt = msgspec.structs.replace(attempt, forward=False)
        self._reader = self._open_reader(attempt, streamed=streamed)
        if streamed and self.request.stream:
            await self._prime(reply)
        else:
            await self._read_whole(reply)

    async def _prime(self, reply: Reply) -> None:
        """Read to the first event, so that a reply that breaks before it can still go elsewhere. Comments and pings are none."""
        reader = self.reader
        ending = None if self.answering is None else self._ending
        coming = self._coming = read_pieces(
            reply.chunks(), reader, self.attempt, limit=self._means.limits.max_stream_bytes, ending=ending
        )
        spare = _MOST_PRIMED_BYTES
        async for step in coming:
            spare -= len(step.raw)
            if not (reader.begun or step.events):
                self._primed += [step] if spare >= 0 else []
                continue
            self._noting.heard()
            if reader.failure is not None and not self.response().blocks:
                raise reader.failure
            self._primed.append(step)
            break
        if reader.reframed:
            self._attempt = msgspec.structs.replace(self.attempt, forward=False)

    async def _read_whole(self, reply: Reply) -> None:
        try:
            body = await reply.read(self._means.limits.max_reply_bytes)
        finally:
            await self._release()
        self._noting.heard()
        self._primed.append(read_whole(body, self.reader))
        if self.reader.reframed:
            self._attempt = msgspec.structs.replace(self.attempt, forward=False)

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
        if reply is None:
            return
        if self._reader is not None and self._reader.over and self._reader.failure is None:
            await reply.finish()
        else:
            await reply.close()
