"""Venice: `reasoning_content`, a cost in dollars and DIEM, and its parameters given back with all defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Refusal, Reply
from bardo.simulators.fields import Fields, fields, without
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.turns import ToolCall

_PARAMETERS: Fields = {
    "disable_thinking": False,
    "enable_e2ee": True,
    "enable_web_citations": False,
    "enable_web_scraping": False,
    "enable_web_search": "off",
    "enable_x_search": False,
    "include_search_results_in_stream": False,
    "include_venice_system_prompt": True,
    "return_search_results_as_documents": False,
    "strip_thinking_response": False,
    "web_search_citations": [],
}


class Venice(Chat):
    """api.venice.ai/api/v1. `balances` are what is left of the account, as the headers of each reply say it."""

    balances: Mapping[str, str] = MappingProxyType({"diem": "12.5", "usd": "3.25"})
    name = "venice"
    catalog_name = "venice"
    runs_templates = True
    embeds = "any"
    lists_without_key = True
    base_path = "/api/v1"
    models = ("qwen3-5-9b", "zai-org-glm-4.7")
    owner = "venice.ai"
    off_switches = (
        ("reasoning.enabled", False),
        ("reasoning_effort", "none"),
        ("reasoning.effort", "none"),
        ("venice_parameters.disable_thinking", True),
    )
    hiding_switches = (("venice_parameters.strip_thinking_response", True),)
    choice_order = ("index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids")

    def encode_reply(self, exchange: Exchange) -> Reply:
        return self._with_balances(super().encode_reply(exchange))

    def encode_stream(self, exchange: Exchange) -> Reply:
        return self._with_balances(super().encode_stream(exchange))

    def _with_balances(self, reply: Reply) -> Reply:
        told = tuple((f"x-venice-balance-{name}", amount) for name, amount in self.balances.items())
        return replace(reply, headers=(*reply.headers, *told))

    def completion(self, exchange: Exchange) -> Fields:
        return {
            **self.envelope(exchange, "chat.completion"),
            "choices": [self.whole_choice(exchange)],
            "service_tier": None,
            "usage": self.usage(exchange),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
            "cost": _cost(exchange),
            "venice_parameters": {**_PARAMETERS, **fields(exchange.body.get("venice_parameters"))},
        }

    def message(self, exchange: Exchange) -> Fields:
        calls = [self.tool_call(exchange, index, call) for index, call in exchange.calls()]
        message: Fields = {
            "role": "assistant",
            "content": exchange.turn.text,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning_content": exchange.turn.reasoning or None,
        }
        return {**message, "tool_calls": calls} if calls else message

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"chatcmpl-tool-{exchange.token(f'call{index}', 32, HEXADECIMAL)}"

    def usage(self, exchange: Exchange) -> Fields:
        """Most models at Venice do not count reasoning."""
        return without(super().usage(exchange), ["completion_tokens_details"])

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": "", "reasoning_content": piece}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**choice, "stop_reason": None, "token_ids": None} if finish else {**choice, "token_ids": None}

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        first, *others = super().chunks(exchange)
        yield {**first, "prompt_token_ids": None}
        yield from others

    def closing_chunks(self, exchange: Exchange) -> Iterator[Fields]:
        for chunk in super().closing_chunks(exchange):
            yield {**chunk, "cost": _cost(exchange)} if "usage" in chunk else chunk

    def last_delta(self) -> Fields:
        return {"content": ""}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Authentication failed")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Authentication failed")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Specified model not found")

    def error_body(self, refusal: Refusal) -> Fields:
        """The error is a string."""
        return {"error": refusal.message}

    def model_row(self, model: str) -> Fields:
        capabilities: Fields = {
            "supportsReasoning": True,
            "supportsReasoningEffort": True,
            "reasoningEffortOptions": ["low", "medium", "high"],
            "defaultReasoningEffort": "medium",
            "supportsFunctionCalling": True,
            "supportsResponseSchema": True,
            "supportsTeeAttestation": model.startswith(("e2ee-", "tee-")),
        }
        specification: Fields = {
            "privacy": "private",
            "availableContextTokens": 256000,
            "pricing": {"input": {"usd": 0.1, "diem": 0.1}, "output": {"usd": 0.15, "diem": 0.15}},
            "traits": [],
            "capabilities": capabilities,
        }
        return {**super().model_row(model), "type": "text", "model_spec": specification}


def _cost(exchange: Exchange) -> Fields:
    usage = exchange.usage
    return {"usd": (usage.input_tokens * 0.1 + usage.output_tokens * 0.15) / 1e6, "diem": 0}
