"""The web pages that an answer rests on, where a provider lists them beside the answer: as citations of the provider's dialect.

Perplexity gives `search_results`, and their addresses again as `citations`; Venice `venice_parameters.web_search_citations`. They have no
places in the text, in which `[1]` names the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.shared.content_forms import Citation, CitationForm
from bardo.engine.citations import citation_form
from bardo.values.events import Event, Finish, ReplyFields

_CARRIED = frozenset({"url", "title"})
_MOST_PAGES = 1000


class CitedPages:
    """Adds these pages to the events of a reply as citations in the form of its dialect `source`, before its end.

    A reply's end waits for the last frame, which may be the one that lists them. Fields that hold no more than what is carried are left
    out, so that they are not reported as lost.
    """

    passes_text = True

    def __init__(self, source: str, form: CitationForm, paths: Sequence[str]) -> None:
        self._source, self._form = source, form
        self._paths = tuple(paths)
        self._pages: dict[str, list[Citation]] = {}
        self._ends: list[Finish] = []

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, without the lists that are carried whole."""
        if isinstance(item, Finish):
            self._ends.append(item)
            return ()
        if isinstance(item, ReplyFields) and item.dialect == self._source and item.choice is None:
            return self._fields(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Give the citations, and the ends that waited."""
        pages = next((self._pages[path] for path in self._paths if path in self._pages), [])
        written = {self._form.field: self._form.write(pages)}
        cited = [ReplyFields(self._source, written, end.choice) for end in self._ends] if pages else []
        ends, self._ends = self._ends, []
        return (*cited, *ends)

    def _fields(self, item: ReplyFields) -> Sequence[Event]:
        fields = item.fields
        for path in self._paths:
            name, _, inner = path.partition(".")
            held = fields.get(name)
            listed = held.get(inner) if inner and isinstance(held, dict) else held
            pages = _pages_of(listed)
            if pages:
                self._pages[path] = pages
            if pages and not inner and _is_carried(listed):
                fields = {one: value for one, value in fields.items() if one != name}
        return (msgspec.structs.replace(item, fields=fields),) if fields else ()


def cited_pages(source: str, client: str, paths: Sequence[str]) -> list[CitedPages]:
    """Return the stage for a provider with such lists at these `paths`, where a client of another dialect has citations."""
    form = citation_form(source) if paths and source != client else None
    return [] if form is None or citation_form(client) is None else [CitedPages(source, form, paths)]


def _pages_of(listed: Any) -> list[Citation]:
    """Return the pages of a list of addresses, or of objects that have one; none where anything else stands in it."""
    if not isinstance(listed, list) or len(listed) > _MOST_PAGES:
        return []
    pages = [_page(one) for one in listed]
    return [page for page in pages if page is not None] if all(pages) else []


def _is_carried(listed: Any) -> bool:
    """Whether a list of pages holds no more than goes into citations."""
    return all(isinstance(one, str) or one.keys() <= _CARRIED for one in listed)


def _page(value: Any) -> Citation | None:
    if isinstance(value, str):
        return Citation(value) if value else None
    url = value.get("url") if isinstance(value, dict) else None
    title = value.get("title") if isinstance(value, dict) else None
    return Citation(url, title if isinstance(title, str) else "") if isinstance(url, str) and url else None
