"""The words of the Bedrock Converse dialect that more than one of its files needs.

Citations of web pages in Converse's form: entries beside the text that they support, without places in it.

Places in documents and search results of the request are the client's own matter, and go into no other form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from bardo.dialects.shared.content_forms import Citation, CitationForm, Citations
from bardo.dialects.shared.json_values import want, without
from bardo.dialects.shared.states import SignedBlocks
from bardo.values.events import FinishReason

NAME: Final = "bedrock_converse"
TITLE = "Converse"

FIELD = "reasoningContent"
"""The field reasoning stands in, and so the format of a stretch of it: a reply does not say which model thought."""

FORMAT = "bedrock-v1"
"""Signatures and redacted thinking: Bedrock has no word for them, and only Bedrock takes them back, whoever's model made them."""

MARKER = "cache_control"
"""Anthropic's marker of a cached prefix, which stands in a block; Converse has a block of its own behind it."""


def with_cache_points(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return blocks or tools with a cache point behind each that holds a marker."""
    found: list[dict[str, Any]] = []
    for block in blocks:
        found.append({name: value for name, value in block.items() if name != MARKER})
        if MARKER in block:
            found.append(cache_point(block[MARKER]))
    return found


def cache_point(marker: Any) -> dict[str, Any]:
    """Return a cache point that lives as long as the marker says."""
    ttl = marker.get("ttl") if isinstance(marker, dict) else None
    return {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}


def _thinking(text: str, signature: str) -> dict[str, Any]:
    # Models that sign nothing refuse a signature that is empty.
    return {FIELD: {"reasoningText": {"text": text, **({"signature": signature} if signature else {})}}}


SIGNED_BLOCKS = SignedBlocks(FORMAT, _thinking, redacted=lambda data: {FIELD: {"redactedContent": data}})
"""The blocks that hold opaque state."""

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
"""The dialect's stop reasons in our words."""

PADDING = "p"
"""Letters Bedrock adds to each event so that its length tells nothing; they mean nothing."""

THOUGHT: dict[str, Any] = {FIELD: {"reasoningText": {"text": None, "signature": None}, "redactedContent": None}}
"""What is known of a block of reasoning."""


def string(fields: dict[str, Any], name: str) -> str:
    """Return a string, empty where there is none. Raises WrongShape."""
    value = fields.get(name)
    return "" if value is None else want(value, str, name)


def unknown_fields(value: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return what `value` holds beside `known`, which maps names to None or to what is known inside them."""
    left = without(value, *known)
    for name, inner in known.items():
        held = value.get(name)
        if isinstance(inner, dict) and isinstance(held, dict) and (more := unknown_fields(held, inner)):
            left[name] = more
    return left


SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
"""The sampling parameters by their names here."""


_FIELD = "citations"


def _decode(value: Any) -> Citations:
    found, lost = [], dict[str, None]()
    for entry in value if isinstance(value, list) else (value,):
        location = entry.get("location") if isinstance(entry, dict) else None
        page = location.get("web") if isinstance(location, dict) else None
        url = page.get("url") if isinstance(page, dict) else None
        if not isinstance(url, str) or not url:
            lost[_FIELD] = None
            continue
        title = entry.get("title")
        found.append(
            Citation(url, title if isinstance(title, str) else "", cited_text=_text(entry.get("sourceContent")))
        )
    return Citations(tuple(found), tuple(lost))


def _text(pieces: Any) -> str:
    listed = pieces if isinstance(pieces, list) else []
    return "".join(one["text"] for one in listed if isinstance(one, dict) and isinstance(one.get("text"), str))


def _write(citations: Sequence[Citation]) -> list[dict[str, Any]]:
    return [
        {
            "location": {"web": {"url": one.url}},
            **({"title": one.title} if one.title else {}),
            **({"sourceContent": [{"text": one.cited_text}]} if one.cited_text else {}),
        }
        for one in citations
    ]


CITATIONS = CitationForm(field=_FIELD, read=_decode, write=_write, whole_blocks=True)
