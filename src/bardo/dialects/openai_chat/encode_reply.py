"""Encode a reply for a Chat Completions client, streamed or whole.

Reasoning goes into `reasoning_content`; where more than its text is known (whose it is, that it is a summary, a signature, ciphertext), its
pieces go into `reasoning_details` as well, in OpenRouter's form, so that a client can give them back. The `bardo` object stands in the last
frame: with the usage where that was asked for, else with the finish reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.openai_chat.carried import unflatten
from bardo.dialects.openai_chat.chunks import ChunkWriter, json_bytes
from bardo.dialects.openai_chat.collector import encode_choices
from bardo.dialects.openai_chat.constants import NAME, encode_finish
from bardo.dialects.openai_chat.details import encode_position
from bardo.dialects.openai_chat.encode_thinking import Place, ThinkingWriter
from bardo.dialects.openai_chat.errors import error_object
from bardo.dialects.openai_chat.extra import encode_states
from bardo.dialects.openai_chat.usage import encode_usage
from bardo.dialects.run_encoder import RunEncoder
from bardo.streams.sse import KEEP_ALIVE, encode_sse
from bardo.values.blocks import Opaque, fields_for
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
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.runs import texts_of
from bardo.values.usage import Usage

_NO_FINISH = Finish("unknown")


class ChatEncoder(RunEncoder):
    """Writes one streamed reply."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._wants_usage = request.stream_usage
        self._chunks = ChunkWriter(request.model)
        self._thinking = ThinkingWriter(self._chunks)
        self._calls: dict[Place, int] = {}
        self._call_counts: dict[int, int] = {}
        self._lengths: defaultdict[int, int] = defaultdict(int)
        self._refused: set[int] = set()
        self._stated: dict[int, int] = {}
        self._unknowns = 0
        self._finishes: dict[int, Finish] = {}
        self._usage: Usage | None = None
        self._extension: dict[str, Any] = {}
        self._failed = False
        self._signed_call: ToolCallStart | None = None

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        if self._failed:
            return ()
        released: Sequence[bytes] = ()
        if self._thinking.pending_states and (place := _block_of(item)) is not None:
            released = self._thinking.release(place)
        if self._signed_call is not None and not self._continues_head(item):
            released = [*released, *self._release_call()]
        writer = _WRITERS.get(type(item))
        written = writer(self, item) if writer is not None else ()
        return [*released, *written] if released else written

    def go_on(self, first: Event, further: Sequence[Event]) -> Sequence[bytes] | None:
        """Return the frames of pieces of the answer."""
        if type(first) is not ContentChunk or self._failed:
            return None
        texts = texts_of(further)
        self._lengths[first.choice] += sum(map(len, texts))
        return self._chunks.texts(first.choice, texts)

    def _content(self, item: ContentChunk) -> Sequence[bytes]:
        choice, text = item.choice, item.text
        self._lengths[choice] += len(text)
        return self._chunks.text(choice, text)

    def finish(self) -> Sequence[bytes]:
        """Write the finish of each choice, usage where asked for, the extension, and `[DONE]`."""
        if self._failed:
            return ()
        usage = encode_usage(self._usage) if self._wants_usage and self._usage is not None else None
        last = {"bardo": self._extension} if self._extension else {}
        out = [*self._thinking.release(None), *self._release_call()]
        choices = sorted(self._chunks.choices | set(self._finishes)) or [0]
        for choice in choices:
            finish = self._finishes.get(choice, _NO_FINISH)
            ends = usage is None and choice == choices[-1]
            word = encode_finish(finish, refused=choice in self._refused)
            out += self._chunks.finish(choice, word, last if ends else {})
        if usage is not None:
            out.append(self._chunks.frame({"choices": [], "usage": usage, **last}))
        return [*out, b"data: [DONE]\n\n"]

    def _begin(self, item: ReplyStart) -> tuple[()]:
        self._chunks.begin(item)
        return ()

    def _think_start(self, item: ThinkStart) -> Sequence[bytes]:
        calls = sum(choice == item.choice for choice, _ in self._calls)
        self._thinking.start(item, encode_position(self._lengths[item.choice], calls))
        return ()

    def _think(self, item: ThinkChunk) -> Sequence[bytes]:
        return self._thinking.chunk(item)

    def _opaque(self, item: OpaqueState) -> Sequence[bytes]:
        place = (item.choice, item.block)
        if self._signed_call is not None:
            return self._release_call(item.opaque)
        if self._thinking.knows(place):
            self._thinking.hold(item)
            return ()
        if place in self._calls:
            return self._more_of_call(place, {"extra_content": encode_states([item.opaque])})
        before = self._stated.get(item.choice, 0)
        self._stated[item.choice] = before + 1
        return self._chunks.add(item.choice, {"extra_content": encode_states([item.opaque], before=before)})

    def _refusal(self, item: RefusalChunk) -> Sequence[bytes]:
        self._refused.add(item.choice)
        return self._chunks.add(item.choice, {"refusal": item.text})

    def _call_start(self, item: ToolCallStart) -> Sequence[bytes]:
        if item.state_follows:
            # The AI SDK reads a call's signature in its first delta only (2026-11), so the delta waits for the state that comes next.
            self._signed_call = item
            return ()
        return self._begin_call(item)

    def _continues_head(self, item: Event) -> bool:
        """Whether this is the state that the head of a call waits for, or something before it that no Chat client is told."""
        start = self._signed_call
        own = start is not None and _block_of(item) == (start.choice, start.block)
        return own and (type(item) is OpaqueState or (type(item) is BlockFields and item.dialect != NAME))

    def _release_call(self, state: Opaque | None = None) -> Sequence[bytes]:
        start, self._signed_call = self._signed_call, None
        return () if start is None else self._begin_call(start, state)

    def _begin_call(self, item: ToolCallStart, state: Opaque | None = None) -> Sequence[bytes]:
        index = self._call(item.choice, item.block)
        function = {"name": item.name, "arguments": ""}
        extra = {"extra_content": encode_states([state])} if state is not None else {}
        call = {"index": index, "id": item.id, "type": "function", "function": function, **extra}
        return self._chunks.add(item.choice, {"tool_calls": [call]})

    def _call_chunk(self, item: ToolCallChunk) -> Sequence[bytes]:
        return self._chunks.arguments(item.choice, self._call(item.choice, item.block), item.arguments)

    def _call(self, choice: int, block: int) -> int:
        place = (choice, block)
        index = self._calls.get(place)
        if index is None:
            index = self._calls[place] = self._call_counts.get(choice, 0)
            self._call_counts[choice] = index + 1
        return index

    def _more_of_call(self, place: Place, fields: dict[str, Any]) -> Sequence[bytes]:
        # OpenAI's library insists on a function in every piece.
        function = {"arguments": "", **fields.get("function", {})}
        return self._chunks.add(
            place[0], {"tool_calls": [{"index": self._calls[place], **fields, "function": function}]}
        )

    def _block_fields(self, item: BlockFields) -> Sequence[bytes]:
        place = (item.choice, item.block)
        if item.dialect != NAME:
            return ()
        if place in self._calls:
            return self._more_of_call(place, item.fields)
        return self._thinking.fields(item) if self._thinking.knows(place) else ()

    def _unknown(self, item: UnknownContent) -> Sequence[bytes]:
        if item.dialect != NAME:
            return ()
        self._unknowns += 1
        wrapped = {"index": self._unknowns - 1, "block": item.value}
        return self._chunks.add(item.choice, {"content_blocks": [wrapped]})

    def _fields(self, item: ReplyFields) -> Sequence[bytes]:
        if item.dialect != NAME:
            return ()
        if item.choice is None:
            self._chunks.add_fields(item.fields)
            return ()
        message, choice = unflatten(item.fields)
        return self._chunks.add_choice(item.choice, message, choice)

    def _usage_update(self, item: UsageUpdate) -> tuple[()]:
        self._usage = item.usage
        return ()

    def _finish_event(self, item: Finish) -> tuple[()]:
        self._finishes[item.choice] = item
        return ()

    def _extend(self, item: Extension) -> tuple[()]:
        self._extension |= item.fields
        return ()

    def _fail(self, item: Failed) -> Sequence[bytes]:
        self._failed = True
        own = {"bardo": self._extension} if self._extension else {}
        return (encode_sse(json_bytes({"error": error_object(item.error), **own})),)


