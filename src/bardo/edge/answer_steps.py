"""Run the steps that end a typed answer: work in a thread, and the model asked again within the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from bardo.edge.call_context import CallContext
from bardo.edge.call_recorder import CallRecorder
from bardo.edge.upstream_reply import UpstreamReply, open_reply
from bardo.engine.knowledge import Knowledge
from bardo.engine.planning import Attempt, asked_again
from bardo.engine.typed.retry import AskAgain, SlowWork, TypedAnswer
from bardo.values.errors import BardoError
from bardo.values.events import Event, Failed, ReplyStart
from bardo.values.request import Request


class AnswerStepRunner:
    """Runs the steps of one call's typed answer; `close` lets go of a reply that was asked for again and not read to its end.

    `attempt` is the attempt that was answered, planned with `knowledge`. `clean` takes all secrets out of an error.
    """

    def __init__(
        self,
        context: CallContext,
        recorder: CallRecorder,
        request: Request,
        attempt: Attempt,
        knowledge: Knowledge,
        *,
        clean: Callable[[BardoError], None],
    ) -> None:
        self._context = context
        self._recorder = recorder
        self._request = request
        self._attempt = attempt
        self._knowledge = knowledge
        self._clean = clean
        self._again: UpstreamReply | None = None

    async def run(self, answer: TypedAnswer, stamp: ReplyStart) -> AsyncIterator[Sequence[Event]]:
        """Yield the events that end the answer. `stamp` fills what the provider leaves out of a further reply."""
        steps, result = answer.finish(), None
        while True:
            try:
                step = steps.send(result)
            except StopIteration:
                return
            result = None
            match step:
                case SlowWork(run=run):
                    result = await asyncio.to_thread(run)
                case AskAgain():
                    try:
                        async for events in self._ask_again(step, stamp):
                            yield events
                    except BardoError as problem:
                        result = problem
                case events:
                    yield events

    async def close(self) -> None:
        """Let go of the further reply, whatever is left of it."""
        if self._again is not None:
            await self._again.close()

    async def _ask_again(self, step: AskAgain, stamp: ReplyStart) -> AsyncIterator[list[Event]]:
        """Ask the model again within this call, and yield the events of its reply. Raises BardoError where there is none."""
        self._recorder.note_sent(self._attempt)
        quiet = msgspec.structs.replace(self._request.options, include=())
        request = msgspec.structs.replace(self._request, options=quiet)
        attempt = asked_again(self._attempt, step.turns, self._knowledge)
        try:
            again = self._again = await open_reply(self._context, attempt, request)
            if again.resent:
                self._recorder.note_resent()
            await again.begin(stamp, step.stages, clean=self._clean)
            while (update := await again.next_update()) is not None:
                yield [event for event in update.events if type(event) is not Failed]
            if again.reader.failure is not None:
                raise again.reader.failure
        except BardoError as problem:
            self._clean(problem)
            raise
        finally:
            if self._again is not None:
                self._again.learn_start()
                await self._again.close()
