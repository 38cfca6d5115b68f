"""LM Studio: `reasoning_content`, and a list of models of its own beside the one that is like OpenAI's."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.fields import Fields, compact
from bardo.simulators.incoming import Incoming
from bardo.simulators.reply import Reply, whole


class LMStudio(Chat):
    """A server on one's own machine. No recording of it is known; this follows its published replies."""

    name = "lmstudio"
    catalog_name = "lmstudio"
    embeds = "any"
    needs_key = False
    models = ("openai/gpt-oss-20b", "qwen/qwen3-8b")
    owner = "organization_owner"
    off_switches = (("reasoning_effort", "none"), ("reasoning", "off"))

    def described(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        if incoming.path != "/api/v1/models":
            return None
        return whole(compact({"models": [_row(model) for model in models]}))


def _row(model: str) -> Fields:
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
