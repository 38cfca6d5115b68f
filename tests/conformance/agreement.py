"""What a client must have heard of a reply, and which differences its dialect may have: each of them told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bardo.catalog.meaningful import kind_of_part
from bardo.values.blocks import RefusalBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.response import Response
from conformance.heard import Heard

WRAPPERS = {"anthropic_messages": "INVALID_JSON", "gemini": "_raw"}
"""The key under which a dialect whose arguments are an object holds text that is none."""

_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
    "cached": "cached_input_tokens",
}


@dataclass(frozen=True)
class Difference:
    """Something heard that is not what was said."""

    what: str
    heard: Any
    said: Any


def differences(heard: Heard, said: Response, client: str) -> list[Difference]:
    """Return all of them, those that a degradation of the reply tells of left out."""
    return [
        Difference(what, was, should)
        for what, was, should in (*_words(heard, said, client), *_end(heard, said), *_counts(heard, said))
        if was != should
    ]


def untold(said: Response, client: str) -> list[str]:
    """Return the kinds of content that the client's dialect has no place for and that no degradation names, nor a part of them."""
    foreign = [block for block in said.blocks if isinstance(block, UnknownBlock) and block.dialect != client]
    names = {".".join(degradation.what.split(".")[:2]) for degradation in said.degraded}
    kinds = [f"content.{kind_of_part(block.value) or 'unknown'}" for block in foreign]
    return [kind for kind in kinds if kind not in names]


def _words(heard: Heard, said: Response, client: str) -> Iterator[tuple[str, Any, Any]]:
    refusals = client.startswith("openai")
    spoken = (TextBlock,) if refusals else (TextBlock, RefusalBlock)
    yield "text", heard.text, "".join(block.text for block in said.blocks if isinstance(block, spoken))
    yield "refusal", heard.refusal, said.refusal if refusals else ""
    yield "thinking", _beyond(heard.thinking, _stretches(said)), ""
    calls, complete = _calls(said, client), _calls(said, client, complete=True)
    heard_calls = [(*call[:2], _parsed(call[2])) for call in heard.calls]
    # A call in which the reply broke off may be heard or not: it is told not to be complete.
    yield "calls", heard_calls if calls == complete else [one for one in heard_calls if one in complete], complete
    yield "id", heard.id, said.id
    yield "model", heard.model, said.model


def _stretches(said: Response) -> list[str]:
    return [text for block in said.reasoning_blocks for text in (block.text, *block.summary) if text]


def _beyond(heard: str, stretches: Sequence[str]) -> str:
    """Return what is left of the thinking without its stretches (paragraphs of one text); "-" and the stretch that is missing."""
    for stretch in stretches:
        if not heard.startswith(stretch):
            heard = heard.removeprefix("\n\n")
        if not heard.startswith(stretch):
            return f"-{stretch}"
        heard = heard[len(stretch) :]
    return heard


def _calls(said: Response, client: str, *, complete: bool = False) -> list[tuple[str, str, Any]]:
    calls = [block for block in said.blocks if isinstance(block, ToolCallBlock) and (block.complete or not complete)]
    return [(_id_for(call, client), call.name, _parsed(call.arguments)) for call in calls]


def _id_for(call: ToolCallBlock, client: str) -> str:
    # Gemini gives calls no id of its own; bardo's is for the other dialects.
    own = call.carried.fields.get("functionCall", {}) if call.carried and call.carried.dialect == client else {}
    return "" if "id" in own and own["id"] is None else call.id


def _parsed(arguments: Any) -> Any:
    if isinstance(arguments, dict) and len(arguments) == 1:
        [(name, value)] = arguments.items()
        return value if name in WRAPPERS.values() else arguments
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def _end(heard: Heard, said: Response) -> Iterator[tuple[str, Any, Any]]:
    told = [degradation.sent for degradation in said.degraded if degradation.what == "finish_reason"]
    yield "finish", heard.finish, told[0] if told else said.finish.reason


def _counts(heard: Heard, said: Response) -> Iterator[tuple[str, Any, Any]]:
    told = {degradation.what for degradation in said.degraded}
    for name, ours in _COUNTS.items():
        known, was = getattr(said.usage, ours), getattr(heard.counts, name)
        if known is None and was == 0 and _may_be_zero(ours, said, told):
            continue
        yield name, was, known


def _may_be_zero(name: str, said: Response, told: set[str]) -> bool:
    """Whether a count that nobody gave may be heard as 0: where that is told, or where nothing says that there was any."""
    if name == "reasoning_tokens" and not said.reasoning_blocks:
        return True
    # Responses must name how much was cached: a cache nobody speaks of was not used.
    return name == "cached_input_tokens" or f"usage.{name}" in told
