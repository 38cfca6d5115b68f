"""One call's reply as it arrives: what a surface iterates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.log.row import CallOutcome, RunningUsage
from bardo.call.call import Call, subsystem_of
from bardo.call.client_login import ClientLogin
from bardo.call.ending import AnswerStepRunner, keep_episode, reply_to_keep
from bardo.call.row import row_of_reply
from bardo.call.services import Services
from bardo.call.stored import StalePlace
from bardo.call.upstream import ReplyAnswer, UpstreamReply
from bardo.context.layer import KeptReply
from bardo.planning.attempt import Attempt
from bardo.planning.forwarded import PassedHeaders
from bardo.planning.knowledge import BUILTIN, Knowledge
from bardo.planning.typed_answer import AnswerValidator
from bardo.planning.workloads import Verification, is_judged
from bardo.reasoning.replay import is_only_text
from bardo.replies.forwarding import ReplyUpdate
from bardo.replies.receipt import CallFacts, extension, with_earlier_calls, with_receipt
from bardo.replies.reply_reader import ReplyReader
from bardo.routing.cascade import judge
from bardo.services.facts.event_feed import ProgressPublisher
from bardo.services.facts.failover import StaleReply
from bardo.structured import Provenance
from bardo.values.attempts import AttemptCause
from bardo.values.blocks import ReplyBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InternalError, ProviderError, shutdown_of
from bardo.values.events import Degraded, Event, Extension, Finish, UsageUpdate
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import CallCost

if TYPE_CHECKING:
    from bardo.services.accounts.admissions import StreamMeter
    from bardo.services.pipeline.call_layers import CallLayers


_MOST_TIMES_KEPT = 16
"""A reply may bring opaque state after its finish, in a few more reads; each of several choices has a finish."""


class ReasoningKeeper:
    """Keeps the reasoning of one reply for the turns to come, before its client learns that the reply is over, and may go on."""

    _kept: tuple[ReplyBlock, ...] = ()
    _times_kept = 0
    _came_later = False

    def __init__(self, call: Call, request: Request) -> None:
        self._call = call
        self._request = request

    @property
    def has_kept(self) -> bool:
        """Whether something of the reply was kept: then whatever follows is kept too."""
        return bool(self._kept)

    def is_due(self, events: Sequence[Event]) -> bool:
        """Whether a reply has to be kept before its client gets these events: it may be over with them."""
        if self._kept:
            return bool(events)
        for event in events:  # noqa: SIM110 - asked at every read of a stream, where a loop costs half of what `any` does.
            if type(event) is Finish:
                return True
        return False

    async def keep(self, reader: ReplyReader, attempt: Attempt) -> None:
        """Keep the reply as far as it has come.

        Keeping it costs the length of the reply. One that goes on for long after its finish is kept a few times, and again at its end.
        """
        if self._times_kept >= _MOST_TIMES_KEPT:
            self._came_later = True
            return
        self._times_kept += 1
        fold = reader.fold_with_reasoning
        if not fold.whole:
            return  # A reply that is too long to be held is not remembered.
        response, shown = fold.response(), None
        if response.blocks == self._kept:
            return
        self._kept = response.blocks
        call, replay = self._call, self._call.services.replay
        if replay is None or is_only_text(response, self._request):
            return
        if call.layers is not None and call.layers.masks:
            response, shown = call.layers.as_said(response), call.layers.as_shown(response)
        await replay.remember(
            response,
            self._request,
            attempt,
            call.tenant,
            reply=call.request_id,
            fields=reader.fields_to_return(),
            shown=shown,
        )

    async def keep_rest(self, reader: ReplyReader, attempt: Attempt) -> None:
        """Keep what came after the last time that the reply was kept."""
        if self._came_later:
            self._times_kept = _MOST_TIMES_KEPT - 1
            await self.keep(reader, attempt)


class LiveReply:
    """The reply to one call as it arrives. Iterate over `updates` to its end, or `close` it before.

    `validator` is the caller's own look at a typed answer, and `verify` has the answer judged by a second model. `client_key` is what the
    client proved itself with, which no error may hold, and `account` whose it is.
    `most_text` is how many characters of a reply are held that only the log and replay look at. `layers` are those of a call whose
    request they have worked on before.
    """

    prompt_estimate = 0
    """The tokens of the prompt that the client was told before they were counted; 0 where it was told none."""
    stale_seconds: float | None = None
    """How old the reply is that is given because nobody answered; None of one that came now."""
    verdict: str | None = None
    """What became of the thinking that was asked for, by the call's receipt, or None if none was made."""
    _stale_place: StalePlace | None = None
    _verification: Verification | None = None
    _is_judged = False
    _knowledge: Knowledge = BUILTIN
    _upstream: UpstreamReply | None = None
    """The attempt that was sent last; None before the first."""
    _steps: AnswerStepRunner | None = None
    _held: list[ReplyUpdate] | None = None
    _progress: ProgressPublisher | None = None
    _is_released = False
    _client_left = False
    _meter: StreamMeter | None = None

    def __init__(
        self,
        services: Services,
        request: Request,
        *,
        tenant: str = "",
        validator: AnswerValidator | None = None,
        client_key: str = "",
        most_text: int | None = None,
        account: Account | None = None,
        verify: Callable[..., Awaitable[Verification]] | None = None,
        layers: CallLayers | None = None,
        awaits_verdict: bool = False,
        login: ClientLogin | None = None,
    ) -> None:
        self.request = request
        self.call = Call(
            services,
            request,
            tenant=tenant,
            account=account,
            client_key=client_key,
            operation=request.operation,
            streamed=request.stream,
            layers=layers,
            awaits_verdict=awaits_verdict,
            login=login,
        )
        self.request_id = self.call.request_id
        self._services = services
        self._validator = validator
        self._most_text = most_text
        self._verify_answer = verify
        self._reasoning = ReasoningKeeper(self.call, request)

    @property
    def attempt(self) -> Attempt:
        """The attempt that was sent last."""
        assert self._upstream is not None
        return self._upstream.attempt

    @property
    def answer(self) -> ReplyAnswer | None:
        """What does the steps that end the reply, or None if it ends by itself."""
        return None if self._upstream is None else self._upstream.answer

    @property
    def reader(self) -> ReplyReader:
        """The reader of the reply."""
        assert self._upstream is not None
        return self._upstream.reader

    @property
    def forwarded(self) -> bool:
        """Whether the client gets the provider's own bytes: the plan allows it, and so did the reply as far as it has come."""
        upstream = self._upstream
        return upstream is not None and upstream.forwarded and not (upstream.answer and upstream.answer.rewritten)

    @property
    def passed_headers(self) -> PassedHeaders:
        """The headers of the provider's reply that the client gets too."""
        return () if self._upstream is None else self._upstream.passed_headers

    @property
    def cost(self) -> CallCost:
        """What the call cost by the attempts that have ended; unknown while one is open."""
        return self.call.attempts.cost()

    @property
    def cost_of_request(self) -> CallCost:
        """What the request cost: this call, and the calls of the same cascade whose answers were not good enough."""
        return with_earlier_calls(self.call.attempts.cost(), None if self._upstream is None else self._upstream.attempt)

    @property
    def written_tokens(self) -> int:
        """About how many tokens the model has written so far."""
        upstream = self._upstream
        return upstream.reader.written.tokens if upstream is not None and upstream.opened else 0

    def response(self) -> Response:
        """Return the reply as far as it has come."""
        return self.reader.response()

    def response_with_receipt(self) -> Response:
        """Return the reply as far as it has come, with ids, cost and receipt in `bardo`, and steps in its thinking."""
        return with_receipt(self.request, self.response(), self._facts(), forwarded=self.forwarded)

    def prepare(
        self, attempt: Attempt, knowledge: Knowledge, *, cause: AttemptCause = "first", why: str = ""
    ) -> UpstreamReply:
        """Note an attempt that is about to be sent, and go on with it: what comes of it counts also before anything of it is shown.

        It was planned with `knowledge`. `why` says what led to it.
        """
        call, events = self.call, self._services.events
        sent = call.note_attempt(attempt, self.request, cause=cause, why=why, key=call.choose_key(attempt.target))
        if events.active:
            events.publish_plan(self.request_id, attempt, cause, call.key_id)
        record = 0 if self._stale_place is None else self._stale_place.most_bytes
        if call.layers is not None:
            record = max(record, call.layers.most_bytes)
        self._knowledge = knowledge
        self._upstream = upstream = UpstreamReply(
            call,
            self.request,
            attempt,
            sent,
            validator=self._validator,
            most_text=self._most_text,
            record=record,
            meter=self._meter,
        )
        return upstream

    def take(self, upstream: UpstreamReply) -> None:
        """Go on with one of two attempts that were sent at once: it began first."""
        self._upstream = upstream

    def keep_at(self, place: StalePlace) -> None:
        """Keep the reply for callers that would rather have an old one than none."""
        self._stale_place = place

    def note_prompt_estimate(self, tokens: int) -> None:
        """Take how many tokens the client was told that its prompt has."""
        self.prompt_estimate = tokens

    def note_client_left(self) -> None:
        """Note that the client has left, and that the reply is read on only to know what it cost."""
        self._client_left = True

    def count(self, meter: StreamMeter) -> None:
        """Ask `meter` of each piece of the replies that come before it is read."""
        self._meter = meter

    async def begin(self, attempt: Attempt, knowledge: Knowledge) -> None:
        """Send an attempt, planned with `knowledge`, and read until its reply has begun. Raises BardoError."""
        await self.prepare(attempt, knowledge).begin()

    async def begin_stale(self, stale: StaleReply, why: BardoError) -> None:
        """Give an old reply, because nobody answered. Raises BardoError where it cannot be read."""
        age = self._services.clock() - stale.kept_at
        lost = Degradation("stale", sent=f"the reply to an equal call {age:.0f} s ago", why=why.message)
        attempt = msgspec.structs.replace(stale.attempt, degraded=(*stale.attempt.degraded, lost))
        await self._begin_stored(attempt, stale.content_type, stale.body, is_stale=True)
        self.stale_seconds = age

    async def begin_kept(self, attempt: Attempt, knowledge: Knowledge, reply: KeptReply) -> None:
        """Give the reply to an earlier call, read as the answer to `attempt`, which is not sent. Raises BardoError."""
        await self._begin_stored(attempt, reply.content_type, reply.body)
        self._knowledge = knowledge

    async def _begin_stored(self, attempt: Attempt, content_type: str, body: bytes, *, is_stale: bool = False) -> None:
        attempt = msgspec.structs.replace(attempt, forward=False)
        upstream = UpstreamReply(
            self.call, self.request, attempt, None, validator=self._validator, most_text=self._most_text
        )
        await upstream.begin_stored(content_type, body, is_stale=is_stale)
        self._upstream = upstream

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
                await self._reasoning.keep(upstream.reader, upstream.attempt)
            yield update
        await self._reasoning.keep_rest(upstream.reader, upstream.attempt)
        if upstream.answer is not None:
            async for update in self._finish_answer(upstream.answer, upstream):
                yield update
        if self._verify_answer is not None and (update := await self._verify(self._verify_answer)) is not None:
            yield update
        last = self._extension()
        if last:
            yield ReplyUpdate(last)
        await self._conclude(upstream.reader)

    def give_directly(self, may_give: Callable[[], bool], give: Callable[[ReplyUpdate], None]) -> None:
        """Have `give` called, where `may_give`, for updates that only continue a text, as they come; `updates` yields all others."""
        if self._upstream is None or self._held is not None or self._upstream.answer is not None:
            return
        events, reasoning = self._services.events, self._reasoning
        self._upstream.give_directly(lambda: not (events.active or reasoning.has_kept) and may_give(), give)

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
        if upstream.answer is not None or self.request.options.include or self._held is not None:
            async for update in self.updates():
                raw += update.raw
            return raw
        reader, attempt = upstream.reader, upstream.attempt
        # An asynchronous generator costs as much as all that is left to do.
        while (read := await upstream.next_update()) is not None:
            if self._is_due(read):
                await self._reasoning.keep(reader, attempt)
            raw += read.raw
        await self._reasoning.keep_rest(reader, attempt)
        await self._conclude(reader)
        return raw

    def so_far(self, prompt_tokens: int) -> RunningUsage:
        """Return about what the call has used so far. `prompt_tokens` are those of its prompt where its provider has not counted them."""
        call = self.call
        ended = call.attempts.ended_nanos()
        upstream = self._upstream
        if upstream is None:
            return RunningUsage(0, 0, ended)
        usage, target = upstream.so_far(), upstream.attempt.target
        usage = msgspec.structs.replace(usage, input_tokens=usage.input_tokens or prompt_tokens)
        if usage.output_tokens is None or not call.attempts.has_open:
            return RunningUsage(0, 0, ended)
        cost = self._services.prices.cost(target.provider, target.model, usage, call.started_at)
        nanos = None if cost.nanos is None else ended + cost.nanos
        parts: dict[str, int] = {cause: part for cause, part in cost.parts.items()}  # noqa: C416 - of texts, for the type
        return RunningUsage(usage.input_tokens or 0, usage.output_tokens, nanos, None if ended else parts)

    def cut(self, error: BardoError) -> None:
        """End a stream with an error, and the connection to its provider: what came is priced, and its client gets the error."""
        if self._upstream is not None:
            self._upstream.cut(error)

    def log(self, outcome: CallOutcome, error: BardoError | None = None) -> None:
        """Write the call into the log, once."""
        call, services, upstream = self.call, self._services, self._upstream
        if call.logged:
            return
        attempt = None if upstream is None else upstream.attempt
        response, usage, whole = None, None, outcome == "ok"
        if upstream is not None and upstream.opened:
            if self._steps is not None:
                self._steps.end_open()
            usage = upstream.usage(whole=whole)
            # Where the answer is not whole, its response tells what passed of all of it, and the attempt what passed of its own reply.
            passed = usage if self._steps is None else self._steps.unfinished
            if passed is not None and not whole:
                upstream.reader.settle([UsageUpdate(passed)])
            upstream.learn_start()
            response = upstream.reader.response()
        call.attempts.end(error=error, usage=usage, whole=whole)
        if response is not None:
            if services.events.active and whole:
                saved = self.cost.saved_nanos
                services.events.publish_reply(
                    self.request_id, self.attempt, response, self._provenance, call.key_id, saved
                )
            if services.telemetry is not None and (details := call.details) is not None:
                details.answered(response)
        forwarded = self.forwarded if response is not None else attempt is not None and attempt.forward
        row = row_of_reply(
            call, self.request, outcome=outcome, attempt=attempt, response=response, error=error, forwarded=forwarded
        )
        self.verdict = row.reasoning_verdict
        call.write(row)
        # The thinking of an old reply is another call's.
        if services.episodes is not None and response is not None and self.stale_seconds is None:
            made, thought = self._provenance, self.reader.fold_with_reasoning.response()
            schema_ok = None if made is None else made.error is None
            keep_episode(services.episodes, call, self.request, row, thought, schema_ok=schema_ok)

    def log_cancelled(self, cancelled: asyncio.CancelledError) -> None:
        """Write a call that was cancelled into the log: as failed where the server stopped, not its client."""
        stopped = shutdown_of(cancelled)
        if stopped is None:
            # A client that leaves a stream while its answer is judged has all of the answer.
            self.log("ok" if self._is_judged and self._is_whole() else "cancelled")
        else:
            begun = self._upstream is not None and self._upstream.opened and self.request.stream
            self.log("broken" if begun else "error", stopped)
        self.call.judge(escalated=False)

    async def end_unanswered(self, problem: BardoError) -> BardoError:
        """End a call of which no reply began, and return the error that its caller gets."""
        try:
            if self.call.layers is not None:
                await self.call.layers.fail()
            final = await self.call.final(problem, self.request.model)
        except asyncio.CancelledError as cancelled:
            # Its client has left while models near to the one that was refused were looked for.
            self.log_cancelled(cancelled)
            raise
        self.log("error", final)
        self.call.judge(escalated=isinstance(problem, ProviderError))
        final.cost_nanos = self.cost.nanos
        return final

    async def end_broken(self, mistake: BaseException) -> None:
        """End a call of which no reply began because of a mistake in bardo, or because nobody waits for it any more."""
        if self.call.layers is not None:
            await self.call.layers.fail()
        if isinstance(mistake, asyncio.CancelledError):
            self.log_cancelled(mistake)
        elif isinstance(mistake, Exception):
            self.log("error", InternalError(f"a mistake in bardo: {type(mistake).__name__}"))
            self.call.judge(escalated=False)
        else:
            self.log("cancelled")

    async def close(self) -> None:
        """Let go of the reply, whatever is left of it: a call that was not read to its end is logged as cancelled.

        A client that leaves at the last event does not wait for the connection's end: its reply was whole.
        """
        call = self.call
        if not call.logged:
            whole = self._is_whole()
            self.log("ok" if whole else "cancelled")
            if call.layers is not None:
                await self._end_layers(call.layers, ok=whole)
        elif call.layers is not None:
            await call.layers.fail()
        if call.awaits_verdict:
            call.judge(escalated=False)
        if self._steps is not None:
            await self._steps.close()
        if not self._is_released:
            await self._release()

    def _is_due(self, update: ReplyUpdate) -> bool:
        """Tell those who listen of what came, and return whether the reply may have to be kept before its client gets it."""
        services = self._services
        if services.events.active:
            if self._progress is None:
                self._progress = ProgressPublisher(
                    services.events,
                    services.watch,
                    self.request_id,
                    subsystem_of(self.request, self.attempt) or "",
                    self.call.key_id,
                    keep_content=services.limits.keep_content,
                )
            self._progress.publish(update.events)
        return self._reasoning.is_due(update.events)

    async def _settle(self, events: Sequence[Event]) -> ReplyUpdate:
        """Return events that were made behind the reply as an update of it."""
        update = ReplyUpdate(self.reader.settle(events))
        if self._is_due(update):
            await self._reasoning.keep(self.reader, self.attempt)
        return update

    def _note_ended(self, *, error: BardoError | None = None) -> None:
        """Note the end of the attempt that is open, with what its reply used."""
        upstream = self._upstream
        usage = None if upstream is None else upstream.usage(whole=error is None)
        self.call.attempts.end(error=error, usage=usage)

    async def _finish_answer(self, answer: ReplyAnswer, upstream: UpstreamReply) -> AsyncIterator[ReplyUpdate]:
        """Do what the end of an answer that has a schema, or may search, asks for, and yield what comes of it."""
        self._note_ended(error=upstream.reader.failure)
        self._steps = AnswerStepRunner(self.call, self.request, upstream.attempt, self._knowledge, upstream.reader)
        async for events in self._steps.run(answer):
            yield await self._settle(events)
        if upstream.held_end and upstream.reader.failure is None:
            yield ReplyUpdate([], upstream.held_end)

    async def _verify(self, verify: Callable[..., Awaitable[Verification]]) -> ReplyUpdate | None:
        """Have the answer judged, where it is one that the caller gets. Returns what that adds to the reply."""
        if self.reader.failure is not None or not is_judged(self.response()):
            return None
        provenance = self._provenance
        fits = provenance is None or provenance.error is None
        if self.call.awaits_verdict and judge(self.response(), fits_schema=fits) is not None:
            return None  # A better model is asked instead.
        self._note_ended()
        self._is_judged = self.request.stream
        request, response, layers = self.request, self.response(), self.call.layers
        if layers is not None and layers.masks:
            request, response = layers.as_sent(request), layers.as_said(response)
        verification = await verify(request, response, answered=self.attempt.target, age=self.call.attempts.age())
        self._verification = verification
        lost = verification.degradation()
        return None if lost is None else ReplyUpdate(self.reader.settle([Degraded(lost)]))

    def _extension(self) -> list[Event]:
        """Return the event with the fields of bardo's own that the client asked for behind the reply."""
        if not self.request.options.include or self.reader.failure is not None:
            return []
        self._note_ended()
        fields, layers = (
            extension(self.request, self.response(), self._facts(), forwarded=self.forwarded),
            self.call.layers,
        )
        if "receipt" in fields:
            if self.prompt_estimate:
                fields["receipt"]["input_tokens_estimate"] = self.prompt_estimate
            if layers is not None:
                fields["receipt"]["pipeline"] = layers.fields()
            if self.stale_seconds is not None:
                fields["receipt"]["stale_seconds"] = round(self.stale_seconds, 3)
        if "structured" in self.request.options.include:
            provenance = self._provenance
            fields["structured"] = None if provenance is None else msgspec.to_builtins(provenance)
        event = Extension(fields)
        self.reader.fold.feed(event)
        return [event]

    async def _conclude(self, reader: ReplyReader) -> None:
        """Log the call and let go of the reply. Raises the error of a whole reply that failed."""
        failure, layers, upstream = reader.failure, self.call.layers, self._upstream
        broken: CallOutcome = "broken" if self.request.stream else "error"
        self.log(("cancelled" if self._client_left else "ok") if failure is None else broken, failure)
        # Another call may get no answer that bardo judged, and nothing that a layer changed.
        if (
            self._stale_place is not None
            and failure is None
            and (upstream is not None and upstream.answer is None)
            and (layers is None or not layers.changes_reply)
        ):
            self._stale_place.keep(upstream.attempt, upstream.recorded)
        if layers is not None:
            await self._end_layers(layers, ok=failure is None)
        await self._release()
        if failure is not None and not self.request.stream:
            failure.request_id = self.request_id
            raise failure

    async def _end_layers(self, layers: CallLayers, *, ok: bool) -> None:
        """Do what the call's layers want done at its end. One that a kept reply answered has no reply of its own that ended."""
        if not ok or layers.answer is not None or self.stale_seconds is not None:
            await layers.fail()
            return
        target, recorded = self.attempt.target, None if self._upstream is None else self._upstream.recorded
        layers.note_answered(target, self.call.key_label)
        if self.answer is None or not self.answer.rewritten:
            # Else the tokens of several prompts are counted together.
            layers.learn(target, self.response().usage.input_tokens)
        reply = reply_to_keep(recorded, self.call, target, self.answer, streamed=self.request.stream)
        await layers.end(self.request, self.response(), reply)

    async def _release(self) -> None:
        self._is_released = True
        if self._upstream is not None:
            await self._upstream.close()

    @property
    def _provenance(self) -> Provenance | None:
        """How a typed answer came about, or None if none was asked for, or none was due in this turn."""
        return None if self.answer is None else self.answer.provenance

    def _facts(self) -> CallFacts:
        call, gate, cost = self.call, self._services.gate, self.cost_of_request
        return CallFacts(
            self.request_id,
            self.attempt,
            cost,
            call.attempts.records(),
            None if call.payments is None else call.payments.fields(),
            None if self._verification is None else self._verification.fields(),
            # What the key of the call is charged, or None if that is the cost itself, or the call has no key.
            None if gate is None or call.key_id is None else gate.charged(cost.nanos),
        )

    def _is_whole(self) -> bool:
        """Whether the reply said its last event, and the caller took it."""
        upstream = self._upstream
        if upstream is None or not upstream.opened or upstream.reader.failure is not None or not upstream.all_read:
            return False
        return self.response().finish.reason not in ("unknown", "error")
