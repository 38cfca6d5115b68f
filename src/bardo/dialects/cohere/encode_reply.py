"""Events to the stream of a Cohere reply.

Blocks follow one another, as Cohere's own servers write them and clients take them. Content and thinking end when another block begins;
while a call is open, pieces of other blocks wait for their turn. The last event has the finish reason, the totals, fields of the reply, and
bardo's own `bardo` object. There is one choice: events of others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.cohere.errors import ending
from bardo.dialects.cohere.usage import encode_usage
from bardo.dialects.cohere.words import NAME, PLAN, encode_json, write_finish
from bardo.dialects.cohere.writing import END, Frames, Kind, Writing
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

BlockEvent = (
    ThinkStart
    | ThinkChunk
    | ContentChunk
    | RefusalChunk
    | ToolCallStart
    | ToolCallChunk
    | ToolCallEnd
    | OpaqueState
    | BlockFields
    | UnknownContent
)


class Encoder:
    """One streamed reply."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._start = ReplyStart()
        self._usage = Usage()
        self._fields = CarriedFields(NAME)
        self._message = CarriedFields(NAME)
        self._finish = Finish("unknown")
        self._extension: dict[str, Any] = {}
        self._frames = Frames()
        self._block: Writing | None = None
        self._closed: dict[int, Writing] = {}
        self._formats: dict[int, str] = {}
        self._waiting: dict[int, list[BlockEvent]] = {}
        self._over = False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames the event makes."""
        block = self._block
        if (
            block is not None
            and item.__class__ is block.chunk
            and item.block == block.number  # type: ignore[union-attr]
            and not item.choice  # type: ignore[union-attr]
            and not self._frames.logprobs
        ):
            if isinstance(item, ContentChunk):
                return (block.prefix + encode_json(item.text) + block.suffix + END,)
            if isinstance(item, ThinkChunk) and item.part == block.part and block.spoke:
                return (block.prefix + encode_json(item.text) + block.suffix + END,)
            if isinstance(item, ToolCallChunk) and block.begun:
                block.spoke = block.spoke or item.arguments != ""
                return (block.prefix + encode_json(item.arguments) + block.suffix + END,)
        return self._feed_rare(item)

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        if self._over:
            return ()
        self._drain()
        calls = any(block.kind == "call" for block in self._closed.values())
        word = self._fields.pop("finish_reason") or write_finish(self._finish, calls=calls)
        self._end({"finish_reason": word, "usage": encode_usage(self._usage)})
        return self._frames.take()

    def _feed_rare(self, item: Event) -> Sequence[bytes]:
        if self._over:
            return ()
        if isinstance(item, BlockEvent):
            if not item.choice:
                self._take_or_hold(item)
        elif isinstance(item, ReplyStart):
            self._start = ReplyStart(id=item.id or self._start.id)
        elif isinstance(item, UsageUpdate):
            self._usage = item.usage
        elif isinstance(item, ReplyFields):
            self._take_reply_fields(item)
        elif isinstance(item, Finish):
            self._finish = self._finish if item.choice else item
        elif isinstance(item, Extension):
            self._extension |= item.fields
        elif isinstance(item, Failed):
            self._drain()
            self._end({**ending(item.error), "usage": encode_usage(self._usage)})
        return self._frames.take()

    def _end(self, delta: dict[str, Any]) -> None:
        self._over = True
        self._frames.begin(self._start.id)
        message = {"message": self._message.fields} if self._message.fields else {}
        logprobs = {"logprobs": self._frames.logprobs} if self._frames.logprobs else {}
        extension = {"bardo": self._extension} if self._extension else {}
        self._frames.logprobs = []
        self._frames.write("message-end", delta={**delta, **message}, **self._fields.fields, **logprobs, **extension)
        self._frames.out.append(b"data: [DONE]\n\n")

    def _take_reply_fields(self, item: ReplyFields) -> None:
        if item.dialect != NAME or item.choice:
            return
        if item.choice is not None:
            self._message.merge(NAME, item.fields)
            return
        fields = dict(item.fields)
        logprobs = fields.pop("logprobs", None)
        self._frames.logprobs += logprobs if isinstance(logprobs, list) else []
        self._fields.merge(NAME, fields)

    def _take_or_hold(self, item: BlockEvent) -> None:
        self._frames.begin(self._start.id)
        block = self._block
        if block is not None and block.kind == "call" and item.block != block.number:
            self._waiting.setdefault(item.block, []).append(item)
        else:
            _TAKE[type(item)](self, item)

    def _replay(self) -> None:
        """Let the blocks that waited follow, until one of them is an open call again."""
        while self._waiting and (self._block is None or self._block.kind != "call"):
            for item in self._waiting.pop(next(iter(self._waiting))):
                self._take_or_hold(item)

    def _drain(self) -> None:
        self._close()
        while self._waiting:
            self._replay()
            self._close()

    def _at(self, number: int, kind: Kind) -> Writing:
        """Return the open block, which becomes `number` if it was another."""
        block = self._block
        if block is None or block.number != number or block.kind != kind:
            self._close()
            block = self._block = Writing(number, kind, self._frames)
        return block

    def _close(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.end()
            self._closed[block.number] = block

    def _take_think_start(self, item: ThinkStart) -> None:
        self._formats[item.block] = item.format
        self._at(item.block, _kind_of(item.format))

    def _take_think(self, item: ThinkChunk) -> None:
        block = self._at(item.block, _kind_of(self._formats.get(item.block, "")))
        # The parts of a summary are paragraphs of one text.
        gap = "\n\n" if block.spoke and item.part != block.part else ""
        block.part = item.part
        block.piece(gap + item.text)

    def _take_text(self, item: ContentChunk | RefusalChunk) -> None:
        self._at(item.block, "text").piece(item.text)

    def _take_call_start(self, item: ToolCallStart) -> None:
        block = self._at(item.block, "call")
        if not block.begun:
            block.begin_call(item.id, item.name)

    def _take_call(self, item: ToolCallChunk) -> None:
        if item.block not in self._closed:
            self._at(item.block, "call").piece(item.arguments)

    def _take_call_end(self, item: ToolCallEnd) -> None:
        if self._block is not None and self._block.number == item.block:
            self._close()
            self._replay()

    def _take_state(self, item: OpaqueState) -> None:
        self._known(item.block).add_state(item.opaque)

    def _take_fields(self, item: BlockFields) -> None:
        if item.dialect == NAME:
            self._known(item.block).add(item.fields)

    def _known(self, number: int) -> Writing:
        """Return a block that is open or closed: its index says whose its fields are after its end too. A new one is text."""
        if self._block is not None and self._block.number == number:
            return self._block
        return self._closed.get(number) or self._at(number, "text")

    def _take_unknown(self, item: UnknownContent) -> None:
        if item.dialect == NAME:
            self._close()
            self._frames.whole(item.value)


def _kind_of(style: str) -> Kind:
    return "plan" if style == PLAN else "thinking"


_TAKE: dict[type, Callable[[Encoder, Any], None]] = {
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
}
