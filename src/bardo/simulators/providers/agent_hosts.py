"""The further providers of the agent's documents: BlockRun and Bankr, and the servers oMLX and lucebox. No recordings of them are known.

They follow the providers' published replies: BlockRunAI/model-catalog (2026-09-29), docs.bankr.bot, "API reference" (2026-11), jundot/omlx,
api/openai_models.py, and Luce-Org/lucebox, docs/specs (2026).
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact
from bardo.simulators.providers.messages_hosts import MessagesHost


class MessagesEndpoint(MessagesHost):
    """Anthropic's dialect at `/v1/messages` of the same server."""

    prefix = ""


class BlockRun(Chat):
    """api.blockrun.ai/v1, on credit: the list says prices for a million tokens."""

    name = "blockrun"
    catalog_name = "blockrun"
    other_dialects = (MessagesEndpoint,)
    models = ("deepseek/deepseek-chat", "anthropic/claude-haiku-4.5")
    owner = "blockrun"

    def model_row(self, model: str) -> Fields:
        return {
            **super().model_row(model),
            "owned_by": model.split("/")[0],
            "context_window": 200000,
            "max_output": 64000,
            "categories": ["chat", "coding", "vision"],
            "billing_mode": "paid",
            "pricing": {"input": 1, "output": 5, "cache_read": 0.1, "cache_write": 1.25},
        }


class Bankr(Chat):
    """llm.bankr.bot/v1: a key comes as a bearer token or in `X-API-Key`."""

    name = "bankr"
    catalog_name = "bankr"
    other_dialects = (MessagesEndpoint,)
    models = ("gemini-3-flash", "claude-haiku-4.5")
    owner = "bankr"

    def key_of(self, incoming: Incoming) -> str:
        return incoming.bearer or incoming.headers.get("x-api-key", "")

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "API key required")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Invalid or inactive API key")


class OMLX(Chat):
    """A server on one's own machine."""

    name = "omlx"
    catalog_name = "omlx"
    other_dialects = (MessagesEndpoint,)
    embeds = "any"
    needs_key = False
    models = ("Qwen3.5-122B-A10B-4bit",)
    owner = "omlx"
    off_switches = (("chat_template_kwargs.enable_thinking", False),)


class Lucebox(Chat):
    """A server on one's own machine."""

    name = "lucebox"
    catalog_name = "lucebox"
    other_dialects = (MessagesEndpoint,)
    needs_key = False
    models = ("dflash",)
    owner = "luce"
    off_switches = (("chat_template_kwargs.enable_thinking", False),)

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        if incoming.path != "/props":
            return None
        efforts = ["low", "medium", "high", "x-high", "max"]
        reasoning: Fields = {"supported": True, "default": None, "supported_efforts": efforts}
        settings: Fields = {"n_ctx": 98304, "temperature": 0.0}
        return whole(
            compact({"model_alias": models[0], "default_generation_settings": settings, "reasoning": reasoning})
        )
