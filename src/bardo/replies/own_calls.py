"""Take the calls of bardo's own functions out of a reply, answer them, and let the model go on with the results.

Arguments are checked against the JSON Schema of the tool, also those of a client's tool that stand within the arguments of another call. So
the gateway's search for tools is answered too: it searches, the client sees it, and the model is offered what was found.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bardo.context.layer import Effect
from bardo.context.own_functions import CheckArguments, OwnCall, OwnFunctions, OwnResult, OwnSteps
from bardo.dialects import dialect
from bardo.dialects.shared.json_values import JsonObject
from bardo.planning.tool_search import MOST_SEARCHES, ToolSearchPlan, found_text
from bardo.replies.typed_answer import SlowWork
from bardo.replies.typed_validation import AnswerReading, Continuation
from bardo.streams.stage import Stage
from bardo.structured import Provenance
from bardo.structured.judging import TooMuchWork
from bardo.structured.validation import checker
from bardo.values.attempts import AttemptCause
from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InvalidRequest
from bardo.values.events import (
    BlockFields,
    Degraded,
    Event,
    Failed,
    Finish,
    OpaqueState,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import ResponseFold
from bardo.values.request import Message, Request, Tool
from bardo.values.usage import Usage


def argument_failures(asked: CheckArguments) -> Sequence[str]:
    """Return what of the arguments does not fit, as sentences. A client's schema that is none is not held against the model."""
    try:
        return [
            f"{one.path or 'the arguments'}: {one.message}" for one in checker(asked.schema).failures(asked.arguments)
        ]
    except InvalidRequest:
        return ()
    except TooMuchWork as problem:
        return (f"the arguments cannot be judged by their schema: {problem}",)


_TOKEN = re.compile(r'["\\{}\[\]]')


class InnerObject:
    """Cuts off what comes behind the end of a JSON object. Its first piece begins with the brace that opens it."""

    __slots__ = ("_depth", "_escaped", "_in_text", "closed")

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = self._escaped = False
        self.closed = False

    def feed(self, piece: str) -> str:
        """Return what of a piece belongs to the object."""
        if self.closed:
            return ""
        at = 1 if self._escaped and piece else 0
        self._escaped = self._escaped and not piece
        while (token := _TOKEN.search(piece, at)) is not None:
            at = token.end()
            if self._in_text and token[0] == "\\":
                self._escaped = at == len(piece)
                at += 1
            elif self._closes(token[0]):
                self.closed = True
                return piece[:at]
        return piece

    def _closes(self, token: str) -> bool:
        """Take a quote or a bracket, and return whether the object ends with it."""
        if token == '"':
            self._in_text = not self._in_text
        elif not self._in_text and token in "{[":
            self._depth += 1
        elif not self._in_text and token in "}]":
            self._depth -= 1
            return self._depth == 0
        return False


_MOST_HEAD = 2_000
"""Characters of a call within which it turns out to be a client's; a longer beginning is held."""


