"""Qwen on DashScope: `reasoning_content`, null content while thinking, fields in an order of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal
from bardo.simulators.fields import Fields
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.turns import Conversation, ToolCall


class Qwen(Chat):
    """dashscope-intl.aliyuncs.com/compatible-mode/v1."""

    name = "qwen"
    catalog_name = "qwen"
    checks_tool_messages = True
    embeds = "any"
    base_path = "/compatible-mode/v1"
    models = ("qwen3-max", "qwen3.5-plus")
    off_switches = (("enable_thinking", False),)
    choice_order = ("message", "finish_reason", "index", "logprobs")
    call_order = ("id", "type", "function", "index")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        """Refuse the role `developer`, and a forced tool while the model thinks: proma-ai/Proma#1496 and cloudwego/eino#994, 2026."""
        conversation = super().decode_request(incoming, path)
        body = incoming.fields
        if (index := chat_request.developer_message(body)) is not None:
            roles = "['system', 'assistant', 'user', 'tool', 'function']"
            raise Refusal("bad_value", f"developer is not one of {roles} - 'messages.['{index}].role'")
        forced = body.get("tool_choice")
        if body.get("enable_thinking", conversation.model.startswith("qwen3.5")) is True and (
            forced == "required" or isinstance(forced, dict)
        ):
            words = "The tool_choice parameter does not support being set to required or object in thinking mode"
            raise Refusal("bad_value", f"<400> InternalError.Algo.InvalidParameter: {words}")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.uuid('reply')}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "choices": [self.whole_choice(exchange)],
            "object": "chat.completion",
            "usage": self.usage(exchange),
            "created": exchange.created,
            "system_fingerprint": None,
            "model": exchange.model,
            "id": self.reply_id(exchange),
        }

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 24, HEXADECIMAL)}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        counted: Fields = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        }
        if usage.reasoning_tokens:
            counted["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return {**counted, "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens}}

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        if exchange.turn.reasoning:
            yield {"content": None, "role": "assistant", "reasoning_content": ""}
        else:
            yield {"content": "", "role": "assistant"}

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": None, "reasoning_content": piece}

    def content_delta(self, piece: str) -> Fields:
        return {"content": piece, "reasoning_content": None}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Every fragment after the first has an empty id."""
        opened, *_ = super().call_deltas(exchange, index, call)
        yield {"content": None, **opened}
        for piece in exchange.pieces(call.arguments_text):
            function: Fields = {"arguments": piece}
            fragment: Fields = {"index": index, "id": "", "type": "function", "function": function}
            yield {"content": None, "tool_calls": [fragment]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"delta": delta, "finish_reason": finish, "index": 0, "logprobs": None}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {
            "choices": choices,
            "object": "chat.completion.chunk",
            "usage": usage,
            "created": exchange.created,
            "system_fingerprint": None,
            "model": exchange.model,
            "id": self.reply_id(exchange),
        }

    def last_delta(self) -> Fields:
        return {"content": "", "reasoning_content": None}

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Incorrect API key provided. ")
