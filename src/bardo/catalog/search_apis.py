"""Services that search the web, from `catalog/data/search_apis.toml`: how each is asked, and where its pages stand in a reply."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import tomli


class SearchApi(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One service.

    `url` is empty for a server that everybody runs on their own; `path` is joined to such a server's address. `query`, `count`,
    `allowed_domains` and `blocked_domains` are the names of parameters, empty where the service has none; `fields` are sent besides. All of
    them go into the query of a GET, and into the JSON body of a POST. `most` is the largest count, `longest_query` the most characters of a
    query. `pages` is the dotted path of the list of pages in a reply; `address`, `title`, `text` and `date` are fields of a page.
    """

    id: str
    method: Literal["GET", "POST"] = "POST"
    url: str = ""
    path: str = ""
    key_variables: tuple[str, ...] = ()
    key_header: str = ""
    key_prefix: str = ""
    query: str
    count: str = ""
    most: int = 100
    longest_query: int = 2000
    allowed_domains: str = ""
    blocked_domains: str = ""
    fields: dict[str, Any] = {}
    pages: str
    address: str = "url"
    title: str = "title"
    text: tuple[str, ...]
    date: str = ""


@cache
def search_apis() -> dict[str, SearchApi]:
    """Return the rows that come with bardo, by id."""
    text = files("bardo.catalog").joinpath("data/search_apis.toml").read_text(encoding="utf-8")
    return {row.id: row for row in msgspec.convert(tomli.loads(text)["api"], list[SearchApi])}
