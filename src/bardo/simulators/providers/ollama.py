"""Ollama's OpenAI-compatible route: `reasoning`, short ids, calls that come whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators.chat import Chat
from bardo.simulators.demands import Demands, ollama_demands
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply
from bardo.simulators.fields import Fields, compact
from bardo.simulators.marks import DIGITS, LOWER
from bardo.simulators.providers.ollama_native import shown
from bardo.simulators.turns import ToolCall


class Ollama(Chat):
    """A server on one's own machine, port 11434."""

    name = "ollama"
    catalog_name = "ollama-openai"
    embeds = "any"
    needs_key = False
    models = ("gpt-oss:120b", "qwen3:latest")
    owner = "library"
    reasoning_field = "reasoning"
    off_switches = (("reasoning_effort", "none"), ("reasoning.effort", "none"))
    call_order = ("id", "index", "type", "function")

    def demands(self, model: str) -> Demands:
        return replace(ollama_demands(model), tool_names=super().demands(model).tool_names)

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        return shown(incoming, models)

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.token('reply', 3, DIGITS)}"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        return {**super().envelope(exchange, kind), "system_fingerprint": "fp_ollama"}

    def encode_json(self, value: Fields) -> bytes:
        return compact(value) + b"\n"

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 8, LOWER)}"

    def usage(self, exchange: Exchange) -> Fields:
        """Ollama does not count reasoning."""
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        }

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """The role comes with the first thing said."""
        first, *others = [delta for delta in super().deltas(exchange) if "role" not in delta] or [{"content": ""}]
        yield {"role": "assistant", **first}
        yield from others

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": "", "reasoning": piece}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        yield {"content": "", "tool_calls": [self.tool_call(exchange, index, call)]}

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f'model "{model}" not found, try pulling it first')

    def error_body(self, refusal: Refusal) -> Fields:
        kinds = {400: "invalid_request_error", 404: "not_found_error"}
        error: Fields = {"message": refusal.message, "type": kinds.get(refusal.status, "api_error")}
        return {"error": {**error, "param": None, "code": None}}
