"""A server that is checked may send without an end: so much is read of it, and the report says so."""

from __future__ import annotations

import asyncio
from itertools import repeat

import pytest

from bardo.edge.conform import checked_server
from bardo.edge.conform.checked_server import CheckedServer
from bardo.edge.fake import FakeReply, FakeTransport


def test_a_reply_without_an_end_is_read_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_server, "MOST_BYTES", 1_000)
    transport = FakeTransport(lambda _: FakeReply(chunks=tuple(repeat(b"data: {}\n\n", 1_000))))
    reply = asyncio.run(CheckedServer(transport, "http://server.example/v1", {}).ask("x", {}))
    assert (reply.cut, reply.oversized) == (True, True)
    assert len(reply.body) <= 1_010


def test_a_reply_that_ends_is_whole() -> None:
    transport = FakeTransport(lambda _: FakeReply(chunks=(b"{}",)))
    reply = asyncio.run(CheckedServer(transport, "http://server.example/v1", {}).ask("x", {}))
    assert (reply.cut, reply.oversized, reply.json) == (False, False, {})
