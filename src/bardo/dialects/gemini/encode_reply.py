"""Encode a reply for a Gemini client: a stream of server-sent events, the JSON array that a request without `alt=sse` gets, or one body.

The finish reasons, usage, grounding and bardo's own fields (under `bardo`, which Google's SDKs pass over) stand in the last chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.gemini.collector import PartCollector
from bardo.dialects.gemini.constants import NAME, finish_word
from bardo.dialects.gemini.encode_parts import (
    Part,
    candidate_of,
    is_blocked,
    reply_end,
    reply_ids,
    text_part,
    with_raw_arguments,
)
from bardo.dialects.gemini.errors import encode_error
from bardo.dialects.gemini.open_parts import OpenParts
from bardo.dialects.wire import encode_json
from bardo.values.blocks import ToolCallBlock, UnknownBlock, fields_for
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
from bardo.values.response import Response
from bardo.values.usage import Usage

_TEXT = b'{"candidates":[{"content":{"parts":[{"text":'
_THOUGHT = b'{"candidates":[{"content":{"parts":[{"thought":true,"text":'


class GeminiEncoder:
    """Writes one streamed reply."""

    def __init__(self, framing: str = "sse") -> None:
        self._array = framing == "json_array"
        self.content_type = "application/json; charset=UTF-8" if self._array else "text/event-stream"
        # An empty line: Google's SDK takes a comment for an error.
        self.keep_alive = b"\n"
        self._before, self._after = (b"[", b"") if self._array else (b"data: ", b"\r\n\r\n")
        self._ids: dict[str, str] = {}
        self._choices: dict[int, OpenParts] = {}
        self._usage = Usage()
        self._carried = CarriedFields()
        self._extension: dict[str, Any] = {}
        self._closed = False
        # The block whose next piece is written without a look at anything else, and the bytes that follow its text.
        self._plain_kind: type[Event] | None = None
        self._plain_block = self._plain_choice = -1
        self._plain_part: int | None = None
        self._head = self._tail = b""

    def feed(self, item: Event) -> Sequence[bytes]:
        """Take one event, give the chunks it completes."""
        kind = type(item)
        if kind is self._plain_kind and self._continues(item):  # type: ignore[arg-type]
            return (b"".join((self._head, encode_json(item.text), self._tail)),)  # type: ignore[union-attr]
        take = _TAKE.get(kind)
        if take is None or self._closed:
            return ()
        self._plain_kind = None
        return take(self, item)

    def finish(self) -> Sequence[bytes]:
        """Close the stream. After a failure there is nothing more."""
        if self._closed:
            return ()
        self._closed = True
        for choice in self._choices.values():
            choice.finish = choice.finish or Finish("unknown")
        frame = self._frame({**self._ending(), **self._ids})
        return (frame, b"]") if self._array else (frame,)

    def _continues(self, item: ContentChunk | ThinkChunk) -> bool:
        same = item.block == self._plain_block and item.choice == self._plain_choice and item.text != ""
        return same and (type(item) is ContentChunk or item.part == self._plain_part)  # type: ignore[union-attr]

    def _go_plain(self, item: ContentChunk | ThinkChunk) -> None:
        if not self._choice(item.choice).plain:
            return
        self._plain_kind, self._plain_block, self._plain_choice = type(item), item.block, item.choice
        self._plain_part = item.part if type(item) is ThinkChunk else None
        self._head = self._before + (_TEXT if type(item) is ContentChunk else _THOUGHT)
        ids = encode_json(self._ids)[1:]
        comma = b"," if self._ids else b""
        self._tail = b'}],"role":"model"},"index":%d}]%b%b%b' % (item.choice, comma, ids, self._after)

    def _choice(self, index: int) -> OpenParts:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = OpenParts()
        return choice

    def _frame(self, body: dict[str, Any]) -> bytes:
        frame = self._before + encode_json(body) + self._after
        if self._array:
            self._before = b",\r\n"
        return frame

    def _parts(self, parts: list[Part], index: int) -> Sequence[bytes]:
        if not parts:
            return ()
        candidate = {"content": {"parts": parts, "role": "model"}, "index": index}
        return (self._frame({"candidates": [candidate], **self._ids}),)

    def _ending(self) -> dict[str, Any]:
        fields = self._carried.fields
        candidates = [self._last(index) for index in sorted(self._choices) if not self._is_silent(index, fields)]
        malformed = [call for choice in self._choices.values() for call in choice.malformed]
        end = reply_end(self._usage, fields, with_raw_arguments(self._extension, malformed))
        return {**({"candidates": candidates} if candidates else {}), **end}

    def _last(self, index: int) -> dict[str, Any]:
        choice = self._choices[index]
        parts = choice.rest() or [text_part("")]
        fields = choice.carried.fields
        word = finish_word(choice.finish) if choice.finish else ""
        return candidate_of(parts, index, finish=word, fields=fields)

    def _is_silent(self, index: int, fields: dict[str, Any]) -> bool:
        choice = self._choices[index]
        return not choice.began and choice.finish is not None and is_blocked(fields, choice.finish)

    def _take_start(self, event: ReplyStart) -> Sequence[bytes]:
        self._ids = {**self._ids, **reply_ids(event.id, event.model)}
        return ()

    def _take_text(self, event: ContentChunk) -> Sequence[bytes]:
        frames = self._parts(self._choice(event.choice).text(event.block, event.text), event.choice)
        if event.text:
            self._go_plain(event)
        return frames

    def _take_refusal(self, event: RefusalChunk) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).text(event.block, event.text), event.choice)

    def _take_think_start(self, event: ThinkStart) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).think_start(event.block, event.format), event.choice)

    def _take_think(self, event: ThinkChunk) -> Sequence[bytes]:
        parts = self._choice(event.choice).think(event.block, event.text, event.part)
        frames = self._parts(parts, event.choice)
        if event.text:
            self._go_plain(event)
        return frames

    def _take_call_start(self, event: ToolCallStart) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).call_start(event.block, event.id, event.name), event.choice)

    def _take_call_piece(self, event: ToolCallChunk) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).call_piece(event.block, event.arguments), event.choice)

    def _take_call_end(self, event: ToolCallEnd) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).call_end(event.block), event.choice)

    def _take_opaque(self, event: OpaqueState) -> Sequence[bytes]:
        return self._parts(self._choice(event.choice).state(event.block, event.opaque), event.choice)

    def _take_block_fields(self, event: BlockFields) -> Sequence[bytes]:
        if event.dialect != NAME:
            return ()
        return self._parts(self._choice(event.choice).state(event.block, event.fields), event.choice)

    def _take_unknown(self, event: UnknownContent) -> Sequence[bytes]:
        if event.dialect != NAME:
            return ()
        return self._parts(self._choice(event.choice).unknown(event.block, event.value), event.choice)

    def _take_reply_fields(self, event: ReplyFields) -> Sequence[bytes]:
        if event.dialect != NAME:
            return ()
        if event.choice is None:
            self._carried.merge(NAME, event.fields)
        else:
            self._choice(event.choice).carried.merge(NAME, event.fields)
        return ()

    def _take_usage(self, event: UsageUpdate) -> Sequence[bytes]:
        self._usage = event.usage
        return ()

    def _take_finish(self, event: Finish) -> Sequence[bytes]:
        self._choice(event.choice).finish = event
        return ()

    def _take_extension(self, event: Extension) -> Sequence[bytes]:
        self._extension = {**self._extension, **event.fields}
        return ()

    def _take_failed(self, event: Failed) -> Sequence[bytes]:
        """Write what was held, what was counted, and the error, alone in its chunk as Google's SDK expects it."""
        self._closed = True
        for choice in self._choices.values():
            choice.drop_calls()
        ending = self._ending()
        frames = [self._frame({**ending, **self._ids})] if ending else []
        frames.append(self._before + encode_error(event.error) + (b"]" if self._array else self._after))
        return frames


