"""Anthropic's dialect as hosts of other models speak it: a bearer token, their own paths, and no rules of Claude's models."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.demands import CLAUDE, Demands
from bardo.simulators.exchange import Incoming, Reply
from bardo.simulators.providers import anthropic_request
from bardo.simulators.providers.anthropic import Anthropic
from bardo.simulators.turns import Conversation


class MessagesHost(Anthropic):
    """A further endpoint of a server with another dialect, at `{prefix}/v1/messages`."""

    name = "messages"
    prefix = "/anthropic"

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return anthropic_request.read(incoming, budgets=False)

    def demands(self, model: str) -> Demands:
        return CLAUDE if "claude" in model else Demands(tool_names=CLAUDE.tool_names)

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        return None

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        return None


class ZAIMessages(MessagesHost):
    """api.z.ai/api/anthropic/v1/messages."""

    prefix = "/api/anthropic"


class OpenRouterMessages(MessagesHost):
    """openrouter.ai/api/v1/messages."""

    prefix = "/api"
