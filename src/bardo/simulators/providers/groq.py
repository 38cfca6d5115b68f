"""Groq: `reasoning`, `x_groq` in the first and last chunk, and the usage up to three times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat, asks_for_usage
from bardo.simulators.exchange import Exchange, Incoming, Refusal, named_event
from bardo.simulators.fields import Fields, at, without
from bardo.simulators.turns import Conversation, ToolCall

_FINGERPRINT = "fp_8d9ccea017"


class Groq(Chat):
    """api.groq.com/openai/v1."""

    name = "groq"
    catalog_name = "groq"
    base_path = "/openai/v1"
    models = ("openai/gpt-oss-120b", "qwen/qwen3-32b")
    owner = "OpenAI"
    reasoning_field = "reasoning"
    off_switches = (("reasoning_effort", "none"),)
    hiding_switches = (("include_reasoning", False), ("reasoning_format", "hidden"))
    choice_order = ("index", "message", "logprobs", "finish_reason")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        _check_reasoning_format(incoming.fields)
        for index, name in chat_request.own_fields_of_answers(incoming.fields):
            place = f"messages.{index}"
            words = f"the following must be satisfied[('{place}' : property '{name}' is unsupported)]"
            raise Refusal("bad_value", f"'{place}' : for 'role:assistant' {words}")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.uuid('reply')}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            **super().completion(exchange),
            "usage_breakdown": None,
            "system_fingerprint": _FINGERPRINT,
            "x_groq": {"id": _request_id(exchange), "seed": 1367355884},
            "service_tier": "on_demand",
        }

    def message(self, exchange: Exchange) -> Fields:
        """A message of nothing but calls has no content at all."""
        message = super().message(exchange)
        return message if exchange.turn.text else without(message, ["content"])

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"fc_{exchange.uuid(f'call{index}')}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        counted: Fields = {
            "queue_time": 0.079634197,
            "prompt_tokens": usage.input_tokens,
            "prompt_time": 0.0037813,
            "completion_tokens": usage.output_tokens,
            "completion_time": 0.222267865,
            "total_tokens": usage.total_tokens,
            "total_time": 0.226049165,
        }
        if usage.cached_input_tokens:
            counted["prompt_tokens_details"] = {"cached_tokens": usage.cached_input_tokens}
        if usage.reasoning_tokens:
            counted["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return counted

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        first, *others = super().chunks(exchange)
        yield {**first, "x_groq": {"id": _request_id(exchange), "seed": 1367355884}}
        yield from others

    def reasoning_delta(self, piece: str) -> Fields:
        return {"reasoning": piece, "channel": "analysis"}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        yield {"tool_calls": [{**self.tool_call(exchange, index, call), "index": index}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        chunk: Fields = {
            **self.envelope(exchange, "chat.completion.chunk"),
            "system_fingerprint": _FINGERPRINT,
            "choices": choices,
        }
        return {**chunk, "usage": usage, "service_tier": "on_demand"} if usage is not None else chunk

    def closing_chunks(self, exchange: Exchange) -> Iterator[Fields]:
        usage = self.usage(exchange)
        finished = self.chunk(exchange, [self.choice({}, self.finish(exchange))])
        yield {**finished, "x_groq": {"id": _request_id(exchange), "usage": usage}, "usage": usage}
        if asks_for_usage(exchange):
            yield self.chunk(exchange, [], usage)

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Invalid API Key")

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Invalid API Key")

    def error_body(self, refusal: Refusal) -> Fields:
        codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
        code = codes.get(refusal.status, refusal.reason)
        kind = "invalid_request_error" if refusal.status < 429 else "tokens" if refusal.status == 429 else None
        error: Fields = {"message": refusal.message, "type": kind or "internal_server_error", "code": code}
        return {"error": error}

    def error_events(self) -> Sequence[bytes]:
        error: Fields = {
            "message": "Tool call validation failed: attempted to call a tool which was not in request.tools",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": "",
            "status_code": 400,
        }
        return [named_event("error", {"error": error})]


def _request_id(exchange: Exchange) -> str:
    return f"req_01{exchange.token('request', 24, '0123456789abcdefghjkmnpqrstvwxyz')}"


def _check_reasoning_format(body: Fields) -> None:
    """Refuse thinking in the text beside tools or JSON, and two fields for one thing.

    console.groq.com/docs/reasoning, 2026-11, says that both are errors with the status 400; it does not give their words.
    """
    if "reasoning_format" not in body:
        return
    if "include_reasoning" in body:
        words = "`include_reasoning` and `reasoning_format` cannot be used together"
        raise Refusal("bad_value", words, parameter="reasoning_format")
    json_mode = at(body, "response_format.type") in ("json_object", "json_schema")
    if body["reasoning_format"] == "raw" and (body.get("tools") or json_mode):
        words = "`reasoning_format` must be `parsed` or `hidden` with tool use or JSON mode"
        raise Refusal("bad_value", words, parameter="reasoning_format")
