"""MiniMax: the same reasoning in `reasoning_content` and in `reasoning_details`, and no `[DONE]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Refusal, data_event
from bardo.simulators.fields import Fields
from bardo.simulators.marks import HEXADECIMAL, LOWER
from bardo.simulators.providers.messages_hosts import MessagesHost
from bardo.simulators.turns import ToolCall

_SENSITIVE: Fields = {
    "input_sensitive": False,
    "output_sensitive": False,
    "input_sensitive_type": 0,
    "output_sensitive_type": 0,
    "output_sensitive_int": 0,
}


class MiniMax(Chat):
    """api.minimax.io/v1, with `reasoning_split`."""

    name = "minimax"
    catalog_name = "minimax"
    other_dialects = (MessagesHost,)
    models = ("MiniMax-M2.7", "MiniMax-M2.7-highspeed")
    owner = "minimax"
    usage_place = "always"
    ends_with_done = False
    off_switches = (("thinking.type", "disabled"),)
    choice_order = ("finish_reason", "index", "message")
    call_order = ("id", "type", "function", "index")

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.token("reply", 32, HEXADECIMAL)

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "model": exchange.model,
            "object": "chat.completion",
            "usage": self.usage(exchange),
            **_SENSITIVE,
            "base_resp": {"status_code": 0, "status_msg": "success"},
        }

    def message(self, exchange: Exchange) -> Fields:
        message: Fields = {**super().message(exchange), "name": "MiniMax AI", "audio_content": ""}
        return (
            {**message, "reasoning_details": [_detail(exchange.turn.reasoning)]} if exchange.turn.reasoning else message
        )

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_function_{exchange.token('calls', 12, LOWER)}_{index + 1}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        return {
            "total_tokens": usage.total_tokens,
            "total_characters": 0,
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        }

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        """The last thing said has the finish reason; a chunk with the usage follows."""
        *others, last = list(self.deltas(exchange)) or [{**_SPEAKER, "content": ""}]
        for delta in others:
            yield self.chunk(exchange, [{"index": 0, "delta": delta}])
        yield self.chunk(exchange, [{"finish_reason": self.finish(exchange), "index": 0, "delta": last}])
        closing = self.chunk(exchange, [], self.usage(exchange))
        yield {**closing, "base_resp": {"status_code": 0, "status_msg": ""}}

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield from ()

    def reasoning_delta(self, piece: str) -> Fields:
        return {**_SPEAKER, "reasoning_content": piece, "reasoning_details": [_detail(piece)]}

    def content_delta(self, piece: str) -> Fields:
        return {"content": piece, **_SPEAKER}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        yield {**_SPEAKER, "tool_calls": [self.tool_call(exchange, index, call)]}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "choices": choices,
            "created": exchange.created,
            "model": exchange.model,
            "object": "chat.completion.chunk",
            "usage": usage,
            **({} if usage else _SENSITIVE),
        }

    def missing_key(self) -> Refusal:
        where = "in the 'Authorization' field of the request header"
        return Refusal("missing_key", f"login fail: Please carry the API secret key {where} (1004)")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "invalid api key (2049)")

    def error_body(self, refusal: Refusal) -> Fields:
        kind = {401: "authorized_error", 429: "rate_limit_error"}.get(refusal.status)
        kind = kind or ("server_error" if refusal.status >= 500 else "bad_request_error")
        error: Fields = {"type": kind, "message": refusal.message, "http_code": str(refusal.status)}
        return {"type": "error", "error": error, "request_id": "0644f6fb50d24c75a5108e8d2f279ba3"}

    def error_events(self) -> Sequence[bytes]:
        """An error inside a stream comes as `base_resp` of a last chunk."""
        trouble: Fields = {"status_code": 1000, "status_msg": "unknown error"}
        return [data_event({"id": "", "choices": None, "created": 0, "model": "", "base_resp": trouble})]


_SPEAKER: Fields = {"role": "assistant", "name": "MiniMax AI", "audio_content": ""}


def _detail(text: str) -> Fields:
    return {
        "type": "reasoning.text",
        "id": "reasoning-text-1",
        "format": "MiniMax-response-v1",
        "index": 0,
        "text": text,
    }