def _block_of(item: Event) -> Place | None:
    block = getattr(item, "block", None)
    return None if block is None else (getattr(item, "choice", 0), block)


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply, all choices of it."""
    usage = encode_usage(response.usage)
    return json_bytes(
        {
            "id": response.id,
            "object": "chat.completion",
            "created": response.created or 0,
            "model": response.model or request.model,
            **fields_for(NAME, response.carried),
            "choices": encode_choices(response),
            **({"usage": usage} if usage is not None else {}),
            **({"bardo": response.bardo} if response.bardo else {}),
        }
    )


_WRITERS: dict[type, Callable[[Any, Any], Sequence[bytes]]] = {
    ContentChunk: ChatEncoder._content,
    ThinkChunk: ChatEncoder._think,
    ToolCallChunk: ChatEncoder._call_chunk,
    ReplyStart: ChatEncoder._begin,
    ThinkStart: ChatEncoder._think_start,
    OpaqueState: ChatEncoder._opaque,
    RefusalChunk: ChatEncoder._refusal,
    ToolCallStart: ChatEncoder._call_start,
    BlockFields: ChatEncoder._block_fields,
    UnknownContent: ChatEncoder._unknown,
    ReplyFields: ChatEncoder._fields,
    UsageUpdate: ChatEncoder._usage_update,
    Finish: ChatEncoder._finish_event,
    Extension: ChatEncoder._extend,
    Failed: ChatEncoder._fail,
}
