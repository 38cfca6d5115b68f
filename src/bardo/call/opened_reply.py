"""One attempt of a call and, once it is there, its reply. A call that is hedged has two of them for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bardo.call.answer_steps import ReplyAnswer
from bardo.call.call_attempts import SentAttempt
from bardo.call.call_context import CallContext
from bardo.call.call_recorder import CallRecorder
from bardo.call.stale_replies import StaleReply, WithoutUsage
from bardo.call.stored_reply import StoredReply
from bardo.call.stream_reading import Meter
from bardo.call.upstream_reply import UpstreamReply, open_reply
from bardo.context.own_functions import OwnFunctions
from bardo.planning.attempt import Attempt
from bardo.planning.kept_budget import LOSS
from bardo.planning.typed_answer import AnswerValidator
from bardo.replies.hosted_search import SearchFunction
from bardo.replies.kept_budget import BudgetedAnswer, BudgetStage
from bardo.replies.own_calls import OwnCallsAnswer, OwnCallStage
from bardo.replies.reply_stages import FoldStage
from bardo.replies.typed_answer import typed_answer
from bardo.services.facts.health import AttemptWatch, HealthKeeper
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import Event, ReplyStart
from bardo.values.fold import ResponseFold
from bardo.values.request import Request

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers

STALE = "stale"
"""What is degraded where an old reply is given."""


class ReplyReading(NamedTuple):
    """How the replies of one call are read.

    `clean` takes all secrets out of an error, `validator` is the caller's own look at a typed answer, and `most_text` is how many
    characters of a reply are held that only the log and replay look at.
    """

    context: CallContext
    recorder: CallRecorder
    request: Request
    request_id: str
    clean: Callable[[BardoError], None]
    validator: AnswerValidator | None
    most_text: int | None
    record: int = 0
    """How many bytes of a reply are kept, for callers that allow an old one and for layers."""
    layers: CallLayers | None = None
    """The layers that worked on the call, and may have stages for its reply."""
    meter: Meter | None = None
    """What is asked of each piece of a stream before it is read."""

    def stages(self) -> Sequence[Stage[Event, Event]]:
        """Return the stages that the call's layers have for one reply."""
        return () if self.layers is None else self.layers.stages()

    def stamp(self, attempt: Attempt) -> ReplyStart:
        """Return what fills the fields that a provider leaves out."""
        return ReplyStart(id=self.request_id, model=attempt.target.model, created=int(self.recorder.started_at))


class OpenedReply:
    """An attempt that was noted as `sent`; `begin` sends it, and reads until its reply has begun.

    `patience` is the timer that ends an attempt whose first token does not come.
    """

    __slots__ = ("answer", "attempt", "patience", "sent", "upstream")

    def __init__(self, attempt: Attempt, sent: SentAttempt) -> None:
        self.attempt = attempt
        self.sent = sent
        self.patience: asyncio.Timeout | None = None
        self.upstream: UpstreamReply | None = None
        self.answer: ReplyAnswer | None = None

    async def begin(self, reading: ReplyReading) -> None:
        """Send the attempt, and read until its reply has begun. Raises BardoError, and lets go of the reply then."""
        try:
            recorder = reading.recorder
            request, kept = reading.request, self.attempt.kept_budget
            if kept is not None and not request.stream:
                request = msgspec.structs.replace(request, stream=True)
            self.upstream = await open_reply(
                reading.context,
                self.attempt,
                request,
                self.sent.key,
                recorder.payments,
                tenant=recorder.tenant,
            )
            if reading.record:
                self.upstream.record(reading.record)
            if self.upstream.resent:
                recorder.attempts.count += 1
            await self._read_beginning(self.upstream, reading)
        except BardoError as problem:
            reading.clean(problem)
            reading.context.clean(problem, reading.recorder.payment_secrets())
            self.note_ended(reading.recorder, problem)
            await self.close()
            raise
        except BaseException:
            await self.close()
            raise

    def note_ended(self, recorder: CallRecorder, error: BardoError | None = None, *, lost: bool = False) -> None:
        """Note that the attempt failed, or was `lost`: another one was quicker."""
        upstream = self.upstream
        usage = None if upstream is None else upstream.usage(recorder.tenant, whole=False)
        recorder.attempts.end(self.sent, error=error, usage=usage, whole=not lost, lost=lost)

    async def close(self) -> None:
        """Let go of the reply, whatever is left of it."""
        if self.upstream is not None:
            await self.upstream.close()

    async def _read_beginning(self, upstream: UpstreamReply, reading: ReplyReading) -> None:
        attempt, request = self.attempt, reading.request
        own = own_functions(attempt, request, reading.layers)
        stages = reading.stages()
        if own:
            self.answer = answer = OwnCallsAnswer(own)
            stages = stages_of_own_calls(answer.buffer, stages)
        elif attempt.answer is not None:
            self.answer = typed_answer(attempt, request, forward=upstream.forward, validator=reading.validator)
        budget = self._budget(upstream)
        holds_all = self.answer is not None or bool(request.options.include) or reading.layers is not None
        await upstream.begin(
            reading.stamp(attempt),
            stages if self.answer is None or own or budget is not None else (*stages, self.answer.buffer),
            clean=reading.clean,
            most_text=None if holds_all else reading.most_text,
            hold_end=self.answer is not None,
            on_token=partial(self._note_token, reading.recorder),
            budget=budget,
            meter=reading.meter,
        )

    def _budget(self, upstream: UpstreamReply) -> BudgetStage | None:
        """Return the stage that keeps the budget of the reply's thinking; None where there is none to keep, which is reported."""
        kept = self.attempt.kept_budget
        if kept is None:
            return None
        if self.answer is None and upstream.streamed:
            self.answer = answer = BudgetedAnswer(kept)
            return answer.buffer
        why = "the gateway runs functions in this call" if upstream.streamed else "the server did not stream its reply"
        upstream.lost = (Degradation(LOSS, asked=kept.tokens, why=f"{why}, so that nobody keeps the budget"),)
        return None

    def _note_token(self, recorder: CallRecorder) -> None:
        recorder.note_first_byte()
        if self.patience is not None:
            self.patience.reschedule(None)


def own_functions(attempt: Attempt, request: Request, layers: CallLayers | None) -> list[OwnFunctions]:
    """Return the functions that bardo executes itself for an attempt."""
    searches: list[OwnFunctions] = []
    if attempt.search is not None:
        searches.append(SearchFunction(attempt.search, request.dialect))
    return searches if layers is None else [*searches, *layers.functions()]


def stages_of_own_calls(calls: OwnCallStage, stages: Sequence[Stage[Event, Event]]) -> Sequence[Stage[Event, Event]]:
    """Return the stages of a reply that may call such functions, which keep what the model said before layers changed it."""
    if not stages:
        return (calls,)
    calls.said = ResponseFold()
    return (FoldStage(calls.said), *stages, calls)


class _NoHealthRecords:
    """Where the reading of a stored reply is noted: nowhere."""

    def __init__(self, context: CallContext) -> None:
        self.health = HealthKeeper()
        self.watch = context.watch


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
    watch = AttemptWatch(_NoHealthRecords(reading.context), attempt.target)
    reply = StoredReply(200, stored.body, stored.content_type)
    upstream = UpstreamReply(reading.context, attempt, reading.request, reply, watch)
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
