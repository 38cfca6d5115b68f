"""Searches of the web in OpenAI's form: one `web_search_call` item, which names the pages and holds nothing of their text.

Source: ResponseFunctionWebSearch of openai 3.54.0.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.searches import SearchForm, SearchPart, SearchResults

_KIND, _OWN_ID = "web_search_call", "ws_bardo_"


def _write(key: str, query: str, results: SearchResults) -> list[dict[str, Any]]:
    sources = [{"type": "url", "url": page.url} for page in results.pages]
    action = {"type": "search", "query": query, "queries": [query], "sources": sources}
    status = "failed" if results.error else "completed"
    return [{"type": _KIND, "id": f"{_OWN_ID}{key}", "status": status, "action": action}]


def _decode(item: dict[str, Any]) -> SearchPart | None:
    if item.get("type") != _KIND:
        return None
    name = str(item.get("id"))
    return SearchPart(id=name, own=name.startswith(_OWN_ID))


SEARCHES = SearchForm(write=_write, read=_decode)
