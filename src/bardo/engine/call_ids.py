"""Completes the tool calls of a reply: an id for one that came without, since clients answer by it, and arguments that are JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bardo.engine.call_arguments import CallArguments
from bardo.values.events import Event, ToolCallStart


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
        for event in events:
            if type(event) is ToolCallStart:
                return self._arguments.feed([self._with_id(one) for one in events])
        return events

    def _with_id(self, event: Event) -> Event:
        if type(event) is not ToolCallStart or event.id:
            return event
        self.minted = True
        return ToolCallStart(event.block, self._make_id(), event.name, event.choice)
