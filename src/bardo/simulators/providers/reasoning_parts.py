"""Providers that write reasoning in parts: Mistral and MiniMax.

Mistral's content is a list of chunks while the model thinks, and a string when it speaks. MiniMax writes the same reasoning in
`reasoning_content` and in `reasoning_details`, and no `[DONE]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.demands import MISTRAL_ORDER, Demands
from bardo.simulators.exchange import Exchange, Incoming, Refusal, data_event
from bardo.simulators.fields import Fields, rows, text
from bardo.simulators.marks import HEXADECIMAL, LOWER
from bardo.simulators.providers.anthropic import MessagesHost
from bardo.simulators.turns import Conversation, ToolCall

_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_PADDING = "abcdefghijklmnopqrstuvwxyz0123456789"


class Mistral(Chat):
    """api.mistral.ai/v1."""

    name = "mistral"
    catalog_name = "mistral"
    checks_tool_messages = True
    embeds = "strict"
    models = ("magistral-medium-latest", "mistral-small-latest")
    owner = "mistralai"
    usage_place = "finish"
    off_switches = (("reasoning_effort", "none"),)
    call_order = ("id", "type", "function", "index")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        _check_messages(rows(incoming.fields.get("messages")) if isinstance(incoming.body, dict) else [])
        # Refuse fields of an assistant's message that Mistral does not have, as it does with all others.
        for index, name in chat_request.own_fields_of_answers(incoming.fields):
            place = f"messages.{index}.assistant.{name}"
            raise Refusal("unknown_field", "Extra inputs are not permitted", parameter=place, status=422)
        return super().decode_request(incoming, path)

    def demands(self, model: str) -> Demands:
        return replace(super().demands(model), user_after_tool=MISTRAL_ORDER, check_schema=_check_schema)

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.token("reply", 32, HEXADECIMAL)

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "created": exchange.created,
            "model": exchange.model,
            "usage": self.usage(exchange),
            "object": "chat.completion",
            "choices": [self.whole_choice(exchange)],
        }

    def whole_choice(self, exchange: Exchange) -> Fields:
        return {"index": 0, "finish_reason": self.finish(exchange), "message": self.message(exchange)}

    def finish(self, exchange: Exchange) -> str:
        return {"content_filter": "error"}.get(exchange.turn.ending, exchange.turn.ending)

    def message(self, exchange: Exchange) -> Fields:
        calls = [self.tool_call(exchange, index, call) for index, call in exchange.calls()] or None
        return {"role": "assistant", "tool_calls": calls, "content": self.whole_content(exchange)}

    def whole_content(self, exchange: Exchange) -> object:
        turn = exchange.turn
        if not turn.reasoning:
            return turn.text
        return [_thought(turn.reasoning, closed=True), *([_text_chunk(turn.text)] if turn.text else [])]

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or exchange.token(f"call{index}", 9)

    def usage(self, exchange: Exchange) -> Fields:
        """Mistral does not count reasoning."""
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "total_tokens": usage.total_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        }

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        """Pad every chunk but the first, and say the finish reason with the last thing said."""
        first, *others = list(self.deltas(exchange))
        yield self.chunk(exchange, [self.choice(first, None)])
        *middle, last = others or [{"content": ""}]
        for delta in middle:
            yield self._padded(exchange, self.chunk(exchange, [self.choice(delta, None)]))
        choice = self.choice(last, self.finish(exchange))
        yield self._padded(exchange, self.chunk(exchange, [choice], self.usage(exchange)))

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield {"role": "assistant", "content": ""}
        if exchange.turn.reasoning:
            yield {"content": ""}

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield from self.opening_deltas(exchange)
        thoughts, answers = list(exchange.pieces(exchange.turn.reasoning)), list(exchange.pieces(exchange.turn.text))
        for index, piece in enumerate(thoughts):
            content = [_thought(piece, closed=index > 0)]
            if index == len(thoughts) - 1 and answers:
                content.append(_text_chunk(answers.pop(0)))
            yield {"content": content}
        for piece in answers:
            yield {"content": piece}
        if exchange.turn.tool_calls:
            yield {"tool_calls": [self.tool_call(exchange, index, call) for index, call in exchange.calls()]}

    def _padded(self, exchange: Exchange, chunk: Fields) -> Fields:
        return {**chunk, "p": _PADDING[: 1 + len(exchange.token("p", 1) + repr(chunk)) % 36]}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Unauthorized")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Unauthorized")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"Invalid model: {model}", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        if refusal.status == 401:
            return {"detail": "Unauthorized"}
        if refusal.status == 422:
            where = ["body", *(int(name) if name.isdigit() else name for name in (refusal.parameter or "").split("."))]
            return {"detail": [{"type": "union_tag_invalid", "loc": where, "msg": refusal.message}]}
        if refusal.reason == "bad_call_id":
            # The body that gptel#1203, eca#233 and mistral-vibe#1075 show.
            wrong: Fields = {"type": "invalid_function_call", "param": None, "code": "3280"}
            return {"object": "error", "message": refusal.message, **wrong}
        body: Fields = {
            "object": "error",
            "message": refusal.message,
            "type": {429: "rate_limited", 500: "internal_server_error"}.get(refusal.status, "invalid_request_error"),
            "param": refusal.parameter,
            "code": {429: "1300", 400: "1500"}.get(refusal.status),
        }
        return body

    def model_row(self, model: str) -> Fields:
        thinks = model.startswith("magistral")
        capabilities: Fields = {"completion_chat": True, "function_calling": True, "reasoning": thinks}
        return {**super().model_row(model), "capabilities": capabilities, "max_context_length": 131072, "aliases": []}


def _thought(text: str, *, closed: bool) -> Fields:
    thought: Fields = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    return {**thought, "closed": True} if closed else thought


def _text_chunk(text: str) -> Fields:
    return {"type": "text", "text": text}


def _check_schema(place: str, schema: Fields) -> None:
    """Refuse the names of a schema and of its draft (BerriAI/litellm#13389, 2025-08)."""
    if "$schema" in schema or "$id" in schema:
        raise Refusal("bad_value", "Grammar error: at 3(11): failed to compile JSON schema", parameter=place)


def _check_messages(messages: Sequence[Fields]) -> None:
    """Refuse ids of calls that are not nine letters or digits, and roles that Mistral does not have."""
    for index, message in enumerate(messages):
        if message.get("role") == "developer":
            expected = "'system', 'user', 'assistant', 'tool'"
            words = f"Input tag 'developer' found using 'role' does not match any of the expected tags: {expected}"
            raise Refusal("bad_value", words, parameter=f"messages.{index}", status=422)
        ids = [text(call.get("id")) for call in rows(message.get("tool_calls"))]
        for given in (*ids, text(message.get("tool_call_id"))):
            if given and not _CALL_ID.fullmatch(given):
                words = f"Tool call id was {given} but must be a-z, A-Z, 0-9, with a length of 9."
                raise Refusal("bad_call_id", words)


_SENSITIVE: Fields = {
    "input_sensitive": False,
    "output_sensitive": False,
    "input_sensitive_type": 0,
    "output_sensitive_type": 0,
    "output_sensitive_int": 0,
}


class MiniMax(Chat):
    """api.minimax.io/v1, with `reasoning_split`."""

    name = "minimax"
    catalog_name = "minimax"
    other_dialects = (MessagesHost,)
    models = ("MiniMax-M2.7", "MiniMax-M2.7-highspeed")
    owner = "minimax"
    usage_place = "always"
    ends_with_done = False
    off_switches = (("thinking.type", "disabled"),)
    choice_order = ("finish_reason", "index", "message")
    call_order = ("id", "type", "function", "index")

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.token("reply", 32, HEXADECIMAL)

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "model": exchange.model,
            "object": "chat.completion",
            "usage": self.usage(exchange),
            **_SENSITIVE,
            "base_resp": {"status_code": 0, "status_msg": "success"},
        }

    def message(self, exchange: Exchange) -> Fields:
        message: Fields = {**super().message(exchange), "name": "MiniMax AI", "audio_content": ""}
        return (
            {**message, "reasoning_details": [_detail(exchange.turn.reasoning)]} if exchange.turn.reasoning else message
        )

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_function_{exchange.token('calls', 12, LOWER)}_{index + 1}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        return {
            "total_tokens": usage.total_tokens,
            "total_characters": 0,
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        }

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        """The last thing said has the finish reason; a chunk with the usage follows."""
        *others, last = list(self.deltas(exchange)) or [{**_SPEAKER, "content": ""}]
        for delta in others:
            yield self.chunk(exchange, [{"index": 0, "delta": delta}])
        yield self.chunk(exchange, [{"finish_reason": self.finish(exchange), "index": 0, "delta": last}])
        closing = self.chunk(exchange, [], self.usage(exchange))
        yield {**closing, "base_resp": {"status_code": 0, "status_msg": ""}}

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield from ()

    def reasoning_delta(self, piece: str) -> Fields:
        return {**_SPEAKER, "reasoning_content": piece, "reasoning_details": [_detail(piece)]}

    def content_delta(self, piece: str) -> Fields:
        return {"content": piece, **_SPEAKER}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        yield {**_SPEAKER, "tool_calls": [self.tool_call(exchange, index, call)]}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "choices": choices,
            "created": exchange.created,
            "model": exchange.model,
            "object": "chat.completion.chunk",
            "usage": usage,
            **({} if usage else _SENSITIVE),
        }

    def missing_key(self) -> Refusal:
        where = "in the 'Authorization' field of the request header"
        return Refusal("missing_key", f"login fail: Please carry the API secret key {where} (1004)")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "invalid api key (2049)")

    def error_body(self, refusal: Refusal) -> Fields:
        kind = {401: "authorized_error", 429: "rate_limit_error"}.get(refusal.status)
        kind = kind or ("server_error" if refusal.status >= 500 else "bad_request_error")
        error: Fields = {"type": kind, "message": refusal.message, "http_code": str(refusal.status)}
        return {"type": "error", "error": error, "request_id": "0644f6fb50d24c75a5108e8d2f279ba3"}

    def error_events(self) -> Sequence[bytes]:
        """An error inside a stream comes as `base_resp` of a last chunk."""
        trouble: Fields = {"status_code": 1000, "status_msg": "unknown error"}
        return [data_event({"id": "", "choices": None, "created": 0, "model": "", "base_resp": trouble})]


_SPEAKER: Fields = {"role": "assistant", "name": "MiniMax AI", "audio_content": ""}


def _detail(text: str) -> Fields:
    return {
        "type": "reasoning.text",
        "id": "reasoning-text-1",
        "format": "MiniMax-response-v1",
        "index": 0,
        "text": text,
    }