class OwnCallStage:
    """Holds the calls of the functions with these names, and the end of a reply that has any.

    A call that turns out to be one of a client's tool goes to the client from then on (`opened`). Of the arguments of one call
    `most_arguments` characters are held. `fold` is the whole reply, calls included. `client_calls` are the ids of other calls, which have
    passed.
    """

    def __init__(self, functions: Mapping[str, OwnFunctions], most_arguments: int) -> None:
        self._functions = functions
        self._opened: dict[int, InnerObject] = {}
        self._most = most_arguments
        self._held: dict[int, _BufferedCall] = {}
        self._last_block = -1
        self.fold = ResponseFold()
        self.said: ResponseFold | None = None
        """The whole reply before layers changed it, or None if it is `fold`."""
        self.pending: list[Event] = []
        self.usage = Usage()
        self.client_calls: list[str] = []
        self.opened = False
        self.failed = False

    @property
    def next_block(self) -> int:
        """A block number that this reply did not use."""
        return self._last_block + 1

    @property
    def calls(self) -> list[OwnCall]:
        """The calls that were held and are complete, in order. One in which the reply broke off is not answered."""
        return [held.call() for held in self._held.values() if held.ended]

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, or hold."""
        self.fold.feed(item)
        block = getattr(item, "block", None)
        if block is not None:
            self._last_block = max(self._last_block, block)
        if isinstance(item, ToolCallStart):
            return self._start(item)
        if block in self._held:
            return self._add(self._held[block], item)
        if block in self._opened and isinstance(item, ToolCallChunk):
            piece = self._opened[block].feed(item.arguments)
            return (ToolCallChunk(item.block, piece, item.choice),) if piece else ()
        if isinstance(item, Finish):
            self.pending.append(item)
            return ()
        self.usage = item.usage if isinstance(item, UsageUpdate) else self.usage
        self.failed = self.failed or isinstance(item, Failed)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is given here: whoever answers the calls goes on."""
        return ()

    def _start(self, item: ToolCallStart) -> Sequence[Event]:
        if item.name not in self._functions:
            self.client_calls.append(item.id)
            return (item,)
        self._held[item.block] = _BufferedCall(item, self._most)
        return ()

    def _add(self, held: _BufferedCall, item: Event) -> Sequence[Event]:
        if isinstance(item, OpaqueState | BlockFields):
            held.states.append(item)
        held.ended = held.ended or isinstance(item, ToolCallEnd)
        if not isinstance(item, ToolCallChunk):
            return ()
        held.add(item.arguments)
        call = held.call() if held.size <= _MOST_HEAD else None
        found = None if call is None else self._functions[call.name].opens(call.name, call.arguments)
        return () if call is None or found is None else self._open(item, call, *found)

    def _open(self, item: ToolCallChunk, call: OwnCall, tool: str, begin: int) -> Sequence[Event]:
        """Return what has come of a call that is the client's."""
        del self._held[item.block]
        self.opened = True
        self.client_calls.append(call.id)
        inner = self._opened[item.block] = InnerObject()
        piece = inner.feed(call.arguments[begin:])
        return (
            ToolCallStart(item.block, call.id, tool, item.choice, bool(call.states)),
            *call.states,
            ToolCallChunk(item.block, piece, item.choice),
        )


class _BufferedCall:
    """A call while it arrives; arguments beyond the bound are left out."""

    __slots__ = ("_pieces", "_room", "_start", "ended", "size", "states")

    def __init__(self, start: ToolCallStart, most: int) -> None:
        self._start = start
        self._pieces: list[str] = []
        self._room = most
        self.size = 0
        self.ended = False
        self.states: list[Event] = []

    def add(self, arguments: str) -> None:
        """Take a piece of the arguments."""
        self.size += len(arguments)
        if self._room > 0:
            self._pieces.append(arguments[: self._room])
            self._room -= len(arguments)

    def call(self) -> OwnCall:
        """Return the call as far as it has come."""
        return OwnCall(self._start.id, self._start.name, "".join(self._pieces), tuple(self.states))


MOST_ARGUMENTS = 200_000
"""Characters of the arguments of one call that are held: what is longer is no call that can be answered."""


