"""One wire language each, both directions, pure. The table of them is here; a dialect is imported when it is first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from bardo.dialects.shared.dialect import Dialect

DIALECTS: tuple[str, ...] = (
    "anthropic_messages",
    "bedrock_converse",
    "bedrock_invoke",
    "cohere",
    "gemini",
    "gemini_interactions",
    "ollama",
    "openai_chat",
    "openai_responses",
    "watsonx_text",
)
DEFAULT_DIALECT = "openai_chat"
"""The dialect that most clients speak: for errors that are answered before a client's own is known."""
CLIENT_FORMS: tuple[str, ...] = ("ollama_generate",)
"""Further forms of a dialect, which only clients use: requests are decoded as the dialect's own."""


@cache
def dialect(name: str) -> Dialect:
    """Return the dialect called `name`. Raises KeyError for a name in neither table."""
    if name not in DIALECTS and name not in CLIENT_FORMS:
        raise KeyError(name)
    declared: Dialect = import_module(f"bardo.dialects.{name}").DIALECT
    return declared
