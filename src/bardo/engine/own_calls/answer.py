"""The end of a reply that calls bardo's own functions: answer the calls, and let the model go on with the results.

`OwnCallsAnswer.finish` is a generator of steps, as that of a typed answer: it yields events, effects, and the wish to go on.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from bardo.context.layer import Effect
from bardo.context.own_functions import OwnCall, OwnFunctions, OwnResult
from bardo.engine.own_calls.stage import OwnCallStage
from bardo.engine.typed.continuation import Continuation
from bardo.engine.typed.validate import AnswerReading
from bardo.streams.stage import Stage
from bardo.structured import Provenance
from bardo.values.attempts import AttemptCause
from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import BardoError
from bardo.values.events import Degraded, Event, Failed, Finish
from bardo.values.request import Message

MOST_ARGUMENTS = 200_000
"""Characters of the arguments of one call that are held: what is longer is no call that can be answered."""


class ContinueWithResults(msgspec.Struct, frozen=True):
    """The wish to ask the model again with the `results` of its calls behind its last `reply`, and to read the next through `stages`.

    `next` is the last of them, `cause` and `why` say what for. It is answered with the error where no whole reply came, else with None.
    """

    reply: OwnCallStage
    results: tuple[ToolResultBlock, ...]
    stages: tuple[Stage[Event, Event], ...]
    next: OwnCallStage
    cause: AttemptCause
    why: str


class HiddenTurns(msgspec.Struct, frozen=True):
    """The wish to keep the turns of a reply as the model knows them: the client sees of the last `reply` only the calls with these `ids`.

    `results` are those of its calls that were answered here.
    """

    reply: OwnCallStage
    results: tuple[ToolResultBlock, ...]
    ids: tuple[str, ...]


OwnCallSteps = Generator[list[Event] | Effect | ContinueWithResults | HiddenTurns, Any, None]


class OwnCallsAnswer:
    """One reply whose model may call bardo's functions.

    `buffer` is the stage that takes its calls, `latest` that of the reply which came last.
    """

    provenance: Provenance | None = None
    reading: AnswerReading | None = None

    def __init__(self, functions: Sequence[OwnFunctions]) -> None:
        self._functions = functions
        self._by_name = {name: one for one in functions for name in one.names}
        self._most_rounds = max(one.most_rounds for one in functions)
        self._block = 0
        self._remembered = False
        self.buffer = self.latest = self._new_stage()
        self.rewritten = False

    def finish(self) -> OwnCallSteps:
        """Yield the events that end the reply, and what has to be done for them. Raises nothing: a failure is an event."""
        rounds = 0
        while self.latest.calls and not self.latest.failed:
            reply, rounds = self.latest, rounds + 1
            self.rewritten = True
            self._block = max(self._block, reply.next_block)
            results, for_client = yield from self._answered(reply.calls)
            ids = (*reply.client_calls, *for_client)
            last = self._by_name[reply.calls[-1].name]
            if ids or rounds > self._most_rounds:
                if ids and (self._remembered or reply.opened):
                    yield HiddenTurns(reply, results, ids)
                yield from self._end(reply, stopped=None if ids else last)
                return
            self.latest = self._new_stage()
            stages = (Continuation(self._block, reply.usage, keeps_state=True), self.latest)
            problem: BardoError | None = yield ContinueWithResults(
                reply, results, stages, self.latest, last.cause, last.why
            )
            if problem is not None:
                yield [Failed(problem)]
                return
        if self.latest.client_calls and (self.latest.opened or (self._remembered and rounds)):
            yield HiddenTurns(self.latest, (), tuple(self.latest.client_calls))
        yield from self._end(self.latest)

    def _new_stage(self) -> OwnCallStage:
        return OwnCallStage(self._by_name, MOST_ARGUMENTS)

    def _answered(self, calls: Sequence[OwnCall]) -> Generator[Any, Any, tuple[tuple[ToolResultBlock, ...], list[str]]]:
        """Answer the calls of one reply. Returns the results for the model, and the ids of the calls that the client gets."""
        results, for_client = [], []
        for call in calls:
            functions = self._by_name[call.name]
            self._remembered = self._remembered or functions.remembered
            made: OwnResult = yield from functions.answer(call, self._block)
            self._block = max([self._block, *[event.block + 1 for event in made.events if hasattr(event, "block")]])
            if made.events:
                yield list(made.events)
            if made.for_client:
                for_client.append(call.id)
            elif made.result is not None:
                results.append(made.result)
        return tuple(results), for_client

    def _end(self, reply: OwnCallStage, *, stopped: OwnFunctions | None = None) -> OwnCallSteps:
        ends = reply.pending
        lost: list[Event] = []
        if stopped is not None:
            ends = [Finish("stop", end.raw, choice=end.choice) if isinstance(end, Finish) else end for end in ends]
            lost = [Degraded(stopped.stopped())]
        yield [*lost, *[event for one in self._functions for event in one.ending()], *ends]


def with_origin(turn: Message, origin: Origin) -> Message:
    """Return a turn that the client does not see, with the origin of its opaque states: only those who can read them get them back."""
    return msgspec.structs.replace(turn, blocks=tuple([_stamped(block, origin) for block in turn.blocks]))


def _stamped(block: Block, origin: Origin) -> Block:
    if not isinstance(block, TextBlock | ReasoningBlock | ToolCallBlock) or not block.opaque:
        return block
    return msgspec.structs.replace(block, opaque=tuple([_marked(state, origin) for state in block.opaque]))


def _marked(state: Opaque, origin: Origin) -> Opaque:
    return state if state.origin is not None else msgspec.structs.replace(state, origin=origin)
