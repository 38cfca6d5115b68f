"""xAI: reasoning tokens stand beside the completion tokens, so the total is the sum of three."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, data_event
from bardo.simulators.fields import Fields
from bardo.simulators.marks import DIGITS
from bardo.simulators.provider import masked
from bardo.simulators.providers.openai_responses import OpenAIResponses
from bardo.simulators.turns import Conversation, ToolCall

_FINGERPRINT = "fp_eb3c003fc66c14ed"


class XAIResponses(OpenAIResponses):
    """api.x.ai/v1/responses."""

    checks_roots = False


class XAI(Chat):
    """api.x.ai/v1."""

    name = "xai"
    catalog_name = "xai"
    other_dialects = (XAIResponses,)
    models = ("grok-4.3", "grok-code-fast-1")
    owner = "xai"
    usage_place = "always"
    off_switches = (("reasoning_effort", "none"),)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        # Refuse what models that think do not take (yym68686/uni-api#105), and an effort where there is none (hermes-
        # agent#23435, 2026-05).
        body = incoming.fields
        for name, word in _REFUSED.items():
            if body.get(name) and body.get("reasoning_effort") != "none":
                raise Refusal("bad_value", f"Argument not supported on this model: {word}")
        if "reasoning_effort" in body and not conversation.model.startswith(
            ("grok-4.3", "grok-3-mini", "grok-4.20-multi-agent")
        ):
            raise Refusal("bad_value", f"Model {conversation.model} does not support parameter reasoningEffort.")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.uuid("reply")

    def completion(self, exchange: Exchange) -> Fields:
        return {**super().completion(exchange), "system_fingerprint": _FINGERPRINT}

    def message(self, exchange: Exchange) -> Fields:
        return {**super().message(exchange), "refusal": None}

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 8, DIGITS)}"

    def tool_call(self, exchange: Exchange, index: int, call: ToolCall) -> Fields:
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        return {"id": self.call_id(exchange, index, call), "function": function, "type": "function"}

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.answer_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {
                "text_tokens": usage.input_tokens,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": usage.cached_input_tokens,
            },
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
            "num_sources_used": 0,
            "cost_in_usd_ticks": usage.total_tokens * 3300,
        }

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """The role comes with the first thing said."""
        first, *others = [delta for delta in super().deltas(exchange) if "role" not in delta] or [{"content": ""}]
        yield {**first, "role": "assistant"}
        yield from others

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        call_id = self.call_id(exchange, index, call)
        yield {"tool_calls": [{"id": call_id, "function": function, "index": index, "type": "function"}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"index": 0, "delta": delta}
        return {**choice, "finish_reason": finish} if finish else choice

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {**super().chunk(exchange, choices, usage), "system_fingerprint": _FINGERPRINT}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "No API key provided. Specify it in the Authorization header.")

    def wrong_key(self, key: str) -> Refusal:
        """xAI answers a wrong key with 400."""
        where = "You can obtain an API key from https://console.x.ai."
        return Refusal("wrong_key", f"Incorrect API key provided: {masked(key)}. {where}", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        code = {
            401: "The request does not have valid authentication credentials",
            404: "Some requested entity was not found",
            429: "Some resource has been exhausted",
            500: "Internal error",
            503: "The service is currently unavailable",
        }.get(refusal.status, "Client specified an invalid argument")
        return {"code": code, "error": refusal.message}

    def error_events(self) -> Sequence[bytes]:
        return [data_event({"error": {"message": "Service temporarily unavailable.", "code": 503}})]


_REFUSED = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty", "stop": "stop"}
