"""Search the web by a service of `search_apis.toml`, or by a model that can search."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from bardo.adapters.config.routing import SearchSettings
from bardo.adapters.net.calls import Call, Deadlines, Reply, Transport
from bardo.call.second_calls import read_call
from bardo.call.services import WebSearcher
from bardo.catalog.fragments import merge_fields
from bardo.catalog.hosted_tools import hosted_tool
from bardo.catalog.search_apis import SearchApi, search_apis
from bardo.dialects.shared.content_forms import SearchError, SearchResults, WebPage
from bardo.dialects.shared.tools import hosted_as
from bardo.planning.hosted_search import SearchPolicy
from bardo.replies.citations import SearchWeb, citation_form
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import BardoOptions, Message, Request
from bardo.values.response import Response

if TYPE_CHECKING:
    from bardo.call.reply import LiveReply

_log = logging.getLogger("bardo.search")
_MOST_BYTES = 4 * 1024 * 1024
_LONGEST_TEXT = 4000
_LONGEST_NAME = 2000
_STATUS_ERRORS: dict[int, SearchError] = {400: "invalid_input", 422: "invalid_input", 429: "too_many_requests"}


class OpenCall(Protocol):
    """Opens calls: `open_call` of the gateway's services."""

    async def __call__(self, request: Request) -> LiveReply:
        """Send a request, and return its reply. Raises BardoError."""
        ...


def search_policy(settings: SearchSettings) -> SearchPolicy | None:
    """Return when the gateway searches, or None if nobody does."""
    named = settings.service or settings.model
    if not named:
        return None
    return SearchPolicy(service=named, always=settings.always, most_searches=settings.most_searches)


def open_searcher(
    settings: SearchSettings, transport: Transport, open_call: OpenCall, *, environment: Mapping[str, str] | None = None
) -> WebSearcher | None:
    """Return what searches, as `settings` say, over `transport` or by a call of its own, or None if nobody does."""
    if settings.service:
        return ServiceSearch(settings, transport, environment)
    return ModelSearch(settings, open_call) if settings.model else None


class ServiceSearch:
    """Searches by a service. Its key is read when it is needed, and is in nothing that is returned or logged."""

    def __init__(
        self, settings: SearchSettings, transport: Transport, environment: Mapping[str, str] | None = None
    ) -> None:
        self._row = search_apis()[settings.service]
        self._settings = settings
        self._transport = transport
        self._environment = os.environ if environment is None else environment

    def __repr__(self) -> str:
        return f"ServiceSearch({self._row.id})"

    async def search(self, search: SearchWeb) -> SearchResults:
        """Return what a search gave."""
        if len(search.query) > self._row.longest_query:
            return SearchResults(error="query_too_long")
        key = self._key()
        if self._row.key_header and not key:
            _log.warning("no key for the search service %s", self._row.id, extra={"service": self._row.id})
            return SearchResults(error="unavailable")
        deadlines = Deadlines(
            first_byte=self._settings.seconds, idle=self._settings.seconds, total=self._settings.seconds
        )
        try:
            reply = await self._transport.send(search_call(self._row, self._settings, search, key), deadlines)
            return await self._results(reply, search, key)
        except BardoError as problem:
            _log.warning(
                "%s could not search: %s", self._row.id, type(problem).__name__, extra={"service": self._row.id}
            )
            return SearchResults(error="unavailable")

    async def _results(self, reply: Reply, search: SearchWeb, key: str) -> SearchResults:
        try:
            if reply.status != 200:
                _log.warning("%s answered a search with status %d", self._row.id, reply.status)
                return SearchResults(error=_STATUS_ERRORS.get(reply.status, "unavailable"))
            body = await reply.read(_MOST_BYTES)
        finally:
            await reply.close()
        pages = pages_of(self._row, body)
        if pages is None:
            _log.warning("%s answered a search with what is not a list of pages", self._row.id)
            return SearchResults(error="unavailable")
        kept = [_without(page, key) for page in pages if _may_be_shown(page, search)]
        return SearchResults(pages=tuple(kept[: self._settings.pages]))

    def _key(self) -> str:
        named = (self._settings.api_key_env,) if self._settings.api_key_env else self._row.key_variables
        return next((key for name in named if (key := self._environment.get(name, "").strip())), "")


