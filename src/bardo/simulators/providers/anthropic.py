"""Anthropic Messages: signed thinking blocks, provisional usage first and the true one last.

Hosts of other models speak it with a bearer token, at their own paths, and without the rules of Claude's models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators.demands import CLAUDE, Demands
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, named_event, streamed, whole
from bardo.simulators.fields import Fields, at, compact
from bardo.simulators.prompt_cache import PromptCache
from bardo.simulators.provider import Provider
from bardo.simulators.providers import anthropic_request, anthropic_thinking
from bardo.simulators.turns import Conversation, Usage

_FINISH = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# Of most models; some have half of it, and some four times as much.
_LEAST_CACHED = 1024
_REQUEST_ID = "req_011CWdMEehrhsdujMyQ9pChP"
_PING = b'event: ping\ndata: {"type": "ping"}\n\n'


_DATE = re.compile(r"-20\d{6}$")


class Anthropic(Provider):
    """api.anthropic.com/v1; Anthropic's own library is configured without `/v1`."""

    name = "anthropic"
    dialect = "anthropic_messages"
    catalog_name = "anthropic"
    prefix = ""
    models = ("claude-haiku-4-5-20251001", "claude-sonnet-5")
    off_switches = (("thinking.type", "disabled"),)
    keep_alive = _PING

    def __init__(self) -> None:
        self._cache = PromptCache(least=_LEAST_CACHED)

    def estimate_usage(self, exchange: Exchange) -> Usage:
        counts = self._cache.take(exchange.model, anthropic_request.marked_prefixes(exchange.body))
        usage = exchange.usage
        return replace(
            usage,
            input_tokens=max(usage.input_tokens, counts.read + counts.written + 1),
            cached_input_tokens=counts.read,
            cache_write_tokens=counts.written,
        )

    def key_of(self, incoming: Incoming) -> str:
        return incoming.headers.get("x-api-key", "") or incoming.bearer

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "x-api-key header is required")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "invalid x-api-key")

    def check_key(self, incoming: Incoming, key: str | None) -> None:
        super().check_key(incoming, key)
        if not incoming.headers.get("anthropic-version"):
            raise Refusal("missing_field", "anthropic-version: header is required")

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path == "/v1/messages"

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        if path != "/v1/messages/count_tokens" or incoming.method != "POST":
            return None
        extra = [name for name in incoming.fields if name not in anthropic_request.COUNTED]
        if extra:
            raise Refusal("unknown_field", f"{extra[0]}: Extra inputs are not permitted", parameter=extra[0])
        return whole(compact({"input_tokens": anthropic_request.read(incoming, counting=True).token_count}))

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return anthropic_request.read(incoming)

    def demands(self, model: str) -> Demands:
        return CLAUDE

    def encode_reply(self, exchange: Exchange) -> Reply:
        usage = exchange.usage
        message = self._message(exchange, list(_blocks(exchange)), finish=_FINISH[exchange.turn.ending])
        message["usage"] = {
            **_input_usage(exchange),
            "output_tokens": usage.output_tokens,
            **_thinking_tokens(exchange),
            "service_tier": "standard",
            "inference_geo": "global",
        }
        return whole(compact(message))

    def encode_stream(self, exchange: Exchange) -> Reply:
        return streamed(_padded(index, event) for index, event in enumerate(self._events(exchange)))

    def _message(self, exchange: Exchange, content: list[Fields], *, finish: str | None) -> Fields:
        return {
            "model": exchange.model,
            "id": f"msg_01{exchange.token('message', 22)}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": finish,
            "stop_sequence": None,
            "stop_details": None,
        }

    def _events(self, exchange: Exchange) -> Iterator[Fields]:
        message = self._message(exchange, [], finish=None)
        # Provisional: what will have been generated is not known yet.
        provisional = min(8, exchange.usage.output_tokens)
        message["usage"] = {
            **_input_usage(exchange),
            "output_tokens": provisional,
            "service_tier": "standard",
            "inference_geo": "global",
        }
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(_blocks(exchange)):
            empty: Fields = {"text": "", "thinking": "", "signature": "", "input": {}}
            yield {
                "type": "content_block_start",
                "index": index,
                "content_block": {name: empty.get(name, value) for name, value in block.items()},
            }
            if index == 0:
                yield {"type": "ping"}
            for delta in _deltas(exchange, block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        finish = {"stop_reason": _FINISH[exchange.turn.ending], "stop_sequence": None, "stop_details": None}
        usage: Fields = {
            "input_tokens": _fresh_input(exchange),
            "cache_creation_input_tokens": exchange.usage.cache_write_tokens,
            "cache_read_input_tokens": exchange.usage.cached_input_tokens,
            "output_tokens": exchange.usage.output_tokens,
            **_thinking_tokens(exchange),
        }
        yield {"type": "message_delta", "delta": finish, "usage": usage}
        yield {"type": "message_stop"}

    def encode_refusal(self, refusal: Refusal) -> Reply:
        kind = _ERROR_TYPES.get(refusal.status, "api_error" if refusal.status >= 500 else "invalid_request_error")
        error: Fields = {"type": kind, "message": refusal.message}
        return whole(compact({"type": "error", "error": error, "request_id": _REQUEST_ID}), status=refusal.status)

    def unknown_path(self, incoming: Incoming) -> Refusal:
        return Refusal("unknown_path", "Not found")

    def check_model(self, model: str, models: Sequence[str]) -> None:
        """Raise Refusal for a model that is not in `models`; a name without its date means the listed one with a date."""
        if not any(_DATE.sub("", model_id) == model for model_id in models):
            super().check_model(model, models)

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"model: {model}")

    def error_events(self) -> Sequence[bytes]:
        error: Fields = {"type": "overloaded_error", "message": "Overloaded"}
        return [named_event("error", {"type": "error", "error": error, "request_id": _REQUEST_ID})]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path == "/v1/models":
            listed = [_model_row(model) for model in models]
            ends: Fields = {"first_id": models[0], "last_id": models[-1]}
            return whole(compact({"data": listed, "has_more": False, **ends}))
        model = path.removeprefix("/v1/models/")
        return whole(compact(_model_row(model))) if model in models else None


