"""What a provider's own JSON says was used, read without bardo: names from the providers' documents, and their own totals.

A provider's total decides what its output count holds: output is the total less the input. Where a gateway hands on Google's own counts,
they go before its sums.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol


class Recording(Protocol):
    """One recorded reply: its bytes, and what frames them (`json`, `sse`, `ndjson`, `eventstream`)."""

    @property
    def framing(self) -> str: ...
    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True)
class Raw:
    """Counts in bardo's algebra. None is "not told"."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None


@dataclass(frozen=True)
class Names:
    """Where counts stand: paths with dots. Those of `input` and `output` add up; of the others the first that is there holds."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    reasoning: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    total: str = ""


CHAT = Names(
    input=("prompt_tokens",),
    output=("completion_tokens",),
    reasoning=("completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
    cached=("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens"),
    total="total_tokens",
)
CONVERSE = Names(
    input=("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    output=("outputTokens",),
    cached=("cacheReadInputTokens", "cacheReadInputTokenCount"),
    total="totalTokens",
)
MESSAGES = Names(
    input=("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    output=("output_tokens",),
    reasoning=("output_tokens_details.thinking_tokens",),
    cached=("cache_read_input_tokens",),
)
NAMES: dict[str, Names] = {
    "openai_chat": CHAT,
    "openai_responses": Names(
        input=("input_tokens",),
        output=("output_tokens",),
        reasoning=("output_tokens_details.reasoning_tokens", "reasoning_tokens"),
        cached=("input_tokens_details.cached_tokens",),
        total="total_tokens",
    ),
    "anthropic_messages": MESSAGES,
    "bedrock_converse": CONVERSE,
    "gemini": Names(
        input=("promptTokenCount", "toolUsePromptTokenCount"),
        output=("candidatesTokenCount", "thoughtsTokenCount"),
        reasoning=("thoughtsTokenCount",),
        cached=("cachedContentTokenCount",),
        total="totalTokenCount",
    ),
    "gemini_interactions": Names(
        input=("total_input_tokens", "total_tool_use_tokens"),
        output=("total_output_tokens", "total_thought_tokens"),
        reasoning=("total_thought_tokens",),
        cached=("total_cached_tokens",),
        total="total_tokens",
    ),
    "cohere": Names(
        input=("tokens.input_tokens",),
        output=("tokens.output_tokens",),
        reasoning=("tokens.reasoning_tokens",),
        cached=("cached_tokens",),
    ),
    "ollama": Names(input=("prompt_eval_count",), output=("eval_count",)),
    "watsonx_text": Names(input=("input_token_count",), output=("generated_token_count",)),
}
_HOLDERS = ("usage", "usageMetadata", "results")


def raw_counts(recording: Recording, dialect: str) -> Raw:
    """Return what the recording says in the language it is in."""
    return counts_in(list(payloads(recording)), dialect)


def counts_in(documents: Sequence[Any], dialect: str) -> Raw:
    """Return what the JSON documents of a reply say."""
    told: dict[str, Any] = {}
    for payload in documents:
        for usage in [payload] if dialect == "ollama" else _usages(payload):
            # Later reports add to earlier ones, and no count falls back to 0: watsonx names the input once.
            told |= {name: value for name, value in usage.items() if value is not None and (value or name not in told)}
    names = NAMES.get(dialect)
    counted = _counted(told, names if names is not None and _sum(told, names.input) is not None else _names_of(told))
    google = next(_googles(list(documents)), None) if dialect == "openai_chat" else None
    return counted if google is None else replace(counted, output=_sum(google, NAMES["gemini"].output))


def payloads(recording: Recording) -> Iterator[Any]:
    """Give the JSON documents of a recording."""
    body = recording.body
    match recording.framing:
        case "sse":
            lines = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
            yield from (json.loads(line) for line in lines if line not in (b"", b"[DONE]"))
        case "ndjson":
            yield from (json.loads(line) for line in body.splitlines() if line.strip())
        case "eventstream":
            yield from _messages(body)
        case _:
            whole = json.loads(body)
            yield from whole if isinstance(whole, list) else [whole]


def _messages(body: bytes) -> Iterator[Any]:
    """Give the payloads of AWS's binary messages: total length, header length, checksum, headers, payload, checksum."""
    while body:
        total, headers = struct.unpack(">II", body[:8])
        payload = json.loads(body[12 + headers : total - 4] or b"{}")
        yield json.loads(base64.b64decode(payload["bytes"])) if "bytes" in payload else payload
        body = body[total:]


def _usages(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Give the usage objects of a payload, wherever in its upper levels they stand."""
    if isinstance(value, list):
        for item in value if depth < 4 else ():
            yield from _usages(item, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for name, inner in value.items():
            holders = inner if name == "results" and isinstance(inner, list) else [inner]
            yield from (one for one in holders if name in _HOLDERS and isinstance(one, dict))
            if name not in _HOLDERS:
                yield from _usages(inner, depth + 1)


def _googles(value: Any) -> Iterator[dict[str, Any]]:
    """Give Google's usage objects, wherever they stand."""
    if isinstance(value, list):
        for item in value:
            yield from _googles(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from [inner] if name == "usageMetadata" else _googles(inner)


def _names_of(told: dict[str, Any]) -> Names:
    """Return the names of the family whose reply Bedrock passed on, or answered with under another's path."""
    return CONVERSE if "inputTokens" in told else CHAT if "prompt_tokens" in told else MESSAGES


def _counted(told: dict[str, Any], names: Names) -> Raw:
    into, output, total = _sum(told, names.input), _sum(told, names.output), _at(told, names.total)
    if total and into is not None:
        output = total - into
    return Raw(into, output, _first(told, names.reasoning), _first(told, names.cached))


def _sum(told: dict[str, Any], paths: tuple[str, ...]) -> int | None:
    found = [count for path in paths if (count := _at(told, path)) is not None]
    return sum(found) if found else None


def _first(told: dict[str, Any], paths: tuple[str, ...]) -> int | None:
    return next((count for path in paths if (count := _at(told, path)) is not None), None)


def _at(told: dict[str, Any], path: str) -> int | None:
    value: Any = told
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int) else None
