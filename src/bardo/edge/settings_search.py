"""`[search]` of `bardo.toml`: how the gateway searches the web for models whose providers do not."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from bardo.catalog.search_apis import search_apis
from bardo.edge.settings_problems import Place
from bardo.values.errors import ConfigError

Most = Annotated[int, msgspec.Meta(ge=1, le=50)]


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The service that searches, or the `model` that is asked to; both empty: nobody searches.

    `service` is a row of `search_apis.toml`, `base_url` the address of a server of one's own, and `api_key_env` the variable that holds the
    key where it is not the service's usual one. `pages` are kept of a search, `most_searches` are made for one reply. `always`: also where
    the provider searches by itself.
    """

    service: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    pages: Most = 8
    most_searches: Most = 8
    seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 20.0
    always: bool = False


def check_search(search: SearchSettings, place: Place) -> None:
    """Raise ConfigError naming the line of what cannot search."""
    if search.service and search.model:
        raise ConfigError(f"{place.of('model')}: a service and a model are both to search", hint="give one of them")
    if not search.service:
        return
    row = search_apis().get(search.service)
    if row is None:
        hint = f'use {", ".join(search_apis())}, or model = "…" for a model that can search'
        raise ConfigError(f"{place.of('service')}: no search service is called {search.service!r}", hint=hint)
    if not (row.url or search.base_url):
        raise ConfigError(
            f"{place.of('service')}: {row.id} is a server of your own", hint='give its base_url = "http://…"'
        )
    if search.base_url and not _is_http(search.base_url):
        raise ConfigError(f"{place.of('base_url')}: {search.base_url!r} is no http(s) address", hint="give one")
    if search.api_key_env and not search.api_key_env.isidentifier():
        hint = 'write the name of the variable that holds the key: api_key_env = "TAVILY_API_KEY"'
        raise ConfigError(f"{place.of('api_key_env')}: no environment variable is called so", hint=hint)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
