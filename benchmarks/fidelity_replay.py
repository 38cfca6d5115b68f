"""Whether thoughts, signatures, calls and results survive a loop over tools, in the form that the provider takes, or are reported.

A turn of tools is written by clients of four dialects and sent to providers of every dialect. The body is searched here for the words of
the turn: where they stand is compared with what the collected facts say the provider takes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.fidelity_requests import BEFORE, CLIENTS, REDACTED, RESULT, SIGNATURE, THOUGHT, TURNS, tool_turn

_WORDS = ("reason", "think", "thought", "signature", "encrypted")
TAKEN: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "anthropic": (("claude-opus-4-8", "claude-haiku-4-5", "claude-fable-5-1"), ("thinking",)),
    "vertex-anthropic": (("claude-sonnet-4-5@20250929",), ("thinking",)),
    "bedrock": (("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-2-lite-v1:0"), ("text",)),
    "openai": (("gpt-5.5", "gpt-6-sol"), ("text",)),
    "openai-chat": (("gpt-5.4",), ()),
    "azure": (("gpt-5.5",), ("text",)),
    "gemini": (("gemini-3-flash-preview", "gemini-2.5-pro"), ("text",)),
    "vertex": (("gemini-3-flash-preview",), ("text",)),
    "deepseek": (("deepseek-v4-pro",), ("reasoning_content", "thinking")),
    "qwen": (("qwen3.7-plus", "qwen3-max"), ("reasoning_content",)),
    "openrouter": (
        ("openai/gpt-oss-120b", "anthropic/claude-haiku-4.5", "google/gemini-3-flash-preview"),
        ("reasoning", "text", "summary", "thinking"),
    ),
    "venice": (("zai-org-glm-4.7",), ("reasoning_content", "text")),
    "xai": (("grok-4.3",), ("text",)),
    "groq": (("openai/gpt-oss-120b", "qwen/qwen3-32b"), ("reasoning",)),
    "mistral": (("mistral-medium-latest",), ("text",)),
    "cohere": (("command-a-reasoning-08-2025",), ("thinking",)),
    "together": (("deepseek-ai/DeepSeek-V4-Pro",), ("reasoning", "reasoning_content")),
    "fireworks": (("accounts/fireworks/models/glm-5",), ("reasoning_content",)),
    "cerebras": (("gpt-oss-120b", "zai-glm-4.7"), ("reasoning", "content")),
    "moonshot": (("kimi-k3", "kimi-k2.5"), ("reasoning_content", "thinking")),
    "zai": (("glm-4.7", "glm-5.3"), ("reasoning_content", "thinking")),
    "minimax": (("MiniMax-M2.7", "MiniMax-M3"), ("thinking", "content", "text", "reasoning_content")),
    "vllm": (("Qwen/Qwen3-32B",), ("reasoning", "reasoning_content")),
    "sglang": (("Qwen/Qwen3-32B",), ("reasoning_content",)),
    "llama-server": (("qwen3",), ("reasoning_content",)),
    "ollama": (("qwen3:latest", "gpt-oss:120b"), ("thinking", "reasoning")),
    "perplexity": (("sonar-reasoning-pro",), ()),
}
"""Models of each provider, and the fields in which it takes a thought, by `replay` of the facts. Empty: it takes none."""
_SIGNED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "anthropic_messages": (("anthropic", "vertex-anthropic"), "signature"),
    "openai_responses": (("openai", "azure"), "encrypted_content"),
    "gemini": (("gemini", "vertex"), "thoughtSignature"),
}
"""The providers that give the signatures of a client's dialect, and the field in which they take them back."""


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """A client's turn of tools, for one model of a provider."""

    client: str
    provider: str
    model: str
    kind: str

    def __str__(self) -> str:
        return f"{self.client} → {self.provider}/{self.model}: {self.kind}"

    @property
    def request(self) -> dict[str, Any] | None:
        """The client's body."""
        return tool_turn(self.client, self.model, self.kind)


def cases() -> Iterator[ReplayCase]:
    """Return every client's turns for every model."""
    for client in CLIENTS:
        for provider, (models, _) in TAKEN.items():
            made = (ReplayCase(client, provider, model, kind) for model in models for kind in TURNS)
            yield from (case for case in made if case.request is not None)


def problem_of(case: ReplayCase, body: Mapping[str, Any], reported: list[str]) -> str:
    """Return what is wrong with what was sent for a case, empty where nothing is. `reported` are the names of the degradations."""
    told = any(word in what.lower() for what in reported for word in _WORDS)
    found = list(_texts(body, ""))
    wanted = {"the result": RESULT, "the argument": "Ulm"}
    if case.kind == "text before the call":
        wanted["the text before the call"] = BEFORE
    missing = next((part for part, text in wanted.items() if not any(text in one for _, one in found)), "")
    if missing:
        return f"{missing} is missing"
    return (
        _pairing_problem(found)
        or _thought_problem(case, found, told=told)
        or _state_problem(case, SIGNATURE, found, told=told)
        or (_state_problem(case, REDACTED, found, told=told) if case.kind == "redacted" else "")
    )


def _pairing_problem(found: list[tuple[str, str]]) -> str:
    """Check that each result names a call of the body, and each call has its result."""
    results = Counter(text for name, text in found if name in ("tool_call_id", "tool_use_id"))
    ids = {text for name, text in found if name == "id"}
    if results and not (set(results) <= ids and max(results.values()) == 1):
        return f"results {sorted(results)} do not fit the calls {sorted(ids)}"
    both = Counter(text for name, text in found if name in ("call_id", "toolUseId"))
    return f"calls and results do not pair: {dict(both)}" if any(count != 2 for count in both.values()) else ""


def _thought_problem(case: ReplayCase, found: list[tuple[str, str]], *, told: bool) -> str:
    places = [name for name, text in found if THOUGHT in text]
    taken = TAKEN[case.provider][1]
    if not places:
        return "" if told else "the thought is lost, and nothing is reported"
    wrong = [name for name in places if name not in taken]
    return f"the thought stands in {wrong}, not in {taken}" if wrong and not told else ""


def _state_problem(case: ReplayCase, state: str, found: list[tuple[str, str]], *, told: bool) -> str:
    """Check a signature or redacted thinking: it goes back to its maker in its own field, and to nobody else's."""
    places = {name for name, text in found if state in text}
    makers, field = _SIGNED.get(case.client, ((), ""))
    field = "data" if state == REDACTED else field
    if case.provider in makers:
        return (
            ""
            if places == {field} or (told and not places)
            else f"its maker's state stands in {places}, not in {field}"
        )
    if places and case.provider in {name for names, _ in _SIGNED.values() for name in names}:
        return f"the state of another provider stands in {places}"
    return "" if places or told or not field else "state is lost, and nothing is reported"


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
