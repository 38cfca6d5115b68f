"""A search of the web that somebody has to make, as a value.

The gateway's web search as a function that it executes itself: search, tell the client, and give the model what was found.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

import msgspec

from bardo.context.own_functions import OwnCall, OwnResult, OwnSteps
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import Citation, SearchResults, WebPage
from bardo.planning.hosted_search import SearchPlan, results_text
from bardo.replies.citations import citation_form
from bardo.values.blocks import TextBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.events import Event, ReplyFields, UnknownContent


class SearchWeb(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to search the web. It is answered with SearchResults. No page of `blocked` domains, and only pages of `allowed` ones."""

    query: str
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


MOST_ARGUMENTS = 20_000
"""Characters of the arguments of one call: what is longer is no query."""
_ROUNDS_BEYOND = 2
"""Replies after the last search that is allowed: a model that goes on to call the search then is stopped."""


class SearchFunction:
    """The searches of one reply. The client gets each as the blocks of its dialect, and sends them back with its next turn."""

    cause: Literal["search", "tools"] = "search"
    why = "the model goes on with what was found"
    remembered = False

    def __init__(self, plan: SearchPlan, client: str) -> None:
        self._plan = plan
        self._client = client
        self._searched = 0
        self._pages: list[WebPage] = []
        self.names = frozenset({plan.tool})
        self.most_rounds = plan.most + _ROUNDS_BEYOND

    def answer(self, call: OwnCall, block: int) -> OwnSteps:
        """Make one search, tell the client of it, and return the results for the model."""
        query = _query(call.arguments)
        results = yield from self._one(query)
        self._pages += results.pages
        events = _search_events(self._client, block, f"{self._searched:02d}{call.id[-16:]}", query, results)
        content = (TextBlock(results_text(results)),)
        result = ToolResultBlock(call_id=call.id, name=self._plan.tool, content=content, is_error=bool(results.error))
        return OwnResult(result, tuple(events))

    def opens(self, name: str, arguments: str) -> tuple[str, int] | None:
        """Return that no search is the client's."""
        return None

    def ending(self) -> Sequence[Event]:
        """Return the pages, for a client whose dialect lists them beside the answer."""
        return _page_events(self._client, self._pages)

    def stopped(self) -> Degradation:
        """Return that the model went on to search."""
        return Degradation("web_search", why="the model went on to search beyond what is allowed")

    def _one(self, query: str) -> Generator[Any, Any, SearchResults]:
        if not query:
            return SearchResults(error="invalid_input")
        self._searched += 1
        if self._searched > self._plan.most:
            return SearchResults(error="max_uses_exceeded")
        results: SearchResults = yield SearchWeb(query=query, allowed=self._plan.allowed, blocked=self._plan.blocked)
        return results


def _search_events(client: str, block: int, key: str, query: str, results: SearchResults) -> list[UnknownContent]:
    """Return the blocks of a finished search for a client, numbered from `block`; `key` is unique in the reply. None where it has none."""
    declared = dialect(client).reply if client else None
    form = None if declared is None else declared.searches
    values = [] if form is None else form.write(key, query, results)
    return [UnknownContent(block + place, client, value) for place, value in enumerate(values)]


def _page_events(client: str, pages: Sequence[WebPage]) -> list[Event]:
    """Return the pages as citations of a client whose dialect lists them beside the answer."""
    form = citation_form(client)
    if not pages or form is None or not form.of_choice:
        return []
    listed = {page.url: Citation(page.url, page.title) for page in pages}
    return [ReplyFields(client, {form.field: form.write([*listed.values()])}, 0)]


def _query(arguments: str) -> str:
    """Return the query of a call; empty where its arguments have none."""
    try:
        value = msgspec.json.decode(arguments[:MOST_ARGUMENTS])
    except (ValueError, RecursionError):
        return ""
    query = value.get("query") if isinstance(value, dict) else None
    return query.strip() if isinstance(query, str) else ""
