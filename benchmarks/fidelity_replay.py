"""Whether a thought, its signature, the call and its result survive a loop over tools, in the form that the provider takes, or are reported.

A turn of tools is written by clients of four dialects and sent to providers of every dialect. The body is searched here for the words of
the turn: where they stand is compared with what the collected facts say the provider takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.fidelity_requests import CALL_ID, CLIENTS, RESULT, SIGNATURE, THOUGHT, tool_turn

_WORDS = ("reason", "think", "thought", "signature", "encrypted")
_PLACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "anthropic": ("claude-opus-4-8", ("thinking",)),
    "openai": ("gpt-5.5", ("summary",)),
    "gemini": ("gemini-3-flash-preview", ("text",)),
    "deepseek": ("deepseek-v4-pro", ("reasoning_content", "thinking")),
    "qwen": ("qwen3.7-plus", ("reasoning_content",)),
    "openrouter": ("openai/gpt-oss-120b", ("reasoning", "reasoning_details", "text", "summary")),
    "venice": ("zai-org-glm-4.7", ("reasoning_content", "reasoning_details")),
    "xai": ("grok-4.3", ("summary",)),
    "groq": ("openai/gpt-oss-120b", ("reasoning",)),
    "mistral": ("mistral-medium-latest", ("text",)),
    "cohere": ("command-a-reasoning-08-2025", ("thinking",)),
    "bedrock": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", ("text",)),
    "together": ("deepseek-ai/DeepSeek-V4-Pro", ("reasoning", "reasoning_content")),
    "fireworks": ("accounts/fireworks/models/glm-5", ("reasoning_content",)),
    "cerebras": ("gpt-oss-120b", ("reasoning",)),
    "moonshot": ("kimi-k3", ("reasoning_content", "thinking")),
    "zai": ("glm-4.7", ("reasoning_content", "thinking")),
    "minimax": ("MiniMax-M2.7", ("thinking", "content", "reasoning_details", "text")),
    "vllm": ("Qwen/Qwen3-32B", ("reasoning", "reasoning_content")),
    "llama-server": ("qwen3", ("reasoning_content",)),
    "ollama": ("qwen3:latest", ("thinking", "reasoning")),
    "perplexity": ("sonar-reasoning-pro", ()),
}
"""A model of each provider, and the fields in which it takes a thought, by `replay` of the facts. Empty: it takes none."""
_SIGNED = {
    "anthropic_messages": ("anthropic", "signature"),
    "openai_responses": ("openai", "encrypted_content"),
    "gemini": ("gemini", "thoughtSignature"),
}
"""The provider that gave the signature of a client's dialect, and the field in which it takes it back."""


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """A client's turn of tools, for one provider."""

    client: str
    provider: str

    def __str__(self) -> str:
        return f"{self.client} → {self.provider}/{self.model}"

    @property
    def model(self) -> str:
        """The model that is asked."""
        return _PLACES[self.provider][0]

    @property
    def request(self) -> dict[str, Any]:
        """The client's body."""
        return tool_turn(self.client, self.model)


def cases() -> Iterator[ReplayCase]:
    """Return every client's turn for every provider."""
    return (ReplayCase(client, provider) for client in CLIENTS for provider in _PLACES)


def problem_of(case: ReplayCase, body: Mapping[str, Any], reported: list[str]) -> str:
    """Return what is wrong with what was sent for a case, empty where nothing is. `reported` are the names of the degradations."""
    told = any(word in what.lower() for what in reported for word in _WORDS)
    found = list(_texts(body, ""))
    for part, wanted in (("the result", RESULT), ("the argument", "Ulm")):
        if not any(wanted in text for _, text in found):
            return f"{part} is missing"
    if case.client != "gemini" and len(CALL_ID) <= 0:
        return "the call has no id"
    return _thought_problem(case, found, told=told) or _signature_problem(case, found, told=told)


def _thought_problem(case: ReplayCase, found: list[tuple[str, str]], *, told: bool) -> str:
    places = [name for name, text in found if THOUGHT in text]
    taken = _PLACES[case.provider][1]
    if not places:
        return "" if told else "the thought is lost, and nothing is reported"
    wrong = [name for name in places if name not in taken]
    return f"the thought stands in {wrong}, not in {taken}" if wrong and not told else ""


def _signature_problem(case: ReplayCase, found: list[tuple[str, str]], *, told: bool) -> str:
    places = [name for name, text in found if SIGNATURE in text]
    maker, field = _SIGNED.get(case.client, ("", ""))
    if case.provider == maker:
        return "" if places == [field] else f"the provider's own signature stands in {places}, not in {field}"
    if places and case.provider in {name for name, _ in _SIGNED.values()}:
        return f"the signature of another provider stands in {places}"
    return "" if places or told or not field else "the signature is lost, and nothing is reported"


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Return each text of a body with the name of the nearest field that holds it; arguments in JSON are texts too."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, name)
    else:
        yield name, json.dumps(value)
