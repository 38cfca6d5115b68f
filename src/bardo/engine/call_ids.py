"""Gives ids to tool calls that a provider left without: clients answer a call by its id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bardo.values.events import Event, ToolCallStart


class CallIds:
    """The ids of one reply. `make_id` returns ids that no other call has; `minted` says whether one was needed."""

    def __init__(self, make_id: Callable[[], str]) -> None:
        self.minted = False
        self._make_id = make_id

    def filled(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events, with an id for each call that has none."""
        for event in events:
            if type(event) is ToolCallStart and not event.id:
                return [self._with_id(one) for one in events]
        return events

    def _with_id(self, event: Event) -> Event:
        if type(event) is not ToolCallStart or event.id:
            return event
        self.minted = True
        return ToolCallStart(event.block, self._make_id(), event.name, event.choice)
