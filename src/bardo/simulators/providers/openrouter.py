"""OpenRouter: `reasoning` beside `reasoning_details`, whose form depends on who made the model.

Only the vendor behind a model can read its state, so the vendor's error comes back inside OpenRouter's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from bardo.simulators import marks
from bardo.simulators.chat import DONE, Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, data_event, whole
from bardo.simulators.fields import Fields, at, compact, rows, text
from bardo.simulators.providers import gemini_request
from bardo.simulators.providers.anthropic import OpenRouterMessages
from bardo.simulators.providers.openai_responses import OpenAIResponses
from bardo.simulators.turns import Conversation, ToolCall

_EXPECTED = "Expected `thinking` or `redacted_thinking`, but found `tool_use`."


class UpstreamRefusal(Refusal):
    """The vendor's refusal: `host` is its name at OpenRouter."""

    def __init__(self, host: str, message: str) -> None:
        super().__init__("bad_value", message)
        self.host = host


def seal_detail(shape: str, model: str, reasoning: str, shown: str, *, size: int) -> str:
    """Return the state of a detail; a signature is bound to the words beside it."""
    bound = {"model": model, "said": marks.fingerprint(reasoning), "shown": marks.fingerprint(shown)}
    return marks.encode_base64(marks.sign(f"openrouter/{shape}", bound, size=size, head=b"\x12"))


def check(incoming: Incoming) -> None:
    """Refuse details that the vendor of the model cannot read, and tool calls whose details it misses."""
    body = incoming.fields
    maker = text(body.get("model")).partition("/")[0]
    for index, message in enumerate(rows(body.get("messages"))):
        details = rows(message.get("reasoning_details"))
        for detail in details:
            _check_detail(maker, index, detail)
        if rows(message.get("tool_calls")) and not any("data" in detail or "signature" in detail for detail in details):
            _check_call(body, maker, index, message)


def _check_detail(maker: str, index: int, detail: Fields) -> None:
    held = text(detail.get("signature")) or text(detail.get("data"))
    shape = _FORMATS.get(maker)
    if maker == "google" and held in gemini_request.WAIVERS:
        return
    if shape is None or (not held and maker != "anthropic"):
        return
    bound = marks.verify(f"openrouter/{shape}", marks.decode_base64(held), head=b"\x12")
    shown = marks.fingerprint(text(detail.get("text")))
    if bound is None or (maker == "anthropic" and "text" in detail and bound["shown"] != shown):
        refusal = {
            "anthropic": UpstreamRefusal(
                "Anthropic", f"messages.{index}.content.0: Invalid `signature` in `thinking` block"
            ),
            "google": UpstreamRefusal("Google AI Studio", "Corrupted thought signature."),
        }.get(maker, UpstreamRefusal(maker, "The encrypted content could not be verified."))
        raise refusal


def _check_call(body: Fields, maker: str, index: int, message: Fields) -> None:
    reasoning = at(body, "reasoning")
    thinks = isinstance(reasoning, dict) and reasoning.get("enabled") is not False and reasoning.get("effort") != "none"
    # A turn within a loop of calls and results may lack what another one of it has (BerriAI/litellm#18926, 2026-01).
    is_answered = maker == "anthropic" and thinks and index >= _last_call(body) and _answers_a_tool(body)
    if is_answered and not _loop_thinks(body):
        raise UpstreamRefusal("Anthropic", f"messages.{index}.content.0.type: {_EXPECTED}")
    if maker == "google" and gemini_request.signs_always(text(body.get("model"))) and index > _last_question(body):
        name = text(at(rows(message.get("tool_calls"))[0], "function.name"))
        raise UpstreamRefusal("Google AI Studio", gemini_request.missing(name, index + 1).message)


def _last_call(body: Fields) -> int:
    return max(index for index, message in _messages(body) if rows(message.get("tool_calls")))


def _loop_thinks(body: Fields) -> bool:
    loop = (message for index, message in _messages(body) if index > _last_question(body))
    return any(
        "signature" in one or "data" in one for message in loop for one in rows(message.get("reasoning_details"))
    )


def _answers_a_tool(body: Fields) -> bool:
    return rows(body.get("messages"))[-1].get("role") == "tool"


def _last_question(body: Fields) -> int:
    return max((index for index, message in _messages(body) if message.get("role") == "user"), default=-1)


def _messages(body: Fields) -> Iterator[tuple[int, Fields]]:
    yield from enumerate(rows(body.get("messages")))


def error_body(refusal: Refusal) -> Fields:
    """Encode a refusal: the vendor's own stands inside, as text."""
    if not isinstance(refusal, UpstreamRefusal):
        return {"error": {"message": refusal.message, "code": refusal.status}}
    raw = json.dumps({"error": {"message": refusal.message, "type": "invalid_request_error"}})
    metadata: Fields = {"raw": raw, "provider_name": refusal.host}
    return {"error": {"message": "Provider returned error", "code": refusal.status, "metadata": metadata}}


