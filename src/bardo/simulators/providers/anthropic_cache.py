"""Cache markers of Anthropic's Messages: which there may be, and what they mark."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bardo.simulators.fields import Fields, fields, rows, text
from bardo.simulators.prompt_cache import MarkedPrefix
from bardo.simulators.refusal import Refusal

_MOST = 4
_NAME = "cache_control"
_CHARACTERS_PER_TOKEN = 4


def check(body: Fields) -> None:
    """Refuse what Anthropic refuses of markers: more than four, in empty texts and thinking, and durations that it does not have.

    The words are those of Anthropic's answers with status 400, of 2025 and 2026.
    """
    marked = [(path, block) for path, block in _parts(body) if block.get(_NAME) is not None]
    if len(marked) + (body.get(_NAME) is not None) > _MOST:
        words = f"A maximum of {_MOST} blocks with cache_control may be provided. Found {len(marked)}."
        raise Refusal("bad_value", words)
    for path, block in marked:
        marker = fields(block.get(_NAME))
        if marker.get("type") != "ephemeral" or marker.get("ttl", "5m") not in ("5m", "1h"):
            raise Refusal("bad_value", f"{path}.{_NAME}.ttl: Input should be '5m' or '1h'")
        if block.get("type") == "text" and not text(block.get("text")):
            raise Refusal("bad_value", f"{path}: {_NAME} cannot be set for empty text blocks")
        if block.get("type") in ("thinking", "redacted_thinking"):
            raise Refusal("bad_value", f"{path}.thinking.{_NAME}: Extra inputs are not permitted")
        if block.get("defer_loading") is True:
            raise Refusal("bad_value", f"{path}: Tools with defer_loading cannot use prompt caching.")


def marked_prefixes(body: Fields) -> list[MarkedPrefix]:
    """Return the prefixes that end at a marker, the shortest first; a marker of the whole request marks all of it."""
    found, before = [], ""
    for _, block in _parts(body):
        before += json.dumps({name: value for name, value in block.items() if name != _NAME}, sort_keys=True)
        if block.get(_NAME) is not None:
            found.append(MarkedPrefix(before, len(before) // _CHARACTERS_PER_TOKEN))
    if body.get(_NAME) is not None:
        found.append(MarkedPrefix(before, len(before) // _CHARACTERS_PER_TOKEN))
    return found


def _parts(body: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield tools, system prompt and turns in the order of the prompt, each block with its path."""
    for index, tool in enumerate(rows(body.get("tools"))):
        yield f"tools.{index}", tool
    yield from _blocks("system", body.get("system"))
    for index, message in enumerate(rows(body.get("messages"))):
        yield from _blocks(f"messages.{index}.content", message.get("content"))


def _blocks(path: str, content: object) -> Iterator[tuple[str, Fields]]:
    if isinstance(content, str):
        yield path, {"type": "text", "text": content}
    for index, block in enumerate(rows(content)):
        yield f"{path}.{index}", block
