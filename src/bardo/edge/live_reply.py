"""One call's reply as it arrives: an attempt sent, its reply read, its typed answer judged, and the call logged at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from bardo.edge.answer_steps import AnswerStepRunner
from bardo.edge.call_context import CallContext, new_request_id
from bardo.edge.call_recorder import CallRecorder
from bardo.edge.graceful_shutdown import shutdown_of
from bardo.edge.log.row import CallOutcome
from bardo.edge.upstream_reply import UpstreamReply, open_reply
from bardo.engine.forwarding import ReplyUpdate
from bardo.engine.knowledge import BUILTIN, Knowledge
from bardo.engine.planning import Attempt
from bardo.engine.receipt import extension, with_receipt
from bardo.engine.reply_reader import ReplyReader
from bardo.engine.typed.plan import AnswerValidator
from bardo.engine.typed.retry import TypedAnswer, typed_answer
from bardo.values.errors import BardoError
from bardo.values.events import Event, Extension, ReplyStart
from bardo.values.request import Request
from bardo.values.response import Response


class LiveReply:
    """One reply as it arrives. Iterate over `updates` to its end, or `close` it before.

    `validator` is the caller's own look at a typed answer. `client_key` is what the client proved itself with, which no error may hold.
    `most_text` is how many characters of a reply are held that only the log and replay look at.
    """

    def __init__(
        self,
        context: CallContext,
        request: Request,
        *,
        tenant: str = "",
        validator: AnswerValidator | None = None,
        client_key: str = "",
        most_text: int | None = None,
    ) -> None:
        self.request = request
        self.request_id = new_request_id(context.clock())
        self.answer: TypedAnswer | None = None
        self.prompt_estimate = 0
        """The tokens of the prompt that the client was told before they were counted; 0 where it was told none."""
        self._context = context
        self._validator = validator
        self._client_key = client_key
        self._most_text = most_text
        self._recorder = CallRecorder(context, request, self.request_id, tenant)
        self._knowledge: Knowledge = BUILTIN
        self._attempt: Attempt | None = None
        self._upstream: UpstreamReply | None = None
        self._steps: AnswerStepRunner | None = None
        self._held: list[ReplyUpdate] | None = None

    @property
    def attempt(self) -> Attempt:
        """The attempt that was sent last."""
        assert self._attempt is not None
        return self._attempt

    @property
    def reader(self) -> ReplyReader:
        """The reader of the reply."""
        assert self._upstream is not None
        return self._upstream.reader

    @property
    def forwarded(self) -> bool:
        """Whether the client gets the provider's own bytes: the plan allows it, and so did the reply as far as it has come."""
        rewritten = self.answer is not None and self.answer.rewritten
        return self._upstream is not None and self._upstream.forwarded and not rewritten

    def response(self) -> Response:
        """Return the reply as far as it has come."""
        return self.reader.fold.response()

    def response_with_receipt(self) -> Response:
        """Return the reply as far as it has come, with ids, cost and receipt in `bardo`, and steps in its thinking."""
        return with_receipt(self.request, self.response(), self.attempt, self.request_id, forwarded=self.forwarded)

    async def begin(self, attempt: Attempt, knowledge: Knowledge) -> None:
        """Send one attempt, planned with `knowledge`, and read until its reply has begun.

        Raises BardoError, and lets go of the reply then.
        """
        self._recorder.note_sent(attempt)
        self._context.events.publish_plan(self.request_id, attempt)
        self._attempt, self._knowledge = attempt, knowledge
        self._upstream = self.answer = None
        try:
            self._upstream = await open_reply(self._context, attempt, self.request)
            if self._upstream.resent:
                self._recorder.note_resent()
            await self._begin_reading(self._upstream, attempt)
        except BardoError as problem:
            self.clean(problem)
            await self._release()
            raise
        except BaseException:
            await self._release()
            raise
        finally:
            if self._upstream is not None and self._upstream.begun:
                self._recorder.note_first_byte()

    def clean(self, error: BardoError) -> None:
        """Take secrets, and more text than a person reads, out of an error of this call."""
        self._context.clean(error, (self._client_key,))

    def _cleaner(self) -> Callable[[BardoError], None]:
        """Return what cleans an error and does not hold this call: a call in a circle of references waits for the garbage collector."""
        return partial(self._context.clean, further=(self._client_key,))

    async def updates(self) -> AsyncIterator[ReplyUpdate]:
        """Yield what each network read gives, to the end of the reply; then the call is logged.

        Raises the BardoError of a whole reply that failed; that of a stream is an event.
        """
        if self._held is not None:
            for held in self._held:
                yield held
            return
        upstream = self._upstream
        assert upstream is not None
        while (update := await upstream.next_update()) is not None:
            await self._keep_due(update)
            yield update
        await self._recorder.remember_rest(upstream.reader, self.attempt)
        if self.answer is not None:
            async for update in self._finish_answer(self.answer, upstream):
                yield update
        last = self._extension()
        if last:
            yield ReplyUpdate(last)
        await self._conclude(upstream.reader)

    async def hold(self) -> BardoError | None:
        """Read the reply to its end and hold it for `updates` and `read`; the call is logged. Returns why it failed, where it did."""
        try:
            self._held = [update async for update in self.updates()]
        except BardoError as problem:
            return problem
        return self.reader.failure

    async def read(self) -> bytes:
        """Read the reply to its end, and return what the provider sent; then the call is logged. Raises as `updates` does."""
        raw, upstream = b"", self._upstream
        assert upstream is not None
        if self.answer is not None or self.request.options.include or self._held is not None:
            async for update in self.updates():
                raw += update.raw
            return raw
        # An asynchronous generator costs as much as all that is left to do.
        while (read := await upstream.next_update()) is not None:
            await self._keep_due(read)
            raw += read.raw
        await self._recorder.remember_rest(upstream.reader, self.attempt)
        await self._conclude(upstream.reader)
        return raw

    async def _keep_due(self, update: ReplyUpdate) -> None:
        if self._recorder.is_due(update.events):
            await self._recorder.remember(self.reader, self.attempt)

    async def _conclude(self, reader: ReplyReader) -> None:
        """Log the call and let go of the reply. Raises the error of a whole reply that failed."""
        failure = reader.failure
        broken: CallOutcome = "broken" if self.request.stream else "error"
        self.log("ok" if failure is None else broken, failure)
        await self._release()
        if failure is not None and not self.request.stream:
            failure.request_id = self.request_id
            raise failure

    def log(self, outcome: CallOutcome, error: BardoError | None = None) -> None:
        """Write the call into the log, once."""
        if self._recorder.logged:
            return
        read = self._upstream is not None and self._upstream.opened
        if read and self._upstream is not None:
            self._upstream.learn_start()
        if outcome == "ok" and read and self._context.events.active:
            provenance = None if self.answer is None else self.answer.provenance
            self._context.events.publish_reply(self.request_id, self.attempt, self.response(), provenance)
        self._recorder.log(
            outcome,
            attempt=self._attempt,
            response=self.response() if read else None,
            error=error,
            forwarded=self.forwarded if read else self._attempt is not None and self._attempt.forward,
        )

    def log_cancelled(self, cancelled: asyncio.CancelledError) -> None:
        """Write a call that was cancelled into the log: as failed where the server stopped, not its client."""
        stopped = shutdown_of(cancelled)
        if stopped is None:
            self.log("cancelled")
        else:
            begun = self._upstream is not None and self._upstream.opened and self.request.stream
            self.log("broken" if begun else "error", stopped)

    async def close(self) -> None:
        """Let go of the reply, whatever is left of it: a call that was not read to its end is logged as cancelled.

        A client that leaves at the last event does not wait for the connection's end: its reply was whole.
        """
        if not self._recorder.logged:
            self.log("ok" if self._is_whole() else "cancelled")
        if self._steps is not None:
            await self._steps.close()
        await self._release()

    async def _begin_reading(self, upstream: UpstreamReply, attempt: Attempt) -> None:
        if attempt.answer is not None:
            self.answer = typed_answer(attempt, self.request, forward=upstream.forward, validator=self._validator)
        holds_all = self.answer is not None or bool(self.request.options.include)
        await upstream.begin(
            self._stamp(attempt),
            () if self.answer is None else (self.answer.buffer,),
            clean=self._cleaner(),
            most_text=None if holds_all else self._most_text,
            hold_end=self.answer is not None,
        )

    def _stamp(self, attempt: Attempt) -> ReplyStart:
        return ReplyStart(id=self.request_id, model=attempt.target.model, created=int(self._recorder.started_at))

    async def _finish_answer(self, answer: TypedAnswer, upstream: UpstreamReply) -> AsyncIterator[ReplyUpdate]:
        """Do what the end of an answer that has a schema asks for, and yield what comes of it."""
        self._steps = AnswerStepRunner(
            self._context, self._recorder, self.request, self.attempt, self._knowledge, clean=self._cleaner()
        )
        async for events in self._steps.run(answer, self._stamp(self.attempt)):
            yield await self._settle(events)
        if upstream.held_end and upstream.reader.failure is None:
            yield ReplyUpdate([], upstream.held_end)

    async def _settle(self, events: Sequence[Event]) -> ReplyUpdate:
        """Return events that were made behind the reply as an update of it."""
        update = ReplyUpdate(self.reader.settle(events))
        await self._keep_due(update)
        return update

    def _extension(self) -> list[Event]:
        if not self.request.options.include or self.reader.failure is not None:
            return []
        fields = extension(self.request, self.response(), self.attempt, self.request_id, forwarded=self.forwarded)
        if self.prompt_estimate and "receipt" in fields:
            fields["receipt"]["input_tokens_estimate"] = self.prompt_estimate
        if "structured" in self.request.options.include:
            fields["structured"] = self._structured()
        event = Extension(fields)
        self.reader.fold.feed(event)
        return [event]

    def _structured(self) -> dict[str, Any] | None:
        """Return how the typed answer came about; None where none was asked for, or none was due in this turn."""
        provenance = None if self.answer is None else self.answer.provenance
        return None if provenance is None else msgspec.to_builtins(provenance)

    def _is_whole(self) -> bool:
        """Whether the reply said its last event, and the caller took it."""
        upstream = self._upstream
        if upstream is None or not upstream.opened or upstream.reader.failure is not None or not upstream.all_read:
            return False
        return self.response().finish.reason not in ("unknown", "error")

    async def _release(self) -> None:
        if self._upstream is not None:
            await self._upstream.close()
