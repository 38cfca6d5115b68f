"""The stage of a reply that puts values back: in text, thinking, the arguments of calls, and the fields beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.context.privacy.restore import ExactRestorer, JsonRestorer, RestorePlan, TextRestorer
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    Finish,
    Partial,
    RefusalChunk,
    ReplyFields,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)

_Restorer = TextRestorer | ExactRestorer | JsonRestorer
_Place = tuple[int, int, int | None]
"""Choice, block and part of a summary."""
_Again = Callable[[str], Event]


class RestoreStage:
    """Restores the values of one reply. `typed`: its text is JSON."""

    def __init__(self, restoring: RestorePlan, *, typed: bool) -> None:
        self._restoring = restoring
        self._of_text: type[_Restorer] = JsonRestorer if typed else TextRestorer
        self._open: dict[_Place, tuple[_Restorer, _Again]] = {}
        self._texts: dict[int, _Place] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Return the event with values, behind what was held before it."""
        take = _TAKE.get(type(item))
        return (item,) if take is None else take(self, item)

    def finish(self) -> Sequence[Event]:
        """Return what was held."""
        return [event for place in list(self._open) for event in self._close(place)]

    def _content(self, item: ContentChunk) -> Sequence[Event]:
        place = item.choice, item.block, None
        return self._text(place, item.text, self._of_text, lambda text: ContentChunk(item.block, text, item.choice))

    def _refusal(self, item: RefusalChunk) -> Sequence[Event]:
        place = item.choice, item.block, None
        return self._text(place, item.text, TextRestorer, lambda text: RefusalChunk(item.block, text, item.choice))

    def _thinking(self, item: ThinkChunk) -> Sequence[Event]:
        place = item.choice, item.block, item.part
        again = lambda text: ThinkChunk(item.block, text, item.part, item.choice)  # noqa: E731
        return self._text(place, item.text, ExactRestorer, again)

    def _arguments(self, item: ToolCallChunk) -> Sequence[Event]:
        place = item.choice, item.block, None
        again = lambda text: ToolCallChunk(item.block, text, item.choice)  # noqa: E731
        return self._piece(place, item.arguments, JsonRestorer, again)

    def _text(self, place: _Place, text: str, kind: type[_Restorer], again: _Again) -> Sequence[Event]:
        """Restore a piece of text. What another text of the choice held comes before it: no placeholder goes on in another block."""
        last = self._texts.get(place[0])
        before = () if last is None or last == place else self._close(last)
        self._texts[place[0]] = place
        return (*before, *self._piece(place, text, kind, again))

    def _piece(self, place: _Place, text: str, kind: type[_Restorer], again: _Again) -> Sequence[Event]:
        known = self._open.get(place)
        restorer = kind(self._restoring) if known is None else known[0]
        self._open[place] = restorer, again
        restored = restorer.feed(text)
        return (again(restored),) if restored or not text else ()

    def _begin(self, item: ThinkStart | ToolCallStart) -> Sequence[Event]:
        last = self._texts.pop(item.choice, None)
        return (item,) if last is None else (*self._close(last), item)

    def _end(self, item: ThinkEnd | ToolCallEnd) -> Sequence[Event]:
        places = [place for place in self._open if place[:2] == (item.choice, item.block)]
        return (*(event for place in places for event in self._close(place)), item)

    def _finish(self, item: Finish) -> Sequence[Event]:
        places = [place for place in self._open if place[0] == item.choice]
        return (*(event for place in places for event in self._close(place)), item)

    def _failed(self, item: Failed) -> Sequence[Event]:
        return (*self.finish(), item)

    def _fields(self, item: BlockFields | ReplyFields) -> Sequence[Event]:
        return (msgspec.structs.replace(item, fields=self._restoring.in_value(item.fields)),)

    def _value(self, item: UnknownContent | Partial) -> Sequence[Event]:
        return (msgspec.structs.replace(item, value=self._restoring.in_value(item.value)),)

    def _close(self, place: _Place) -> Sequence[Event]:
        known = self._open.pop(place, None)
        rest = known[0].finish() if known else ""
        return (known[1](rest),) if known and rest else ()


_TAKE: dict[type, Callable[[RestoreStage, Any], Sequence[Event]]] = {
    ContentChunk: RestoreStage._content,
    RefusalChunk: RestoreStage._refusal,
    ThinkChunk: RestoreStage._thinking,
    ToolCallChunk: RestoreStage._arguments,
    ThinkStart: RestoreStage._begin,
    ToolCallStart: RestoreStage._begin,
    ThinkEnd: RestoreStage._end,
    ToolCallEnd: RestoreStage._end,
    Finish: RestoreStage._finish,
    Failed: RestoreStage._failed,
    BlockFields: RestoreStage._fields,
    ReplyFields: RestoreStage._fields,
    UnknownContent: RestoreStage._value,
    Partial: RestoreStage._value,
}
