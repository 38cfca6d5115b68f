"""Stages of a reply between its decoder and its client: what is left out, and what is filled in.

A tool call gets an id where it came without one, since clients answer by it, and an empty object where it has no arguments, whichever way
its provider says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from bardo.streams.stage import Stage
from bardo.values.blocks import has_no_arguments
from bardo.values.events import (
    BlockFields,
    Event,
    Failed,
    Finish,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    WithheldThought,
)
from bardo.values.fold import ResponseFold
from bardo.values.runs import MANY

LONGEST_NAME = 500
_LONGEST_HELD = 64
_FREE_TEXT = ("custom", "custom_tool_call")


class TextObserver:
    """A stage that passes text on as it is, and counts it. Pieces that were read in one go are not fed to it one by one."""

    passes_text = True

    def passes_run(self, piece: Any) -> bool:
        """Whether further text like this piece passes as it is at present; if not, it must be fed."""
        raise NotImplementedError

    def observe_run(self, pieces: Sequence[Any]) -> None:
        """Take pieces of text, thinking or refusal of one block, at least one, that have passed."""
        raise NotImplementedError


THOUGHTS: frozenset[type] = frozenset((ThinkStart, ThinkChunk, ThinkEnd, OpaqueState))
"""The events of thinking."""


class FoldStage(TextObserver):
    """Collects all that passes, before thinking is left out of it."""

    acts_on = THOUGHTS

    def __init__(self, fold: ResponseFold) -> None:
        self._fold = fold

    def feed(self, item: Event) -> Sequence[Event]:
        self._fold.feed(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        return ()

    def passes_run(self, piece: Any) -> bool:
        return True

    def observe_run(self, pieces: Sequence[Any]) -> None:
        self._fold.feed_run(pieces)


class WithoutReasoning(TextObserver):
    """Leaves all thinking out, its opaque state included, and says once for each choice that there was some to read."""

    acts_on = THOUGHTS

    def __init__(self) -> None:
        self._thinking: set[tuple[int, int]] = set()
        self._readable: set[int] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not thinking."""
        take = _THINKING.get(type(item))
        return (item,) if take is None else take(self, item)

    def _start(self, item: ThinkStart) -> Sequence[Event]:
        self._thinking.add((item.choice, item.block))
        return ()

    def _chunk(self, item: ThinkChunk) -> Sequence[Event]:
        choice = item.choice
        if choice in self._readable or not item.text.strip():
            return ()
        self._readable.add(choice)
        return (WithheldThought(choice),)

    def _end(self, item: ThinkEnd) -> Sequence[Event]:
        return ()

    def _state(self, item: OpaqueState) -> Sequence[Event]:
        return () if (item.choice, item.block) in self._thinking else (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()

    def passes_run(self, piece: Any) -> bool:
        """Whether it is no thinking."""
        return type(piece) is not ThinkChunk

    def observe_run(self, pieces: Sequence[Any]) -> None:
        """Text is not counted."""


_THINKING: dict[type, Callable[[WithoutReasoning, Any], Sequence[Event]]] = {
    ThinkStart: WithoutReasoning._start,
    ThinkChunk: WithoutReasoning._chunk,
    ThinkEnd: WithoutReasoning._end,
    OpaqueState: WithoutReasoning._state,
}


class FillMissingFields:
    """Fills in the id, the model and the time that a provider left out, before any block of the reply.

    A start without an id waits for the next, which may bring it: a client that was told one id, or one time, is not told another.
    """

    passes_text = True

    def __init__(self, stamp: ReplyStart) -> None:
        self._stamp = stamp
        self._begun = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, after a complete ReplyStart."""
        if type(item) is ReplyStart:
            return self._start(item)
        if self._begun or (type(item) is ReplyFields and item.choice is None):
            return (item,)
        return (*self.finish(), item)

    def finish(self) -> Sequence[Event]:
        """Give a start that waited in vain."""
        if self._begun:
            return ()
        self._begun = True
        return (self._stamp,)

    def _start(self, item: ReplyStart) -> Sequence[Event]:
        self._stamp = ReplyStart(
            # Both stand in every frame of some dialects.
            id=item.id[:LONGEST_NAME] or self._stamp.id,
            model=item.model[:LONGEST_NAME] or self._stamp.model,
            created=self._stamp.created if self._begun or item.created is None else item.created,
        )
        if not item.id and not self._begun:
            return ()
        self._begun = True
        return (self._stamp,)


class CallIds:
    """The ids of one reply. `make_id` returns ids that no other call has; `minted` says whether one was needed."""

    def __init__(self, make_id: Callable[[], str]) -> None:
        self.minted = False
        self._make_id = make_id
        self._arguments = CallArguments()

    def filled(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events, with an id for each call that has none, and an empty object for one without arguments."""
        if self._arguments.waiting:
            return self._arguments.feed([self._with_id(one) for one in events])
        if ToolCallStart in map(type, events):
            return self._arguments.feed([self._with_id(one) for one in events])
        return events

    def _with_id(self, event: Event) -> Event:
        if type(event) is not ToolCallStart or event.id:
            return event
        self.minted = True
        return ToolCallStart(event.block, self._make_id(), event.name, event.choice)


class CallArguments:
    """Holds the first pieces of a call's arguments as long as they may come to nothing or to `null`."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], str] = {}

    @property
    def waiting(self) -> bool:
        """Whether a call has said nothing yet."""
        return bool(self._held)

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, those held back at their place."""
        given: list[Event] = []
        for event in events:
            take = _ARGUMENTS.get(type(event))
            given += (event,) if take is None else take(self, event)
        return given

    def _start(self, event: ToolCallStart) -> Sequence[Event]:
        self._held[event.choice, event.block] = ""
        return (event,)

    def _piece(self, event: ToolCallChunk) -> Sequence[Event]:
        place = event.choice, event.block
        if place not in self._held:
            return (event,)
        said = self._held[place] = self._held[place] + event.arguments
        if len(said) <= _LONGEST_HELD and "null".startswith(said.strip()):
            return ()
        return self._release(*place)

    def _end(self, event: ToolCallEnd) -> Sequence[Event]:
        if not has_no_arguments(self._held.get((event.choice, event.block), "more")):
            return (*self._release(event.choice, event.block), event)
        del self._held[event.choice, event.block]
        return (ToolCallChunk(event.block, "{}", event.choice), event)

    def _fields(self, event: BlockFields) -> Sequence[Event]:
        # The input of such a tool is any text.
        free = event.fields.get("type") in _FREE_TEXT
        return (*self._release(event.choice, event.block), event) if free else (event,)

    def _release_all(self, event: Finish | Failed) -> Sequence[Event]:
        pieces = [piece for choice, block in list(self._held) for piece in self._release(choice, block)]
        return (*pieces, event)

    def _release(self, choice: int, block: int) -> Sequence[Event]:
        said = self._held.pop((choice, block), "")
        return (ToolCallChunk(block, said, choice),) if said else ()


_ARGUMENTS: dict[type, Callable[[CallArguments, Any], Sequence[Event]]] = {
    ToolCallStart: CallArguments._start,
    ToolCallChunk: CallArguments._piece,
    ToolCallEnd: CallArguments._end,
    BlockFields: CallArguments._fields,
    Finish: CallArguments._release_all,
    Failed: CallArguments._release_all,
}


def pass_through(events: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> Sequence[Event]:
    """Return what comes of events behind these stages."""
    for stage in stages:
        if len(events) < MANY or _touches(stage, events):
            events = [passed for event in events for passed in stage.feed(event)]
    return events


def _touches(stage: Stage[Event, Event], events: Sequence[Event]) -> bool:
    """Whether a stage may look at one of these events, or change it."""
    touches: frozenset[type] | None = getattr(stage, "touches", None)
    return touches is None or not touches.isdisjoint(map(type, events))


def observe(pieces: Sequence[Any], stages: Sequence[TextObserver]) -> bool:
    """Tell pieces of one block to the stages that count text; False where they must be fed."""
    for stage in stages:
        if not stage.passes_run(pieces[0]):
            return False
    for stage in stages:
        stage.observe_run(pieces)
    return True


def passed_to_the_end(last: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> list[Event]:
    """Return what comes of the last events behind these stages, and of what each of them held."""
    events = [*last]
    for stage in stages:
        events = [passed for event in events for passed in stage.feed(event)]
        events += stage.finish()
    return events


def pass_whole(events: Sequence[Event], stages: Sequence[Stage[Event, Event]]) -> Sequence[Event]:
    """Return what comes of all events of a reply behind these stages, without those that act on none of them."""
    for stage in stages:
        acts_on: frozenset[type] | None = getattr(stage, "acts_on", None)
        if acts_on is None or not acts_on.isdisjoint(map(type, events)):
            events = passed_to_the_end(events, (stage,))
    return events


def counting_ids() -> Callable[[], str]:
    """Return what numbers the calls of one reply."""
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"
