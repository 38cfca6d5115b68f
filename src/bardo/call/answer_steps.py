"""Run the steps that end an answer: work in a thread, searches of the web, and the model asked again within the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.call.call_attempts import SentAttempt
from bardo.call.call_context import CallContext
from bardo.call.call_recorder import CallRecorder
from bardo.call.upstream_reply import UpstreamReply, open_reply
from bardo.context.layer import Effect, EffectFailed
from bardo.context.own_functions import CheckArguments, StoreTurns
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import asked_again, continued
from bardo.replies.hosted_search import SearchWeb
from bardo.replies.kept_budget import BudgetedAnswer, ContinueThought
from bardo.replies.own_calls import (
    ContinueWithResults,
    HiddenTurns,
    OwnCallsAnswer,
    OwnCallStage,
    argument_failures,
    with_origin,
)
from bardo.replies.reply_reader import ReplyReader
from bardo.replies.reply_stages import FoldStage
from bardo.replies.typed_answer import RetryRequest, SlowWork, TypedAnswer
from bardo.replies.typed_validation import added
from bardo.streams.stage import Stage
from bardo.values.errors import BardoError
from bardo.values.events import Event, Failed, ReplyStart, UsageUpdate
from bardo.values.fold import ResponseFold
from bardo.values.request import Message, Request
from bardo.values.usage import Usage

if TYPE_CHECKING:
    from bardo.services.pipeline.call_layers import CallLayers


# Answers that take long to read wait for each other, and not the stores and files that use the loop's own threads.
_READERS = ThreadPoolExecutor(2, thread_name_prefix="bardo-answers")

ReplyAnswer = TypedAnswer | OwnCallsAnswer | BudgetedAnswer
"""What does the steps that end a reply."""
FurtherReply = RetryRequest | ContinueWithResults | ContinueThought
"""The wish for one more reply within the call."""


class UsageTap:
    """Keeps what one reply used, before it is added to what the replies before it did."""

    def __init__(self) -> None:
        self.usage: Usage | None = None

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on."""
        if type(item) is UsageUpdate:
            self.usage = item.usage
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