COMMENT = b": OPENROUTER PROCESSING\n\n"
_HOSTS = {"anthropic": "Anthropic", "openai": "OpenAI", "x-ai": "xAI", "google": "Google AI Studio"}
_FORMATS = {
    "anthropic": "anthropic-claude-v1",
    "openai": "openai-responses-v1",
    "x-ai": "xai-responses-v1",
    "google": "google-gemini-v1",
}
_NATIVE_FINISH = {
    "anthropic": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"},
    "openai": {"stop": "completed", "tool_calls": "completed", "length": "max_output_tokens"},
    "x-ai": {"stop": "completed", "tool_calls": "completed", "length": "max_output_tokens"},
    "google": {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"},
}


class OpenRouterResponses(OpenAIResponses):
    """Its Responses endpoint, for OpenAI's models."""

    name = "openrouter"
    catalog_name = "openrouter"
    base_path = "/api/v1"
    checks_roots = False


class OpenRouter(Chat):
    """openrouter.ai/api/v1."""

    name = "openrouter"
    catalog_name = "openrouter"
    keep_alive = COMMENT
    other_dialects = (OpenRouterMessages, OpenRouterResponses)
    embeds = "any"
    lists_without_key = True
    base_path = "/api/v1"
    models = ("anthropic/claude-haiku-4.5", "google/gemini-3-flash-preview", "openai/gpt-5", "x-ai/grok-4.1-fast")
    reasoning_field = "reasoning"
    off_switches = (("reasoning.enabled", False), ("reasoning.effort", "none"))
    hiding_switches = (("reasoning.exclude", True),)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        check(incoming)
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"gen-{exchange.created}-{exchange.token('reply', 20)}"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        return {**super().envelope(exchange, kind), "provider": _HOSTS.get(_maker(exchange), "Novita")}

    def completion(self, exchange: Exchange) -> Fields:
        return {
            **self.envelope(exchange, "chat.completion"),
            "system_fingerprint": None,
            "service_tier": None,
            "choices": [self.whole_choice(exchange)],
            "usage": self.usage(exchange),
        }

    def whole_choice(self, exchange: Exchange) -> Fields:
        return {
            "index": 0,
            "logprobs": None,
            "finish_reason": self.finish(exchange),
            "native_finish_reason": _native_finish(exchange),
            "message": self.message(exchange),
        }

    def message(self, exchange: Exchange) -> Fields:
        turn, shown = exchange.turn, _shown_reasoning(exchange)
        message: Fields = {"role": "assistant", "content": turn.text or None, "refusal": None}
        message["reasoning"] = shown or None
        if turn.tool_calls:
            message["tool_calls"] = [self.tool_call(exchange, index, call) for index, call in exchange.calls()]
        if details := _details(exchange):
            message["reasoning_details"] = details
        return message

    def tool_call(self, exchange: Exchange, index: int, call: ToolCall) -> Fields:
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        return {"type": "function", "index": index, "id": self.call_id(exchange, index, call), "function": function}

    def frames(self, exchange: Exchange) -> Iterator[bytes]:
        yield from (COMMENT, COMMENT)
        for chunk in self.chunks(exchange):
            yield data_event(chunk)
        yield DONE

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        for delta in self.deltas(exchange):
            choice: Fields = {"index": 0, "delta": delta, "finish_reason": None, "native_finish_reason": None}
            yield self.chunk(exchange, [choice])
        closing: Fields = {
            "index": 0,
            "delta": {"content": "", "role": "assistant", "reasoning": None},
            "finish_reason": self.finish(exchange),
            "native_finish_reason": _native_finish(exchange),
        }
        yield self.chunk(exchange, [closing])
        # The chunk with the usage says the finish reason again.
        last = {**closing, "delta": {"content": "", "role": "assistant"}}
        yield self.chunk(exchange, [last], self.usage(exchange))

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield from self._reasoning_deltas(exchange)
        for piece in exchange.pieces(exchange.turn.text):
            yield {"content": piece, "role": "assistant"}
        for index, call in exchange.calls():
            yield from self._call_deltas(exchange, index, call)

    def _reasoning_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """Stream the text in fragments of one detail; opaque data comes whole, after it."""
        for detail in _details(exchange):
            field = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(detail["type"]), "")
            for piece in exchange.pieces(str(detail.get(field, ""))):
                fragment = {"type": detail["type"], field: piece, "format": detail["format"], "index": detail["index"]}
                yield {"content": "", "role": "assistant", "reasoning": piece, "reasoning_details": [fragment]}
            opaque = {name: value for name, value in detail.items() if name != field}
            if "signature" in opaque or "data" in opaque:
                yield {"content": "", "role": "assistant", "reasoning": None, "reasoning_details": [opaque]}

    def _call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        opened: Fields = {
            "index": index,
            "id": self.call_id(exchange, index, call),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield {"content": None, "role": "assistant", "tool_calls": [opened]}
        for piece in exchange.pieces(call.arguments_text):
            fragment: Fields = {"index": index, "function": {"arguments": piece}}
            yield {"content": None, "role": "assistant", "tool_calls": [fragment]}

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        prompt_cost, completion_cost = usage.input_tokens / 1e6, usage.output_tokens * 5 / 1e6
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "cost": prompt_cost + completion_cost,
            "is_byok": False,
            "prompt_tokens_details": {
                "cached_tokens": usage.cached_input_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
                "audio_tokens": 0,
                "video_tokens": 0,
            },
            "cost_details": {
                "upstream_inference_cost": prompt_cost + completion_cost,
                "upstream_inference_prompt_cost": prompt_cost,
                "upstream_inference_completions_cost": completion_cost,
            },
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning_tokens,
                "image_tokens": 0,
                "audio_tokens": 0,
            },
        }

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "No auth credentials found")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "User not found.")

    def check_model(self, model: str, models: Sequence[str]) -> None:
        """Raise Refusal for a model that is not in `models`: `:floor` and `:nitro` behind an id choose among the servers of the model."""
        super().check_model(model.removesuffix(":floor").removesuffix(":nitro"), models)

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"{model} is not a valid model ID", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        return error_body(refusal)

    def error_events(self) -> Sequence[bytes]:
        """An error comes as a chunk like any other, with `error` at its top; no `[DONE]` may be missing."""
        delta: Fields = {"content": "", "role": "assistant"}
        choice: Fields = {"index": 0, "delta": delta, "finish_reason": "error", "native_finish_reason": "error"}
        chunk: Fields = {
            "id": "gen-error",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "",
            "provider": "Novita",
            "error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "upstream failed"}},
            "choices": [choice],
        }
        return [data_event(chunk), DONE]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return whole(compact({"data": [_model_entry(model) for model in models]})) if path == "/models" else None


