"""Functions that a model may call and that bardo executes itself, within one call of the client.

A layer that offers such functions gives a `ReplyPart` which is also an `AnswersCalls`. The engine takes the calls out of the reply, has
them answered, and asks the model again, until it calls nothing of bardo's any more.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from bardo.context.layer import Effect
from bardo.values.blocks import ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.events import Event
from bardo.values.request import Message, Tool


class OwnCall(NamedTuple):
    """A call of such a function, with its arguments as the model wrote them. `states` are opaque states and fields of its block."""

    id: str
    name: str
    arguments: str
    states: tuple[Event, ...] = ()


class OwnResult(NamedTuple):
    """The result of one call.

    `events` are for the client, in blocks of their own. `result` is for the model. `for_client`: the events are a call that the client
    executes, so that the reply ends with it; the result is None then.
    """

    result: ToolResultBlock | None = None
    events: tuple[Event, ...] = ()
    for_client: bool = False


OwnSteps = Generator[Any, Any, OwnResult]
"""Yields effects, and is sent their results."""


class OwnFunctions(Protocol):
    """Functions of one kind, for one reply.

    `cause` and `why` say of a further attempt what it is for, and `most_rounds` bounds how many there are. `remembered`: the model must
    find these calls in its later turns, although the client does not see them.
    """

    names: frozenset[str]
    cause: Literal["search", "tools"]
    why: str
    most_rounds: int
    remembered: bool

    @property
    def loaded(self) -> Sequence[Tool]:
        """The tools that calls of these functions have found, which the model may call from its next turn on."""
        ...

    def answer(self, call: OwnCall, block: int) -> OwnSteps:
        """Answer one call; its events are numbered from `block`."""
        ...

    def opens(self, name: str, arguments: str) -> tuple[str, int] | None:
        """Return the client's tool that a call turns out to be of while it arrives, and where in its arguments those of the tool begin.

        They go to the client as they come then. None if that is not known yet, or is not to be.
        """
        ...

    def ending(self) -> Sequence[Event]:
        """Return what the client gets before the end of the whole reply."""
        ...

    def stopped(self) -> Degradation:
        """Return the degradation to report if the model is stopped because it goes on to call these functions."""
        ...


class StoreTurns(Effect, frozen=True):
    """Keep the turns of one reply as the model knows them, for a client that saw nothing of them but the calls with these ids."""

    tenant: str
    ids: tuple[str, ...]
    turns: tuple[Message, ...]


class CheckArguments(Effect, frozen=True):
    """Ask whether the arguments of a call fit the tool's JSON Schema. It is answered with what does not, as sentences; none is well."""

    schema: dict[str, Any]
    arguments: Any


@runtime_checkable
class AnswersCalls(Protocol):
    """A part of a layer in a reply that answers calls of its own functions."""

    def functions(self) -> OwnFunctions:
        """Return the functions for one reply."""
        ...
