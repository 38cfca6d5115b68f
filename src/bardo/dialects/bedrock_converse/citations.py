"""Citations of web pages in Converse's form: entries beside the text that they support, without places in it.

Places in documents and search results of the request are the client's own matter, and go into no other form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.citations import Citation, CitationForm, Citations

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