class ContinueWithResults(msgspec.Struct, frozen=True):
    """The wish to ask the model again with the `results` of its calls behind its last `reply`, and to read the next through `stages`.

    `next` is the last of them, `cause` and `why` say what for, and `tools` are offered behind those of the request. It is answered with the
    error where no whole reply came, else with None.
    """

    reply: OwnCallStage
    results: tuple[ToolResultBlock, ...]
    stages: tuple[Stage[Event, Event], ...]
    next: OwnCallStage
    cause: AttemptCause
    why: str
    tools: tuple[Tool, ...] = ()


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

    `finish` is a generator of steps, as that of a typed answer: it yields events, effects, and the wish to go on.
    """

    provenance: Provenance | None = None
    reading: AnswerReading | None = None

    def __init__(self, functions: Sequence[OwnFunctions]) -> None:
        self._functions = functions
        self._by_name = {name: function for function in functions for name in function.names}
        self._most_rounds = max(function.most_rounds for function in functions)
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
                reply,
                results,
                stages,
                self.latest,
                last.cause,
                last.why,
                tuple(tool for function in self._functions for tool in function.loaded),
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
        yield [*lost, *[event for function in self._functions for event in function.ending()], *ends]


def with_origin(turn: Message, origin: Origin) -> Message:
    """Return a turn that the client does not see, with the origin of its opaque states: only those who can read them get them back."""
    return msgspec.structs.replace(turn, blocks=tuple([_stamped(block, origin) for block in turn.blocks]))


def _stamped(block: Block, origin: Origin) -> Block:
    if not isinstance(block, TextBlock | ReasoningBlock | ToolCallBlock) or not block.opaque:
        return block
    return msgspec.structs.replace(block, opaque=tuple([_marked(state, origin) for state in block.opaque]))


def _marked(state: Opaque, origin: Origin) -> Opaque:
    return state if state.origin is not None else msgspec.structs.replace(state, origin=origin)


_ROUNDS_BEYOND = 2
_MOST_SEARCH_ARGUMENTS = 20_000
_MOST_ID = 48
_NO_ID = re.compile(r"[^a-zA-Z0-9_]")


class ToolSearchFunction:
    """The searches for tools of one reply. The client gets each as the blocks of its dialect, and sends them back with its next turn.

    `loaded` are the tools that were found, in the order in which the model may call them. `request` is the client's own.
    """

    cause: Literal["search", "tools"] = "tools"
    why = "the model goes on with the tools that were found"
    remembered = False
    most_rounds = MOST_SEARCHES + _ROUNDS_BEYOND

    def __init__(self, plan: ToolSearchPlan, request: Request) -> None:
        self._plan = plan
        self._request = request
        self._searches = self._round = self._next_block = 0
        self._loaded: dict[str, Tool] = {}
        self.names = frozenset({plan.tool})

    @property
    def loaded(self) -> Sequence[Tool]:
        """The tools that were found."""
        return [*self._loaded.values()]

    def answer(self, call: OwnCall, block: int) -> OwnSteps:
        """Make one search, tell the client of it, and return what was found for the model."""
        self._searches += 1
        arguments = _object(call.arguments)
        found: tuple[Tool, ...] = ()
        error = "too_many_requests" if self._searches > MOST_SEARCHES else ""
        if not error:
            found, error = yield SlowWork(lambda: self._plan.found(arguments))
        self._loaded |= {tool.name: tool for tool in found if tool.name not in self._loaded}
        declared = dialect(self._request.dialect).reply
        form = None if declared is None else declared.tool_searches
        # Searches of one answer of the model stand in blocks behind each other, and what a later answer says behind a block of its own.
        if not self._round or block != self._next_block:
            self._round += 1
        # The round and the model's own id, so that it reads the same turn the next time, and the prompt that was cached.
        key = f"{self._round:02d}{_NO_ID.sub('', call.id)[-_MOST_ID:]}"
        names = [tool.name for tool in found]
        values = [] if form is None else form.write(self._request, key, self._plan.tool, arguments, names, error)
        events = tuple(UnknownContent(block + at, self._request.dialect, value) for at, value in enumerate(values))
        self._next_block = block + len(events)
        content = (TextBlock(found_text(found, error)),)
        result = ToolResultBlock(call_id=call.id, name=self._plan.tool, content=content, is_error=bool(error))
        return OwnResult(result, events)

    def opens(self, name: str, arguments: str) -> tuple[str, int] | None:
        """Return that no search is the client's."""
        return None

    def ending(self) -> Sequence[Event]:
        """Return nothing: each search was told when it was made."""
        return ()

    def stopped(self) -> Degradation:
        """Return that the model went on to search."""
        return Degradation("tools", why="the model went on to search for tools beyond what is allowed")


def _object(arguments: str) -> JsonObject:
    try:
        value = msgspec.json.decode(arguments[:_MOST_SEARCH_ARGUMENTS])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
