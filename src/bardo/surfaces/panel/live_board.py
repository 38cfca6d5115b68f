"""The calls of a gateway as they go on, each with its thinking so far, and the changes for each page that is open, in batches.

Nothing is kept before the first page is opened, and some minutes after the last one is closed nothing more. The board knows a text only
where the operator keeps content: elsewhere no event holds one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from bardo.services.facts.event_feed import EventBus
from bardo.values.inference_events import CallFinished, CallStarted, PublishedEvent, ReasoningText

MOST_CALLS = 200
"""Calls that are kept; the oldest leaves first."""
MOST_TEXT = 50_000
"""Characters of thinking that are kept of one call: its beginning."""
KEPT_SECONDS = 300.0


class LiveCall(msgspec.Struct, kw_only=True):
    """One call as far as it has come. `text` is its thinking so far; `started` and `finished` are what its events said."""

    id: str
    key_id: str | None
    at: float
    started: dict[str, Any] | None = None
    finished: dict[str, Any] | None = None
    text: list[str] = []
    length: int = 0

    def summary(self) -> dict[str, Any]:
        """Return the call for a page that was just opened."""
        thinking = "".join(self.text)
        return {"id": self.id, "at": self.at, "started": self.started, "text": thinking, "finished": self.finished}


class LiveReader:
    """What has changed since a page was last told. `key_id` is the key whose calls it may see; None for all."""

    def __init__(self, key_id: str | None) -> None:
        self.key_id = key_id
        self._changes: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def may_see(self, key_id: str | None) -> bool:
        """Whether the page may see the calls of a key."""
        return self.key_id is None or key_id == self.key_id

    def note(self, call: LiveCall, field: str, value: Any) -> None:
        """Note a change of a call, in the place of an earlier one or, for text, after it."""
        change = self._changes.get(call.id)
        if change is None:
            change = self._changes[call.id] = {"id": call.id, "at": call.at}
        if field == "text":
            change.setdefault("text", []).append(value)
        else:
            change[field] = value

    def take(self) -> list[dict[str, Any]]:
        """Return the changes so far, and forget them."""
        taken = list(self._changes.values())
        self._changes = OrderedDict()
        for one in taken:
            if "text" in one:
                one["text"] = "".join(one["text"])
        return taken


class LiveBoard:
    """Keeps the latest calls of a bus while pages are open."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._calls: OrderedDict[str, LiveCall] = OrderedDict()
        self._readers: list[LiveReader] = []
        self._attached = False
        self._end: asyncio.TimerHandle | None = None
        self.closed = asyncio.Event()

    @property
    def readers(self) -> int:
        """How many pages are open."""
        return len(self._readers)

    def open(self, key_id: str | None) -> LiveReader:
        """Return a reader for a page, which is told of everything from now on."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if not self._attached:
            self._bus.attach(self)
            self._attached = True
        reader = LiveReader(key_id)
        self._readers.append(reader)
        return reader

    async def connected(self) -> None:
        """Wait until a page is told what happens in all workers, but not long."""
        await self._bus.connected()

    def leave(self, reader: LiveReader) -> None:
        """Forget a page. Some minutes after the last one all is forgotten."""
        self._readers.remove(reader)
        if not self._readers and not self.closed.is_set():
            self._end = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._forget)

    def calls(self, reader: LiveReader) -> list[dict[str, Any]]:
        """Return what is kept of the calls that a page may see, oldest first."""
        return [call.summary() for call in self._calls.values() if reader.may_see(call.key_id)]

    def find(self, request_id: str, key_id: str | None) -> LiveCall | None:
        """Return a call that is kept, for a viewer who may see the calls of `key_id` (None: of all keys)."""
        call = self._calls.get(request_id)
        return call if call is not None and (key_id is None or call.key_id == key_id) else None

    def add(self, event: PublishedEvent) -> None:
        """Process an event of the bus."""
        kind = event.event
        if not isinstance(kind, CallStarted | CallFinished | ReasoningText):
            return
        call = self._calls.get(event.request_id) or self._begin(event)
        field, value = self._apply(call, kind)
        if value is not None:
            for reader in self._readers:
                if reader.may_see(call.key_id):
                    reader.note(call, field, value)

    def miss(self) -> None:
        """Do nothing: a page shows what it was told of, and the log has the rest."""

    def close(self) -> None:
        """End every page's stream."""
        self.closed.set()
        self._forget()

    def _begin(self, event: PublishedEvent) -> LiveCall:
        call = self._calls[event.request_id] = LiveCall(id=event.request_id, key_id=event.key_id, at=event.at)
        if len(self._calls) > MOST_CALLS:
            self._calls.popitem(last=False)
        return call

    def _apply(self, call: LiveCall, event: CallStarted | CallFinished | ReasoningText) -> tuple[str, Any]:
        """Change a call by an event, and return what changed: None if a text is longer than is kept."""
        if isinstance(event, ReasoningText):
            room = MOST_TEXT - call.length
            call.length += len(event.text)
            if room <= 0:
                return "text", None
            piece = event.text[:room]
            call.text.append(piece)
            return "text", piece
        fields = msgspec.to_builtins(event)
        if isinstance(event, CallStarted):
            call.started = fields
            return "started", fields
        call.finished = fields
        return "finished", fields

    def _forget(self) -> None:
        self._end = None
        self._bus.remove(self)
        self._attached = False
        self._calls.clear()
