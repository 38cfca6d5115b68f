"""All simulated providers, by the names of their presets."""

from __future__ import annotations

from bardo.simulators.provider import Provider
from bardo.simulators.providers.anthropic import Anthropic
from bardo.simulators.providers.bedrock import Bedrock
from bardo.simulators.providers.clouds import OMLX, Azure, Bankr, BlockRun, Lucebox, Vertex, VertexAnthropic
from bardo.simulators.providers.cohere import Cohere
from bardo.simulators.providers.gemini import Gemini
from bardo.simulators.providers.gemini_interactions import GeminiInteractions
from bardo.simulators.providers.local_servers import VLLM, InlineThink, InlineThinkImplicit, LlamaServer, SGLang
from bardo.simulators.providers.ollama import Ollama, OllamaNative
from bardo.simulators.providers.openai_chat import OpenAIChat
from bardo.simulators.providers.openai_responses import OpenAIResponses
from bardo.simulators.providers.openrouter import OpenRouter
from bardo.simulators.providers.own_figures import XAI, Cerebras, Groq, Venice
from bardo.simulators.providers.reasoning_content import DS4, ZAI, DeepSeek, Fireworks, LMStudio, Moonshot, Qwen
from bardo.simulators.providers.reasoning_parts import MiniMax, Mistral
from bardo.simulators.providers.watsonx import Watsonx

_PROVIDERS: tuple[type[Provider], ...] = (
    Anthropic,
    Azure,
    Bankr,
    Bedrock,
    BlockRun,
    Cerebras,
    Cohere,
    DS4,
    DeepSeek,
    Fireworks,
    Gemini,
    GeminiInteractions,
    Groq,
    InlineThink,
    InlineThinkImplicit,
    LMStudio,
    LlamaServer,
    Lucebox,
    MiniMax,
    Mistral,
    Moonshot,
    OMLX,
    Ollama,
    OllamaNative,
    OpenAIChat,
    OpenAIResponses,
    OpenRouter,
    Qwen,
    SGLang,
    VLLM,
    Venice,
    Vertex,
    VertexAnthropic,
    Watsonx,
    XAI,
    ZAI,
)

PRESETS: dict[str, type[Provider]] = {provider.name: provider for provider in _PROVIDERS}


def presets() -> list[str]:
    """Return the names of all presets, sorted."""
    return sorted(PRESETS)
