"""Events to the lines of an Ollama reply.

A line holds a piece of thinking or of text, or a whole call, since arguments are objects here. The last line has the totals, fields of the
reply, the seal of opaque state, and bardo's own `bardo` object. There is one choice: events of others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.ollama.calls import write_call
from bardo.dialects.ollama.errors import error_object
from bardo.dialects.ollama.held import HeldCall, HeldStates
from bardo.dialects.ollama.usage import encode_usage
from bardo.dialects.ollama.words import NAME, stamp_of, write_finish
from bardo.dialects.wire import encode_json
from bardo.streams.ndjson import encode_ndjson
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
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage

_END = b'},"done":false}\n'


class Encoder:
    """One streamed reply."""

    content_type = "application/x-ndjson"
    keep_alive = b"\n"

    def __init__(self, request: Request) -> None:
        self._start = ReplyStart(model=request.model)
        self._head = b""
        self._usage = Usage()
        self._fields: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._logprobs: list[Any] = []
        self._finish = Finish("unknown")
        self._extension: dict[str, Any] = {}
        self._calls: dict[int, HeldCall] = {}
        self._states = HeldStates()
        self._thought: tuple[int, int | None] | None = None
        self._over = False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the lines the event makes."""
        if isinstance(item, ContentChunk) and self._head and not item.choice and not self._logprobs and not self._over:
            self._thought = None
            return (self._head + encode_json(item.text) + _END,)
        taken = _TAKE.get(type(item))
        return () if taken is None or self._over or getattr(item, "choice", None) else taken(self, item)

    def finish(self) -> Sequence[bytes]:
        """Return what was held, and the last line; nothing after a failure."""
        if self._over:
            return ()
        out = [line for call in self._calls.values() for line in self._write_call(call)]
        self._over = True
        self._begin()
        return [*out, encode_ndjson(encode_json(self._last_line()))]

    def _begin(self) -> None:
        if not self._head:
            self._fields.setdefault("created_at", stamp_of(self._start.created))
            head = {"model": self._start.model, "created_at": self._fields["created_at"]}
            self._head = encode_json(head)[:-1] + b',"message":{"role":"assistant","content":'

    def _line(self, content: str, rest: bytes = b"") -> Sequence[bytes]:
        self._begin()
        line = self._head + encode_json(content) + rest
        if not self._logprobs:
            return (line + _END,)
        logprobs, self._logprobs = self._logprobs, []
        return (line + b'},"done":false,"logprobs":' + encode_json(logprobs) + b"}\n",)

    def _last_line(self) -> dict[str, Any]:
        signature = self._states.signature(self._calls)
        sealed = {"signature": signature} if signature else {}
        return {
            "model": self._start.model,
            "created_at": self._fields.pop("created_at"),
            "message": {"role": "assistant", "content": "", **self._message, **sealed},
            "done": True,
            "done_reason": write_finish(self._finish),
            **encode_usage(self._usage),
            **self._fields,
            **({"logprobs": self._logprobs} if self._logprobs else {}),
            **({"bardo": self._extension} if self._extension else {}),
        }

    def _take_start(self, item: ReplyStart) -> Sequence[bytes]:
        created = self._start.created if item.created is None else item.created
        self._start = ReplyStart(model=item.model or self._start.model, created=created)
        return ()

    def _take_text(self, item: ContentChunk | RefusalChunk) -> Sequence[bytes]:
        self._thought = None
        return self._line(item.text)

    def _take_think_start(self, item: ThinkStart) -> Sequence[bytes]:
        self._states.begin_thinking(item.block)
        return ()

    def _take_think(self, item: ThinkChunk) -> Sequence[bytes]:
        # Parts of a summary, and stretches that follow each other at once, are paragraphs of one text.
        place = (item.block, item.part)
        gap = "" if self._thought in (None, place) else "\n\n"
        self._thought = place
        self._states.add_thinking(item.block, gap, item.text)
        return self._line("", b',"thinking":' + encode_json(gap + item.text))

    def _call(self, block: int) -> HeldCall:
        call = self._calls.get(block)
        if call is None:
            call = self._calls[block] = HeldCall(len(self._calls))
        return call

    def _take_call_start(self, item: ToolCallStart) -> Sequence[bytes]:
        call = self._call(item.block)
        call.id, call.name = item.id or call.id, item.name or call.name
        return ()

    def _take_call(self, item: ToolCallChunk) -> Sequence[bytes]:
        self._call(item.block).pieces.append(item.arguments)
        return ()

    def _take_call_end(self, item: ToolCallEnd) -> Sequence[bytes]:
        return self._write_call(self._call(item.block))

    def _write_call(self, call: HeldCall) -> Sequence[bytes]:
        if call.written:
            return ()
        call.written = True
        self._thought = None
        return self._line("", b',"tool_calls":[' + encode_json(write_call(call.block, call.place)) + b"]")

    def _take_state(self, item: OpaqueState) -> Sequence[bytes]:
        self._states.add(item.block, item.opaque)
        return ()

    def _take_block_fields(self, item: BlockFields) -> Sequence[bytes]:
        if item.dialect == NAME and item.block in self._calls:
            self._calls[item.block].fields |= item.fields
        return ()

    def _take_fields(self, item: ReplyFields) -> Sequence[bytes]:
        if item.dialect != NAME:
            return ()
        if item.choice is not None:
            self._message |= item.fields
            return ()
        fields = dict(item.fields)
        logprobs = fields.pop("logprobs", None)
        self._logprobs = [*self._logprobs, *logprobs] if isinstance(logprobs, list) else self._logprobs
        self._fields |= fields
        return ()

    def _take_usage(self, item: UsageUpdate) -> Sequence[bytes]:
        self._usage = item.usage
        return ()

    def _take_finish(self, item: Finish) -> Sequence[bytes]:
        self._finish = item
        return ()

    def _take_extension(self, item: Extension) -> Sequence[bytes]:
        self._extension |= item.fields
        return ()

    def _take_failure(self, item: Failed) -> Sequence[bytes]:
        self._over = True
        return (encode_ndjson(encode_json(error_object(item.error))),)


_TAKE: dict[type, Callable[[Any, Any], Sequence[bytes]]] = {
    ThinkChunk: Encoder._take_think,
    ContentChunk: Encoder._take_text,
    ReplyStart: Encoder._take_start,
    ThinkStart: Encoder._take_think_start,
    RefusalChunk: Encoder._take_text,
    ToolCallStart: Encoder._take_call_start,
    ToolCallChunk: Encoder._take_call,
    ToolCallEnd: Encoder._take_call_end,
    OpaqueState: Encoder._take_state,
    BlockFields: Encoder._take_block_fields,
    ReplyFields: Encoder._take_fields,
    UsageUpdate: Encoder._take_usage,
    Finish: Encoder._take_finish,
    Extension: Encoder._take_extension,
    Failed: Encoder._take_failure,
}
