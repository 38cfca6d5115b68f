"""Providers that write `reasoning_content` and differ from OpenAI's chat in a few fields.

DeepSeek gives usage in the chunk with the finish reason, and cache hits and misses. Qwen on DashScope gives null content while thinking,
and fields in an order of its own. Z.ai gives a line break of content before the reasoning, the role in every delta, and usage in the
finish chunk. ds4, LM Studio, Moonshot and Fireworks differ least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.demands import Demands, Rule
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, at, compact, fields, number, rows
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.provider import masked
from bardo.simulators.providers.anthropic import MessagesHost, ZAIMessages
from bardo.simulators.thinking_behaviour import check_deepseek, check_moonshot
from bardo.simulators.turns import Conversation, ToolCall

# theopenco/llmgateway#3462, 2026-08.
_NO_DEVELOPER = (
    "Failed to deserialize the JSON body into the target type: messages[{place}].role: unknown variant `developer`, expected one of "
    "`system`, `user`, `assistant`, `tool`, `latest_reminder` at line 1 column {column}"
)


class DeepSeek(Chat):
    """api.deepseek.com."""

    name = "deepseek"
    catalog_name = "deepseek"
    other_dialects = (MessagesHost,)
    base_path = ""
    models = ("deepseek-v4-flash", "deepseek-v4-pro")
    owner = "deepseek"
    usage_place = "finish"
    checks_tool_messages = True
    off_switches = (("thinking.type", "disabled"), ("reasoning_effort", "none"))
    choice_order = ("index", "message", "logprobs", "finish_reason")
    call_order = ("index", "id", "type", "function")

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return super().is_generation_path(incoming, path.removeprefix("/v1"))  # Both paths exist.

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        check_deepseek(incoming)
        if (index := chat_request.developer_message(incoming.fields)) is not None:
            raise Refusal("bad_value", _NO_DEVELOPER.format(place=index, column=len(incoming.raw)))
        return conversation

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return super().list_models(path.removeprefix("/v1"), models)

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.uuid("reply")

    def completion(self, exchange: Exchange) -> Fields:
        return {**super().completion(exchange), "system_fingerprint": _FINGERPRINT}

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{index:02}_{exchange.token(f'call{index}', 20)}"

    def usage(self, exchange: Exchange) -> Fields:
        cached = exchange.usage.cached_input_tokens
        return {
            **super().usage(exchange),
            "prompt_cache_hit_tokens": cached,
            "prompt_cache_miss_tokens": exchange.usage.input_tokens - cached,
        }

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        if exchange.turn.reasoning:
            yield {"role": "assistant", "content": None, "reasoning_content": ""}
        else:
            yield {"role": "assistant", "content": ""}

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """Where the model reasoned, a delta of text names the other field too."""
        for delta in super().deltas(exchange):
            speaks = "content" in delta and "reasoning_content" not in delta
            yield {**delta, "reasoning_content": None} if speaks and exchange.turn.reasoning else delta

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": None, "reasoning_content": piece}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {
            **self.envelope(exchange, "chat.completion.chunk"),
            "system_fingerprint": _FINGERPRINT,
            "choices": choices,
            "usage": usage,
        }

    def last_delta(self) -> Fields:
        return {"content": "", "reasoning_content": None}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Authentication Fails (auth header is missing)")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", f"Authentication Fails, Your api key: {masked(key)} is invalid")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Model Not Exist", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        kind = {401: "authentication_error", 402: "unknown_error", 429: "rate_limit_error"}.get(refusal.status)
        kind = kind or ("server_error" if refusal.status >= 500 else "invalid_request_error")
        error: Fields = {"message": refusal.message, "type": kind, "param": None, "code": "invalid_request_error"}
        return {"error": error}


_FINGERPRINT = "fp_058df29938_prod0820_fp8_kvcache_20260402"


class Qwen(Chat):
    """dashscope-intl.aliyuncs.com/compatible-mode/v1."""

    name = "qwen"
    catalog_name = "qwen"
    checks_tool_messages = True
    embeds = "any"
    base_path = "/compatible-mode/v1"
    models = ("qwen3-max", "qwen3.5-plus")
    off_switches = (("enable_thinking", False),)
    choice_order = ("message", "finish_reason", "index", "logprobs")
    call_order = ("id", "type", "function", "index")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        """Refuse the role `developer`, and a forced tool while the model thinks: proma-ai/Proma#1496 and cloudwego/eino#994, 2026."""
        conversation = super().decode_request(incoming, path)
        body = incoming.fields
        if (index := chat_request.developer_message(body)) is not None:
            roles = "['system', 'assistant', 'user', 'tool', 'function']"
            raise Refusal("bad_value", f"developer is not one of {roles} - 'messages.['{index}].role'")
        forced = body.get("tool_choice")
        if body.get("enable_thinking", conversation.model.startswith("qwen3.5")) is True and (
            forced == "required" or isinstance(forced, dict)
        ):
            words = "The tool_choice parameter does not support being set to required or object in thinking mode"
            raise Refusal("bad_value", f"<400> InternalError.Algo.InvalidParameter: {words}")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.uuid('reply')}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "choices": [self.whole_choice(exchange)],
            "object": "chat.completion",
            "usage": self.usage(exchange),
            "created": exchange.created,
            "system_fingerprint": None,
            "model": exchange.model,
            "id": self.reply_id(exchange),
        }

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 24, HEXADECIMAL)}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        counted: Fields = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        }
        if usage.reasoning_tokens:
            counted["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return {**counted, "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens}}

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        if exchange.turn.reasoning:
            yield {"content": None, "role": "assistant", "reasoning_content": ""}
        else:
            yield {"content": "", "role": "assistant"}

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": None, "reasoning_content": piece}

    def content_delta(self, piece: str) -> Fields:
        return {"content": piece, "reasoning_content": None}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Every fragment after the first has an empty id."""
        opened, *_ = super().call_deltas(exchange, index, call)
        yield {"content": None, **opened}
        for piece in exchange.pieces(call.arguments_text):
            function: Fields = {"arguments": piece}
            fragment: Fields = {"index": index, "id": "", "type": "function", "function": function}
            yield {"content": None, "tool_calls": [fragment]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"delta": delta, "finish_reason": finish, "index": 0, "logprobs": None}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {
            "choices": choices,
            "object": "chat.completion.chunk",
            "usage": usage,
            "created": exchange.created,
            "system_fingerprint": None,
            "model": exchange.model,
            "id": self.reply_id(exchange),
        }

    def last_delta(self) -> Fields:
        return {"content": "", "reasoning_content": None}

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Incorrect API key provided. ")


class ZAI(Chat):
    """api.z.ai/api/paas/v4."""

    name = "zai"
    catalog_name = "zai"
    other_dialects = (ZAIMessages,)
    base_path = "/api/paas/v4"
    embeds = "any"
    models = ("glm-4.5-air", "glm-4.7")
    owner = "z-ai"
    usage_place = "finish"
    off_switches = (("thinking.type", "disabled"),)
    choice_order = ("finish_reason", "index", "message")
    call_order = ("id", "index", "type", "function")

    def demands(self, model: str) -> Demands:
        words = "stop supports at most {most} item, but got {given}"
        return replace(super().demands(model), most_stops=1, too_many_stops=words)

    def reply_id(self, exchange: Exchange) -> str:
        return f"20260701073942{exchange.token('reply', 16, HEXADECIMAL)}"

    def completion(self, exchange: Exchange) -> Fields:
        reply_id = self.reply_id(exchange)
        return {
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "id": reply_id,
            "model": exchange.model,
            "object": "chat.completion",
            "request_id": reply_id,
            "usage": self.usage(exchange),
        }

    def finish(self, exchange: Exchange) -> str:
        return {"content_filter": "sensitive"}.get(exchange.turn.ending, exchange.turn.ending)

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 24, HEXADECIMAL)}"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        return {"id": self.reply_id(exchange), "created": exchange.created, "object": kind, "model": exchange.model}

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        if exchange.turn.reasoning:
            yield {"role": "assistant", "content": "\n"}

    def reasoning_delta(self, piece: str) -> Fields:
        return {"role": "assistant", "reasoning_content": piece}

    def content_delta(self, piece: str) -> Fields:
        return {"role": "assistant", "content": piece}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        yield {"tool_calls": [self.tool_call(exchange, index, call)]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"index": 0, "delta": delta}
        return {"index": 0, "finish_reason": finish, "delta": delta} if finish else choice

    def last_delta(self) -> Fields:
        return {"role": "assistant", "content": ""}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Authentication parameter not received in Header, unable to authenticate")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "token expired or incorrect")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Unknown Model, please check the model code.", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        code = {"missing_key": "1001", "wrong_key": "401", "unknown_model": "1211"}.get(refusal.reason)
        code = code or {429: "1302", 500: "500"}.get(refusal.status, "1210")
        return {"error": {"code": code, "message": refusal.message}}


class DS4(Chat):
    """A server on one's own machine. No recording of it is known; this follows the form proposed for its `/props`."""

    name = "ds4"
    catalog_name = "openai-compatible"
    runs_templates = True
    needs_key = False
    models = ("deepseek-v4-flash",)
    owner = "ds4"
    off_switches = (("think", False), ("reasoning_effort", "none"), ("thinking.type", "disabled"))

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        if incoming.path != "/props":
            return None
        reasoning: Fields = {
            "supported_efforts": ["none", "high", "max"],
            "aliases": {"minimal": "high", "low": "high", "medium": "high", "xhigh": "high"},
            "default": "high",
            "effective_default": "high",
            "think_max_min_context": 393216,
        }
        return whole(compact({"model": models[0], "n_ctx": 100000, "reasoning": reasoning}))


