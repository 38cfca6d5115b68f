"""A search of the web that somebody has to make, as a value."""

from __future__ import annotations

import msgspec


class SearchWeb(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to search the web. It is answered with SearchResults. No page of `blocked` domains, and only pages of `allowed` ones."""

    query: str
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
