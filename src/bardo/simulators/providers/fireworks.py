"""Fireworks: `reasoning_content`, `raw_output` in every choice, tool-call ids made of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.refusal import Refusal
from bardo.simulators.turns import ToolCall


class Fireworks(Chat):
    """api.fireworks.ai/inference/v1."""

    name = "fireworks"
    catalog_name = "fireworks"
    embeds = "any"
    base_path = "/inference/v1"
    models = ("accounts/fireworks/models/glm-5", "accounts/fireworks/models/kimi-k2p5")
    owner = "fireworks"
    usage_place = "always"
    off_switches = (("reasoning_effort", "none"), ("reasoning_effort", False), ("thinking.type", "disabled"))

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.token('reply', 32, HEXADECIMAL)}"

    def call_id(self, exchange: Exchange, place: int, call: ToolCall) -> str:
        return call.id or f"functions.{call.name}:{place}"

    def tool_call(self, exchange: Exchange, place: int, call: ToolCall) -> Fields:
        return {"index": place, **super().tool_call(exchange, place, call), "name": None}

    def usage(self, exchange: Exchange) -> Fields:
        """Fireworks does not count reasoning."""
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "total_tokens": usage.total_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        }

    def opening(self, exchange: Exchange) -> Iterator[Fields]:
        yield {"role": "assistant"}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "finish_reason": finish, "raw_output": None}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {**self.envelope(exchange, "chat.completion.chunk"), "choices": choices, "usage": usage}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "The API key you provided is invalid.")

    def wrong_key(self, given: str) -> Refusal:
        return Refusal("wrong_key", "The API key you provided is invalid.")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Model not found, inaccessible, and/or not deployed")

    def error_body(self, refusal: Refusal) -> Fields:
        kind, code = {
            401: ("error", "UNAUTHORIZED"),
            404: ("error", "NOT_FOUND"),
            429: ("error", "RATE_LIMIT_EXCEEDED"),
        }.get(refusal.status, ("invalid_request_error" if refusal.status < 500 else "internal_server_error", None))
        error: Fields = {"object": "error", "type": kind, "message": refusal.message}
        return {"error": {**error, "code": code} if code else error}
