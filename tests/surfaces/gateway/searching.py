"""A gateway that searches the web by a scripted service, over a provider whose replies are written in the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bardo.adapters.config.settings import GatewaySettings, parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.app import Gateway
from bardo.wiring import assemble
from surfaces.gateway.scripted import Scripted

SEARCH_KEY = "search-key-of-a-test"
PAGE = {
    "url": "https://docs.example/a",
    "title": "A page",
    "content": "The sky is blue.",
    "published_date": "2026-11-01",
}
OTHER = {"url": "https://other.example/b", "title": "B", "content": "Elsewhere."}
SEARCH_HOST = "https://api.tavily.com/search"


class Searching(Scripted):
    """Answers searches from `pages`, and all other calls from `replies`. `searches` are the bodies of the searches."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: Any = {"results": [PAGE, OTHER]}
        self.status = 200
        self.searches: list[dict[str, Any]] = []

    def answer(self, call: Call) -> FakeReply:
        """Return the next reply, or what was found."""
        if call.url != SEARCH_HOST:
            return super().answer(call)
        assert call.headers["authorization"] == f"Bearer {SEARCH_KEY}"
        self.searches.append(json.loads(call.body))
        body = self.pages if isinstance(self.pages, bytes) else json.dumps(self.pages).encode()
        return FakeReply(status=self.status, headers={"content-type": "application/json"}, chunks=(body,))


@contextmanager
def searching(preset: str, *, search: str = 'service = "tavily"') -> Iterator[Searching]:
    """Run a gateway over a provider of this preset, with `search` as its `[search]`."""
    played = Searching()
    toml = f"""
        [log]
        enabled = false
        [reasoning]
        introspect = false
        [search]
        {search}
        [[providers]]
        id = "{preset}"
        preset = "{preset}"
        base_url = "http://127.0.0.1:9/v1"
        api_key_env = "KEY"
        models = ["deepseek-chat", "claude-sonnet-4-6", "gpt-5.4"]
        """
    transport = FakeTransport(played.answer)
    environment = {"KEY": "secret-of-a-test", "TAVILY_API_KEY": SEARCH_KEY}
    assembly = assemble(parse_settings(toml), transport=transport, environment=environment)
    try:
        with BackgroundServer(Gateway(assembly.services, GatewaySettings(), stop=transport.close)) as server:
            played.address = server.address
            yield played
    finally:
        asyncio.run(assembly.close())


def tool_call(query: str, *, name: str = "web_search", call_id: str = "call_1") -> dict[str, Any]:
    """Return a Chat message that calls the search."""
    function = {"name": name, "arguments": json.dumps({"query": query})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def text(words: str) -> dict[str, Any]:
    """Return a Chat message of text."""
    return {"role": "assistant", "content": words}
