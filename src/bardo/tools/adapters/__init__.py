"""Adapters: tools declared, calls read and results written as each model family does."""

from bardo.tools.adapters.base import ToolAdapter
from bardo.tools.adapters.structured import AnthropicToolAdapter, OpenAIToolAdapter
from bardo.tools.adapters.text import HermesToolAdapter, JsonToolAdapter, QwenToolAdapter, TextToolAdapter

__all__ = [
    "AnthropicToolAdapter",
    "HermesToolAdapter",
    "JsonToolAdapter",
    "OpenAIToolAdapter",
    "QwenToolAdapter",
    "TextToolAdapter",
    "ToolAdapter",
]
