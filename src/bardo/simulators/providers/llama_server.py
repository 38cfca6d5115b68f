"""llama.cpp's llama-server: `reasoning_content`, and timings beside the usage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, at, compact, joined_text, rows
from bardo.simulators.turns import ToolCall

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
    said = "".join(
        f"[{message.get('role')}]{joined_text(message.get('content'))}" for message in rows(body.get("messages"))
    )
    off = at(body, "chat_template_kwargs.enable_thinking") is False or body.get("reasoning_effort") == "none"
    return f"{said}[assistant]{'<think></think>' if off else '<think>'}"
