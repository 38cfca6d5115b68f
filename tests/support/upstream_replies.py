"""One small reply of each provider dialect, whole and as the frames of a stream: the text "Four." and its usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from bardo.streams.eventstream import encode_event

TEXT = "Four."


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _sse(value: Any, event: str = "") -> bytes:
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + _json(value) + b"\n\n"


def _named(name: str, **fields: Any) -> bytes:
    return _sse({"type": name, **fields}, name)


def _amazon(name: str, value: Any) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_event(_json(value), headers)


@dataclass(frozen=True)
class UpstreamReply:
    """A reply of one dialect. `preset` is a provider that speaks it; the last of `frames` ends the stream by itself where `says_end`."""

    preset: str
    content_type: str
    frames: tuple[bytes, ...]
    whole: bytes
    error: bytes
    says_end: bool = True

    @property
    def stream(self) -> bytes:
        return b"".join(self.frames)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


_CHAT_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
_CHAT = UpstreamReply(
    preset="deepseek",
    content_type="text/event-stream",
    frames=(
        _sse(_chunk({"role": "assistant", "content": ""})),
        _sse(_chunk({"content": "Fo"})),
        _sse(_chunk({"content": "ur."})),
        _sse(_chunk({}, "stop")),
        _sse({"id": "c1", "model": "m", "choices": [], "usage": _CHAT_USAGE}),
        b"data: [DONE]\n\n",
    ),
    whole=_json(
        {
            "id": "c1",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
            "usage": _CHAT_USAGE,
        }
    ),
    error=_json({"error": {"message": "The engine is overloaded", "type": "server_error", "code": "overloaded"}}),
)

_ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
_PART = {"type": "output_text", "text": TEXT, "annotations": []}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [{**_ITEM, "content": [_PART]}],
    "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
}
_BEGUN = {**_RESPONSE, "status": "in_progress", "output": [], "usage": None}
_PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
_RESPONSES = UpstreamReply(
    preset="openai",
    content_type="text/event-stream",
    frames=(
        _named("response.created", response=_BEGUN),
        _named("response.output_item.added", output_index=0, item={**_ITEM, "status": "in_progress", "content": []}),
        _named("response.content_part.added", **_PLACE, part={**_PART, "text": ""}),
        _named("response.output_text.delta", **_PLACE, delta="Fo"),
        _named("response.output_text.delta", **_PLACE, delta="ur."),
        _named("response.output_text.done", **_PLACE, text=TEXT),
        _named("response.output_item.done", output_index=0, item={**_ITEM, "content": [_PART]}),
        _named("response.completed", response=_RESPONSE),
    ),
    whole=_json(_RESPONSE),
    error=_json({"error": {"message": "The engine is overloaded", "type": "server_error", "code": "overloaded"}}),
)

_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
_ANTHROPIC = UpstreamReply(
    preset="anthropic",
    content_type="text/event-stream; charset=utf-8",
    frames=(
        _named("message_start", message={**_MESSAGE, "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}}),
        _named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        _named("content_block_delta", index=0, delta={"type": "text_delta", "text": "Fo"}),
        _named("content_block_delta", index=0, delta={"type": "text_delta", "text": "ur."}),
        _named("content_block_stop", index=0),
        _named("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 3}),
        _named("message_stop"),
    ),
    whole=_json(
        {
            **_MESSAGE,
            "content": [{"type": "text", "text": TEXT}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }
    ),
    error=_json({"type": "error", "error": {"type": "overloaded_error", "message": "The engine is overloaded"}}),
)


def _candidate(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    ended = {"finishReason": finish} if finish else {}
    content = {"parts": [{"text": text}], "role": "model"}
    return {"candidates": [{"content": content, "index": 0, **ended}], "modelVersion": "m", "responseId": "r1", **more}


_GEMINI_USAGE = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
_GEMINI = UpstreamReply(
    preset="gemini",
    content_type="text/event-stream",
    frames=(_sse(_candidate("Fo")), _sse(_candidate("ur.")), _sse(_candidate("", "STOP", usageMetadata=_GEMINI_USAGE))),
    whole=_json(_candidate(TEXT, "STOP", usageMetadata=_GEMINI_USAGE)),
    error=_json({"error": {"code": 503, "message": "The engine is overloaded", "status": "UNAVAILABLE"}}),
    says_end=False,
)


def _line(text: str, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"model": "m", "created_at": "2025-01-01T00:00:00Z", "message": message, "done": False, **more}


_OLLAMA_END = {"done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3}
_OLLAMA = UpstreamReply(
    preset="ollama",
    content_type="application/x-ndjson",
    frames=tuple(_json(one) + b"\n" for one in (_line("Fo"), _line("ur."), _line("", **_OLLAMA_END))),
    whole=_json(_line(TEXT, **_OLLAMA_END)),
    error=_json({"error": "The engine is overloaded"}),
)

_COHERE_USAGE = {"tokens": {"input_tokens": 7, "output_tokens": 3}}


def _cohere(kind: str, **fields: Any) -> bytes:
    return _sse({"type": kind, **fields}, kind)


def _piece(text: str) -> dict[str, Any]:
    return {"message": {"content": {"text": text}}}


_COHERE = UpstreamReply(
    preset="cohere",
    content_type="text/event-stream",
    frames=(
        _cohere("message-start", id="c1", delta={"message": {"role": "assistant", "content": []}}),
        _cohere("content-start", index=0, delta={"message": {"content": {"type": "text", "text": ""}}}),
        _cohere("content-delta", index=0, delta=_piece("Fo")),
        _cohere("content-delta", index=0, delta=_piece("ur.")),
        _cohere("content-end", index=0),
        _cohere("message-end", delta={"finish_reason": "COMPLETE", "usage": _COHERE_USAGE}),
    ),
    whole=_json(
        {
            "id": "c1",
            "finish_reason": "COMPLETE",
            "message": {"role": "assistant", "content": [{"type": "text", "text": TEXT}]},
            "usage": _COHERE_USAGE,
        }
    ),
    error=_json({"message": "The engine is overloaded"}),
)

_CONVERSE_USAGE = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
_CONVERSE = UpstreamReply(
    preset="bedrock-converse",
    content_type="application/vnd.amazon.eventstream",
    frames=(
        _amazon("messageStart", {"role": "assistant"}),
        _amazon("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Fo"}}),
        _amazon("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "ur."}}),
        _amazon("contentBlockStop", {"contentBlockIndex": 0}),
        _amazon("messageStop", {"stopReason": "end_turn"}),
        _amazon("metadata", {"usage": _CONVERSE_USAGE, "metrics": {"latencyMs": 5}}),
    ),
    whole=_json(
        {
            "output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}},
            "stopReason": "end_turn",
            "usage": _CONVERSE_USAGE,
            "metrics": {"latencyMs": 5},
        }
    ),
    error=_json({"message": "The engine is overloaded"}),
)

REPLIES = {
    "openai_chat": _CHAT,
    "openai_responses": _RESPONSES,
    "anthropic_messages": _ANTHROPIC,
    "gemini": _GEMINI,
    "ollama": _OLLAMA,
    "cohere": _COHERE,
    "bedrock_converse": _CONVERSE,
}
