"""ds4: `reasoning_content`, few levels of which several act alike, and `/props` that says so."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.chat import Chat
from bardo.simulators.fields import Fields, compact
from bardo.simulators.incoming import Incoming
from bardo.simulators.reply import Reply, whole


class DS4(Chat):
    """A server on one's own machine. No recording of it is known; this follows the form proposed for its `/props`."""

    name = "ds4"
    catalog_name = "openai-compatible"
    needs_key = False
    models = ("deepseek-v4-flash",)
    owner = "ds4"
    off_switches = (("think", False), ("reasoning_effort", "none"), ("thinking.type", "disabled"))

    def described(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
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
