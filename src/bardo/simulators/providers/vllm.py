"""vLLM with a reasoning parser: `reasoning`, and many fields that are null."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal
from bardo.simulators.fields import Fields, without
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.turns import Conversation, ToolCall

_ONE_SYSTEM = re.compile(r"(?i)qwen3\.[5-9]")


class VLLM(Chat):
    """`vllm serve` on one's own machine."""

    name = "vllm"
    catalog_name = "vllm"
    runs_templates = True
    embeds = "any"
    needs_key = False
    models = ("Qwen/Qwen3-0.6B",)
    owner = "vllm"
    reasoning_field = "reasoning"
    off_switches = (
        ("chat_template_kwargs.enable_thinking", False),
        ("chat_template_kwargs.thinking", False),
        ("reasoning_effort", "none"),
    )
    hiding_switches = (("include_reasoning", False),)
    choice_order = ("index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        """Refuse to begin another message where the last one is gone on with: `add_generation_prompt` is true unless it is turned off.

        The chat template of Qwen3.5 and later refuses a system message behind the first message (vllm-project/vllm#41114, 2026-11).
        """
        body = incoming.fields
        chat_request.continues_answer({"add_generation_prompt": True, **body})
        conversation = super().decode_request(incoming, path)
        if _ONE_SYSTEM.search(conversation.model):
            chat_request.check_system_place(body)
        return conversation

    def reasoning_is_off(self, exchange: Exchange) -> bool:
        """Whether the thinking is turned off, or stands whole in the answer that the model goes on with."""
        return super().reasoning_is_off(exchange) or exchange.body.get("continue_final_message") is True

    def model_row(self, model: str) -> Fields:
        return {**super().model_row(model), "root": model, "parent": None, "max_model_len": 40960, "permission": []}

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.token('reply', 32, HEXADECIMAL)}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            **self.envelope(exchange, "chat.completion"),
            "choices": [self.whole_choice(exchange)],
            "service_tier": None,
            "system_fingerprint": None,
            "usage": self.usage(exchange),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
        }

    def message(self, exchange: Exchange) -> Fields:
        calls = [self.tool_call(exchange, index, call) for index, call in exchange.calls()]
        return {
            "role": "assistant",
            "content": self.whole_content(exchange),
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "tool_calls": calls,
            "reasoning": exchange.turn.reasoning or None,
        }

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"chatcmpl-tool-{exchange.token(f'call{index}', 16, HEXADECIMAL)}"

    def usage(self, exchange: Exchange) -> Fields:
        """vLLM does not count reasoning, and tells of cached tokens only where there are some (and `--enable-prompt-tokens-details`)."""
        cached = exchange.usage.cached_input_tokens
        details = {"cached_tokens": cached} if cached else None
        return {**without(super().usage(exchange), ["completion_tokens_details"]), "prompt_tokens_details": details}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**choice, "stop_reason": None} if finish else choice

    def last_delta(self) -> Fields:
        return {"content": ""}

    def error_body(self, refusal: Refusal) -> Fields:
        kind = {401: "Unauthorized", 404: "NotFoundError", 500: "InternalServerError"}.get(refusal.status)
        error: Fields = {
            "message": refusal.message,
            "type": kind or "BadRequestError",
            "param": refusal.parameter,
            "code": refusal.status,
        }
        return {"error": error}


class InlineThink(VLLM):
    """vLLM without a reasoning parser: tags in the content."""

    name = "inline_think"
    opener = "<think>\n"
    closer = "\n</think>\n\n"

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        """Refuse a budget for thinking: the server knows no delimiters (vllm-project/vllm#57830, 2026-09)."""
        conversation = super().decode_request(incoming, path)
        if incoming.fields.get("thinking_token_budget") is not None:
            words = "thinking_token_budget is set but reasoning_config is not configured. Please set --reasoning-parser and/or"
            raise Refusal("bad_value", f"{words} --reasoning-config to use thinking_token_budget.")
        return conversation

    def message(self, exchange: Exchange) -> Fields:
        return {**super().message(exchange), "reasoning": None}

    def whole_content(self, exchange: Exchange) -> object:
        thought, said = exchange.turn.reasoning, exchange.turn.text
        return f"{self.opener}{thought}{self.closer}{said}" if thought else said

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield from self.opening_deltas(exchange)
        for piece in self._tagged_text(exchange):
            yield self.content_delta(piece)
        for index, call in exchange.calls():
            yield from self.call_deltas(exchange, index, call)

    def _tagged_text(self, exchange: Exchange) -> Iterator[str]:
        if exchange.turn.reasoning:
            yield from _halves(self.opener)
            yield from exchange.pieces(exchange.turn.reasoning)
            yield from _halves(self.closer)
        yield from exchange.pieces(exchange.turn.text)


class InlineThinkImplicit(InlineThink):
    """The same, where the prompt's template already opened the tag, so that the reply only closes it."""

    name = "inline_think_implicit"
    models = ("Qwen/Qwen3-4B-Thinking-2507",)
    opener = ""


def _halves(tag: str) -> Sequence[str]:
    """Cut a tag in two: tokenizers do."""
    middle = tag.find("think") + 2
    return (tag[:middle], tag[middle:]) if tag else ()
