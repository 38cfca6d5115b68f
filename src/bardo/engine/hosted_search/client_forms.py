"""How a client learns of a search that the gateway made: as the blocks of its own dialect, and as citations."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.dialects import dialect
from bardo.dialects.citations import Citation
from bardo.dialects.searches import SearchResults, WebPage
from bardo.engine.citations import citation_form
from bardo.values.events import Event, ReplyFields, UnknownContent


def search_events(client: str, block: int, key: str, query: str, results: SearchResults) -> list[UnknownContent]:
    """Return the blocks of a finished search for a client, numbered from `block`; `key` is unique in the reply. None where it has none."""
    declared = dialect(client).reply if client else None
    form = None if declared is None else declared.searches
    values = [] if form is None else form.write(key, query, results)
    return [UnknownContent(block + place, client, value) for place, value in enumerate(values)]


def page_events(client: str, pages: Sequence[WebPage]) -> list[Event]:
    """Return the pages as citations of a client whose dialect lists them beside the answer."""
    form = citation_form(client)
    if not pages or form is None or not form.of_choice:
        return []
    listed = {page.url: Citation(page.url, page.title) for page in pages}
    return [ReplyFields(client, {form.field: form.write([*listed.values()])}, 0)]
