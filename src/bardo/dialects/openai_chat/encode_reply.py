"""Events to Chat Completions, streamed or whole.

Reasoning goes into `reasoning_content`; where it came with opaque state (a signature, ciphertext), its pieces go into
`reasoning_details` as well, in OpenRouter's form, so that a client can give them back. The `bardo` object stands in a last chunk without
choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.dialects.openai_chat.choice import GEMINI, NAME
from bardo.dialects.openai_chat.errors import error_object
from bardo.dialects.openai_chat.usage import write_usage
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    FinishReason,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.usage import Usage

PLAIN_FIELDS = frozenset({"", "reasoning_content", "reasoning", "think-tags", "content_list", "reasoning_details"})
FINISH_WORDS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
    "pause": "stop",
    "error": "stop",
    "unknown": "stop",
}
_OWN_WORDS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_json = msgspec.json.Encoder().encode


def finish_word(finish: Finish) -> str:
    """Return the finish reason an OpenAI client knows: the provider's own where it is one."""
    return finish.raw if finish.raw in _OWN_WORDS else FINISH_WORDS[finish.reason]


class ChatEncoder:
    """Writes one streamed reply."""

    content_type = "text/event-stream"

    def __init__(self, request: Request) -> None:
        self._request = request
        self._head: dict[str, Any] = {}
        self._prefixes: dict[int, bytes] = {}
        self._formats: dict[tuple[int, int], str] = {}
        self._parts: dict[tuple[int, int], int] = {}
        self._ids: dict[tuple[int, int], str] = {}
        self._calls: dict[tuple[int, int], int] = {}
        self._finishes: dict[int, Finish] = {}
        self._spoke: set[int] = set()
        self._reply_fields: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._extension: dict[str, Any] = {}
        self._failed = False
        self._begin(ReplyStart(model=request.model))

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        if type(item) is ContentChunk:
            return self._delta(item.choice, b'{"content":' + _json(item.text) + b"}")
        if type(item) is ThinkChunk:
            return self._think(item)
        writer = _WRITERS.get(type(item))
        return writer(self, item) if writer is not None and not self._failed else ()

    def finish(self) -> Sequence[bytes]:
        """Write the finish of each choice, usage where asked for, the extension, and `[DONE]`."""
        if self._failed:
            return ()
        out: list[bytes] = []
        for choice in sorted(set(self._prefixes) | set(self._finishes)) or [0]:
            out += self._finish_choice(choice)
        if self._request.stream_usage and self._usage is not None:
            out.append(self._frame({"choices": [], "usage": write_usage(self._usage)}))
        if self._extension:
            out.append(self._frame({"choices": [], "bardo": self._extension}))
        return [*out, b"data: [DONE]\n\n"]

    def _begin(self, item: ReplyStart) -> tuple[()]:
        self._head = {
            "id": item.id or self._head.get("id", ""),
            "object": "chat.completion.chunk",
            "created": item.created if item.created is not None else self._head.get("created", 0),
            "model": item.model or self._head.get("model", ""),
        }
        self._prefixes.clear()
        return ()

    def _frame(self, fields: dict[str, Any]) -> bytes:
        return encode_sse(_json({**self._head, **fields}))

    def _delta(self, choice: int, delta: bytes) -> Sequence[bytes]:
        prefix = self._prefixes.get(choice)
        if prefix is None:
            prefix = self._prefix(choice)
        if choice in self._spoke:
            return (prefix + delta + _SUFFIX,)
        self._spoke.add(choice)
        return (prefix + b'{"role":"assistant","content":""}' + _SUFFIX, prefix + delta + _SUFFIX)

    def _prefix(self, choice: int) -> bytes:
        head = _json({**self._head, **self._reply_fields})[:-1]
        prefix = b"data: " + head + b',"choices":[{"index":' + str(choice).encode() + b',"delta":'
        self._prefixes[choice] = prefix
        return prefix

    def _object(self, choice: int, delta: dict[str, Any]) -> Sequence[bytes]:
        return self._delta(choice, _json(delta))

    def _think_start(self, item: ThinkStart) -> tuple[()]:
        self._formats[item.choice, item.block] = item.format
        return ()

    def _think(self, item: ThinkChunk) -> Sequence[bytes]:
        if self._failed:
            return ()
        key = (item.choice, item.block)
        style = self._formats.get(key, "")
        text = item.text
        if item.part is not None and self._parts.setdefault(key, item.part) != item.part:
            self._parts[key] = item.part
            text = "\n\n" + text
        if style in PLAIN_FIELDS:
            return self._delta(item.choice, b'{"reasoning_content":' + _json(text) + b"}")
        kind, field = ("reasoning.text", "text") if item.part is None else ("reasoning.summary", "summary")
        detail = {"type": kind, field: item.text, "format": style, "index": item.block}
        return self._object(item.choice, {"reasoning_content": text, "reasoning_details": [detail]})

    def _opaque(self, item: OpaqueState) -> Sequence[bytes]:
        state = item.opaque
        key = (item.choice, item.block)
        if key in self._calls:
            extra = extra_content(state)
            return self._object(item.choice, {"tool_calls": [{"index": self._calls[key], **extra}]})
        if key not in self._formats:
            return self._object(item.choice, extra_content(state))
        if state.kind == "id":
            self._ids[key] = state.data
            return ()
        field = "signature" if state.kind == "signature" else "data"
        kind = "reasoning.text" if state.kind == "signature" else "reasoning.encrypted"
        detail = {"type": kind, field: state.data, "format": state.format, "index": item.block}
        if key in self._ids:
            detail["id"] = self._ids.pop(key)
        return self._object(item.choice, {"reasoning_details": [detail]})

    def _think_end(self, item: ThinkEnd) -> Sequence[bytes]:
        return ()

    def _refusal(self, item: RefusalChunk) -> Sequence[bytes]:
        return self._object(item.choice, {"refusal": item.text})

    def _call_start(self, item: ToolCallStart) -> Sequence[bytes]:
        key = (item.choice, item.block)
        place = self._calls[key] = sum(choice == item.choice for choice, _ in self._calls)
        function = {"name": item.name, "arguments": ""}
        call = {"index": place, "id": item.id, "type": "function", "function": function}
        return self._object(item.choice, {"tool_calls": [call]})

    def _call_chunk(self, item: ToolCallChunk) -> Sequence[bytes]:
        place = self._calls.get((item.choice, item.block), 0)
        head = b'{"tool_calls":[{"index":' + str(place).encode() + b',"function":{"arguments":'
        return self._delta(item.choice, head + _json(item.arguments) + b"}}]}")

    def _block_fields(self, item: BlockFields) -> Sequence[bytes]:
        place = self._calls.get((item.choice, item.block))
        if item.dialect != NAME or place is None:
            return ()
        return self._object(item.choice, {"tool_calls": [{"index": place, **item.fields}]})

    def _unknown(self, item: UnknownContent) -> Sequence[bytes]:
        return self._object(item.choice, {"content_blocks": [item.value]}) if item.dialect == NAME else ()

    def _fields(self, item: ReplyFields) -> Sequence[bytes]:
        if item.dialect != NAME:
            return ()
        if item.choice is None:
            self._reply_fields.update(item.fields)
            self._prefixes.clear()
            return () if not self._spoke else (self._frame({"choices": [], **item.fields}),)
        message, choice = unflatten(item.fields)
        head = {"index": item.choice, "delta": message, "finish_reason": None}
        self._prefix(item.choice)
        return (self._frame({"choices": [{**head, **choice}]}),)

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
        return (encode_sse(_json({"error": error_object(item.error)})),)

    def _finish_choice(self, choice: int) -> list[bytes]:
        out: list[bytes] = []
        for (owner, block), identity in self._ids.items():
            if owner == choice:
                style = self._formats[owner, block]
                detail = {"type": "reasoning.text", "text": "", "id": identity, "format": style, "index": block}
                out += self._object(choice, {"reasoning_details": [detail]})
        if choice not in self._spoke:
            out += self._delta(choice, b"{}")[:1]
        finish = self._finishes.get(choice, Finish("unknown"))
        word = _json(finish_word(finish))
        return [*out, self._prefix(choice) + b'{},"finish_reason":' + word + b"}]}\n\n"]


