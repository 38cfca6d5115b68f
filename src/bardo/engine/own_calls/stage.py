"""Take the calls of bardo's own functions out of a reply, and let everything else pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bardo.context.own_functions import OwnCall, OwnFunctions
from bardo.engine.own_calls.inner_arguments import InnerObject
from bardo.values.events import (
    BlockFields,
    Event,
    Failed,
    Finish,
    OpaqueState,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.fold import ResponseFold
from bardo.values.usage import Usage

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
        """The whole reply before layers changed it; None where it is `fold`."""
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