class AnswerStepRunner:
    """Runs the steps of one call's answer; `close` lets go of a reply that was asked for again and not read to its end.

    `attempt` is the attempt that was answered, planned with `knowledge`, and `reader` has read its reply. `clean` takes all secrets out of
    an error.
    """

    unfinished: Usage | None = None
    """What all replies used up to a further one that did not come to its end; None where none broke."""
    _open: tuple[SentAttempt, Usage, UpstreamReply | None] | None = None
    """The attempt at a further reply that has not ended, what the replies before it used, and the further one before it."""

    def __init__(
        self,
        context: CallContext,
        recorder: CallRecorder,
        request: Request,
        attempt: Attempt,
        knowledge: Knowledge,
        reader: ReplyReader,
        *,
        clean: Callable[[BardoError], None],
        key: str = "",
        layers: CallLayers | None = None,
    ) -> None:
        self._context = context
        self._recorder = recorder
        self._request = request
        self._attempt = attempt
        self._knowledge = knowledge
        self._clean = clean
        self._key = key
        self._layers = layers
        self._reader = reader
        self._turns: tuple[Message, ...] = ()
        self._again: UpstreamReply | None = None

    async def run(self, answer: ReplyAnswer, stamp: ReplyStart) -> AsyncIterator[Sequence[Event]]:
        """Yield the events that end the answer. `stamp` fills what the provider leaves out of a further reply."""
        steps: Generator[Any, Any, None] = answer.finish()
        result: Any = None
        failed: EffectFailed | None = None
        while True:
            try:
                step = steps.send(result) if failed is None else steps.throw(failed)
            except StopIteration:
                return
            result, failed = None, None
            match step:
                case SlowWork(run=run):
                    result = await asyncio.get_running_loop().run_in_executor(_READERS, run)
                case SearchWeb():
                    assert self._context.searcher is not None
                    result = await self._context.searcher.search(step)
                case CheckArguments():
                    result = await asyncio.get_running_loop().run_in_executor(_READERS, argument_failures, step)
                case HiddenTurns():
                    await self._keep_turns(step)
                case Effect():
                    try:
                        result = await self._perform(step)
                    except EffectFailed as problem:
                        failed = problem
                case RetryRequest() | ContinueWithResults() | ContinueThought():
                    self._turns = self._turns_of(step)
                    try:
                        async for events in self._ask_again(step, stamp):
                            yield events
                    except BardoError as error:
                        result = error
                case events:
                    yield events

    def _note_sent(self, step: FurtherReply) -> SentAttempt:
        note, key = self._recorder.note_sent, self._key
        if isinstance(step, RetryRequest):
            return note(self._attempt, cause="repair", why="the answer did not fit its schema", key=key)
        if isinstance(step, ContinueThought):
            return note(self._attempt, cause="repair", why="the thinking had used its budget", key=key)
        return note(self._attempt, cause=step.cause, why=step.why, key=key)

    def _turns_of(self, step: FurtherReply) -> tuple[Message, ...]:
        """Return the turns behind the request: what the model said last, and what it gets back, as layers mask it."""
        if isinstance(step, RetryRequest | ContinueThought):
            return self._masked(step.turns)
        return (*self._turns, *self._masked((self._last_message(step.reply), Message("user", step.results))))

    def _masked(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        layers = self._recorder.layers
        return turns if layers is None else layers.masked_turns(turns)

    def _last_message(self, reply: OwnCallStage) -> Message:
        """Return what the model said last, with the thinking that its client does not get."""
        reader = self._reader if self._again is None else self._again.reader
        said = reader.unfiltered_response() or (reply.said or reply.fold).response()
        return Message("assistant", said.blocks)

    async def _keep_turns(self, step: HiddenTurns) -> None:
        """Keep the turns behind the reply, with the origin of their opaque states, for the client's next turn."""
        last = (self._last_message(step.reply), *([Message("user", step.results)] if step.results else ()))
        turns = (*self._turns, *self._masked(last))
        origin = self._attempt.origin
        stamped = turns if origin is None else tuple([with_origin(turn, origin) for turn in turns])
        with suppress(EffectFailed):
            await self._perform(StoreTurns(self._recorder.tenant, step.ids, stamped))

    async def _perform(self, effect: Effect) -> Any:
        """Return the result of an effect. Raises EffectFailed."""
        if self._layers is None:
            raise EffectFailed(f"nobody performs {type(effect).__name__}")
        return await self._layers.perform(effect)

    def _stages(self, step: FurtherReply) -> tuple[Stage[Event, Event], ...]:
        """Return the stages of a further reply: those that layers have for each reply, and those of the step."""
        own = () if self._layers is None else tuple(self._layers.stages())
        if not own or not isinstance(step, ContinueWithResults):
            return (*own, *step.stages)
        step.next.said = ResponseFold()
        return (FoldStage(step.next.said), *own, *step.stages)

    async def close(self) -> None:
        """Let go of the further reply, whatever is left of it."""
        if self._again is not None:
            await self._again.close()

    def end_open(self, failure: BardoError | None = None) -> None:
        """Note the end of the further reply that is being read, where one is: what passed of it is counted."""
        if self._open is None:
            return
        (sent, spent, before), self._open = self._open, None
        again = None if self._again is before else self._again
        usage = None if again is None else again.usage(self._recorder.tenant, whole=False, turns=self._turns)
        self._recorder.attempts.end(sent, error=failure, usage=usage, whole=False)
        self.unfinished = spent if usage is None else added(spent, usage)

    async def _ask_again(self, step: FurtherReply, stamp: ReplyStart) -> AsyncIterator[list[Event]]:
        """Ask the model again within this call, and yield the events of its reply. Raises BardoError where there is none."""
        sent = self._note_sent(step)
        self._open, tap, failure = (sent, self._reader.usage, self._again), UsageTap(), None
        quiet = msgspec.structs.replace(self._request.options, include=())
        request = msgspec.structs.replace(self._request, options=quiet)
        if isinstance(step, ContinueThought):
            attempt = continued(self._attempt, self._turns, self._knowledge, step.plan)
        else:
            attempt = asked_again(self._attempt, self._turns, self._knowledge)
        try:
            payments, tenant = self._recorder.payments, self._recorder.tenant
            again = self._again = await open_reply(self._context, attempt, request, self._key, payments, tenant=tenant)
            if again.resent:
                self._recorder.attempts.count += 1
            await again.begin(stamp, (tap, *self._stages(step)), clean=self._clean)
            while (update := await again.next_update()) is not None:
                yield [event for event in update.events if type(event) is not Failed]
            if again.reader.failure is not None:
                raise again.reader.failure
            self._open = None
            self._recorder.attempts.end(sent, usage=tap.usage)
        except BardoError as problem:
            self._clean(problem)
            failure = problem
            raise
        finally:
            self.end_open(failure)
            if self._again is not None:
                self._again.learn_start(self._recorder.tenant)
                await self._again.close()
