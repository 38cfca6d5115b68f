"""Hosts of models of other makers: their own keys and paths, and else the maker's dialect.

These are Azure and Vertex AI, and the further providers of the agent's documents: BlockRun and Bankr, and the servers oMLX and lucebox.
No recordings of the latter are known. They follow the providers' published replies: BlockRunAI/model-catalog (2026-09-29),
docs.bankr.bot, "API reference" (2026-11), jundot/omlx, api/openai_models.py, and Luce-Org/lucebox, docs/specs (2026).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact, text
from bardo.simulators.providers import anthropic_request
from bardo.simulators.providers.anthropic import Anthropic, MessagesHost
from bardo.simulators.providers.gemini import Gemini
from bardo.simulators.providers.openai_chat import OpenAIChat
from bardo.simulators.providers.openai_responses import OpenAIResponses
from bardo.simulators.turns import Conversation

_PROJECT = "/projects/simulated/locations/us-central1/publishers"
_VERSION = "vertex-2023-10-16"
_UNAUTHENTICATED = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential."
)


class AzureChat(OpenAIChat):
    """{resource}.openai.azure.com/openai/v1/chat/completions."""

    base_path = "/openai/v1"

    def key_of(self, incoming: Incoming) -> str:
        return incoming.headers.get("api-key", "") or incoming.bearer


class Azure(OpenAIResponses):
    """{resource}.openai.azure.com/openai/v1: a key in `api-key`, and OpenAI's two dialects."""

    name = "azure"
    catalog_name = "azure"
    base_path = "/openai/v1"
    other_dialects = (AzureChat,)

    def key_of(self, incoming: Incoming) -> str:
        return incoming.headers.get("api-key", "") or incoming.bearer


class Vertex(Gemini):
    """{location}-aiplatform.googleapis.com: Gemini's dialect below a project, with an access token instead of a key."""

    name = "vertex"
    catalog_name = "vertex"
    base_path = f"/v1beta1{_PROJECT}/google"
    prefix = base_path

    def key_of(self, incoming: Incoming) -> str:
        return incoming.bearer

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", _UNAUTHENTICATED)

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", _UNAUTHENTICATED)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return super().is_generation_path(incoming, f"/v1beta{path}")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return super().decode_request(incoming, f"/v1beta{path}")

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        return None

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return None


class VertexAnthropic(Anthropic):
    """Claude at Vertex AI: the model is in the path, and the version of the dialect in the body."""

    name = "vertex_anthropic"
    catalog_name = "vertex-anthropic"
    base_path = f"/v1{_PROJECT}/anthropic"
    prefix = base_path
    models = ("claude-sonnet-4-5@20250929", "claude-opus-4-8")

    def key_of(self, incoming: Incoming) -> str:
        return incoming.bearer

    def check_key(self, incoming: Incoming, key: str | None) -> None:
        super(Anthropic, self).check_key(incoming, key)

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", _UNAUTHENTICATED)

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", _UNAUTHENTICATED)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return _CALLED.fullmatch(path) is not None

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        return None

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        """Read the body as Claude's own API would, after what only Vertex AI asks for."""
        match = _CALLED.fullmatch(path)
        body = dict(incoming.fields)
        if "model" in body:
            raise Refusal("unknown_field", "model: Extra inputs are not permitted", parameter="model")
        if text(body.pop("anthropic_version", None)) != _VERSION:
            raise Refusal("missing_field", "anthropic_version: Field required", parameter="anthropic_version")
        model, method = match.groups() if match is not None else ("", "")
        if (method == "streamRawPredict") != (body.get("stream") is True):
            raise Refusal("bad_value", f"{method} does not fit stream", parameter="stream")
        return anthropic_request.read(replace(incoming, body={**body, "model": model}))

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return None


_CALLED = re.compile(r"/models/([^/:]+):(rawPredict|streamRawPredict)")


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