class LMStudio(Chat):
    """A server on one's own machine. No recording of it is known; this follows its published replies."""

    name = "lmstudio"
    catalog_name = "lmstudio"
    runs_templates = True
    embeds = "any"
    needs_key = False
    models = ("openai/gpt-oss-20b", "qwen/qwen3-8b")
    owner = "organization_owner"
    off_switches = (("reasoning_effort", "none"), ("reasoning", "off"))

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        if incoming.path != "/api/v1/models":
            return None
        return whole(compact({"models": [_lmstudio_row(model) for model in models]}))


def _lmstudio_row(model: str) -> Fields:
    levelled = "gpt-oss" in model
    options = ["low", "medium", "high"] if levelled else ["off", "on"]
    reasoning: Fields = {"allowed_options": options, "default": "medium" if levelled else "on"}
    return {
        "type": "llm",
        "publisher": model.split("/")[0],
        "key": model,
        "display_name": model,
        "max_context_length": 131072,
        "loaded_instances": [],
        "capabilities": {"vision": False, "trained_for_tool_use": True, "reasoning": reasoning},
    }


_KEYWORDS = frozenset(
    (
        "$defs", "$id", "$ref", "additionalProperties", "anyOf", "default", "description", "enum", "items", "maxItems", "maxLength",
        "maximum", "minItems", "minLength", "minimum", "properties", "required", "title", "type",
    )
)  # fmt: skip
_FLAVOURED = (
    "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path '{path}': {words}>"
)


