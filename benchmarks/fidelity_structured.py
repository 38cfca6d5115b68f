"""Whether a typed answer is asked for in the way that each provider honours, by `structured` of the collected facts.

Where the provider takes a schema, the schema stands in its own field. Elsewhere it is a tool that must be called, or words of the prompt,
and no field of a schema is sent that the provider would refuse or not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.fidelity_requests import CLIENTS, SCHEMA, with_schema

_CHAT, _RESPONSES = "response_format.json_schema.schema", "text.format.schema"
_GEMINI = ("generationConfig.responseJsonSchema", "generationConfig.responseSchema")
NATIVE: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "anthropic": (
        ("claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5", "claude-haiku-5-5"),
        ("output_config.format.schema",),
    ),
    "openai": (("gpt-5.5", "gpt-4.1", "o3"), (_CHAT, _RESPONSES)),
    "azure": (("gpt-5.5",), (_CHAT, _RESPONSES)),
    "gemini": (("gemini-3-flash-preview", "gemini-2.5-pro"), _GEMINI),
    "vertex": (("gemini-3-flash-preview",), _GEMINI),
    "openrouter": (("openai/gpt-5",), (_CHAT, _RESPONSES)),
    "xai": (("grok-4.3",), (_CHAT, _RESPONSES)),
    "groq": (("openai/gpt-oss-120b",), (_CHAT,)),
    "mistral": (("mistral-medium-latest",), (_CHAT,)),
    "cohere": (("command-a-reasoning-08-2025",), ("response_format.schema", "response_format.json_schema")),
    "bedrock": (
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0",),
        ("outputConfig.textFormat.structure.jsonSchema.schema",),
    ),
    "together": (("deepseek-ai/DeepSeek-V4-Pro",), (_CHAT, "response_format.schema")),
    "fireworks": (("accounts/fireworks/models/glm-5",), (_CHAT, "response_format.schema")),
    "cerebras": (("gpt-oss-120b",), (_CHAT,)),
    "moonshot": (("kimi-k3",), (_CHAT,)),
    "ark": (("doubao-seed-1-6",), (_CHAT, _RESPONSES)),
    "perplexity": (("sonar-pro", "sonar-reasoning-pro"), (_CHAT, _RESPONSES)),
    "vllm": (("Qwen/Qwen3-32B",), (_CHAT, _RESPONSES, "structured_outputs.json")),
    "sglang": (("Qwen/Qwen3-32B",), (_CHAT,)),
    "llama-server": (("qwen3",), (_CHAT, "json_schema")),
    "lmstudio": (("qwen3",), (_CHAT, _RESPONSES)),
    "ollama": (("qwen3:latest",), (_CHAT, "format")),
}
"""Models of the providers that take a schema, and the fields in which they take it."""
OTHERS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("claude-3-7-sonnet-20250219", "claude-sonnet-4-20250514"),
    "zai": ("glm-4.7", "glm-5.2"),
    "minimax": ("MiniMax-M2.7", "MiniMax-M3"),
    "ds4": ("deepseek-v4-flash",),
    "deepseek": ("deepseek-v4-pro",),
    "blockrun": ("deepseek/deepseek-chat",),
}
"""Models that take none."""
_FIELDS = tuple({field for _, fields in NATIVE.values() for field in fields})


@dataclass(frozen=True, slots=True)
class StructuredCase:
    """A client's wish for a typed answer of one model."""

    client: str
    provider: str
    model: str
    native: bool

    def __str__(self) -> str:
        return f"{self.client} → {self.provider}/{self.model}"

    @property
    def request(self) -> dict[str, Any]:
        """The client's body."""
        return with_schema(self.client, self.model)


def cases() -> Iterator[StructuredCase]:
    """Return every client's wish for every model."""
    for client in CLIENTS:
        for provider, (models, _) in NATIVE.items():
            yield from (StructuredCase(client, provider, model, native=True) for model in models)
        for provider, others in OTHERS.items():
            yield from (StructuredCase(client, provider, model, native=False) for model in others)


def problem_of(case: StructuredCase, body: Mapping[str, Any], reported: list[str]) -> str:
    """Return what is wrong with what was sent for a case, empty where nothing is. `reported` are the names of the degradations."""
    found = {field: value for field in _FIELDS if (value := _at(body, field)) is not None}
    if case.native:
        taken = NATIVE[case.provider][1]
        right = [value for field, value in found.items() if field in taken]
        if not right:
            return f"no schema in {taken}: {sorted(found)}"
        return "" if all(map(_says_the_same, right)) else f"another schema: {right}"
    # DeepSeek's Responses takes a schema, its Chat does not.
    if found and not (case.provider == "deepseek" and set(found) == {_RESPONSES}):
        return f"a schema in {sorted(found)}, which the provider does not read"
    text = str(body)
    if not all(name in text for name in SCHEMA["properties"]):
        return "the schema stands nowhere"
    return "" if found or reported else "the schema is asked for in another way, and nothing is reported"


def _says_the_same(schema: Any) -> bool:
    """Whether a schema, as an object or as text, has the fields and types of the client's."""
    text = schema if isinstance(schema, str) else str(schema)
    return all(name in text for name in SCHEMA["properties"]) and all(
        kind in text.lower() for kind in ("object", "string", "integer")
    )


def _at(body: Any, path: str) -> Any:
    for part in path.split("."):
        body = body.get(part) if isinstance(body, Mapping) else None
    return body
