"""One attempt and its reply: sent, its head looked at, and read as it arrives. A call that is hedged has two of them for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.adapters.long_work import run_by_size
from bardo.adapters.net.calls import Reply
from bardo.call.call import Call, SentAttempt
from bardo.call.sending import is_streamed, send_wire
from bardo.call.services import Services
from bardo.call.stored import RecordedReply, StoredReply, WithoutUsage
from bardo.call.stream_reading import Meter, StreamReading, UpdateBuffer
from bardo.context.own_functions import OwnFunctions
from bardo.planning.attempt import Attempt
from bardo.planning.forwarded import PassedHeaders, passed_headers
from bardo.planning.kept_budget import LOSS
from bardo.planning.text_formats import seen_start
from bardo.planning.typed_answer import AnswerValidator
from bardo.reasoning.undecided import closes_unopened
from bardo.replies.citations import SearchFunction
from bardo.replies.forwarding import Forwarding, ReplyUpdate
from bardo.replies.frames import is_token
from bardo.replies.kept_budget import BudgetedAnswer, BudgetStage
from bardo.replies.own_calls import OwnCallsAnswer, OwnCallStage, ToolSearchFunction
from bardo.replies.reply_reader import ReplyReader
from bardo.replies.reply_stages import FoldStage
from bardo.replies.translation_stages import stages_of_translation, thinking_stage
from bardo.replies.typed_answer import TypedAnswer, typed_answer
from bardo.replies.written_tokens import time_stages
from bardo.services.facts.failover import StaleReply
from bardo.services.facts.health import AttemptWatch, HealthKeeper
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, BrokenStream, UpstreamTimeout
from bardo.values.events import Degraded, Event, ReplyStart
from bardo.values.fold import ResponseFold
from bardo.values.request import Message, Request
from bardo.values.secrets import secrets_of
from bardo.values.usage import Usage

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers

ReplyAnswer = TypedAnswer | OwnCallsAnswer | BudgetedAnswer
"""What does the steps that end a reply."""


class UpstreamReply:
    """The reply to one attempt: `begin` reads until there is something to show, `next_update` reads on, `close` lets go of it.

    `forward`: the attempt's reply may be forwarded, and came in the way that was asked for. `begun`: its first token, or all of it, came.
    """

    begun = False
    recorded: RecordedReply | None = None
    passed_headers: PassedHeaders
    """The headers of the reply that its client gets too."""
    _lost: tuple[Degradation, ...] = ()
    _reader: ReplyReader | None = None
    _reading: StreamReading | None = None
    _on_token: Callable[[], None] | None = None
    _budget: BudgetStage | None = None

    def __init__(
        self,
        services: Services,
        attempt: Attempt,
        request: Request,
        reply: Reply,
        health: AttemptWatch,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.attempt = attempt
        self._health = health
        # Of a client's own login, what its provider may quote is of this call alone.
        self._secrets = secrets_of(secrets) if secrets else services.keyring.secrets_of(attempt.target.provider)
        self.passed_headers = passed_headers(reply.headers, self._secrets)
        self._services = services
        self._request = request
        self._reply: Reply | None = reply
        self._streamed = is_streamed(reply, requested=request.stream)
        # A provider may answer a streaming request whole, or the other way round: then its bytes are not the client's.
        self.forward = attempt.forward and self._streamed is request.stream
        # What was read and waits to be given, the last of it first.
        self._primed: list[ReplyUpdate] = []

    @property
    def reader(self) -> ReplyReader:
        """The reader of the reply, from `begin` on."""
        assert self._reader is not None
        return self._reader

    def record(self, most_bytes: int) -> None:
        """Keep the body while it is read, up to a bound: `recorded` has it."""
        assert self._reply is not None
        self._reply = self.recorded = RecordedReply(self._reply, most_bytes)

    @property
    def streamed(self) -> bool:
        """Whether the reply comes as a stream."""
        return self._streamed

    @property
    def opened(self) -> bool:
        """Whether there is a reader: the reply is one, by its head."""
        return self._reader is not None

    @property
    def forwarded(self) -> bool:
        """Whether the provider's bytes are the client's: nothing showed that they are not what was asked for."""
        return self.forward and not (self._reader is not None and self._reader.reframed)

    @property
    def all_read(self) -> bool:
        """Whether nothing that was read waits to be given."""
        return not self._primed

    @property
    def held_end(self) -> bytes:
        """The frames of a forwarded reply that were held until its answer is judged."""
        return b"" if self._reading is None else self._reading.held_end

    async def begin(
        self,
        stamp: ReplyStart,
        stages: Sequence[Stage[Event, Event]] = (),
        *,
        clean: Callable[[BardoError], object],
        most_text: int | None = None,
        hold_end: bool = False,
        on_token: Callable[[], None] | None = None,
        budget: BudgetStage | None = None,
        meter: Meter | None = None,
        lost: tuple[Degradation, ...] = (),
    ) -> None:
        """Read until there is something to show, so that a reply that breaks before can still go elsewhere. Raises BardoError then.

        `stamp` fills what the provider leaves out, `stages` look at the reply on its way, and `clean` takes all secrets out of an error.
        `most_text` is how many characters of the reply are held. `hold_end`: forwarded frames wait from the one on that ends the reply.
        `on_token` is called once the model has said something. `budget` ends the reply where its thinking has used its tokens.
        `meter` is asked of each piece of a stream before it is read. `lost` is what turned out to be lost once the head was read, beside
        what the attempt gave up.
        """
        self._budget, self._on_token, self._lost = budget, on_token, lost
        opens = partial(self._open_reader, stamp, stages, clean, most_text)
        if self._streamed and self._request.stream:
            self._reader = reader = opens()
            forwarding = Forwarding(
                reader, forward=self.forward, withhold_usage=self.attempt.withhold_usage, hold_end=hold_end
            )
            await self._prime(reader, forwarding, meter)
            return
        await self._read_whole(opens)

    async def next_update(self) -> ReplyUpdate | None:
        """Return what the next network read gives; None at the end. A failure of the reply is an event of the last update.

        More bytes than the limits allow are a failure too.
        """
        if self._primed:
            return self._primed.pop()
        if self._budget is not None and self._budget.cut:
            await self.close()
        return None if self._reading is None else await self._reading.next()

    def give_directly(self, may_give: Callable[[], bool], give: Callable[[ReplyUpdate], None]) -> None:
        """Have `give` called, where `may_give`, for what comes while `next_update` waits, as `StreamReading` does."""
        if self._reading is not None and self._budget is None:
            self._reading.give_directly(may_give, give)

    def usage(self, tenant: str, *, whole: bool, turns: tuple[Message, ...] = ()) -> Usage | None:
        """Return what the reply used; of one that is not `whole` an estimate of what passed. `turns` went behind the request's own.

        What its provider did not say of the prompt is estimated too. None where nothing is known. Estimates learn by replies of `tenant`.
        """
        reader, target = self._reader, self.attempt.target
        if reader is None:
            return None
        outputs, provider = self._services.outputs, target.provider.id
        if whole:
            outputs.learn(reader.written, provider, target.model, tenant)
            return reader.usage
        usage = reader.unfinished_usage(outputs.correction(provider, target.model, tenant))
        if usage is None or usage.input_tokens is not None:
            return usage
        prompt = self._request
        if turns:
            prompt = msgspec.structs.replace(prompt, messages=(*prompt.messages, *turns))
        estimated = self._services.estimates.estimate(prompt, target, tenant)
        return msgspec.structs.replace(usage, input_tokens=estimated, approx=True)

    def so_far(self, tenant: str) -> Usage:
        """Return about what the reply has used so far, of which nothing may be known yet."""
        reader, target = self._reader, self.attempt.target
        if reader is None:
            return _NOTHING
        correction = self._services.outputs.correction(target.provider.id, target.model, tenant)
        return reader.written.unfinished_usage(correction) or _NOTHING

    def drop_sent_body(self) -> Attempt:
        """Keep the body that was sent no longer, and return the attempt without it."""
        self.attempt = msgspec.structs.replace(self.attempt, wire=msgspec.structs.replace(self.attempt.wire, body=b""))
        return self.attempt

    def cut(self, error: BardoError) -> None:
        """End a stream with an error."""
        if self._reading is not None:
            self._reading.cut(error)

    def learn_start(self, tenant: str) -> None:
        """Keep where the reply's thinking stood, for the tenant's next reply of the same server."""
        attempt = self.attempt
        if self._reader is None or attempt.formats.reasoning is None:
            return
        place = self._reader.thinking_place
        if place is None:
            return
        if place == "none" and closes_unopened(self.reader.response().text, attempt.formats.reasoning):
            # Nobody expected thinking here, so that it was given as the answer; the next reply is read with more care.
            place = "text"
        seen = seen_start(place, off=attempt.off)
        if seen is not None or place == "unclosed":
            self._services.facts.learn_start(attempt.target, attempt.off, seen, tenant)

    async def close(self) -> None:
        """Let go of the connection, whatever is left of the reply."""
        reply, self._reply, self._on_token = self._reply, None, None
        if self._reading is not None:
            self._reading.stop()
        self._health.left()
        if reply is None:
            return
        if self._reader is not None and self._reader.over and self._reader.failure is None:
            await reply.finish()
        else:
            await reply.close()

    async def _prime(self, reader: ReplyReader, forwarding: Forwarding, meter: Meter | None) -> None:
        """Read until there is something to show, or the reply is over: until then, another provider can still answer.

        Heads, roles, pings and thinking that the client is not shown are held so long. Raises the failure of a reply of which nothing was
        to be shown, and UpstreamTimeout for one that goes on without a word of the model for longer than a head may take.
        """
        assert self._reply is not None
        provider, most_bytes = self.attempt.target.provider.id, self._services.limits.max_stream_bytes
        self._reading = StreamReading(self._reply, reader, forwarding, self._health, provider, most_bytes, meter)
        held = UpdateBuffer()
        loop, since, shown = asyncio.get_running_loop(), 0.0, False
        while not shown and not held.is_full and (update := await self.next_update()) is not None:
            held.add(update, begun=reader.beginning.begun)
            if reader.beginning.has_token:
                if not self.begun:
                    self._note_token()
                shown = self.forward or any(map(is_token, update.events))
            else:
                now = loop.time()
                since = since or now
                self._check_patience(now - since)
            if reader.failure is not None and not shown:
                raise reader.failure
        self._primed = held.updates[::-1]

    def _note_token(self) -> None:
        """Note that the model has said something, or that the whole reply has come."""
        self.begun = True
        self._health.began()
        on_token, self._on_token = self._on_token, None
        if on_token is not None:
            on_token()

    def _check_patience(self, seconds: float) -> None:
        """Raise UpstreamTimeout where a reply has brought nothing of the model for so long."""
        most = self._services.limits.deadlines.first_byte
        if seconds > most:
            provider = self.attempt.target.provider.id
            raise UpstreamTimeout(f"{provider} sent nothing of the reply within {most:g} s", provider=provider)

    async def _read_whole(self, opens: Callable[[], ReplyReader]) -> None:
        """Read a whole reply by the reader that `opens`."""
        assert self._reply is not None
        reply, self._reply = self._reply, None
        try:
            body = await reply.read(self._services.limits.max_reply_bytes)
        except BaseException as problem:
            self._reader = reader = opens()
            if isinstance(problem, BrokenStream | UpstreamTimeout):
                reader.count_broken(getattr(reply, "partial_body", b""))
            if isinstance(problem, BardoError):
                self._health.ended(problem)
            raise
        finally:
            await reply.close()
        self._reader = reader = opens()
        self._note_token()
        update = ReplyUpdate(*(await run_by_size(len(body), partial(reader.read_whole, body))))
        failure = reader.failure
        self._health.ended(failure)
        if failure is not None:
            raise failure
        self._primed.append(update)

    def _open_reader(
        self,
        stamp: ReplyStart,
        stages: Sequence[Stage[Event, Event]],
        clean: Callable[[BardoError], object],
        most_text: int | None,
    ) -> ReplyReader:
        """Return the reader of the reply, which knows already what the attempt gave up."""
        attempt, provider, request = self.attempt, self.attempt.target.provider, self._request
        if not self.forward:
            # It is written anew for its client.
            times = time_stages(request.dialect, provider.row.dialect, self._health.seconds)
            stages = (*stages_of_translation(attempt, request, forward=False), *times, *stages)
        reader = ReplyReader(
            provider.row,
            streamed=self._streamed,
            provider=provider.id,
            model=attempt.target.model,
            formats=attempt.formats,
            tool_names=attempt.tool_names,
            tool_forms=attempt.tool_forms,
            make_id=_new_call_id,
            answer_tool="" if attempt.answer is None else attempt.answer.plan.tool_name,
            thinking=thinking_stage(request, provider.row.dialect),
            budget=self._budget,
            stamp=stamp,
            forward=self.forward,
            stages=stages,
            secrets=self._secrets,
            clean=clean,
            most_text=most_text,
        )
        for degradation in (*attempt.degraded, *self._lost):
            reader.fold.feed(Degraded(degradation))
        return reader


_NOTHING = Usage()


async def send_attempt(call: Call, attempt: Attempt, request: Request, key: str = "") -> UpstreamReply:
    """Send an attempt, and return its reply with the head read. Raises BardoError where it is none. `key` is as `KeyTurns` chose it."""
    services, provider = call.services, attempt.target.provider
    login = call.logins.get(provider.id)
    with AttemptWatch(services.health, services.watch, attempt.target, key, own_login=login is not None) as health:
        reply = await send_wire(services, provider, attempt.wire, key, call.payments, login)
        if services.provider_ids is not None:
            asked = request.body or ()
            reply = services.provider_ids.watched(reply, provider.row.dialect, call.tenant, asked=asked)
        if reply.resent:
            call.attempts.count_resent(1)
        return UpstreamReply(services, attempt, request, reply, health, call.secrets() if login else ())


def _new_call_id() -> str:
    """Return an id that no other call has, in this process or another."""
    return f"call_{CHANCE.getrandbits(96):024x}"


STALE = "stale"
"""What is degraded where an old reply is given."""


class ReplyReading(NamedTuple):
    """How the replies of one call to its client's request are read.

    `clean` takes all secrets out of an error, `validator` is the caller's own look at a typed answer, and `most_text` is how many
    characters of a reply are held that only the log and replay look at.
    """

    call: Call
    request: Request
    clean: Callable[[BardoError], None]
    validator: AnswerValidator | None
    most_text: int | None
    record: int = 0
    """How many bytes of a reply are kept, for callers that allow an old one and for layers."""
    meter: Meter | None = None
    """What is asked of each piece of a stream before it is read."""

    def stamp(self, attempt: Attempt) -> ReplyStart:
        """Return what fills the fields that a provider leaves out."""
        return ReplyStart(id=self.call.request_id, model=attempt.target.model, created=int(self.call.started_at))


class OpenedReply:
    """An attempt that was noted as `sent`; `begin` sends it, and reads until its reply has begun."""

    __slots__ = ("answer", "attempt", "sent", "upstream")

    def __init__(self, attempt: Attempt, sent: SentAttempt) -> None:
        self.attempt = attempt
        self.sent = sent
        self.upstream: UpstreamReply | None = None
        self.answer: ReplyAnswer | None = None

    async def begin(self, reading: ReplyReading, patience: asyncio.Timeout | None = None) -> None:
        """Send the attempt, and read until its reply has begun. Raises BardoError, and lets go of the reply then.

        `patience` is the timer that ends an attempt whose first token does not come.
        """
        call, attempt, request = reading.call, self.attempt, reading.request
        kept, layers = attempt.kept_budget, call.layers
        try:
            asked = request
            if kept is not None and not request.stream:
                asked = msgspec.structs.replace(request, stream=True)
            self.upstream = upstream = await send_attempt(call, attempt, asked, self.sent.key)
            if reading.record:
                upstream.record(reading.record)
            stages: Sequence[Stage[Event, Event]] = () if layers is None else layers.stages()
            budget: BudgetStage | None = None
            lost: tuple[Degradation, ...] = ()
            runs = attempt.search is not None or attempt.tool_search is not None or layers is not None
            if runs and (own := own_functions(attempt, request, layers)):
                self.answer = calls = OwnCallsAnswer(own)
                stages = stages_of_own_calls(calls.buffer, stages)
            elif attempt.answer is not None:
                forward, validator = upstream.forward, reading.validator
                self.answer = typed = typed_answer(attempt, request, forward=forward, validator=validator)
                stages = stages if typed is None else (*stages, typed.buffer)
            if kept is not None and self.answer is None and upstream.streamed:
                self.answer = budgeted = BudgetedAnswer(kept)
                budget = budgeted.buffer
            elif kept is not None:
                why = (
                    "the gateway runs functions in this call"
                    if upstream.streamed
                    else "the server did not stream its reply"
                )
                lost = (Degradation(LOSS, asked=kept.tokens, why=f"{why}, so that nobody keeps the budget"),)

            def note_token(patience: asyncio.Timeout) -> None:
                call.note_first_byte()
                patience.reschedule(None)

            holds_all = self.answer is not None or bool(request.options.include) or layers is not None
            await upstream.begin(
                reading.stamp(attempt),
                stages,
                clean=reading.clean,
                most_text=None if holds_all else reading.most_text,
                hold_end=self.answer is not None,
                on_token=call.note_first_byte if patience is None else partial(note_token, patience),
                budget=budget,
                meter=reading.meter,
                lost=lost,
            )
        except BardoError as problem:
            call.clean(problem)
            self.note_ended(call, problem)
            await self.close()
            raise
        except BaseException:
            await self.close()
            raise

    def note_ended(self, call: Call, error: BardoError | None = None, *, lost: bool = False) -> None:
        """Note that the attempt failed, or was `lost`: another one was quicker."""
        upstream = self.upstream
        usage = None if upstream is None else upstream.usage(call.tenant, whole=False)
        call.attempts.end(self.sent, error=error, usage=usage, whole=not lost, lost=lost)

    async def close(self) -> None:
        """Let go of the reply, whatever is left of it."""
        if self.upstream is not None:
            await self.upstream.close()


def own_functions(attempt: Attempt, request: Request, layers: CallLayers | None) -> list[OwnFunctions]:
    """Return the functions that bardo executes itself for an attempt."""
    searches: list[OwnFunctions] = []
    if attempt.search is not None:
        searches.append(SearchFunction(attempt.search, request.dialect))
    if attempt.tool_search is not None:
        searches.append(ToolSearchFunction(attempt.tool_search, request))
    return searches if layers is None else [*searches, *layers.functions()]


def stages_of_own_calls(calls: OwnCallStage, stages: Sequence[Stage[Event, Event]]) -> Sequence[Stage[Event, Event]]:
    """Return the stages of a reply that may call such functions, which keep what the model said before layers changed it."""
    if not stages:
        return (calls,)
    calls.said = ResponseFold()
    return (FoldStage(calls.said), *stages, calls)


class StoredCall(NamedTuple):
    """A reply as its provider sent it to an earlier call, and the attempt that it is read as an answer to."""

    attempt: Attempt
    content_type: str
    body: bytes


async def open_stored(
    reading: ReplyReading,
    stored: StoredCall,
    lost: Sequence[Degradation] = (),
    stages: Sequence[Stage[Event, Event]] = (),
    *,
    with_usage: bool = False,
) -> UpstreamReply:
    """Return a stored reply as if it came now, with what is `lost` by that; `with_usage`: it says what its model used when it was made.

    Raises BardoError where it cannot be read.
    """
    attempt = msgspec.structs.replace(stored.attempt, forward=False, degraded=(*stored.attempt.degraded, *lost))
    watch = AttemptWatch(HealthKeeper(), reading.call.services.watch, attempt.target)
    reply = StoredReply(200, stored.body, stored.content_type)
    upstream = UpstreamReply(reading.call.services, attempt, reading.request, reply, watch)
    most_text = None if reading.request.options.include else reading.most_text
    await upstream.begin(
        reading.stamp(attempt),
        stages if with_usage else (WithoutUsage(), *stages),
        clean=reading.clean,
        most_text=most_text,
        hold_end=bool(stages),
    )
    return upstream


def stale_loss(kept: StaleReply, now: float, why: BardoError) -> Degradation:
    """Return what is lost by giving an old reply. `why` is what kept anybody from answering."""
    return Degradation(STALE, sent=f"the reply to an equal call {now - kept.kept_at:.0f} s ago", why=why.message)
