"""Readers of what servers say of their models' thinking, by the names of their adapters. Pure: a body in, facts out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bardo.services.facts.introspect.answer_values import Answers
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.introspect.readers.hosted import (
    read_anthropic,
    read_blockrun,
    read_cerebras,
    read_gemini,
    read_mistral,
    read_moonshot,
    read_openai,
    read_openrouter,
    read_venice,
)
from bardo.services.facts.introspect.readers.llama_server import read_llama_server
from bardo.services.facts.introspect.readers.local import read_ds4, read_lmstudio, read_ollama, read_sglang, read_vllm

Reader = Callable[[Answers, str], dict[str, LiveFacts]]
"""Takes the answers by question and the model asked for, and returns facts by model id. Raises NotAnAnswer."""

READERS: Mapping[str, Reader] = {
    "anthropic": read_anthropic,
    "blockrun": read_blockrun,
    "cerebras": read_cerebras,
    "ds4": read_ds4,
    "gemini": read_gemini,
    "llama-server": read_llama_server,
    "lmstudio": read_lmstudio,
    "mistral": read_mistral,
    "moonshot": read_moonshot,
    "ollama": read_ollama,
    "openai": read_openai,
    "openrouter": read_openrouter,
    "sglang": read_sglang,
    "venice": read_venice,
    "vllm": read_vllm,
}

__all__ = [
    "READERS",
    "Reader",
    "read_anthropic",
    "read_blockrun",
    "read_cerebras",
    "read_ds4",
    "read_gemini",
    "read_llama_server",
    "read_lmstudio",
    "read_mistral",
    "read_moonshot",
    "read_ollama",
    "read_openai",
    "read_openrouter",
    "read_sglang",
    "read_venice",
    "read_vllm",
]
