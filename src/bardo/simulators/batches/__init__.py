"""The batch APIs of simulated providers."""

from __future__ import annotations

from bardo.simulators.batches.anthropic import AnthropicBatches
from bardo.simulators.batches.base import BatchServer, Play
from bardo.simulators.batches.gemini import GeminiBatches
from bardo.simulators.batches.mistral import MistralBatches
from bardo.simulators.batches.openai import GroqBatches, OpenAIBatches

_SERVERS: dict[str, type[BatchServer]] = {
    "openai_chat": OpenAIBatches,
    "openai_responses": OpenAIBatches,
    "groq": GroqBatches,
    "anthropic": AnthropicBatches,
    "gemini": GeminiBatches,
    "mistral": MistralBatches,
}


def batch_server(provider: str, play: Play) -> BatchServer | None:
    """Return the batch API of a provider by the name of its preset, or None if it has none."""
    server = _SERVERS.get(provider)
    return None if server is None else server(play)
