"""Events to the stream of a Converse reply.

Blocks follow one another strictly, as the clients of the real one expect. Text and thinking end when another block begins; while a tool
call is open, pieces of other blocks wait for their turn. State that reaches a block after its end gets a block of its own. `messageStop`
and `metadata` close the reply; bardo's own `bardo` object stands in `metadata`. There is one choice: events of others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.bedrock_converse.encode_whole import hides_thinking, stop_fields, stop_word
from bardo.dialects.bedrock_converse.errors import exception_of
from bardo.dialects.bedrock_converse.opaque import carrier, sign, thinking
from bardo.dialects.bedrock_converse.usage import write_usage
from bardo.dialects.bedrock_converse.words import NAME, encode_json
from bardo.dialects.bedrock_converse.writing import DELTA, Frames, Kind, Writing
from bardo.streams.eventstream import CONTENT_TYPE, encode_message
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

_AT_STOP = ("stopReason", "additionalModelResponseFields")


class Encoder:
    """One streamed reply. `metrics` puts the latency there that Converse's clients take for granted."""

    content_type = CONTENT_TYPE
    # Readers of this framing take every message for an event.
    keep_alive = b""

    def __init__(self, request: Request, *, metrics: bool = True) -> None:
        self._hide = hides_thinking(request)
        self._metrics: dict[str, Any] = {"metrics": {"latencyMs": 0}} if metrics else {}
        self._usage = Usage()
        self._carried = CarriedFields(NAME)
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
        """Return the messages the event makes."""
        block = self._block
        if (
            block is not None
            and item.__class__ is block.chunk
            and item.block == block.number  # type: ignore[union-attr]
            and block.begun
            and not item.choice  # type: ignore[union-attr]
        ):
            if isinstance(item, ContentChunk) or (isinstance(item, ThinkChunk) and item.part == block.part):
                return (encode_message(block.prefix + encode_json(item.text) + block.suffix, DELTA),)
            if isinstance(item, ToolCallChunk):
                return (encode_message(block.prefix + encode_json(item.arguments) + block.suffix, DELTA),)
        return self._feed_rare(item)

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        if self._over:
            return ()
        self._over = True
        self._begin()
        self._drain()
        fields = self._carried.fields
        calls = any(kind == "call" for kind, _ in self._closed.values())
        stop = {"stopReason": stop_word(self._finish, calls=calls), **stop_fields(self._finish, fields)}
        self._frames.write("messageStop", stop | {name: fields[name] for name in _AT_STOP if name in fields})
        metadata = {"usage": write_usage(self._usage), **self._metrics}
        metadata |= {name: value for name, value in fields.items() if name not in _AT_STOP}
        if self._extension:
            metadata["bardo"] = self._extension
        self._frames.write("metadata", metadata)
        return self._frames.take()

    def _feed_rare(self, item: Event) -> Sequence[bytes]:
        if self._over:
            return ()
        if isinstance(item, BlockEvent):
            if not item.choice:
                self._begin()
                self._take_or_hold(item)
        elif isinstance(item, ReplyStart):
            self._begin()
        elif isinstance(item, UsageUpdate):
            self._usage = item.usage
        elif isinstance(item, ReplyFields):
            if item.dialect == NAME and not item.choice:
                self._carried.merge(NAME, item.fields)
        elif isinstance(item, Finish):
            self._finish = self._finish if item.choice else item
        elif isinstance(item, Extension):
            self._extension |= item.fields
        elif isinstance(item, Failed):
            self._fail(item)
        return self._frames.take()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._frames.write("messageStart", {"role": "assistant"})

    def _fail(self, item: Failed) -> None:
        """Give what was held, leave the broken block open, and say what happened."""
        self._over = True
        if self._waiting:
            self._drain()
        self._block = None
        self._frames.exception(*exception_of(item.error))

    def _take_or_hold(self, item: BlockEvent) -> None:
        block = self._block
        if block is not None and block.kind == "call" and item.block != block.number:
            self._waiting.setdefault(item.block, []).append(item)
        else:
            _TAKE[type(item)](self, item)

    def _replay(self) -> None:
        """Let the blocks that waited follow, until one of them is an open tool call again."""
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
            block = self._block = Writing(number, kind, hidden=self._hide and kind == "think")
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
        self._at(item.block, "think")

    def _take_think(self, item: ThinkChunk) -> None:
        block = self._at(item.block, "think")
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
        header = self._at(item.block, "call").header
        header |= {"toolUseId": item.id or header["toolUseId"], "name": item.name or header["name"]}

    def _take_call(self, item: ToolCallChunk) -> None:
        if item.block not in self._closed:
            self._at(item.block, "call").piece(item.arguments, self._frames)

    def _take_call_end(self, item: ToolCallEnd) -> None:
        if self._block is not None and self._block.number == item.block:
            self._close()
            self._replay()

    def _take_state(self, item: OpaqueState) -> None:
        if self._block is not None and self._block.number == item.block:
            self._block.add_state(item.opaque)
            return
        kind, owner = self._closed.get(item.block, ("text", ""))
        if kind == "think":
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
        if item.dialect == NAME and isinstance(item.value, dict):
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
