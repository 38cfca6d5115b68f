"""Events to the stream of an interaction.

Steps have an index, so pieces of several calls may alternate; text and thinking end where another block begins, and a piece that comes
after that has a step of its own. The last event holds the totals, fields of the reply, and bardo's own `bardo` object. There is one choice:
events of others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.gemini_interactions.encode_whole import hides_thoughts
from bardo.dialects.gemini_interactions.errors import error_fields
from bardo.dialects.gemini_interactions.usage import write_usage
from bardo.dialects.gemini_interactions.words import NAME, stamp_of, status_of
from bardo.dialects.gemini_interactions.writing import Frames, Kind, Writing
from bardo.dialects.wire import encode_json
from bardo.streams.sse import KEEP_ALIVE
from bardo.values.collected import CarriedFields
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage

_DONE = b"event: done\ndata: [DONE]\n\n"


class Encoder:
    """One streamed reply."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._silent = hides_thoughts(request)
        self._start = ReplyStart(model=request.model)
        self._usage = Usage()
        self._fields = CarriedFields(NAME)
        self._finish = Finish("unknown")
        self._extension: dict[str, Any] = {}
        self._frames = Frames()
        self._blocks: dict[int, Writing] = {}
        self._open: Writing | None = None
        self._last = ""
        self._begun = False
        self._over = False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames the event makes."""
        block = self._open
        if block is not None and block.spoke and item.__class__ is block.chunk:
            if isinstance(item, ContentChunk) and item.block == block.number and not item.choice:
                return (block.prefix + encode_json(item.text) + block.suffix,)
            if (
                isinstance(item, ThinkChunk)
                and item.block == block.number
                and item.part == block.part
                and not item.choice
            ):
                return (block.prefix + encode_json(item.text) + block.suffix,)
        taken = _TAKE.get(type(item))
        if taken is not None and not self._over and not getattr(item, "choice", None):
            taken(self, item)
        return self._frames.take()

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        if self._over:
            return ()
        self._over = True
        self._begin()
        for block in self._blocks.values():
            block.end()
        created = stamp_of(self._start.created)
        interaction = {
            "id": self._start.id,
            "status": status_of(self._finish, called=self._last == "call"),
            "usage": write_usage(self._usage),
            "created": created,
            "updated": created,
            "object": "interaction",
            "model": self._start.model,
            **self._fields.fields,
            "bardo": self._extension or None,
        }
        told = {name: value for name, value in interaction.items() if value is not None}
        self._frames.write("interaction.completed", interaction=told)
        return [*self._frames.take(), _DONE]

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        opening = {"id": self._start.id, "status": "in_progress", "object": "interaction", "model": self._start.model}
        self._frames.write("interaction.created", interaction=opening)
        self._frames.write("interaction.status_update", interaction_id=self._start.id, status="in_progress")

    def _close(self) -> None:
        block, self._open = self._open, None
        if block is not None:
            block.end()

    def _at(self, number: int, kind: Kind, call: dict[str, Any] | None = None) -> Writing:
        """Return the step of a block, a new one where it has none that still goes on."""
        block = self._blocks.get(number)
        if block is not None and block.kind == kind and not block.ended:
            return block
        self._begin()
        self._close()
        block = self._blocks[number] = Writing(number, kind, self._frames, call)
        self._open = None if kind == "call" else block
        self._last = kind
        return block

    def _take_start(self, item: ReplyStart) -> None:
        self._start = ReplyStart(
            id=item.id or self._start.id,
            model=item.model or self._start.model,
            created=self._start.created if item.created is None else item.created,
        )

    def _take_think_start(self, item: ThinkStart) -> None:
        self._at(item.block, "thought")

    def _take_think(self, item: ThinkChunk) -> None:
        block = self._at(item.block, "thought")
        if not self._silent:
            block.piece(item.text, item.part)

    def _take_text(self, item: ContentChunk | RefusalChunk) -> None:
        self._at(item.block, "text").piece(item.text)

    def _take_call_start(self, item: ToolCallStart) -> None:
        step = {"type": "function_call", "id": item.id, "name": item.name, "arguments": {}}
        self._at(item.block, "call", step)

    def _take_call(self, item: ToolCallChunk) -> None:
        block = self._blocks.get(item.block)
        if block is not None and block.kind == "call" and not block.ended:
            block.piece(item.arguments)

    def _take_call_end(self, item: ToolCallEnd) -> None:
        block = self._blocks.get(item.block)
        if block is not None and block.kind == "call":
            # Its signature may still come; whatever comes next ends it.
            self._close()
            self._open = block

    def _take_state(self, item: OpaqueState) -> None:
        self._known(item.block).add_state(item.opaque)

    def _take_fields(self, item: BlockFields) -> None:
        if item.dialect == NAME:
            self._known(item.block).add(item.fields)

    def _known(self, number: int) -> Writing:
        """Return the step of a block, ended or not: its index says whose its fields are. A new one is text."""
        return self._blocks.get(number) or self._at(number, "text")

    def _take_unknown(self, item: UnknownContent) -> None:
        if item.dialect == NAME:
            self._begin()
            self._close()
            self._frames.whole(item.value)
            self._last = ""

    def _take_reply_fields(self, item: ReplyFields) -> None:
        if item.dialect == NAME and item.choice is None:
            self._fields.merge(NAME, item.fields)

    def _take_usage(self, item: UsageUpdate) -> None:
        self._usage = item.usage

    def _take_finish(self, item: Finish) -> None:
        self._finish = item

    def _take_extension(self, item: Extension) -> None:
        self._extension |= item.fields

    def _take_failure(self, item: Failed) -> None:
        self._begin()
        self._close()
        for block in self._blocks.values():
            block.end()
        self._over = True
        self._frames.write("error", error=error_fields(item.error))
        self._frames.out.append(_DONE)


_TAKE: dict[type, Callable[[Encoder, Any], None]] = {
    ReplyStart: Encoder._take_start,
    ThinkStart: Encoder._take_think_start,
    ThinkChunk: Encoder._take_think,
    ContentChunk: Encoder._take_text,
    RefusalChunk: Encoder._take_text,
    ToolCallStart: Encoder._take_call_start,
    ToolCallChunk: Encoder._take_call,
    ToolCallEnd: Encoder._take_call_end,
    OpaqueState: Encoder._take_state,
    BlockFields: Encoder._take_fields,
    UnknownContent: Encoder._take_unknown,
    ReplyFields: Encoder._take_reply_fields,
    UsageUpdate: Encoder._take_usage,
    Finish: Encoder._take_finish,
    Extension: Encoder._take_extension,
    Failed: Encoder._take_failure,
}
