"""Citations of web pages in Anthropic's form: entries of the block of text that they support, without places in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.citations import Citation, CitationForm, Citations

_KIND = "web_search_result_location"
_FIELD = "citations"


def _decode(value: Any) -> Citations:
    found, lost = [], dict[str, None]()
    for entry in value if isinstance(value, list) else (value,):
        if not isinstance(entry, dict) or entry.get("type") != _KIND or not isinstance(entry.get("url"), str):
            lost[_FIELD] = None
            continue
        found.append(Citation(entry["url"], entry.get("title") or "", cited_text=entry.get("cited_text") or ""))
        if entry.get("encrypted_index"):
            lost[f"{_FIELD}.encrypted_index"] = None
    return Citations(tuple(found), tuple(lost))


def _write(citations: Sequence[Citation]) -> list[dict[str, Any]]:
    # The SDK's type has all five; only Anthropic's own search gives the index.
    return [
        {"type": _KIND, "url": one.url, "title": one.title, "cited_text": one.cited_text, "encrypted_index": ""}
        for one in citations
    ]


CITATIONS = CitationForm(field=_FIELD, read=_decode, write=_write, whole_blocks=True)
