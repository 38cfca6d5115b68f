"""Searches of the web and for tools in Anthropic's form, and citations of web pages.

A search is a `server_tool_use` block and a `web_search_tool_result` block behind it; citations are entries of the block of text that they
support, without places in it. Source: https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool, as of 2026-11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bardo.dialects.anthropic_messages.wire import NAME
from bardo.dialects.shared.content_forms import (
    Citation,
    CitationForm,
    Citations,
    SearchForm,
    SearchPart,
    SearchResults,
    ToolSearchForm,
    ToolSearchPart,
    WebPage,
    seal_text,
    unseal_text,
)
from bardo.dialects.shared.json_values import JsonObject, JsonValue
from bardo.values.blocks import fields_for
from bardo.values.request import Request, Tool

_TOOL = "web_search"
_CALL, _RESULT = "server_tool_use", "web_search_tool_result"
_OWN_ID = "srvtoolu_bardo"


def _write(key: str, query: str, results: SearchResults) -> list[JsonObject]:
    use = f"{_OWN_ID}{key}"
    content: JsonValue = [
        {
            "type": "web_search_result",
            "url": page.url,
            "title": page.title,
            "encrypted_content": seal_text(page.text),
            "page_age": page.date or None,
        }
        for page in results.pages
    ]
    if results.error:
        content = {"type": "web_search_tool_result_error", "error_code": results.error}
    return [
        {"type": _CALL, "id": use, "name": _TOOL, "input": {"query": query}},
        {"type": _RESULT, "tool_use_id": use, "content": content},
    ]


def _decode(block: JsonObject) -> SearchPart | None:
    if block.get("type") == _CALL and block.get("name") == _TOOL:
        given = block.get("input")
        query = given.get("query") if isinstance(given, dict) else None
        name = _id(block.get("id"))
        return SearchPart(id=name, query=query if isinstance(query, str) else "", own=name.startswith(_OWN_ID))
    if block.get("type") != _RESULT:
        return None
    name, content = _id(block.get("tool_use_id")), block.get("content")
    listed = [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    own = name.startswith(_OWN_ID) or any(unseal_text(entry.get("encrypted_content")) is not None for entry in listed)
    if not isinstance(content, list):
        return SearchPart(id=name, results=SearchResults(error="unavailable"), own=own)
    pages = [_page(entry) for entry in listed if isinstance(entry.get("url"), str)]
    return SearchPart(id=name, results=SearchResults(pages=tuple(pages)), own=own)


def _id(value: JsonValue) -> str:
    """Return the id of a call; empty where a block has none."""
    return value if isinstance(value, str) else ""


def _page(value: JsonObject) -> WebPage:
    title, date = value.get("title"), value.get("page_age")
    return WebPage(
        url=value["url"],
        title=title if isinstance(title, str) else "",
        text=unseal_text(value.get("encrypted_content")) or "",
        date=date if isinstance(date, str) else "",
    )


SEARCHES = SearchForm(write=_write, read=_decode)


_TOOL_KINDS: dict[str, Literal["regex", "words"]] = {
    "tool_search_tool_regex": "regex",
    "tool_search_tool_bm25": "words",
}
_TOOLS_FOUND = "tool_search_tool_result"


def _tool_search_asked(tool: Tool) -> Literal["regex", "words", ""]:
    kind = str(fields_for(NAME, tool.carried).get("type")) if tool.hosted else ""
    return next((by for begins, by in _TOOL_KINDS.items() if kind.startswith(begins)), "")


def _decode_tool_search(block: JsonObject) -> ToolSearchPart | None:
    if block.get("type") == _CALL and block.get("name") in _TOOL_KINDS:
        given = block.get("input")
        called, number = _called(block.get("id"))
        return ToolSearchPart(id=called, round=number, arguments=given if isinstance(given, dict) else {})
    if block.get("type") != _TOOLS_FOUND:
        return None
    content = block.get("content")
    listed = content.get("tool_references") if isinstance(content, dict) else None
    names = [entry.get("tool_name") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return ToolSearchPart(
        id=_called(block.get("tool_use_id"))[0], found=tuple(name for name in names if isinstance(name, str))
    )


def _called(use: JsonValue) -> tuple[str, str]:
    """Return the id of a model's call, and its round: in an id of bardo's own it stands behind the number of the round."""
    name = _id(use)
    key = name.removeprefix(_OWN_ID)
    return (key[2:] or name, key[:2]) if key != name else (name, "")


def _write_tool_search(
    request: Request, key: str, name: str, arguments: JsonObject, names: Sequence[str], error: str
) -> list[JsonObject]:
    use = f"{_OWN_ID}{key}"
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    content: JsonObject = {"type": "tool_search_tool_search_result", "tool_references": references}
    if error:
        content = {"type": "tool_search_tool_result_error", "error_code": error}
    return [
        {"type": _CALL, "id": use, "name": name, "input": arguments},
        {"type": _TOOLS_FOUND, "tool_use_id": use, "content": content},
    ]


TOOL_SEARCHES = ToolSearchForm(
    asked=_tool_search_asked, reader=lambda request: _decode_tool_search, write=_write_tool_search
)
"""platform.claude.com/docs, "Tool search tool", and the types of anthropic 2.12.0, as of 2026-11."""


_KIND = "web_search_result_location"
_FIELD = "citations"


def _decode_citation(value: JsonValue) -> Citations:
    citations, lost = [], dict[str, None]()
    for entry in value if isinstance(value, list) else (value,):
        if not isinstance(entry, dict) or entry.get("type") != _KIND or not isinstance(entry.get("url"), str):
            lost[_FIELD] = None
            continue
        citations.append(Citation(entry["url"], entry.get("title") or "", cited_text=entry.get("cited_text") or ""))
        if entry.get("encrypted_index"):
            lost[f"{_FIELD}.encrypted_index"] = None
    return Citations(tuple(citations), tuple(lost))


def _write_citation(citations: Sequence[Citation]) -> list[JsonObject]:
    # The SDK's type has all five; only Anthropic's own search gives the index.
    return [
        {"type": _KIND, "url": page.url, "title": page.title, "cited_text": page.cited_text, "encrypted_index": ""}
        for page in citations
    ]


CITATIONS = CitationForm(field=_FIELD, read=_decode_citation, write=_write_citation, whole_blocks=True)
