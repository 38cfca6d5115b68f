"""All simulated providers, by the names of their presets."""

from __future__ import annotations

from bardo.simulators.provider import Provider
from bardo.simulators.providers.agent_hosts import OMLX, Bankr, BlockRun, Lucebox
from bardo.simulators.providers.anthropic import Anthropic
from bardo.simulators.providers.bedrock import Bedrock
from bardo.simulators.providers.cerebras import Cerebras
from bardo.simulators.providers.chat_variants import DS4, Fireworks, LMStudio, Moonshot
from bardo.simulators.providers.clouds import Azure, Vertex, VertexAnthropic
from bardo.simulators.providers.cohere import Cohere
from bardo.simulators.providers.deepseek import DeepSeek
from bardo.simulators.providers.gemini import Gemini
from bardo.simulators.providers.gemini_interactions import GeminiInteractions
from bardo.simulators.providers.groq import Groq
from bardo.simulators.providers.llama_server import LlamaServer
from bardo.simulators.providers.minimax import MiniMax
from bardo.simulators.providers.mistral import Mistral
from bardo.simulators.providers.ollama import Ollama
from bardo.simulators.providers.ollama_native import OllamaNative
from bardo.simulators.providers.openai_chat import OpenAIChat
from bardo.simulators.providers.openai_responses import OpenAIResponses
from bardo.simulators.providers.openrouter import OpenRouter
from bardo.simulators.providers.qwen import Qwen
from bardo.simulators.providers.sglang import SGLang
from bardo.simulators.providers.venice import Venice
from bardo.simulators.providers.vllm import VLLM, InlineThink, InlineThinkImplicit
from bardo.simulators.providers.watsonx import Watsonx
from bardo.simulators.providers.xai import XAI
from bardo.simulators.providers.zai import ZAI

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