def _blocks(exchange: Exchange) -> Iterator[Fields]:
    """Yield the content blocks of the reply, whole."""
    yield from _thinking(exchange)
    turn = exchange.turn
    if turn.text:
        yield {"type": "text", "text": turn.text}
    for index, call in exchange.calls():
        yield {
            "type": "tool_use",
            "id": call.id or f"toolu_01{exchange.token(f'call{index}', 22)}",
            "name": call.name,
            "input": call.arguments_value,
            "caller": {"type": "direct"},
        }


def _thinking(exchange: Exchange) -> Iterator[Fields]:
    turn = exchange.turn
    if not turn.reasons:
        return
    if turn.redacted:
        yield anthropic_thinking.block(exchange.body, exchange.model, "redacted_thinking", "", turn.reasoning)
        return
    omitted = turn.hidden or at(exchange.body, "thinking.display") == "omitted"
    shown = "" if omitted else turn.reasoning or "\n\n".join(turn.reasoning_summary)
    yield anthropic_thinking.block(exchange.body, exchange.model, "thinking", shown, turn.reasoning)


def _deltas(exchange: Exchange, block: Fields) -> Iterator[Fields]:
    match block["type"]:
        case "thinking":
            for piece in [*exchange.pieces(str(block["thinking"]))] or [""]:
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for piece in exchange.pieces(str(block["text"])):
                yield {"type": "text_delta", "text": piece}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            given = block["input"]
            for piece in exchange.pieces(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)):
                yield {"type": "input_json_delta", "partial_json": piece}


def _input_usage(exchange: Exchange) -> Fields:
    """Cached tokens stand beside the input tokens, not inside them."""
    written = exchange.usage.cache_write_tokens
    return {
        "input_tokens": _fresh_input(exchange),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": exchange.usage.cached_input_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
    }


def _fresh_input(exchange: Exchange) -> int:
    usage = exchange.usage
    return usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens


def _thinking_tokens(exchange: Exchange) -> Fields:
    if not exchange.turn.reasons:
        return {}
    return {"output_tokens_details": {"thinking_tokens": exchange.usage.reasoning_tokens}}


def _padded(index: int, event: Fields) -> bytes:
    """Write an event with the spaces Anthropic puts before the last brace."""
    if event["type"] == "ping":
        return _PING
    written = compact(event)
    spaces = b" " * (index * 7 % 15)
    return f"event: {event['type']}\n".encode() + b"data: " + written[:-1] + spaces + b"}\n\n"


def _model_row(model: str) -> Fields:
    # Models up to 4.5 take a budget, later ones levels and adaptive thinking.
    adaptive = not any(mark in model for mark in ("-3-", "-4-5", "-4-1", "-4-0"))
    thinking: Fields = {
        "supported": True,
        "types": {"adaptive": {"supported": adaptive}, "enabled": {"supported": not adaptive}},
    }
    levels: Fields = {level: {"supported": adaptive} for level in ("low", "medium", "high", "xhigh", "max")}
    return {
        "type": "model",
        "id": model,
        "display_name": model,
        "created_at": "2025-10-15T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200000,
        "max_tokens": 64000,
        "capabilities": {"thinking": thinking, "effort": {"supported": adaptive, **levels}},
    }


class MessagesHost(Anthropic):
    """A further endpoint of a server with another dialect, at `{prefix}/v1/messages`."""

    name = "messages"
    prefix = "/anthropic"

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return anthropic_request.read(incoming, budgets=False)

    def demands(self, model: str) -> Demands:
        return CLAUDE if "claude" in model else Demands(tool_names=CLAUDE.tool_names)

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        return None

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return None


class ZAIMessages(MessagesHost):
    """api.z.ai/api/anthropic/v1/messages."""

    prefix = "/api/anthropic"


class OpenRouterMessages(MessagesHost):
    """openrouter.ai/api/v1/messages."""

    prefix = "/api"
