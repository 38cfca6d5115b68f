"""Fixtures of the tests at the edge."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
import uvloop


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine that refuses connections; it is taken meanwhile, so that nobody comes to listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(params=["asyncio", "uvloop"])
def each_loop(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test on each event loop that the HTTP client may belong to."""
    policy = asyncio.get_event_loop_policy()
    if request.param == "uvloop":
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    yield request.param
    asyncio.set_event_loop_policy(policy)
