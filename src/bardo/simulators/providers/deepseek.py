"""DeepSeek: reasoning in `reasoning_content`, usage in the chunk with the finish reason, cache hits and misses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply
from bardo.simulators.fields import Fields
from bardo.simulators.provider import masked
from bardo.simulators.providers.messages_hosts import MessagesHost
from bardo.simulators.thinking_behaviour import check_deepseek
from bardo.simulators.turns import Conversation, ToolCall

# theopenco/llmgateway#3462, 2026-08.
_NO_DEVELOPER = (
    "Failed to deserialize the JSON body into the target type: messages[{place}].role: unknown variant `developer`, expected one of "
    "`system`, `user`, `assistant`, `tool`, `latest_reminder` at line 1 column {column}"
)


class DeepSeek(Chat):
    """api.deepseek.com."""

    name = "deepseek"
    catalog_name = "deepseek"
    other_dialects = (MessagesHost,)
    base_path = ""
    models = ("deepseek-v4-flash", "deepseek-v4-pro")
    owner = "deepseek"
    usage_place = "finish"
    checks_tool_messages = True
    off_switches = (("thinking.type", "disabled"), ("reasoning_effort", "none"))
    choice_order = ("index", "message", "logprobs", "finish_reason")
    call_order = ("index", "id", "type", "function")

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return super().is_generation_path(incoming, path.removeprefix("/v1"))  # Both paths exist.

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        check_deepseek(incoming)
        if (index := chat_request.developer_message(incoming.fields)) is not None:
            raise Refusal("bad_value", _NO_DEVELOPER.format(place=index, column=len(incoming.raw)))
        return conversation

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return super().list_models(path.removeprefix("/v1"), models)

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.uuid("reply")

    def completion(self, exchange: Exchange) -> Fields:
        return {**super().completion(exchange), "system_fingerprint": _FINGERPRINT}

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{index:02}_{exchange.token(f'call{index}', 20)}"

    def usage(self, exchange: Exchange) -> Fields:
        cached = exchange.usage.cached_input_tokens
        return {
            **super().usage(exchange),
            "prompt_cache_hit_tokens": cached,
            "prompt_cache_miss_tokens": exchange.usage.input_tokens - cached,
        }

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        if exchange.turn.reasoning:
            yield {"role": "assistant", "content": None, "reasoning_content": ""}
        else:
            yield {"role": "assistant", "content": ""}

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """Where the model reasoned, a delta of text names the other field too."""
        for delta in super().deltas(exchange):
            speaks = "content" in delta and "reasoning_content" not in delta
            yield {**delta, "reasoning_content": None} if speaks and exchange.turn.reasoning else delta

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": None, "reasoning_content": piece}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {
            **self.envelope(exchange, "chat.completion.chunk"),
            "system_fingerprint": _FINGERPRINT,
            "choices": choices,
            "usage": usage,
        }

    def last_delta(self) -> Fields:
        return {"content": "", "reasoning_content": None}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Authentication Fails (auth header is missing)")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", f"Authentication Fails, Your api key: {masked(key)} is invalid")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Model Not Exist", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        kind = {401: "authentication_error", 402: "unknown_error", 429: "rate_limit_error"}.get(refusal.status)
        kind = kind or ("server_error" if refusal.status >= 500 else "invalid_request_error")
        error: Fields = {"message": refusal.message, "type": kind, "param": None, "code": "invalid_request_error"}
        return {"error": error}


_FINGERPRINT = "fp_058df29938_prod0820_fp8_kvcache_20260402"
