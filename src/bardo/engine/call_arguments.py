"""The arguments of a reply's tool calls: a call without any gets an empty object, whichever way its provider says none."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.values.blocks import has_no_arguments
from bardo.values.events import BlockFields, Event, Failed, Finish, ToolCallChunk, ToolCallEnd, ToolCallStart

_LONGEST_HELD = 64
_FREE_TEXT = ("custom", "custom_tool_call")


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
            if isinstance(event, ToolCallStart):
                self._held[event.choice, event.block] = ""
                given.append(event)
            elif isinstance(event, ToolCallChunk) and (event.choice, event.block) in self._held:
                given += self._piece(event)
            elif isinstance(event, ToolCallEnd):
                given += [*self._end(event), event]
            elif isinstance(event, BlockFields) and event.fields.get("type") in _FREE_TEXT:
                # The input of such a tool is any text.
                given += [*self._release(event.choice, event.block), event]
            elif isinstance(event, Finish | Failed):
                given += [piece for choice, block in list(self._held) for piece in self._release(choice, block)]
                given.append(event)
            else:
                given.append(event)
        return given

    def _piece(self, event: ToolCallChunk) -> Sequence[Event]:
        place = event.choice, event.block
        said = self._held[place] = self._held[place] + event.arguments
        if len(said) <= _LONGEST_HELD and "null".startswith(said.strip()):
            return ()
        return self._release(*place)

    def _end(self, event: ToolCallEnd) -> Sequence[Event]:
        if not has_no_arguments(self._held.get((event.choice, event.block), "more")):
            return self._release(event.choice, event.block)
        del self._held[event.choice, event.block]
        return (ToolCallChunk(event.block, "{}", event.choice),)

    def _release(self, choice: int, block: int) -> Sequence[Event]:
        said = self._held.pop((choice, block), "")
        return (ToolCallChunk(block, said, choice),) if said else ()
