"""One call's reply as it arrives: an attempt sent, its reply read, its typed answer judged, and the call logged at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.log.row import CallOutcome, RunningUsage
from bardo.call.answer_steps import AnswerStepRunner, ReplyAnswer
from bardo.call.call_attempts import SentAttempt
from bardo.call.call_progress import ProgressPublisher
from bardo.call.call_reply import CallReply
from bardo.call.call_row import subsystem_of
from bardo.call.opened_reply import OpenedReply, ReplyReading, StoredCall, open_stored, stale_loss
from bardo.call.stale_replies import StaleReply
from bardo.call.stream_reading import Meter
from bardo.call.upstream_reply import UpstreamReply
from bardo.call.verification import Verifier
from bardo.context.layer import KeptReply
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import Knowledge
from bardo.planning.verification import is_judged
from bardo.replies.forwarding import ReplyUpdate
from bardo.replies.receipt import extension
from bardo.replies.reply_reader import ReplyReader
from bardo.replies.typed_answer import typed_answer
from bardo.routing.cascade import judge
from bardo.values.errors import BardoError
from bardo.values.events import Degraded, Event, Extension

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers


class LiveReply(CallReply):
    """One reply as it arrives. Iterate over `updates` to its end, or `close` it before."""

    _progress: ProgressPublisher | None = None
    _is_released = False
    _client_left = False
    _opening: OpenedReply | None = None
    """The attempt whose reply has not begun, or had not when it was begun."""
    _meter: Meter | None = None

    async def begin(self, attempt: Attempt, knowledge: Knowledge, sent: SentAttempt) -> None:
        """Send an attempt that was noted as `sent`, planned with `knowledge`, and read until its reply has begun. Raises BardoError."""
        opened = OpenedReply(attempt, sent)
        self.note_opening(opened)
        try:
            await opened.begin(self.reading())
        finally:
            self.take(opened, knowledge)

    def reading(self) -> ReplyReading:
        """Return how the replies of this call are read."""
        layers, recorder = self._recorder.layers, self._recorder
        record = 0 if self.stale_place is None else self.stale_place.most_bytes
        return ReplyReading(
            self._context,
            recorder,
            self.request,
            self.request_id,
            self._cleaner(),
            self._validator,
            self._most_text,
            record if layers is None else max(record, layers.most_bytes),
            layers,
            self._meter,
        )

    async def begin_stale(self, kept: StaleReply, why: BardoError) -> None:
        """Give an old reply, because nobody answered."""
        lost = stale_loss(kept, self._context.clock(), why)
        stored = StoredCall(kept.attempt, kept.content_type, kept.body)
        self._upstream = await open_stored(self.reading(), stored, (lost,))
        self._attempt, self.answer = self._upstream.attempt, None
        self.stale_seconds = self._context.clock() - kept.kept_at

    async def begin_kept(self, attempt: Attempt, knowledge: Knowledge, kept: KeptReply) -> None:
        """Give the reply to an earlier call, read as the answer to `attempt`, which is not sent. Raises BardoError."""
        answer = None
        if attempt.answer is not None:
            answer = typed_answer(attempt, self.request, forward=False, validator=self._validator)
        stages = () if answer is None else (answer.buffer,)
        stored = StoredCall(attempt, kept.content_type, kept.body)
        self._upstream = await open_stored(self.reading(), stored, (), stages, with_usage=True)
        self._attempt, self._knowledge, self.answer = self._upstream.attempt, knowledge, answer

    def note_opening(self, opened: OpenedReply) -> None:
        """Note an attempt that is about to be sent: what comes of it counts also before anything of it is shown."""
        self._opening = opened

    def take(self, opened: OpenedReply, knowledge: Knowledge) -> None:
        """Go on with one of the attempts, which was planned with `knowledge`."""
        self._attempt, self._knowledge = opened.attempt, knowledge
        self._upstream, self.answer = opened.upstream, opened.answer

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
            if self._is_due(update):
                await self._keep()
            yield update
        await self._recorder.remember_rest(upstream.reader, self.attempt)
        if self.answer is not None:
            async for update in self._finish_answer(self.answer, upstream):
                yield update
        if self.verifier is not None and (update := await self._verify(self.verifier)) is not None:
            yield update
        last = self._extension()
        if last:
            yield ReplyUpdate(last)
        await self._conclude(upstream.reader)

    def give_directly(self, may_give: Callable[[], bool], give: Callable[[ReplyUpdate], None]) -> None:
        """Have `give` called, where `may_give`, for updates that only continue a text, as they come; `updates` yields all others."""
        if self._upstream is None or self._held is not None or self.answer is not None:
            return
        events, recorder = self._context.events, self._recorder
        self._upstream.give_directly(lambda: not (events.active or recorder.has_kept) and may_give(), give)

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
        reader, recorder = upstream.reader, self._recorder
        # An asynchronous generator costs as much as all that is left to do.
        while (read := await upstream.next_update()) is not None:
            if self._is_due(read):
                await recorder.remember(reader, self.attempt)
            raw += read.raw
        await recorder.remember_rest(reader, self.attempt)
        await self._conclude(reader)
        return raw

    def _is_due(self, update: ReplyUpdate) -> bool:
        """Tell those who listen of what came, and return whether the reply may have to be kept before its client gets it."""
        if self._context.events.active:
            self._publish(update.events)
        return self._recorder.is_due(update.events)

    async def _keep(self) -> None:
        await self._recorder.remember(self.reader, self.attempt)

    def _publish(self, events: Sequence[Event]) -> None:
        if self._progress is None:
            subsystem = subsystem_of(self.request, self.attempt) or ""
            self._progress = ProgressPublisher(self._context, self.request_id, subsystem, self.recorder.key_id)
        self._progress.publish(events)

    async def _conclude(self, reader: ReplyReader) -> None:
        """Log the call and let go of the reply. Raises the error of a whole reply that failed."""
        failure = reader.failure
        broken: CallOutcome = "broken" if self.request.stream else "error"
        self.log(("cancelled" if self._client_left else "ok") if failure is None else broken, failure)
        if self.stale_place is not None and failure is None and self._upstream is not None and self._may_keep():
            self.stale_place.keep(self.attempt, self._upstream.recorded)
        if (layers := self._recorder.layers) is not None:
            await self._end_layers(layers, ok=failure is None)
        await self._release()
        if failure is not None and not self.request.stream:
            failure.request_id = self.request_id
            raise failure

    def note_client_left(self) -> None:
        """Note that the client has left, and that the reply is read on only to know what it cost."""
        self._client_left = True

    def so_far(self, prompt_tokens: int) -> RunningUsage:
        """Return about what the call has used so far. `prompt_tokens` are those of its prompt where its provider has not counted them."""
        ended = self.recorder.attempts.ended_nanos()
        upstream = self._latest_upstream()
        if upstream is None:
            return RunningUsage(0, 0, ended)
        usage, target = upstream.so_far(self._recorder.tenant), upstream.attempt.target
        usage = msgspec.structs.replace(usage, input_tokens=usage.input_tokens or prompt_tokens)
        if usage.output_tokens is None or not self.recorder.attempts.has_open:
            return RunningUsage(0, 0, ended)
        cost = self._context.prices.cost(target.provider, target.model, usage, self.recorder.started_at)
        nanos = None if cost.nanos is None else ended + cost.nanos
        parts: dict[str, int] = {cause: part for cause, part in cost.parts.items()}  # noqa: C416 - of texts, for the type
        return RunningUsage(usage.input_tokens or 0, usage.output_tokens, nanos, None if ended else parts)

    def cut(self, error: BardoError) -> None:
        """End a stream with an error, and the connection to its provider: what came is priced, and its client gets the error."""
        upstream = self._latest_upstream()
        if upstream is not None:
            upstream.cut(error)

    def count(self, meter: Meter) -> None:
        """Ask `meter` of each piece of the replies that come before it is read."""
        self._meter = meter

    def _latest_upstream(self) -> UpstreamReply | None:
        """Return the reply that is read, also while nothing of it was to be shown yet."""
        if self._upstream is None and self._opening is not None:
            return self._opening.upstream
        return self._upstream

    @property
    def written_tokens(self) -> int:
        """About how many tokens the model has written so far."""
        upstream = self._upstream
        return upstream.reader.written.tokens if upstream is not None and upstream.opened else 0

    async def close(self) -> None:
        """Let go of the reply, whatever is left of it: a call that was not read to its end is logged as cancelled.

        A client that leaves at the last event does not wait for the connection's end: its reply was whole.
        """
        recorder = self._recorder
        if not recorder.logged:
            whole = self._is_whole()
            self.log("ok" if whole else "cancelled")
            if recorder.layers is not None:
                await self._end_layers(recorder.layers, ok=whole)
        elif recorder.layers is not None:
            await recorder.layers.fail()
        if recorder.awaits_verdict:
            recorder.judge(escalated=False)
        if self._steps is not None:
            await self._steps.close()
        if not self._is_released:
            await self._release()

    async def _finish_answer(self, answer: ReplyAnswer, upstream: UpstreamReply) -> AsyncIterator[ReplyUpdate]:
        """Do what the end of an answer that has a schema, or may search, asks for, and yield what comes of it."""
        self.note_ended(error=upstream.reader.failure)
        self._steps = AnswerStepRunner(
            self._context,
            self._recorder,
            self.request,
            self.attempt,
            self._knowledge,
            upstream.reader,
            clean=self._cleaner(),
            key=self.keys.label,
            layers=self.layers,
        )
        async for events in self._steps.run(answer, self.reading().stamp(self.attempt)):
            yield await self._settle(events)
        if upstream.held_end and upstream.reader.failure is None:
            yield ReplyUpdate([], upstream.held_end)

    async def _settle(self, events: Sequence[Event]) -> ReplyUpdate:
        """Return events that were made behind the reply as an update of it."""
        update = ReplyUpdate(self.reader.settle(events))
        if self._is_due(update):
            await self._keep()
        return update

    async def _verify(self, verifier: Verifier) -> ReplyUpdate | None:
        """Have the answer judged, where it is one that the caller gets. Returns what that adds to the reply."""
        if self.reader.failure is not None or not is_judged(self.response()):
            return None
        provenance = self._provenance
        fits = provenance is None or provenance.error is None
        if self._recorder.awaits_verdict and judge(self.response(), fits_schema=fits) is not None:
            return None  # A better model is asked instead.
        self.note_ended()
        self._is_judged = self.request.stream
        request, response = self.request, self.response()
        if self.layers is not None and self.layers.masks:
            request, response = self.layers.as_sent(request), self.layers.as_said(response)
        found = await verifier.verify(request, response, self.attempt.target, self.age())
        self._verification = found
        lost = found.degradation()
        return None if lost is None else ReplyUpdate(self.reader.settle([Degraded(lost)]))

    def _extension(self) -> list[Event]:
        if not self.request.options.include or self.reader.failure is not None:
            return []
        self.note_ended()
        fields = extension(self.request, self.response(), self._facts(), forwarded=self.forwarded)
        if self.prompt_estimate and "receipt" in fields:
            fields["receipt"]["input_tokens_estimate"] = self.prompt_estimate
        if self.layers is not None and "receipt" in fields:
            fields["receipt"]["pipeline"] = self.layers.fields()
        if self.stale_seconds is not None and "receipt" in fields:
            fields["receipt"]["stale_seconds"] = round(self.stale_seconds, 3)
        if "structured" in self.request.options.include:
            provenance = self._provenance
            fields["structured"] = None if provenance is None else msgspec.to_builtins(provenance)
        event = Extension(fields)
        self.reader.fold.feed(event)
        return [event]

    async def _end_layers(self, layers: CallLayers, *, ok: bool) -> None:
        """Do what the call's layers want done at its end. One that a kept reply answered has no reply of its own that ended."""
        if not ok or layers.answer is not None or self.stale_seconds is not None:
            await layers.fail()
        else:
            layers.answered = (self.attempt.target, self.keys.label)
            if self.answer is None or not self.answer.rewritten:
                # Else the tokens of several prompts are counted together.
                layers.learn(self.attempt.target, self.response().usage.input_tokens)
            await layers.end(self.request, self.response(), self._kept_reply(layers))

    def _may_keep(self) -> bool:
        """Whether the reply as it came is what another call may get: no answer that bardo judged, and nothing that a layer changed."""
        return self.answer is None and (self.layers is None or not self.layers.changes_reply)

    @staticmethod
    def _fits_at_once(answer: ReplyAnswer) -> bool:
        """Whether an answer came of one reply and fits its schema, so that it does so again when it is read again."""
        made = answer.provenance
        return made is not None and made.attempts == 1 and made.error is None

    def _kept_reply(self, layers: CallLayers) -> KeptReply | None:
        """Return the reply as it came, for a layer that keeps it: None where it is too long, or is not what the client got."""
        recorded = None if self._upstream is None else self._upstream.recorded
        body = None if recorded is None or not layers.most_bytes else recorded.body
        if recorded is None or not body or len(body) > layers.most_bytes or layers.changes_reply:
            return None
        if self.answer is not None and not self._fits_at_once(self.answer):
            return None
        target = self.attempt.target
        return KeptReply(
            provider=target.provider.id,
            model=target.model,
            dialect=target.provider.row.dialect,
            content_type=recorded.headers.get("content-type", ""),
            body=body,
            streamed=self.request.stream,
            kept_at=self._context.clock(),
            cost_nanos=self.cost.nanos,
        )

    async def _release(self) -> None:
        self._is_released = True
        if self._upstream is not None:
            await self._upstream.close()
