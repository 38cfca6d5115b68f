"""OpenAI's Chat Completions: reasoning is counted and never shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat, asks_for_usage
from bardo.simulators.demands import OPENAI_ROOT, Demands, check_openai_strict
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, pretty
from bardo.simulators.provider import masked
from bardo.simulators.turns import Conversation

_LONGEST_CALL_ID = 40
_LONGEST_NAME = 64
KEYS_PAGE = "https://platform.openai.com/account/api-keys"


class OpenAIChat(Chat):
    """api.openai.com/v1/chat/completions."""

    name = "openai_chat"
    catalog_name = "openai-chat"
    embeds = "strict"
    models = ("gpt-5.6-sol", "gpt-5-mini")
    reasoning_field = None
    checks_tool_messages = True
    off_switches = (("reasoning_effort", "none"),)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        request = super().decode_request(incoming, path)
        chat_request.check_call_ids(incoming.fields, _LONGEST_CALL_ID)
        chat_request.check_tool_names(incoming.fields, _LONGEST_NAME)
        chat_request.check_pictures(incoming.fields)
        if "max_tokens" in incoming.fields and request.model in self.models:
            words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
            raise Refusal("unsupported_field", words, parameter="max_tokens")
        return request

    def demands(self, model: str) -> Demands:
        return replace(
            super().demands(model),
            plain_root=OPENAI_ROOT,
            check_strict=check_openai_strict,
            most_stops=4,
            too_many_stops="Invalid 'stop': array too long. Expected an array with maximum length {most}, but got an array with length "
            "{given} instead.",
        )

    def completion(self, exchange: Exchange) -> Fields:
        return {**super().completion(exchange), "service_tier": "default", "system_fingerprint": None}

    def message(self, exchange: Exchange) -> Fields:
        return {**super().message(exchange), "refusal": None, "annotations": []}

    def whole_content(self, exchange: Exchange) -> object:
        return exchange.turn.text or None

    def encode_json(self, value: Fields) -> bytes:
        return pretty(value)

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield from self.opening_deltas(exchange)
        for piece in exchange.pieces(exchange.turn.text):
            yield self.content_delta(piece)
        for index, call in exchange.calls():
            yield from self.call_deltas(exchange, index, call)

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        content = "" if exchange.turn.text or not exchange.turn.tool_calls else None
        yield {"role": "assistant", "content": content, "refusal": None}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        chunk: Fields = {
            **self.envelope(exchange, "chat.completion.chunk"),
            "service_tier": "default",
            "system_fingerprint": None,
            "choices": choices,
        }
        if asks_for_usage(exchange):
            chunk["usage"] = usage
        # Letters that hide the length of a delta from whoever watches the line.
        return {**chunk, "obfuscation": exchange.token(repr(choices), 1 + len(repr(choices)) % 14)}

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def missing_key(self) -> Refusal:
        return missing_key()

    def wrong_key(self, key: str) -> Refusal:
        return wrong_key(key)

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(pretty(self.error_body(refusal)), status=refusal.status)


def missing_key() -> Refusal:
    """Encode OpenAI's refusal of a request without a key."""
    return Refusal(
        "missing_key",
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
        f"auth (i.e. Authorization: Bearer YOUR_KEY). You can obtain an API key from {KEYS_PAGE}.",
    )


def wrong_key(key: str) -> Refusal:
    """Encode OpenAI's refusal of a wrong key."""
    return Refusal("wrong_key", f"Incorrect API key provided: {masked(key)}. You can find your API key at {KEYS_PAGE}.")