def _check_flavoured(place: str, schema: Fields) -> None:
    """Refuse what Moonshot's validator refuses (MoonshotAI/walle, docs/mfjs-walle-vs-draft-2020-12.md; MoonshotAI/kimi-cli#1595, 2026)."""
    waiting: list[tuple[str, object]] = [("root", schema)] if schema else []
    while waiting:
        path, node = waiting.pop()
        words = ""
        if not isinstance(node, dict) or not any(name in node for name in ("type", "anyOf", "$ref")):
            words = "type is not defined"
        elif "type" in node and ("anyOf" in node or "$ref" in node):
            words = "when using anyOf, type should be defined in anyOf items instead of the parent schema"
        elif unknown := sorted(node.keys() - _KEYWORDS):
            words = f"invalid keywords: {unknown[0]}"
        elif path != "root" and "$defs" in node:
            words = "$defs must be at the root"
        elif isinstance(node.get("$ref"), str) and not str(node["$ref"]).startswith(("#/$defs/", "#")):
            words = "references must start with #/$defs/"
        if words or not isinstance(node, dict):
            raise Refusal("bad_value", _FLAVOURED.format(path=path, words=words), parameter=place)
        for name in ("properties", "$defs"):
            waiting += [(f"{path}.{name}.{key}", value) for key, value in fields(node.get(name)).items()]
        waiting += [(f"{path}.anyOf", arm) for arm in rows(node.get("anyOf"))]
        if "items" in node:
            waiting.append((f"{path}.items", node["items"]))
        if fields(node.get("additionalProperties")):
            waiting.append((f"{path}.additionalProperties", node["additionalProperties"]))