def encode_response(response: Response) -> bytes:
    """Encode one whole reply. A reply that failed before it said anything is encoded as the error it is."""
    if response.error is not None and not response.blocks:
        return encode_error(response.error)
    fields = fields_for(NAME, response.carried)
    malformed: list[ToolCallBlock] = []
    replies = enumerate((response, *response.alternatives))
    candidates = [_candidate(index, reply, malformed) for index, reply in replies if not _is_silent(reply, fields)]
    for candidate in candidates if response.error is not None else ():
        candidate.setdefault("finishMessage", str(response.error))
    end = reply_end(response.usage, fields, with_raw_arguments(response.bardo, malformed))
    ids = reply_ids(response.id, response.model)
    return encode_json({**({"candidates": candidates} if candidates else {}), **end, **ids})


def _candidate(index: int, reply: Response, malformed: list[ToolCallBlock]) -> dict[str, Any]:
    collector = PartCollector()
    collector.add_blocks(reply.blocks)
    malformed += collector.malformed
    fields = fields_for(NAME, reply.choice_carried)
    return candidate_of(collector.parts(), index, finish=finish_word(reply.finish), fields=fields)


def _is_silent(reply: Response, fields: dict[str, Any]) -> bool:
    began = any(type(block) is not UnknownBlock or block.dialect == NAME for block in reply.blocks)
    return not began and is_blocked(fields, reply.finish)


_TAKE: dict[type, Callable[[GeminiEncoder, Any], Sequence[bytes]]] = {
    ReplyStart: GeminiEncoder._take_start,
    ThinkStart: GeminiEncoder._take_think_start,
    ThinkChunk: GeminiEncoder._take_think,
    ContentChunk: GeminiEncoder._take_text,
    RefusalChunk: GeminiEncoder._take_refusal,
    ToolCallStart: GeminiEncoder._take_call_start,
    ToolCallChunk: GeminiEncoder._take_call_piece,
    ToolCallEnd: GeminiEncoder._take_call_end,
    OpaqueState: GeminiEncoder._take_opaque,
    BlockFields: GeminiEncoder._take_block_fields,
    UnknownContent: GeminiEncoder._take_unknown,
    ReplyFields: GeminiEncoder._take_reply_fields,
    UsageUpdate: GeminiEncoder._take_usage,
    Finish: GeminiEncoder._take_finish,
    Failed: GeminiEncoder._take_failed,
    Extension: GeminiEncoder._take_extension,
}
