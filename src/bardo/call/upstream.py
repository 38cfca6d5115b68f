"""One attempt and its reply: sent, its head looked at, and read as it arrives. A call that is hedged has two of them for a while.

The head tells an error, a web page, or a reply that is whole or a stream. Of a web page in the place of a reply only the title is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.adapters.long_work import run_by_size
from bardo.adapters.net import calls
from bardo.adapters.net.calls import Reply
from bardo.call.call import Call, SentAttempt
from bardo.call.services import Services
from bardo.call.stored import RecordedReply, StoredReply, WithoutUsage
from bardo.context.own_functions import OwnFunctions
from bardo.dialects import dialect
from bardo.dialects.shared.json_values import excerpt
from bardo.planning.attempt import Attempt
from bardo.planning.forwarded import PassedHeaders, passed_headers
from bardo.planning.kept_budget import LOSS
from bardo.planning.refusals import ProviderWords
from bardo.planning.route import Provider
from bardo.planning.text_formats import seen_start
from bardo.planning.typed_answer import AnswerValidator
from bardo.reasoning.undecided import closes_unopened
from bardo.replies.citations import SearchFunction
from bardo.replies.forwarding import Forwarding, ReplyUpdate
from bardo.replies.kept_budget import BudgetedAnswer, BudgetStage
from bardo.replies.own_calls import OwnCallsAnswer, ToolSearchFunction
from bardo.replies.reply_reader import ReplyHandling, ReplyReader, is_token
from bardo.replies.reply_stages import FoldStage, thinking_stage
from bardo.replies.translation_stages import stages_of_translation
from bardo.replies.typed_answer import TypedAnswer, typed_answer
from bardo.replies.written_tokens import time_stages
from bardo.routing.rest_headers import parse_wait, rest_seconds
from bardo.services.facts.health import AttemptWatch, HealthKeeper
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, BrokenStream, MalformedReply, ProviderError, UpstreamTimeout
from bardo.values.events import Degraded, Event, Finish, ReplyStart
from bardo.values.fold import ResponseFold
from bardo.values.request import Message, Request
from bardo.values.secrets import secrets_of
from bardo.values.usage import Usage
from bardo.values.wire import WireRequest

if TYPE_CHECKING:
    from bardo.services.accounts.admissions import StreamMeter
    from bardo.services.payments.payer import CallPayments
    from bardo.services.pipeline.call_layers import CallLayers


ReplyAnswer = TypedAnswer | OwnCallsAnswer | BudgetedAnswer
"""What does the steps that end a reply."""

# How long a server that keeps the connection open may take to send what comes behind the end of an answer: its usage.
_BEHIND_THE_END_SECONDS = 5.0
# Comments before the first event that are forwarded with it; a server that waits long may send any number of them.
_MOST_COMMENT_BYTES = 4096
# The head of a reply in Responses repeats the request twice, with all its instructions and tools.
_MOST_HELD_BYTES = 8 * 1024 * 1024
_MOST_HELD_UPDATES = 10_000
_NOTHING = Usage()
_BEGINNINGS = (b"<!doctype html", b"<html")
_MOST_BYTES = 64 * 1024
_MOST_TITLE = 120
_TITLE = re.compile(r"<(title|h1)\b[^<>]{0,1000}>([^<]{0,2000})", re.IGNORECASE)
_ERROR_BODY_LIMIT = 1024 * 1024
# Statuses whose headers say when to come again.
_WAITS = frozenset({425, 429, 503, 529})
_PAYMENT_REQUIRED = 402
_HOW_TO_PAY = "bardo pays such providers from a wallet: [payments] wallet_key_env in bardo.toml"
_PAGE_SECONDS = 5.0
_PAGES = frozenset({"text/html", "application/xhtml+xml", "application/xml", "text/xml"})
_STREAMED = {"application/json": False, "text/event-stream": True, "application/x-ndjson": True}


class UpstreamReply:
    """One attempt of `call` at the reply to `request`, noted as `sent`; None for one that is read again and was sent by an earlier call.

    `begin` sends it and reads until there is something to show, `next_update` reads on, and `close` lets go of it.
    `validator` is the caller's own look at a typed answer, `most_text` is how many characters of a reply are held that only the log and
    replay look at, and `record` how many bytes of it are kept, for callers that allow an old one and for layers. `meter` is asked of each
    piece of a stream before it is read.

    `answer` does the steps that end the reply, where there are some. `forward`: the attempt's reply may be forwarded, and came in the way
    that was asked for. `begun`: its first token, or all of it, came.
    """

    answer: ReplyAnswer | None = None
    begun = False
    forward = False
    streamed = False
    recorded: RecordedReply | None = None
    passed_headers: PassedHeaders = ()
    """The headers of the reply that its client gets too."""
    _reply: Reply | None = None
    _reader: ReplyReader | None = None
    _budget: BudgetStage | None = None
    _tells_first_byte = False
    _patience: asyncio.Timeout | None = None
    # Of a streamed reply: what is left of its body, and what decides which of its bytes its client gets.
    _chunks: AsyncIterator[bytes] | None = None
    _forwarding: Forwarding | None = None
    _size = 0
    _may_end = False
    _cut: BardoError | None = None
    _unread = b""
    """What came of the reply and may not be read yet."""
    _ahead: tuple[int, ReplyUpdate] | None = None
    """How long a piece was that was read when it came, and what it gave; `_behind` is what came behind it."""
    _behind: ReplyUpdate | None = None

    def __init__(
        self,
        call: Call,
        request: Request,
        attempt: Attempt,
        sent: SentAttempt | None,
        *,
        validator: AnswerValidator | None = None,
        most_text: int | None = None,
        record: int = 0,
        meter: StreamMeter | None = None,
    ) -> None:
        self.attempt = attempt
        self.sent = sent
        self._call = call
        self._services = services = call.services
        self._request = request
        target, key = attempt.target, "" if sent is None else sent.key
        self._login = call.logins.get(target.provider.id)
        # How a reply went that was sent by an earlier call, nobody wants to know.
        health = HealthKeeper() if sent is None else services.health
        self._health = AttemptWatch(health, services.watch, target, key, own_login=self._login is not None)
        self._validator = validator
        self._most_text = most_text
        self._record = record
        self._meter = meter
        # What was read and waits to be given, the last of it first.
        self._primed: list[ReplyUpdate] = []

    @property
    def reader(self) -> ReplyReader:
        """The reader of the reply, from when it has begun."""
        assert self._reader is not None
        return self._reader

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
        return b"" if self._forwarding is None else b"".join(self._forwarding.held_end)

    async def begin(self, patience: asyncio.Timeout | None = None) -> None:
        """Send the attempt, and read until its reply has begun. Raises BardoError, and lets go of the reply then.

        `patience` is the timer that ends an attempt whose first token does not come.
        """
        call, attempt, request, layers = self._call, self.attempt, self._request, self._call.layers
        budget = attempt.kept_budget
        try:
            if budget is not None and not request.stream:
                self._request = msgspec.structs.replace(request, stream=True)
            await self._send()
            stages: Sequence[Stage[Event, Event]] = () if layers is None else layers.stages()
            lost: tuple[Degradation, ...] = ()
            runs = attempt.search is not None or attempt.tool_search is not None or layers is not None
            if runs and (own := own_functions(attempt, request, layers)):
                self.answer = answer = OwnCallsAnswer(own)
                if stages:
                    # What the model said before layers changed it is kept.
                    answer.buffer.said = ResponseFold()
                    stages = (FoldStage(answer.buffer.said), *stages)
                stages = (*stages, answer.buffer)
            elif attempt.answer is not None:
                self.answer = typed = typed_answer(attempt, request, forward=self.forward, validator=self._validator)
                stages = stages if typed is None else (*stages, typed.buffer)
            if budget is not None and self.answer is None and self.streamed:
                self.answer = budgeted = BudgetedAnswer(budget)
                self._budget = budgeted.buffer
            elif budget is not None:
                why = (
                    "the gateway runs functions in this call"
                    if self.streamed
                    else "the server did not stream its reply"
                )
                lost = (Degradation(LOSS, asked=budget.tokens, why=f"{why}, so that nobody keeps the budget"),)
            if self.answer is not None or request.options.include or layers is not None:
                self._most_text = None
            self._tells_first_byte, self._patience = True, patience
            await self._read_beginning(stages, lost, hold_end=self.answer is not None)
        except BardoError as problem:
            call.clean(problem)
            self.note_ended(problem)
            await self.close()
            raise
        except BaseException:
            await self.close()
            raise

    async def begin_further(self, stages: Sequence[Stage[Event, Event]]) -> None:
        """Send the attempt at a further reply within the call, which `stages` look at, and read until it has begun. Raises BardoError."""
        await self._send()
        await self._read_beginning(stages)

    async def begin_stored(self, content_type: str, body: bytes, *, is_stale: bool = False) -> None:
        """Read a reply as its provider sent it to an earlier call, of which a stale one used nothing again.

        Raises BardoError where it cannot be read.
        """
        request, stages = self._request, list[Stage[Event, Event]]()
        if is_stale:
            stages.append(WithoutUsage())
        elif self.attempt.answer is not None:
            self.answer = typed_answer(self.attempt, request, forward=False, validator=self._validator)
            stages += () if self.answer is None else (self.answer.buffer,)
        self._take_head(StoredReply(200, body, content_type), ())
        if request.options.include:
            self._most_text = None
        await self._read_beginning(stages, hold_end=self.answer is not None)

    async def _send(self) -> None:
        """Send the attempt, and read the head of its reply. Raises BardoError where it is none."""
        call, services, attempt, login = self._call, self._services, self.attempt, self._login
        provider, key = attempt.target.provider, "" if self.sent is None else self.sent.key
        with self._health:
            reply = await send_wire(services, provider, attempt.wire, key, call.payments, login)
            if services.provider_ids is not None:
                asked = self._request.body or ()
                reply = services.provider_ids.watched(reply, provider.row.dialect, call.tenant, asked=asked)
            if reply.resent:
                call.attempts.count_resent(1)
            self._take_head(reply, call.secrets() if login else ())

    def _take_head(self, reply: Reply, secrets: tuple[str, ...]) -> None:
        """Take the head of a reply, which may quote these `secrets`, of a client's own login, or else those of its provider."""
        attempt, requested = self.attempt, self._request.stream
        # Of a client's own login, what its provider may quote is of this call alone.
        self._secrets = secrets_of(secrets) if secrets else self._services.keyring.secrets_of(attempt.target.provider)
        self.passed_headers = passed_headers(reply.headers, self._secrets)
        # Its content type tells whether it is a stream, else what was asked for.
        self.streamed = _STREAMED.get(_content_type(reply.headers.get("content-type", "")), requested)
        # A provider may answer a streaming request whole, or the other way round: then its bytes are not the client's.
        self.forward = attempt.forward and self.streamed is requested
        if self._record:
            reply = self.recorded = RecordedReply(reply, self._record)
        self._reply = reply

    async def _read_beginning(
        self, stages: Sequence[Stage[Event, Event]], lost: tuple[Degradation, ...] = (), *, hold_end: bool = False
    ) -> None:
        """Read until there is something to show, so that a reply that breaks before can still go elsewhere. Raises BardoError then.

        `stages` look at the reply on its way. `hold_end`: forwarded frames wait from the one on that ends the reply. `lost` is what turned
        out to be lost once the head was read, beside what the attempt gave up.
        """
        if self.streamed and self._request.stream:
            await self._prime(self._open_reader(stages, lost), hold_end=hold_end)
            return
        assert self._reply is not None
        reply, self._reply = self._reply, None
        try:
            body = await reply.read(self._services.limits.max_reply_bytes)
        except BaseException as problem:
            reader = self._open_reader(stages, lost)
            if isinstance(problem, BrokenStream | UpstreamTimeout):
                reader.count_broken(getattr(reply, "partial_body", b""))
            if isinstance(problem, BardoError):
                self._health.ended(problem)
            raise
        finally:
            await reply.close()
        reader = self._open_reader(stages, lost)
        self._note_token()
        update = ReplyUpdate(*(await run_by_size(len(body), partial(reader.read_whole, body))))
        failure = reader.failure
        self._health.ended(failure)
        if failure is not None:
            raise failure
        self._primed.append(update)

    async def _prime(self, reader: ReplyReader, *, hold_end: bool) -> None:
        """Read until there is something to show, or the reply is over: until then, another provider can still answer.

        Heads, roles, pings and thinking that the client is not shown are held so long. Raises the failure of a reply of which nothing was
        to be shown, and UpstreamTimeout for one that goes on without a word of the model for longer than a head may take.
        """
        assert self._reply is not None
        if self._cut is not None:
            self._health.left()
            raise self._cut
        self._chunks, attempt = self._reply.chunks(), self.attempt
        self._forwarding = Forwarding(
            reader, forward=self.forward, withhold_usage=attempt.withhold_usage, hold_end=hold_end
        )
        most_seconds, provider = self._services.limits.deadlines.first_byte, attempt.target.provider.id
        loop, since, shown = asyncio.get_running_loop(), 0.0, False
        held: list[ReplyUpdate] = []
        size = comments = 0
        while not shown and size <= _MOST_HELD_BYTES and len(held) <= _MOST_HELD_UPDATES:
            update = await self.next_update()
            if update is None:
                break
            length = len(update.raw)
            if not update.events and not reader.begun:
                comments += length
            if update.events or (length and (reader.begun or comments <= _MOST_COMMENT_BYTES)):
                size += length
                held.append(update)
            if reader.has_token:
                if not self.begun:
                    self._note_token()
                shown = self.forward or any(map(is_token, update.events))
            else:
                now = loop.time()
                since = since or now
                if now - since > most_seconds:
                    message = f"{provider} sent nothing of the reply within {most_seconds:g} s"
                    raise UpstreamTimeout(message, provider=provider)
            if reader.failure is not None and not shown:
                raise reader.failure
        self._primed = held[::-1]

    def _note_token(self) -> None:
        """Note that the model has said something, or that the whole reply has come."""
        self.begun = True
        self._health.began()
        if self._tells_first_byte:
            self._call.note_first_byte()
        if self._patience is not None:
            self._patience.reschedule(None)
            self._patience = None

    def _open_reader(self, stages: Sequence[Stage[Event, Event]], lost: tuple[Degradation, ...]) -> ReplyReader:
        """Open the reader of the reply, which knows already what the attempt gave up."""
        call, attempt, request = self._call, self.attempt, self._request
        provider, model = attempt.target.provider, attempt.target.model
        if not self.forward:
            # It is written anew for its client.
            times = time_stages(request.dialect, provider.row.dialect, self._health.seconds)
            stages = (*stages_of_translation(attempt, request, forward=False), *times, *stages)
        handling = ReplyHandling(
            forward=self.forward,
            make_id=_new_call_id,
            budget=self._budget,
            thinking=thinking_stage(request, provider.row.dialect),
            stamp=ReplyStart(id=call.request_id, model=model, created=int(call.started_at)),
            stages=stages,
            secrets=self._secrets,
            clean=call.cleaner(),
            most_text=self._most_text,
        )
        self._reader = reader = ReplyReader(attempt, streamed=self.streamed, handling=handling)
        for degradation in (*attempt.degraded, *lost):
            reader.fold.feed(Degraded(degradation))
        return reader

    async def next_update(self) -> ReplyUpdate | None:
        """Return what the next network read gives; None at the end. A failure of the reply is an event of the last update.

        More bytes than the limits allow are a failure too.
        """
        if self._primed:
            return self._primed.pop()
        if self._budget is not None and self._budget.cut:
            await self.close()
        if self._behind is not None:
            update, self._behind = self._behind, None
            return update
        reader, forwarding = self._reader, self._forwarding
        chunk: bytes | None
        while self._chunks is not None and reader is not None and forwarding is not None:
            if not reader.repeats:
                if reader.over:
                    return self._rest(reader, forwarding)
                self._may_end = reader.complete
            try:
                if self._unread:
                    chunk, self._unread = self._unread, b""
                else:
                    chunk = await (self._next_chunk(self._chunks) if self._may_end else anext(self._chunks, None))
                    self._size += len(chunk or b"")
                if chunk is not None and self._meter is not None and self._ahead is None:
                    most = self._meter.allow(len(chunk)) or await self._meter.wait()
                    chunk, self._unread = chunk[:most], chunk[most:]
                if self._cut is not None:
                    return self._cut_off(self._cut, forwarding)
                if chunk is None:
                    return self._rest(reader, forwarding)
                if self._size > self._services.limits.max_stream_bytes:
                    raise MalformedReply(
                        f"the streamed reply is larger than {self._services.limits.max_stream_bytes} bytes",
                        hint="limit the tokens of the reply, or raise gateway.max_stream_bytes in bardo.toml",
                        provider=self.attempt.target.provider.id,
                    )
            except BardoError as problem:
                if self._cut is not None:
                    return self._cut_off(self._cut, forwarding)
                if not isinstance(problem, ProviderError):
                    raise
                self._chunks = None
                self._health.ended(problem)
                return forwarding.fail(problem)
            update = self._update(forwarding, chunk)
            if reader.failure is not None:
                self._chunks = None
                self._health.ended(reader.failure)
            if update.events or update.raw:
                return update
        return None

    def _update(self, forwarding: Forwarding, chunk: bytes) -> ReplyUpdate:
        """Return what a network read gives, of which the first piece may have been read when it came."""
        if self._ahead is None:
            return forwarding.update(chunk)
        (size, update), self._ahead = self._ahead, None
        if len(chunk) == size:
            return update
        behind = forwarding.update(chunk[size:])
        if not (update.events or update.raw):
            return behind
        self._behind = behind if behind.events or behind.raw else None
        return update

    def _cut_off(self, error: BardoError, forwarding: Forwarding) -> ReplyUpdate:
        self._chunks = None
        self._health.left()
        return forwarding.fail(error)

    def _rest(self, reader: ReplyReader, forwarding: Forwarding) -> ReplyUpdate:
        self._chunks = None
        update = forwarding.rest()
        self._health.ended(reader.failure)
        return update

    async def _next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Return the next piece of a reply that may end here; None at the end: also where the server keeps the connection open."""
        try:
            async with asyncio.timeout(_BEHIND_THE_END_SECONDS):
                return await anext(chunks, None)
        except TimeoutError:
            return None

    def give_directly(self, may_give: Callable[[], bool], give: Callable[[ReplyUpdate], None]) -> None:
        """Have `give` called, where `may_give`, for what comes while `next_update` waits, unless the reply may end with it.

        That saves waking a task for each event of a stream. All else is returned by `next_update`, in the order in which it came.
        """
        reader, forwarding = self._reader, self._forwarding
        # Replies over direct connections have it: their pieces can be taken without waking the task that reads them.
        offer_pieces: Callable[[Callable[[bytes], bool]], None] | None = getattr(self._reply, "offer_pieces", None)
        if offer_pieces is None or reader is None or forwarding is None or self._budget is not None:
            return
        most_bytes = self._services.limits.max_stream_bytes

        def take(piece: bytes) -> bool:
            size = self._size + len(piece)
            if self._may_end or self._cut is not None or size > most_bytes or not may_give():
                return False
            if self._meter is not None and self._meter.allow(len(piece)) < len(piece):
                return False
            update = forwarding.repeated(piece)
            if update is None:
                update = forwarding.update(piece)
                may_be_last = reader.failure is not None or reader.over or reader.complete
                if may_be_last or any(type(event) is Finish for event in update.events):
                    self._ahead = len(piece), update
                    return False
            self._size = size
            give(update)
            return True

        offer_pieces(take)

    def cut(self, error: BardoError) -> None:
        """End a stream with an error, and hang up: nothing more of it is read. One whose head has not come ends with that."""
        if self._cut is not None:
            return
        self._cut = error
        # Replies over direct connections can be ended while another task waits for their next piece; others end with it.
        break_off: Callable[[BardoError], None] | None = getattr(self._reply, "break_off", None)
        if break_off is not None:
            break_off(error)

    def usage(self, *, whole: bool, turns: tuple[Message, ...] = ()) -> Usage | None:
        """Return what the reply used; of one that is not `whole` an estimate of what passed. `turns` went behind the request's own.

        What its provider did not say of the prompt is estimated too. None if nothing is known. Estimates learn by replies of a tenant.
        """
        reader, target, tenant = self._reader, self.attempt.target, self._call.tenant
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

    def so_far(self) -> Usage:
        """Return about what the reply has used so far, of which nothing may be known yet."""
        reader, target = self._reader, self.attempt.target
        if reader is None:
            return _NOTHING
        correction = self._services.outputs.correction(target.provider.id, target.model, self._call.tenant)
        return reader.written.unfinished_usage(correction) or _NOTHING

    def drop_sent_body(self) -> None:
        """Keep the body that was sent no longer, where neither a step behind the answer nor the log asks for it."""
        if self.answer is None and not self._services.limits.keep_content:
            wire = msgspec.structs.replace(self.attempt.wire, body=b"")
            self.attempt = msgspec.structs.replace(self.attempt, wire=wire)

    def learn_start(self) -> None:
        """Keep where the reply's thinking stood, for the tenant's next reply of the same server."""
        attempt = self.attempt
        if self._reader is None or attempt.formats.reasoning is None:
            return
        place = self._reader.thinking_place
        if place is None:
            return
        if place == "none" and closes_unopened(self._reader.response().text, attempt.formats.reasoning):
            # Nobody expected thinking here, so that it was given as the answer; the next reply is read with more care.
            place = "text"
        seen = seen_start(place, off=attempt.off)
        if seen is not None or place == "unclosed":
            self._services.facts.learn_start(attempt.target, attempt.off, seen, self._call.tenant)

    def note_ended(self, error: BardoError | None = None, *, lost: bool = False) -> None:
        """Note that the attempt failed, or was `lost`: another one was quicker."""
        self._call.attempts.end(self.sent, error=error, usage=self.usage(whole=False), whole=not lost, lost=lost)

    async def close(self) -> None:
        """Let go of the connection, whatever is left of the reply."""
        reply, self._reply, self._patience = self._reply, None, None
        self._chunks = self._behind = None
        self._health.left()
        if reply is None:
            return
        if self._reader is not None and self._reader.over and self._reader.failure is None:
            await reply.finish()
        else:
            await reply.close()


def _new_call_id() -> str:
    """Return an id that no other call has, in this process or another."""
    return f"call_{CHANCE.getrandbits(96):024x}"


def own_functions(attempt: Attempt, request: Request, layers: CallLayers | None) -> list[OwnFunctions]:
    """Return the functions that bardo executes itself for an attempt."""
    searches: list[OwnFunctions] = []
    if attempt.search is not None:
        searches.append(SearchFunction(attempt.search, request.dialect))
    if attempt.tool_search is not None:
        searches.append(ToolSearchFunction(attempt.tool_search, request))
    return searches if layers is None else [*searches, *layers.functions()]


async def send_wire(
    services: Services,
    provider: Provider,
    wire: WireRequest,
    key: str = "",
    payments: CallPayments | None = None,
    login: Mapping[str, str] | None = None,
) -> Reply:
    """Send a request of any operation, and return the reply with its head read. Raises BardoError where it is an error or a page.

    `key` is the label of one of the provider's keys, empty where it has no more than one. `payments` are those of the call, for providers
    that ask for a payment of each call. `login` are the headers of the client's own credential, for a provider that asks for one.
    """
    url, headers = provider.url(wire.path), provider.headers(wire)
    call = calls.Call(method="POST", url=url, headers=headers, body=wire.body, provider=provider.id)
    if provider.row.auth == "google":
        await services.keyring.prepare(provider)
    if provider.row.auth == "client":
        # Its client pays it, and no wallet of the operator's.
        payments = None
    if payments is not None and (methods := payments.order(services, provider)):
        reply = await payments.send(services, provider, call, key, methods, partial(_refusal, sent=wire.body))
    else:
        signed = services.keyring.sign(call, provider, clock=services.clock, key=key, login=login)
        reply = await services.transport.send(signed, services.limits.deadlines)
    if provider.row.balance_headers:
        services.health.balances.note(provider.id, provider.row, reply.headers, services.clock())
    try:
        if reply.status >= 300:
            raise await _refusal(reply, provider, services.clock(), sent=wire.body)
        kind = _content_type(reply.headers.get("content-type", ""))
        if kind in _PAGES:
            raise await _page(reply, provider, kind)
    except BaseException:
        await reply.close()
        raise
    return reply


async def _refusal(reply: Reply, provider: Provider, now: float, *, sent: bytes = b"") -> ProviderError:
    """Return what a reply of status 300 or more says, in the provider's own words: whoever shows them cleans them first.

    `sent` is the body of the request: what it says is not taken for the provider's words.
    """
    if reply.status < 400:
        message = f"the provider answered with status {reply.status}, a redirect"
        return MalformedReply(message, hint="check base_url", provider=provider.id)
    try:
        body = await reply.read(_ERROR_BODY_LIMIT)
    except ProviderError:
        body = b""  # The status says enough.
    if is_page(_content_type(reply.headers.get("content-type", "")), body):
        # A proxy's or a host's, for people: no words of the provider's API.
        body = page_text(reply.status, body, provider.id).encode()
    refused = dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)
    refused.passed_headers = passed_headers(reply.headers)
    if reply.status < 500:
        refused.own_words = ProviderWords(refused, sent).text
    if reply.status == _PAYMENT_REQUIRED and "x402" in provider.row.payment:
        refused.hint = refused.hint or _HOW_TO_PAY
    if reply.status in _WAITS:
        waits = rest_seconds(reply.headers, provider.row.limit_headers, now)
        # Google says it in the body of the refusal alone.
        refused.rest_seconds = parse_wait(refused.retry_after, now) if waits is None else waits
        if refused.retry_after is None and waits is not None:
            refused.retry_after = str(math.ceil(waits))
    return refused


async def _page(reply: Reply, provider: Provider, kind: str) -> MalformedReply:
    """Return the faults of a reply that says it is a page, with its title or its first words."""
    first = b""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(_PAGE_SECONDS):
            first = await anext(reply.chunks(), b"")
    if is_page(kind, first):
        message = f"{page_text(reply.status, first, provider.id)}, not with a reply"
        return MalformedReply(message, hint="check base_url", provider=provider.id)
    quoted = excerpt(first, 200)
    message = f"{provider.id} answered with {kind}, not with a reply{': ' if quoted else ''}{quoted}"
    return MalformedReply(message, hint="check base_url", provider=provider.id)


@lru_cache(maxsize=64)
def _content_type(named: str) -> str:
    """Return the content type of a header, without its parameters."""
    return named.partition(";")[0].strip().lower()


def is_page(kind: str, body: bytes) -> bool:
    """Return whether a body is a web page, by its content type `kind` or by how it begins."""
    beginning = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:15].lower()
    return beginning.startswith(_BEGINNINGS) or (
        kind in ("text/html", "application/xhtml+xml") and beginning[:1] == b"<"
    )


def page_text(status: int, body: bytes, provider: str) -> str:
    """Return a sentence with the provider, the status and the title of its page."""
    found = _TITLE.search(body[:_MOST_BYTES].decode("utf-8", "replace"))
    words = " ".join(html.unescape(found[2]).split()) if found else ""
    title = "".join(sign for sign in words if sign.isprintable())[:_MOST_TITLE].strip()
    return f"{provider} answered {status} with a web page" + (f" titled “{title}”" if title else "")
