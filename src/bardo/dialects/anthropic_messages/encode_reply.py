"""Events to the stream of an Anthropic reply.

The dialect's blocks follow one another strictly. Text and thinking end when another block begins; while a tool call is open,
pieces of other blocks wait for their turn. State that reaches a block after its end gets a block of its own. `message_start` waits for
the first block, so that usage and fields known by then can stand in it; stop reason, totals and bardo's own `bardo` object close the
reply in `message_delta`. There is one choice: events of others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.anthropic_messages.encode_whole import hides_thinking, stop
from bardo.dialects.anthropic_messages.errors import error_object
from bardo.dialects.anthropic_messages.opaque import carrier, sign, thinking
from bardo.dialects.anthropic_messages.usage import encode_usage
from bardo.dialects.anthropic_messages.words import NAME, encode_json
from bardo.dialects.anthropic_messages.writing import DELTA_END, Frames, Kind, Writing
from bardo.streams.sse import encode_sse
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
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage

BlockEvent = (
    ThinkStart
    | ThinkChunk
    | ThinkEnd
    | ContentChunk
    | RefusalChunk
    | ToolCallStart
    | ToolCallChunk
    | ToolCallEnd
    | OpaqueState
    | BlockFields
    | UnknownContent
)

# Where these stand in `message_delta`, clients overwrite what `message_start` said of them.
_AT_STOP = ("stop_reason", "container", "stop_details")


class Encoder:
    """One streamed reply."""

    content_type = "text/event-stream"
    keep_alive = encode_sse(b'{"type": "ping"}', "ping")

    def __init__(self, request: Request) -> None:
        self._hide = hides_thinking(request)
        self._start = ReplyStart(model=request.model)
        self._usage = Usage()
        self._fields: dict[str, Any] = {}
        self._finish: Finish | None = None
        self._extension: dict[str, Any] = {}
        self._frames = Frames()
        self._begun = False
        self._over = False
        self._block: Writing | None = None
        self._closed: dict[int, tuple[Kind, str]] = {}
        self._waiting: dict[int, list[BlockEvent]] = {}
        self._behind: list[dict[str, Any]] = []

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames the event makes."""
        block = self._block
        if (
            block is not None
            and item.__class__ is block.chunk
            and item.block == block.number  # type: ignore[union-attr]
            and block.begun
            and not item.choice  # type: ignore[union-attr]
        ):
            if isinstance(item, ContentChunk):
                return (block.prefix + encode_json(item.text) + DELTA_END,)
            if isinstance(item, ToolCallChunk):
                return (block.prefix + encode_json(item.arguments) + DELTA_END,)
            if isinstance(item, ThinkChunk) and item.part == block.part and not self._hide:
                return (block.prefix + encode_json(item.text) + DELTA_END,)
        return self._feed_rare(item)

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        if self._over:
            return ()
        self._over = True
        self._begin()
        self._drain()
        fields, self._fields = self._fields, {}
        calls = any(kind == "tool_use" for kind, _ in self._closed.values())
        delta = stop(self._finish, calls=calls)
        delta |= {name: fields.pop(name) for name in _AT_STOP if name in fields}
        if self._extension:
            fields["bardo"] = self._extension
        self._frames.write("message_delta", delta=delta, usage=encode_usage(self._usage), **fields)
        self._frames.write("message_stop")
        return self._frames.take()

    def _feed_rare(self, item: Event) -> Sequence[bytes]:
        if self._over:
            return ()
        if isinstance(item, BlockEvent):
            if not item.choice:
                self._begin()
                self._take_or_hold(item)
        elif isinstance(item, ReplyStart):
            self._start = ReplyStart(id=item.id or self._start.id, model=item.model or self._start.model)
        elif isinstance(item, UsageUpdate):
            self._usage = item.usage
        elif isinstance(item, ReplyFields):
            if item.dialect == NAME and not item.choice:
                self._fields |= item.fields
        elif isinstance(item, Finish):
            self._finish = self._finish if item.choice else item
        elif isinstance(item, Extension):
            self._extension |= item.fields
        elif isinstance(item, Failed):
            self._fail(item)
        return self._frames.take()

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        kept = {name: self._fields.pop(name) for name in _AT_STOP if name in self._fields}
        message = {
            "id": self._start.id,
            "type": "message",
            "role": "assistant",
            "model": self._start.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": encode_usage(self._usage),
            **self._fields,
        }
        self._fields = kept
        self._frames.write("message_start", message=message)

    def _fail(self, item: Failed) -> None:
        """Give what was held, leave the broken block open, and say what happened."""
        self._over = True
        if self._waiting:
            self._drain()
        self._block = None
        self._frames.write("error", error=error_object(item.error)["error"])

    def _take_or_hold(self, item: BlockEvent) -> None:
        block = self._block
        if block is not None and block.kind == "tool_use" and item.block != block.number:
            self._waiting.setdefault(item.block, []).append(item)
        else:
            _TAKE[type(item)](self, item)

    def _replay(self) -> None:
        """Let the blocks that waited follow, until one of them is an open tool call again."""
        while self._waiting and (self._block is None or self._block.kind != "tool_use"):
            for item in self._waiting.pop(next(iter(self._waiting))):
                self._take_or_hold(item)

    def _drain(self) -> None:
        self._close()
        while self._waiting:
            self._replay()
            self._close()

    def _at(self, number: int, kind: Kind, header: dict[str, Any] | None = None) -> Writing:
        """Return the open block, which becomes `number` if it was another."""
        block = self._block
        if block is None or block.number != number or block.kind != kind:
            self._close()
            block = self._block = Writing(number, kind, header or {}, hidden=self._hide and kind == "thinking")
        return block

    def _close(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.end(self._frames)
            self._closed[block.number] = (block.kind, block.owner)
        behind, self._behind = self._behind, []
        for late in behind:
            self._frames.whole(late)

    def _take_think_start(self, item: ThinkStart) -> None:
        self._at(item.block, "thinking")

    def _take_think(self, item: ThinkChunk) -> None:
        block = self._at(item.block, "thinking")
        # The parts of a summary are paragraphs of one text.
        gap = "\n\n" if block.begun and item.part != block.part else ""
        block.part = item.part
        if not block.hidden:
            block.piece(gap + item.text, self._frames)

    def _take_think_end(self, item: ThinkEnd) -> None:
        """State may still follow, so the block stays open until the next begins."""

    def _take_text(self, item: ContentChunk | RefusalChunk) -> None:
        self._at(item.block, "text").piece(item.text, self._frames)

    def _take_call_start(self, item: ToolCallStart) -> None:
        block = self._at(item.block, "tool_use", {"id": item.id, "name": item.name})
        if not block.begun:
            block.header |= {"id": item.id or block.header["id"], "name": item.name or block.header["name"]}

    def _take_call(self, item: ToolCallChunk) -> None:
        if item.block not in self._closed:
            self._at(item.block, "tool_use").piece(item.arguments, self._frames)

    def _take_call_end(self, item: ToolCallEnd) -> None:
        if self._block is not None and self._block.number == item.block:
            self._close()
            self._replay()

    def _take_state(self, item: OpaqueState) -> None:
        if self._block is not None and self._block.number == item.block:
            self._block.add_state(item.opaque)
            return
        kind, owner = self._closed.get(item.block, ("text", ""))
        if kind == "thinking":
            signed = sign([item.opaque])
            self._behind.extend(signed.behind or [thinking("", signed.signature)])
        else:
            self._behind.append(carrier([item.opaque], owner))
        if self._block is None:
            self._close()

    def _take_fields(self, item: BlockFields) -> None:
        if item.dialect != NAME:
            return
        block = self._block
        if block is None or block.number != item.block:
            block = self._at(item.block, "text")
        block.add_fields(item.fields, self._frames)

    def _take_unknown(self, item: UnknownContent) -> None:
        if item.dialect == NAME:
            self._close()
            self._frames.whole(item.value)


_TAKE: dict[type, Callable[[Encoder, Any], None]] = {
    ThinkStart: Encoder._take_think_start,
    ThinkChunk: Encoder._take_think,
    ThinkEnd: Encoder._take_think_end,
    ContentChunk: Encoder._take_text,
    RefusalChunk: Encoder._take_text,
    ToolCallStart: Encoder._take_call_start,
    ToolCallChunk: Encoder._take_call,
    ToolCallEnd: Encoder._take_call_end,
    OpaqueState: Encoder._take_state,
    BlockFields: Encoder._take_fields,
    UnknownContent: Encoder._take_unknown,
}