class ModelSearch:
    """Searches by asking a model that can. Each search is a call of its own in the log."""

    def __init__(self, settings: SearchSettings, open_call: OpenCall) -> None:
        self._settings = settings
        self._open_call = open_call

    async def search(self, search: SearchWeb) -> SearchResults:
        """Return the pages that the model's answer cites, the first of them with the answer as its text."""
        known = hosted_tool("web_search")
        request = Request(
            model=self._settings.model,
            messages=(Message("user", (TextBlock(f"Search the web and report what you find: {search.query}"),)),),
            tools=(hosted_as(known, known.asked_in, {"allowed_domains": [*search.allowed]} if search.allowed else {}),),
            dialect=known.asked_in,
            options=BardoOptions(hosted_only=True),
        )
        try:
            live = await read_call(self._open_call, request)
        except BardoError as problem:
            _log.warning("%s could not search: %s", self._settings.model, type(problem).__name__)
            return SearchResults(error="unavailable")
        response = live.response()
        pages = [page for page in _cited_pages(response, known.asked_in) if _may_be_shown(page, search)]
        text = response.text.strip()
        if not text:
            return SearchResults(error="unavailable")
        first = WebPage(url=pages[0].url if pages else "", title=f"Answer of {self._settings.model}", text=text)
        return SearchResults(pages=(first, *pages[: self._settings.pages]))


def search_call(row: SearchApi, settings: SearchSettings, search: SearchWeb, key: str) -> Call:
    """Return the HTTP request of a search."""
    asked: dict[str, Any] = {row.query: search.query}
    if row.count:
        asked[row.count] = min(settings.pages, row.most)
    for name, domains in ((row.allowed_domains, search.allowed), (row.blocked_domains, search.blocked)):
        if name and domains:
            asked[name] = [*domains]
    asked = merge_fields(asked, row.fields)
    address = _address(row, settings)
    headers = {"accept": "application/json"}
    if row.key_header:
        headers[row.key_header] = f"{row.key_prefix}{key}"
    if row.method == "GET":
        return Call(method="GET", url=f"{address}?{urlencode(asked)}", headers=headers, provider=row.id)
    headers["content-type"] = "application/json"
    return Call(url=address, headers=headers, body=msgspec.json.encode(asked), provider=row.id)


def pages_of(row: SearchApi, body: bytes) -> list[WebPage] | None:
    """Return the pages of a service's reply, or None if it is none. What is no page is left out, and long texts are cut."""
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    for name in row.pages.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    return [page for one in value if isinstance(one, dict) and (page := _page(row, one)) is not None]


def _address(row: SearchApi, settings: SearchSettings) -> str:
    base = settings.base_url.rstrip("/")
    if not base:
        return row.url
    return f"{base}/{row.path}" if row.path and not base.endswith(f"/{row.path}") else base


def _page(row: SearchApi, fields: dict[str, Any]) -> WebPage | None:
    url = fields.get(row.address)
    if not isinstance(url, str) or _host(url) is None or len(url) > _LONGEST_NAME:
        return None
    texts = [_text(fields.get(name)) for name in row.text]
    return WebPage(
        url=url,
        title=_text(fields.get(row.title))[:_LONGEST_NAME],
        text="\n".join(filter(None, texts))[:_LONGEST_TEXT],
        date=_text(fields.get(row.date))[:100] if row.date else "",
    )


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _host(url: str) -> str | None:
    """Return the host of an http(s) address, in lower case; None for anything else."""
    try:
        parts = urlsplit(url)
        return parts.hostname.lower() if parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


def _may_be_shown(page: WebPage, search: SearchWeb) -> bool:
    """Whether a page is on a domain that is allowed, or on one of its subdomains."""
    host = _host(page.url) or ""
    if any(_is_on(host, domain) for domain in search.blocked):
        return False
    return not search.allowed or any(_is_on(host, domain) for domain in search.allowed)


def _is_on(host: str, domain: str) -> bool:
    bare = domain.partition("/")[0]
    return host == bare or host.endswith(f".{bare}")


def _without(page: WebPage, key: str) -> WebPage:
    """Return a page without the key, which a hostile service may repeat."""
    if not key:
        return page
    return WebPage(**{name: value.replace(key, "…") for name, value in msgspec.structs.asdict(page).items()})


def _cited_pages(response: Response, language: str) -> list[WebPage]:
    form = citation_form(language)
    assert form is not None
    pages: dict[str, WebPage] = {}
    for block in response.blocks:
        fields = block.carried.fields if isinstance(block, TextBlock) and block.carried is not None else {}
        for cited in form.read(fields.get(form.field) or []).found:
            pages.setdefault(cited.url, WebPage(url=cited.url, title=cited.title, text=cited.cited_text))
    return [*pages.values()]
