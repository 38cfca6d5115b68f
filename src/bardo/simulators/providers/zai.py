"""Z.ai: a line break of content before the reasoning, the role in every delta, usage in the finish chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bardo.simulators.chat import Chat
from bardo.simulators.demands import Demands
from bardo.simulators.exchange import Exchange, Refusal
from bardo.simulators.fields import Fields
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.providers.messages_hosts import ZAIMessages
from bardo.simulators.turns import ToolCall


class ZAI(Chat):
    """api.z.ai/api/paas/v4."""

    name = "zai"
    catalog_name = "zai"
    other_dialects = (ZAIMessages,)
    base_path = "/api/paas/v4"
    embeds = "any"
    models = ("glm-4.5-air", "glm-4.7")
    owner = "z-ai"
    usage_place = "finish"
    off_switches = (("thinking.type", "disabled"),)
    choice_order = ("finish_reason", "index", "message")
    call_order = ("id", "index", "type", "function")

    def demands(self, model: str) -> Demands:
        words = "stop supports at most {most} item, but got {given}"
        return replace(super().demands(model), most_stops=1, too_many_stops=words)

    def reply_id(self, exchange: Exchange) -> str:
        return f"20260701073942{exchange.token('reply', 16, HEXADECIMAL)}"

    def completion(self, exchange: Exchange) -> Fields:
        reply_id = self.reply_id(exchange)
        return {
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "id": reply_id,
            "model": exchange.model,
            "object": "chat.completion",
            "request_id": reply_id,
            "usage": self.usage(exchange),
        }

    def finish(self, exchange: Exchange) -> str:
        return {"content_filter": "sensitive"}.get(exchange.turn.ending, exchange.turn.ending)

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 24, HEXADECIMAL)}"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "created": exchange.created,
            "object": kind,
            "model": exchange.model,
        }

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        if exchange.turn.reasoning:
            yield {"role": "assistant", "content": "\n"}

    def reasoning_delta(self, piece: str) -> Fields:
        return {"role": "assistant", "reasoning_content": piece}

    def content_delta(self, piece: str) -> Fields:
        return {"role": "assistant", "content": piece}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        yield {"tool_calls": [self.tool_call(exchange, index, call)]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        said: Fields = {"index": 0, "delta": delta}
        return {"index": 0, "finish_reason": finish, "delta": delta} if finish else said

    def last_delta(self) -> Fields:
        return {"role": "assistant", "content": ""}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Authentication parameter not received in Header, unable to authenticate")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "token expired or incorrect")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Unknown Model, please check the model code.", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        code = {"missing_key": "1001", "wrong_key": "401", "unknown_model": "1211"}.get(refusal.reason)
        code = code or {429: "1302", 500: "500"}.get(refusal.status, "1210")
        return {"error": {"code": code, "message": refusal.message}}
