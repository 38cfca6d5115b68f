"""Providers that differ from OpenAI's chat in a few fields only: ds4, LM Studio, Moonshot and Fireworks. All write `reasoning_content`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators.chat import Chat
from bardo.simulators.demands import Demands, Rule
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, at, compact, fields, number, rows
from bardo.simulators.marks import HEXADECIMAL
from bardo.simulators.providers.messages_hosts import MessagesHost
from bardo.simulators.thinking_behaviour import check_moonshot
from bardo.simulators.turns import Conversation, ToolCall


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
        path, one = waiting.pop()
        words = ""
        if not isinstance(one, dict) or not any(name in one for name in ("type", "anyOf", "$ref")):
            words = "type is not defined"
        elif "type" in one and ("anyOf" in one or "$ref" in one):
            words = "when using anyOf, type should be defined in anyOf items instead of the parent schema"
        elif unknown := sorted(one.keys() - _KEYWORDS):
            words = f"invalid keywords: {unknown[0]}"
        elif path != "root" and "$defs" in one:
            words = "$defs must be at the root"
        elif isinstance(one.get("$ref"), str) and not str(one["$ref"]).startswith(("#/$defs/", "#")):
            words = "references must start with #/$defs/"
        if words or not isinstance(one, dict):
            raise Refusal("bad_value", _FLAVOURED.format(path=path, words=words), parameter=place)
        for name in ("properties", "$defs"):
            waiting += [(f"{path}.{name}.{key}", value) for key, value in fields(one.get(name)).items()]
        waiting += [(f"{path}.anyOf", arm) for arm in rows(one.get("anyOf"))]
        if "items" in one:
            waiting.append((f"{path}.items", one["items"]))
        if fields(one.get("additionalProperties")):
            waiting.append((f"{path}.additionalProperties", one["additionalProperties"]))


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
