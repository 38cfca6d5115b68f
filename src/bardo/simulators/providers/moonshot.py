"""Moonshot: `reasoning_content`, and a list of models that says which of them think."""

from __future__ import annotations

from bardo.simulators.chat import Chat
from bardo.simulators.conversation import Conversation
from bardo.simulators.fields import Fields
from bardo.simulators.incoming import Incoming
from bardo.simulators.thinking_back import check_moonshot


class Moonshot(Chat):
    """api.moonshot.ai/v1. No recording of it is known; this follows its published replies."""

    name = "moonshot"
    catalog_name = "moonshot"
    models = ("kimi-k3", "moonshot-v1-8k")
    owner = "moonshot"
    usage_place = "finish"
    off_switches = (("thinking.type", "disabled"),)

    def read(self, incoming: Incoming, path: str) -> Conversation:
        asked = super().read(incoming, path)
        check_moonshot(incoming)
        return asked

    def model_row(self, model: str) -> Fields:
        thinks = not model.startswith("moonshot-v1")
        return {
            **super().model_row(model),
            "context_length": 262144,
            "supports_image_in": False,
            "supports_reasoning": thinks,
        }
