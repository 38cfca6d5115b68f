"""Refusals of a prompt that is longer than the model's context, in the words of each provider and each dialect.

Agents shorten their conversation when they read their own API's words for it, so that an error of another dialect says it in those.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded", "1261"})
"""Of OpenAI and those who speak its dialects, llama.cpp, Anthropic and Z.ai."""
_WORDS = re.compile(
    r"prompt is too long"  # Anthropic, Vertex
    r"|exceed(?:s|ed)? (?:the )?context (?:limit|window|length)|exceeds the context window|exceeds the available context size"
    r"|maximum (?:context|prompt) length|exceeds the model'?s (?:maximum )?context"  # OpenAI, vLLM, Mistral, xAI, OpenRouter
    r"|input token count .{0,40}exceeds the maximum number of tokens"  # Gemini
    r"|input is too long for requested model|too many input tokens"  # Bedrock
    r"|reduce the length of the messages"  # Groq
    r"|too many tokens|exceeded model token limit|prompt exceeds max length"  # Cohere, Moonshot, Z.ai
    r"|context size has been exceeded",  # LM Studio
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])\d{3,9}(?![\w.-]*[a-zA-Z])")
_SUM = re.compile(r"(\d+) \+ (\d+) >")
_LIMIT = re.compile(
    r"> (\d+)|(\d+) maximum|length (?:is|of) (\d+)|tokens allowed \((\d+)\)|context size \((\d+)"
    r"|limit(?: is| of)? (\d+)|cannot exceed (\d+)"
)
_LOOKED_AT = 600
"""Characters of a message that are looked at."""


class Overflow(NamedTuple):
    """How long the prompt was and how long it may be, in tokens; 0 where the refusal did not say."""

    tokens: int = 0
    limit: int = 0


def find_overflow(message: str, code: str | None, kind: str | None, detail: Any) -> Overflow | None:
    """Return what a refusal says of a prompt that is too long; None where it is about something else."""
    said = message[:_LOOKED_AT]
    if code not in _CODES and kind not in _CODES and _WORDS.search(said) is None:
        return None
    if isinstance(detail, dict) and type(detail.get("n_prompt_tokens")) is int and type(detail.get("n_ctx")) is int:
        return Overflow(detail["n_prompt_tokens"], detail["n_ctx"])
    said = said.replace(",", "")
    bound, added = _LIMIT.search(said), _SUM.search(said)
    limit = 0 if bound is None else int(next(filter(None, bound.groups())))
    numbers = [int(found.group()) for found in _NUMBER.finditer(said)]
    tokens = max(numbers, default=0) if added is None else int(added[1]) + int(added[2])
    return Overflow(tokens, limit) if limit and tokens > limit else Overflow()


def in_openai_words(found: Overflow) -> str:
    """Return the sentence of Chat Completions, or where no numbers are known that of Responses."""
    if not found.limit:
        return "Your input exceeds the context window of this model. Please adjust your input and try again."
    return (
        f"This model's maximum context length is {found.limit} tokens. However, your messages resulted in {found.tokens} tokens. "
        "Please reduce the length of the messages."
    )


def in_anthropic_words(found: Overflow) -> str:
    """Return the sentence of the Messages API."""
    return f"prompt is too long: {found.tokens} tokens > {found.limit} maximum" if found.limit else "prompt is too long"


def in_gemini_words(found: Overflow) -> str:
    """Return the sentence of generateContent."""
    count, limit = (f" ({number})" if number else "" for number in (found.tokens, found.limit))
    return f"The input token count{count} exceeds the maximum number of tokens allowed{limit}."
