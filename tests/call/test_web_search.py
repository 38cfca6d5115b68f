"""Each service is asked as its own documentation says, and its pages are read; `[search]` names the line of a mistake."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from bardo.adapters.config.settings import SearchSettings, parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.call.search import ServiceSearch
from bardo.catalog.search_apis import search_apis
from bardo.dialects.shared.content_forms import SearchResults
from bardo.replies.citations import SearchWeb
from bardo.values.errors import ConfigError

KEYS = {name: "the-key" for row in search_apis().values() for name in row.key_variables}
REPLIES = {
    "tavily": {"results": [{"url": "https://a.example", "title": "A", "content": "words", "score": 0.9}]},
    "brave": {
        "web": {
            "results": [{"url": "https://a.example", "title": "A", "description": "words", "extra_snippets": ["more"]}]
        }
    },
    "exa": {"results": [{"url": "https://a.example", "title": "A", "text": "words", "publishedDate": "2026-01-01"}]},
    "serper": {"organic": [{"link": "https://a.example", "title": "A", "snippet": "words", "position": 1}]},
    "searxng": {"results": [{"url": "https://a.example", "title": "A", "content": "words", "publishedDate": None}]},
}


def found_by(service: str, reply: FakeReply, wanted: SearchWeb) -> tuple[SearchResults, list[Call]]:
    calls: list[Call] = []

    def answer(call: Call) -> FakeReply:
        calls.append(call)
        return reply

    settings = SearchSettings(service=service, base_url="http://127.0.0.1:9" if service == "searxng" else "")
    search = ServiceSearch(settings, FakeTransport(answer), KEYS)
    assert "the-key" not in repr(search)
    return asyncio.run(search.search(wanted)), calls


def json_reply(value: object, status: int = 200) -> FakeReply:
    return FakeReply(status=status, headers={"content-type": "application/json"}, chunks=(json.dumps(value).encode(),))


@pytest.mark.parametrize("service", REPLIES)
def test_pages_of_each_service_are_read(service: str) -> None:
    results, calls = found_by(service, json_reply(REPLIES[service]), SearchWeb(query="blue & green"))
    [page] = results.pages
    assert (page.url, page.title) == ("https://a.example", "A")
    assert page.text.startswith("words")
    [call] = calls
    row = search_apis()[service]
    asked = {name: value[0] for name, value in parse_qs(urlsplit(call.url).query).items()} or json.loads(call.body)
    assert asked[row.query] == "blue & green"
    assert call.method == row.method
    if row.key_header:
        assert call.headers[row.key_header] == f"{row.key_prefix}the-key"


def test_every_service_has_a_reply_here() -> None:
    assert REPLIES.keys() == search_apis().keys()


@pytest.mark.parametrize(
    ("status", "error"), [(429, "too_many_requests"), (400, "invalid_input"), (500, "unavailable")]
)
def test_a_refusal_is_an_error_of_the_results(status: int, error: str) -> None:
    results, _ = found_by("tavily", json_reply({}, status), SearchWeb(query="sky"))
    assert (results.error, results.pages) == (error, ())


def test_a_query_that_is_too_long_is_not_sent() -> None:
    results, calls = found_by("brave", json_reply(REPLIES["brave"]), SearchWeb(query="x" * 401))
    assert (results.error, calls) == ("query_too_long", [])


def test_without_a_key_nothing_is_sent() -> None:
    search = ServiceSearch(SearchSettings(service="exa"), FakeTransport(lambda call: FakeReply()), {})
    assert asyncio.run(search.search(SearchWeb(query="sky"))).error == "unavailable"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('service = "tavilly"', "line 2.*tavilly"),
        ('service = "searxng"', "line 2.*server of your own"),
        ('service = "exa"\nmodel = "gpt-5.4"', "line 3.*both"),
        ('service = "exa"\napi_key_env = "sk-123"', "line 3.*environment variable"),
        ('service = "searxng"\nbase_url = "ftp://a"', "line 3.*address"),
        ('service = "exa"\npages = 0', "line 3"),
    ],
)
def test_mistakes_name_their_line(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_settings(f"[search]\n{table}\n")