class Moonshot(Chat):
    """api.moonshot.ai/v1. No recording of it is known; this follows its published replies."""

    name = "moonshot"
    catalog_name = "moonshot"
    checks_tool_messages = True
    other_dialects = (MessagesHost,)
    models = ("kimi-k3", "moonshot-v1-8k")
    owner = "moonshot"
    usage_place = "finish"
    off_switches = (("thinking.type", "disabled"),)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        check_moonshot(incoming)
        return conversation

    def demands(self, model: str) -> Demands:
        words = (
            "Invalid request: function name is invalid, must start with a letter and can contain letters, numbers, underscores, and "
            "dashes"
        )
        root = _FLAVOURED.format(
            path="root", words="when using anyOf, type should be defined in anyOf items instead of the parent schema"
        )
        return replace(
            super().demands(model),
            tool_names=Rule(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", words),
            plain_root=root.replace("{", "{{").replace("}", "}}"),
            check_schema=_check_flavoured,
        )

    def model_row(self, model: str) -> Fields:
        thinks = not model.startswith("moonshot-v1")
        return {
            **super().model_row(model),
            "context_length": 262144,
            "supports_image_in": False,
            "supports_reasoning": thinks,
        }


class Fireworks(Chat):
    """api.fireworks.ai/inference/v1."""

    name = "fireworks"
    catalog_name = "fireworks"
    runs_templates = True
    embeds = "any"
    base_path = "/inference/v1"
    models = ("accounts/fireworks/models/glm-5", "accounts/fireworks/models/kimi-k2p5")
    owner = "fireworks"
    usage_place = "always"
    off_switches = (("reasoning_effort", "none"), ("reasoning_effort", False), ("thinking.type", "disabled"))
    call_order = ("index", "id", "type", "function", "name")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        # Refuse two fields for thinking, and budgets below the least. docs.fireworks.ai (as of 2026-11) gives the
        # rules, not the words: `reasoning_effort` as a whole number is a budget of at least 1, `thinking.budget_tokens`
        # of at least 1,024, and only one of the two may be there.
        body = incoming.fields
        if "thinking" in body and "reasoning_effort" in body:
            raise Refusal("bad_value", "Cannot specify both 'thinking' and 'reasoning_effort'")
        effort, budget = number(body.get("reasoning_effort")), number(at(body, "thinking.budget_tokens"))
        if effort is not None and effort < 1:
            raise Refusal("bad_value", "reasoning_effort must be a positive integer", parameter="reasoning_effort")
        if budget is not None and budget < 1024:
            raise Refusal("bad_value", "thinking.budget_tokens: Input should be greater than or equal to 1024")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.token('reply', 32, HEXADECIMAL)}"

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"functions.{call.name}:{index}"

    def usage(self, exchange: Exchange) -> Fields:
        """Fireworks does not count reasoning."""
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "total_tokens": usage.total_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        }

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield {"role": "assistant"}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "finish_reason": finish, "raw_output": None}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {**self.envelope(exchange, "chat.completion.chunk"), "choices": choices, "usage": usage}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "The API key you provided is invalid.")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "The API key you provided is invalid.")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Model not found, inaccessible, and/or not deployed")

    def error_body(self, refusal: Refusal) -> Fields:
        kind, code = {
            401: ("error", "UNAUTHORIZED"),
            404: ("error", "NOT_FOUND"),
            429: ("error", "RATE_LIMIT_EXCEEDED"),
        }.get(refusal.status, ("invalid_request_error" if refusal.status < 500 else "internal_server_error", None))
        error: Fields = {"object": "error", "type": kind, "message": refusal.message}
        return {"error": {**error, "code": code} if code else error}
