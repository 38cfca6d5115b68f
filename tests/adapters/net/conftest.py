"""Fixtures of the tests at the edge."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
import uvloop

from bardo.adapters.net.client import HttpTransport


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine that refuses connections; it is taken meanwhile, so that nobody comes to listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(params=["direct", "direct on uvloop", "aiohttp"])
def each_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a test with each client that HttpTransport may send calls through."""
    client, _, loop = str(request.param).partition(" on ")
    if loop:
        policy = asyncio.get_event_loop_policy()
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    monkeypatch.setattr(HttpTransport.__init__, "__defaults__", (client,))
    yield client
    if loop:
        asyncio.set_event_loop_policy(policy)
