"""SGLang: `reasoning_content`, null where there is nothing, `matched_stop` beside the finish reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.turns import Conversation, ToolCall


class SGLang(Chat):
    """A server on one's own machine. No recording of it is known; this follows its published replies."""

    name = "sglang"
    catalog_name = "sglang"
    runs_templates = True
    embeds = "any"
    needs_key = False
    models = ("Qwen/Qwen3-0.6B",)
    owner = "sglang"
    off_switches = (("chat_template_kwargs.enable_thinking", False), ("chat_template_kwargs.thinking", False))
    choice_order = ("index", "message", "logprobs", "finish_reason", "matched_stop")
    call_order = ("id", "index", "type", "function")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        chat_request.continues_answer(incoming.fields)
        return super().decode_request(incoming, path)

    def reasoning_is_off(self, exchange: Exchange) -> bool:
        """Whether the thinking is turned off, or stands whole in the answer that the model goes on with."""
        return super().reasoning_is_off(exchange) or exchange.body.get("continue_final_message") is True

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        if incoming.path == "/get_model_info":
            return whole(compact({"model_path": models[0], "tokenizer_path": models[0], "is_generation": True}))
        if incoming.path not in ("/get_server_info", "/server_info"):
            return None
        parsers: Fields = {"reasoning_parser": "qwen3", "tool_call_parser": "qwen25"}
        return whole(
            compact({"model_path": models[0], "served_model_name": models[0], "context_length": 40960, **parsers})
        )

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.token("reply", 32, HEXADECIMAL)

    def completion(self, exchange: Exchange) -> Fields:
        return {**super().completion(exchange), "metadata": {"weight_version": "default"}}

    def message(self, exchange: Exchange) -> Fields:
        calls = [self.tool_call(exchange, index, call) for index, call in exchange.calls()]
        return {
            "role": "assistant",
            "content": exchange.turn.text or None,
            "reasoning_content": exchange.turn.reasoning or None,
            "tool_calls": calls or None,
        }

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 24, HEXADECIMAL)}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "total_tokens": usage.total_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": None,
            "reasoning_tokens": usage.reasoning_tokens,
        }

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        empty: Fields = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
        for delta in super().deltas(exchange):
            yield {**empty, **delta}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "matched_stop": None}

    def error_body(self, refusal: Refusal) -> Fields:
        """The error is not inside an `error` object, except for keys."""
        if refusal.status == 401:
            return {"error": "Unauthorized"}
        kind = "BadRequest" if refusal.status < 500 else "InternalServerError"
        return {
            "object": "error",
            "message": refusal.message,
            "type": kind,
            "param": refusal.parameter,
            "code": refusal.status,
        }
