"""What is kept of a reply of a server that is checked: a part of one without an end, and the events of a stream."""

from __future__ import annotations

import asyncio
from itertools import repeat

import pytest

from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.operators.conform import checked_server
from bardo.operators.conform.checked_server import CheckedServer, Frame, ReceivedReply


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


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_of_a_stream_end_in_each_of_the_three_ways(end: str) -> None:
    lines = ("event: a", "data: 1", ": a comment", "data:2", "", "id: 7", "", "data: [DONE]", "", "")
    reply = ReceivedReply(status=200, content_type="text/event-stream", body=("\ufeff" + end.join(lines)).encode())
    assert reply.frames == (Frame("a", "1\n2"), Frame("", "[DONE]"))