def extra_content(state: Opaque) -> dict[str, Any]:
    """Return opaque state of a text or a call in the place Google documents for its own, others beside it."""
    if state.format == GEMINI:
        return {"extra_content": {"google": {"thought_signature": state.data}}}
    return {"extra_content": {"bardo": {state.kind: state.data, "format": state.format}}}


def unflatten(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was carried of a choice as (fields of its message, fields of the choice)."""
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    for name, value in fields.items():
        head, dot, rest = name.partition(".")
        if head == "message" and dot:
            message[rest] = value
        elif dot:
            choice.setdefault(head, {})[rest] = value
        else:
            choice[name] = value
    return message, choice


_SUFFIX = b',"finish_reason":null}]}\n\n'
_WRITERS: dict[type, Callable[[Any, Any], Sequence[bytes]]] = {
    ReplyStart: ChatEncoder._begin,
    ThinkStart: ChatEncoder._think_start,
    ThinkEnd: ChatEncoder._think_end,
    OpaqueState: ChatEncoder._opaque,
    RefusalChunk: ChatEncoder._refusal,
    ToolCallStart: ChatEncoder._call_start,
    ToolCallChunk: ChatEncoder._call_chunk,
    BlockFields: ChatEncoder._block_fields,
    UnknownContent: ChatEncoder._unknown,
    ReplyFields: ChatEncoder._fields,
    UsageUpdate: ChatEncoder._usage_update,
    Finish: ChatEncoder._finish_event,
    Extension: ChatEncoder._extend,
    Failed: ChatEncoder._fail,
}
