"""Citations of web pages in Gemini's form: pages in `groundingChunks`, and in `groundingSupports` the stretches that they support.

Places are bytes of UTF-8. A page that supports no stretch is one without places.
Source: https://ai.google.dev/api/generate-content#GroundingMetadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.citations import Citation, CitationForm, Citations
from bardo.dialects.reply_declaration import is_empty
from bardo.dialects.wire import without

_FIELD = "groundingMetadata"
_CHUNKS, _SUPPORTS = "groundingChunks", "groundingSupports"


def _decode(value: Any) -> Citations:
    grounding = value if isinstance(value, dict) else {}
    pages = [_page(chunk) for chunk in _objects(grounding.get(_CHUNKS))]
    found: list[Citation] = []
    used: set[int] = set()
    for support in _objects(grounding.get(_SUPPORTS)):
        segment = support.get("segment")
        segment = segment if isinstance(segment, dict) else {}
        start, end, said = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text") or ""
        for number in support.get("groundingChunkIndices") or ():
            page = pages[number] if type(number) is int and 0 <= number < len(pages) else None
            if page is not None and type(start) is int and type(end) is int:
                used.add(number)
                found.append(page._replace(start=start, end=end, text=said))
    found += [page for number, page in enumerate(pages) if page is not None and number not in used]
    others = without(grounding, _CHUNKS, _SUPPORTS)
    lost = [f"{_FIELD}.{name}" for name, held in others.items() if not is_empty(held)]
    if None in pages or not grounding:
        lost.append(f"{_FIELD}.{_CHUNKS}")
    return Citations(tuple(found), tuple(lost) if found else (_FIELD,))


def _write(citations: Sequence[Citation]) -> dict[str, Any]:
    pages = {(one.url, one.title): None for one in citations}
    numbers = {page: number for number, page in enumerate(pages)}
    stretches: dict[tuple[int, int, str], list[int]] = {}
    for one in citations:
        if one.start is not None and one.end is not None and one.end > one.start:
            listed = stretches.setdefault((one.start, one.end, one.text), [])
            listed.append(numbers[one.url, one.title])
    supports = [
        {"segment": {"startIndex": start, "endIndex": end, "text": said}, "groundingChunkIndices": listed}
        for (start, end, said), listed in stretches.items()
    ]
    return {_CHUNKS: [{"web": {"uri": url, "title": title}} for url, title in pages], _SUPPORTS: supports}


def _page(chunk: dict[str, Any]) -> Citation | None:
    web = chunk.get("web")
    if not isinstance(web, dict) or not isinstance(web.get("uri"), str):
        return None
    title = web.get("title")
    return Citation(web["uri"], title if isinstance(title, str) else "")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else {} for one in value] if isinstance(value, list) else []


CITATIONS = CitationForm(field=_FIELD, read=_decode, write=_write, of_choice=True, in_bytes=True, at_end=True)
