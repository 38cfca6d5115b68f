"""How a reply ends: the steps that its answer asks for, what is kept of its reasoning, and what its layers do with it.

The steps are work in a thread, searches of the web, and the model asked again within the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec

from bardo.adapters.stores.log.row import LogRow
from bardo.call.call import Call, SentAttempt
from bardo.call.row import content_of
from bardo.call.services import EpisodeSink
from bardo.call.stored import RecordedReply
from bardo.call.upstream import ReplyAnswer, UpstreamReply
from bardo.context.layer import Effect, EffectFailed, KeptReply
from bardo.context.own_functions import CheckArguments, StoreTurns
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import asked_again, continued
from bardo.planning.route import Target
from bardo.replies.citations import SearchWeb
from bardo.replies.kept_budget import ContinueThought
from bardo.replies.own_calls import ContinueWithResults, HiddenTurns, OwnCallStage, argument_failures, with_origin
from bardo.replies.reply_reader import ReplyReader
from bardo.replies.reply_stages import FoldStage
from bardo.replies.typed_answer import RetryRequest, SlowWork
from bardo.replies.typed_validation import added
from bardo.streams.stage import Stage
from bardo.values.errors import BardoError
from bardo.values.events import Event, Failed, UsageUpdate
from bardo.values.fold import ResponseFold
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.usage import Usage

# Answers that take long to read wait for each other, and not the stores and files that use the loop's own threads.
_READERS = ThreadPoolExecutor(2, thread_name_prefix="bardo-answers")

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

    `attempt` is the attempt that was answered, planned with `knowledge`, and `reader` has read its reply.
    """

    unfinished: Usage | None = None
    """What all replies used up to a further one that did not come to its end, or None if none broke."""
    _open: tuple[SentAttempt, Usage, UpstreamReply | None] | None = None
    """The attempt at a further reply that has not ended, what the replies before it used, and the further one before it."""

    def __init__(
        self, call: Call, request: Request, attempt: Attempt, knowledge: Knowledge, reader: ReplyReader
    ) -> None:
        self._services = call.services
        self._call = call
        self._request = request
        self._attempt = attempt
        self._knowledge = knowledge
        self._key = call.key_label
        self._layers = call.layers
        self._reader = reader
        self._turns: tuple[Message, ...] = ()
        self._again: UpstreamReply | None = None

    async def run(self, answer: ReplyAnswer) -> AsyncIterator[Sequence[Event]]:
        """Yield the events that end the answer."""
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
                    assert self._services.searcher is not None
                    result = await self._services.searcher.search(step)
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
                        async for events in self._ask_again(step):
                            yield events
                    except BardoError as error:
                        result = error
                case events:
                    yield events

    def _note_sent(self, step: FurtherReply) -> SentAttempt:
        note, request, key = self._call.note_attempt, self._request, self._key
        if isinstance(step, RetryRequest):
            return note(self._attempt, request, cause="repair", why="the answer did not fit its schema", key=key)
        if isinstance(step, ContinueThought):
            return note(self._attempt, request, cause="repair", why="the thinking had used its budget", key=key)
        return note(self._attempt, request, cause=step.cause, why=step.why, key=key)

    def _turns_of(self, step: FurtherReply) -> tuple[Message, ...]:
        """Return the turns behind the request: what the model said last, and what it gets back, as layers mask it."""
        if isinstance(step, RetryRequest | ContinueThought):
            return self._masked(step.turns)
        return (*self._turns, *self._masked((self._last_message(step.reply), Message("user", step.results))))

    def _masked(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        return turns if self._layers is None else self._layers.masked_turns(turns)

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
            await self._perform(StoreTurns(self._call.tenant, step.ids, stamped))

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
        usage = None if again is None else again.usage(whole=False, turns=self._turns)
        self._call.attempts.end(sent, error=failure, usage=usage, whole=False)
        self.unfinished = spent if usage is None else added(spent, usage)

    async def _ask_again(self, step: FurtherReply) -> AsyncIterator[list[Event]]:
        """Ask the model again within this call, and yield the events of its reply. Raises BardoError where there is none."""
        sent = self._note_sent(step)
        self._open, tap, failure = (sent, self._reader.usage, self._again), UsageTap(), None
        quiet = msgspec.structs.replace(self._request.options, include=())
        request = msgspec.structs.replace(self._request, options=quiet)
        if isinstance(step, ContinueThought):
            attempt = continued(self._attempt, self._turns, self._knowledge, step.plan)
        else:
            tools = step.tools if isinstance(step, ContinueWithResults) else ()
            attempt = asked_again(self._attempt, self._turns, self._knowledge, tools)
        try:
            again = self._again = UpstreamReply(self._call, request, attempt, sent)
            await again.begin_further((tap, *self._stages(step)))
            while (update := await again.next_update()) is not None:
                yield [event for event in update.events if type(event) is not Failed]
            if again.reader.failure is not None:
                raise again.reader.failure
            self._open = None
            self._call.attempts.end(sent, usage=tap.usage)
        except BardoError as problem:
            self._call.clean(problem)
            failure = problem
            raise
        finally:
            self.end_open(failure)
            if self._again is not None:
                self._again.learn_start()
                await self._again.close()


def keep_episode(
    episodes: EpisodeSink, call: Call, request: Request, row: LogRow, response: Response, *, schema_ok: bool | None
) -> None:
    """Keep a call's thinking, where somebody thought: a kept reply is the thinking of another call.

    `response` is the reply with all of its reasoning; `schema_ok`: whether a typed answer fitted its schema.
    """
    layers = call.layers
    if layers is not None and layers.answer is not None:
        return
    content = content_of(request, response, layers)
    if content is None or content[1] is None:
        return
    session = "" if layers is None else layers.session
    episodes.keep(row, content[0], content[1], asked=request, session=session, schema_ok=schema_ok)


def reply_to_keep(
    recorded: RecordedReply | None, call: Call, target: Target, answer: ReplyAnswer | None, *, streamed: bool
) -> KeptReply | None:
    """Return the reply of a call as it came, for a layer that keeps it: None if it is too long, or is not what the client got."""
    layers = call.layers
    body = None if recorded is None or layers is None or not layers.most_bytes else recorded.body
    if layers is None or recorded is None or not body or len(body) > layers.most_bytes or layers.changes_reply:
        return None
    made = None if answer is None else answer.provenance
    # An answer is kept that came of one reply and fits its schema, so that it does so again when it is read again.
    if answer is not None and (made is None or made.attempts != 1 or made.error is not None):
        return None
    return KeptReply(
        provider=target.provider.id,
        model=target.model,
        dialect=target.provider.row.dialect,
        content_type=recorded.headers.get("content-type", ""),
        body=body,
        streamed=streamed,
        kept_at=call.services.clock(),
        cost_nanos=call.cost.nanos,
    )
