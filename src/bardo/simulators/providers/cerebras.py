"""Cerebras: `reasoning`, timings, usage in the finish chunk, and no `[DONE]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, data_event
from bardo.simulators.fields import Fields, rows, without
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.turns import Conversation, ToolCall

_FINGERPRINT = "fp_c5eb0443f84076c16415"


class Cerebras(Chat):
    """api.cerebras.ai/v1."""

    name = "cerebras"
    catalog_name = "cerebras"
    models = ("gpt-oss-120b", "zai-glm-4.7")
    owner = "Cerebras"
    reasoning_field = "reasoning"
    usage_place = "finish"
    ends_with_done = False
    off_switches = (("reasoning_effort", "none"), ("disable_reasoning", True))
    hiding_switches = (("reasoning_format", "hidden"),)
    choice_order = ("finish_reason", "index", "message")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        # Refuse fields that Cerebras does not have, in its words (QwenLM/qwen-code#11045 and proxysoul/Empryo#209,
        # 2026-09).
        body = incoming.fields
        wrong: list[str] = [name for name in ("reasoning", "enable_thinking", "thinking") if name in body]
        for index, message in enumerate(rows(body.get("messages"))):
            if message.get("role") == "developer":
                expected = "'system', 'user', 'assistant', 'tool'"
                words = f"Input tag 'developer' found using 'role' does not match any of the expected tags: {expected}"
                raise Refusal("bad_value", f"body.messages.{index}: {words}", status=422)
            if "reasoning_content" in message:
                wrong.append(f"messages.{index}.assistant.reasoning_content")
        wrong += [f"messages.{index}.assistant.{name}" for index, name in chat_request.own_fields_of_answers(body)]
        if wrong:
            raise Refusal("unknown_field", "\n".join(f"{name}: property '{name}' is unsupported" for name in wrong))
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.uuid('reply')}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "model": exchange.model,
            "system_fingerprint": _FINGERPRINT,
            "object": "chat.completion",
            "usage": self.usage(exchange),
            "time_info": _time_info(exchange),
        }

    def message(self, exchange: Exchange) -> Fields:
        """A message of nothing but calls has no content at all."""
        message = super().message(exchange)
        return message if exchange.turn.text else without(message, ["content"])

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or exchange.token(f"call{index}", 9, HEXADECIMAL)

    def usage(self, exchange: Exchange) -> Fields:
        """The recorded replies do not count reasoning."""
        return without(super().usage(exchange), ["completion_tokens_details"])

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield {"role": "assistant"}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        call_id = self.call_id(exchange, index, call)
        yield {"tool_calls": [{"function": function, "type": "function", "id": call_id, "index": index}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        said: Fields = {"delta": delta, "index": 0}
        return {"delta": delta, "finish_reason": finish, "index": 0} if finish else said

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        chunk: Fields = {
            "id": self.reply_id(exchange),
            "choices": choices,
            "created": exchange.created,
            "model": exchange.model,
            "system_fingerprint": _FINGERPRINT,
            "object": "chat.completion.chunk",
        }
        return {**chunk, "usage": usage, "time_info": _time_info(exchange)} if usage is not None else chunk

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Wrong API Key", parameter="api_key")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"Model {model} does not exist or you do not have access to it.")

    def error_body(self, refusal: Refusal) -> Fields:
        """The error is not inside an `error` object."""
        kind, code = {
            401: ("invalid_request_error", "wrong_api_key"),
            404: ("not_found_error", "model_not_found"),
            429: ("too_many_requests_error", "request_quota_exceeded"),
        }.get(refusal.status, ("invalid_request_error", "wrong_api_format"))
        if refusal.status >= 500:
            kind, code = "server_error", "internal_server_error"
        return {"message": refusal.message, "type": kind, "param": refusal.parameter, "code": code}

    def error_events(self) -> Sequence[bytes]:
        body = self.error_body(Refusal("trouble", "Encountered a server error, please try again.", status=500))
        return [data_event({"error": {**body, "status_code": 500}})]


def _time_info(exchange: Exchange) -> Fields:
    return {
        "queue_time": 0.00012618,
        "prompt_time": 0.002287636,
        "completion_time": 0.029923906,
        "total_time": 0.03423023223876953,
        "created": float(exchange.created),
    }