def _maker(exchange: Exchange) -> str:
    return exchange.model.split("/")[0]


def _native_finish(exchange: Exchange) -> str:
    ending = exchange.turn.ending
    return _NATIVE_FINISH.get(_maker(exchange), {}).get(ending, ending)


def _shown_reasoning(exchange: Exchange) -> str:
    turn = exchange.turn
    if turn.redacted:
        return ""
    return "\n\n".join(turn.summary) if _maker(exchange) in ("openai", "x-ai") else turn.reasoning


def _details(exchange: Exchange) -> list[Fields]:
    """Return the reasoning as its maker's own API would have it."""
    turn, maker = exchange.turn, _maker(exchange)
    if not turn.reasons or turn.hidden:
        return []
    shape = _FORMATS.get(maker, "unknown")
    shown = _shown_reasoning(exchange)
    details: list[Fields] = []
    if shown:
        field = "summary" if maker in ("openai", "x-ai") else "text"
        details.append({"type": f"reasoning.{field}", field: shown, "format": shape, "index": 0})
    if maker == "anthropic" and shown:
        details[0]["signature"] = seal_detail(shape, exchange.model, turn.reasoning, shown, size=300)
    elif maker in _FORMATS or turn.redacted:
        data = seal_detail(shape, exchange.model, turn.reasoning, "", size=400)
        details.append({"type": "reasoning.encrypted", "data": data, "format": shape, "index": len(details)})
    return details


def _model_entry(model: str) -> Fields:
    return {
        "id": model,
        "canonical_slug": model,
        "name": model,
        "created": 1735689600,
        "context_length": 200000,
        "architecture": {"modality": "text->text", "input_modalities": ["text"], "output_modalities": ["text"]},
        "pricing": {"prompt": "0.000001", "completion": "0.000005"},
        "top_provider": {"context_length": 200000, "max_completion_tokens": 64000, "is_moderated": False},
        "supported_parameters": ["include_reasoning", "max_tokens", "reasoning", "tool_choice", "tools"],
        "reasoning": _REASONING.get(model.split("/")[0], _REASONING["openai"]),
    }


_REASONING: dict[str, Fields] = {
    "anthropic": {"mandatory": False, "default_enabled": False, "supported_efforts": None, "supports_max_tokens": True},
    "google": {
        "mandatory": True,
        "default_enabled": True,
        "supported_efforts": ["minimal", "low", "medium", "high"],
        "default_effort": "high",
        "supports_max_tokens": False,
    },
    "openai": {
        "mandatory": True,
        "default_enabled": True,
        "supported_efforts": ["minimal", "low", "medium", "high"],
        "default_effort": "medium",
        "supports_max_tokens": False,
    },
    "x-ai": {"mandatory": False, "default_enabled": True, "supported_efforts": [], "supports_max_tokens": False},
}
