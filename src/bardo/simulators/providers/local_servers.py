"""The servers that run models on one's own machines: llama.cpp's llama-server, vLLM with a reasoning parser, and SGLang.

llama-server writes `reasoning_content`, and timings beside the usage; vLLM `reasoning`, and many fields that are null; SGLang
`reasoning_content`, null where there is nothing, and `matched_stop` beside the finish reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, at, compact, joined_text, rows, without
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.turns import Conversation, ToolCall

_FINGERPRINT = "b10499-6d05498"


class LlamaServer(Chat):
    """A server on one's own machine."""

    name = "llama_server"
    catalog_name = "llama-server"
    runs_templates = True
    embeds = "any"
    needs_key = False
    models = ("Qwen3-1.7B-Q4_K_M.gguf",)
    owner = "llamacpp"
    off_switches = (("chat_template_kwargs.enable_thinking", False), ("reasoning_effort", "none"))
    choice_order = ("finish_reason", "index", "message")

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        if incoming.path == "/props":
            return whole(compact(props(models[0])))
        if incoming.path == "/apply-template" and incoming.method == "POST":
            return whole(compact({"prompt": rendered(incoming.fields)}))
        return None

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.token('reply', 32)}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "model": exchange.model,
            "system_fingerprint": _FINGERPRINT,
            "object": "chat.completion",
            "usage": self.usage(exchange),
            "id": self.reply_id(exchange),
            "timings": _timings(exchange),
        }

    def message(self, exchange: Exchange) -> Fields:
        """The reasoning comes before the content."""
        message = super().message(exchange)
        order = ("role", "reasoning_content", "content", "tool_calls")
        return {name: message[name] for name in order if name in message}

    def tool_call(self, exchange: Exchange, index: int, call: ToolCall) -> Fields:
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        return {"type": "function", "function": function, "id": call.id or exchange.token(f"call{index}", 32)}

    def usage(self, exchange: Exchange) -> Fields:
        """llama-server does not count reasoning."""
        usage = exchange.usage
        return {
            "completion_tokens": usage.output_tokens,
            "prompt_tokens": usage.input_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        }

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield {"role": "assistant", "content": None}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"finish_reason": finish, "index": 0, "delta": delta}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        chunk: Fields = {
            "choices": choices,
            "created": exchange.created,
            "id": self.reply_id(exchange),
            "model": exchange.model,
            "system_fingerprint": _FINGERPRINT,
            "object": "chat.completion.chunk",
        }
        return {**chunk, "usage": usage} if usage is not None else chunk

    def closing_chunks(self, exchange: Exchange) -> Iterator[Fields]:
        """The timings come with the last chunk, whichever that is."""
        *others, last = super().closing_chunks(exchange)
        yield from others
        yield {**last, "timings": _timings(exchange)}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Invalid API Key")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Invalid API Key")

    def error_body(self, refusal: Refusal) -> Fields:
        kinds = {401: "authentication_error", 404: "not_found_error", 503: "unavailable_error"}
        kind = kinds.get(refusal.status, "server_error" if refusal.status >= 500 else "invalid_request_error")
        return {"error": {"code": refusal.status, "message": refusal.message, "type": kind}}

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path != "/models":
            return None
        named: list[Fields] = [{"name": model, "model": model, "type": "model"} for model in models]
        listed = [{**self.model_row(model), "meta": {"n_ctx_train": 40960}} for model in models]
        return whole(compact({"models": named, "object": "list", "data": listed}))


def _timings(exchange: Exchange) -> Fields:
    usage = exchange.usage
    fresh, generated = usage.input_tokens - usage.cached_input_tokens, usage.output_tokens
    return {
        "cache_n": usage.cached_input_tokens,
        "prompt_n": fresh,
        "prompt_ms": fresh * 0.6,
        "prompt_per_token_ms": 0.6,
        "prompt_per_second": 1666.6,
        "predicted_n": generated,
        "predicted_ms": generated * 8.0,
        "predicted_per_token_ms": 8.0,
        "predicted_per_second": 125.0,
    }


_TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[assistant]"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% else %}<think>{% endif %}"
)


def props(model: str) -> Fields:
    """Return `/props`."""
    settings: Fields = {"params": {"temperature": 0.8, "reasoning_format": "auto"}, "n_ctx": 40960}
    caps: Fields = {"supports_preserve_reasoning": False, "supports_reasoning_effort": False, "supports_tools": True}
    return {
        "default_generation_settings": settings,
        "total_slots": 4,
        "model_alias": model,
        "model_path": f"models/{model}",
        "chat_template": _TEMPLATE,
        "chat_template_caps": caps,
        "build_info": "b10499-6d05498",
    }


def rendered(body: Fields) -> str:
    """Return the prompt that the template makes of a request."""
    prompt = "".join(
        f"[{message.get('role')}]{joined_text(message.get('content'))}" for message in rows(body.get("messages"))
    )
    off = at(body, "chat_template_kwargs.enable_thinking") is False or body.get("reasoning_effort") == "none"
    return f"{prompt}[assistant]{'<think></think>' if off else '<think>'}"


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
        thought, answer = exchange.turn.reasoning, exchange.turn.text
        return f"{self.opener}{thought}{self.closer}{answer}" if thought else answer

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
