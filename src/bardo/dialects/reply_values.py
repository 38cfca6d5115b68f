"""What a reply that is encoded says as a whole, beside its blocks: its id and model, usage, end, and fields of the dialect's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bardo.values.collected import CarriedFields
from bardo.values.events import Event, Extension, Finish, ReplyFields, ReplyStart, UsageUpdate
from bardo.values.request import Request
from bardo.values.usage import Usage


class ReplyValues:
    """The values of one reply, as its events bring them. `name` is the dialect's name: fields of other dialects are left out."""

    name = ""

    def __init__(self, request: Request) -> None:
        self.start = ReplyStart(model=request.model)
        self.usage = Usage()
        self.finish_event: Finish | None = None
        self.extension: dict[str, Any] = {}
        self.fields = CarriedFields(self.name)

    def take_value(self, item: Event) -> None:
        """Keep what an event says of the reply as a whole; other events say nothing."""
        take = _TAKE.get(item.__class__)
        if take is not None:
            take(self, item)

    def take_start(self, item: ReplyStart) -> None:
        """Take the id, the model and the time of the reply."""
        self.start = ReplyStart(
            id=item.id or self.start.id,
            model=item.model or self.start.model,
            created=self.start.created if item.created is None else item.created,
        )

    def _take_usage(self, item: UsageUpdate) -> None:
        self.usage = item.usage

    def _take_own_fields(self, item: ReplyFields) -> None:
        if item.dialect == self.name and not item.choice:
            self.take_reply_fields(item)

    def _take_finish(self, item: Finish) -> None:
        if not item.choice:
            self.finish_event = item

    def _take_extension(self, item: Extension) -> None:
        self.extension |= item.fields

    def take_reply_fields(self, item: ReplyFields) -> None:
        """Keep fields of the dialect's own for the start or the end of the reply."""
        self.fields.merge(self.name, item.fields)


_TAKE: dict[type, Callable[[ReplyValues, Any], None]] = {
    ReplyStart: lambda values, item: values.take_start(item),
    UsageUpdate: ReplyValues._take_usage,
    ReplyFields: ReplyValues._take_own_fields,
    Finish: ReplyValues._take_finish,
    Extension: ReplyValues._take_extension,
}
