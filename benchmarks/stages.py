"""Subject `stages`: at which stage of a request the processor time goes, beside the least that each stage could take.

The first is a sampling profile of the gateway under load, the second the bare operations of the same bytes, in this process.
"""

from __future__ import annotations

import http.client
import json
import socket
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import httptools
import msgspec

from bardo.dialects.anthropic_messages import wire as messages_wire
from bardo.dialects.openai_chat import wire as chat_wire
from benchmarks.basket import Cell, Requests, requests_of
from benchmarks.basket_contestants import CHAT_CHAT, MESSAGES_CHAT, MESSAGES_MESSAGES, Participant, bardo_of
from benchmarks.basket_replies import name_of, reply_to
from benchmarks.bench import Bench
from benchmarks.contestants import Gateway
from benchmarks.figures import Figure, Row, Table
from benchmarks.load import Asked
from benchmarks.sampled_app import PATH, STAGES, THREADS

CELLS = (
    Cell(way=MESSAGES_MESSAGES, kind="none"),
    Cell(way=MESSAGES_MESSAGES, kind="long"),
    Cell(way=MESSAGES_CHAT, kind="long"),
    Cell(way=MESSAGES_MESSAGES, kind="long", delivery="burst"),
    Cell(way=MESSAGES_MESSAGES, kind="agent", calls=30, history="new"),
    Cell(way=MESSAGES_CHAT, kind="agent", calls=30, history="new"),
    Cell(way=CHAT_CHAT, kind="agent", calls=30, history="new"),
)
_CONCURRENCY = 16
_COUNT, _QUICK_COUNT = 800, 160
_PATHS = {"openai_chat": "/v1/chat/completions", "anthropic_messages": "/v1/messages"}
_REQUEST = {"openai_chat": chat_wire.Request, "anthropic_messages": messages_wire.Request}
_REPLY: dict[str, Any] = {"openai_chat": chat_wire.Reply, "anthropic_messages": messages_wire.Frame}

_NOTES = (
    "Processor time of one request, 16 at once, with requests as in the basket.",
    "Server: what reads a request and writes a reply. Decode: the request's body, path and key. Call: what "
    "holds it together: attempts, failover, health, time limits. Plan: the target, the provider's form of the request. Send: the "
    "connection to the provider, in both directions. Reply: its frames, events and Response. Encode: headers, and what is written anew "
    "for the client. Log: journal, row, and what is kept for replay.",
    "Sampled by a signal each few milliseconds of the program's own time. What the kernel does, and what runs in C between two lines "
    "of Python, counts for the next line that is looked at.",
    "The least. Server and send: one call of recv and send each, and httptools over the bytes. Decode and reply: msgspec, from the "
    "bytes into the structs of the dialect. Plan and encode: these structs written as JSON, where the dialect changes. Log: a row of "
    "48 columns, of 16 in one transaction of SQLite.",
)


def run(bench: Bench) -> Table:
    """Send each kind of request for a while, and return what a request spent at each stage."""
    one = bardo_of("benchmarks.sampled_app:create_app")
    gateway = bench.start(one.contestant)
    assert gateway is not None
    count = _QUICK_COUNT if bench.pace.quick else _COUNT
    found: dict[str, dict[str, Figure]] = defaultdict(dict)
    for number, cell in enumerate(CELLS):
        bench.tell(f"stages: {cell}")
        requests = requests_of(cell, number + 1, count)
        asked = asked_of(one, cell, requests)
        bench.send(gateway, asked[:_CONCURRENCY], concurrency=_CONCURRENCY, least=_CONCURRENCY)
        spent(gateway)
        sample = bench.send(gateway, asked, concurrency=_CONCURRENCY, least=len(asked))
        seen = spent(gateway)
        if not sample.usable:
            bench.note(f"stages, {cell}: {sample.result.first_failure}")
            continue
        total = sum(seen.values())
        least = least_of(cell, asked[0], requests.measured[0][0])
        for stage in STAGES:
            figures = found[f"{stage}, the least"] if stage in least else {}
            figures[str(cell)] = _figure(least.get(stage, 0.0))
            found[stage][str(cell)] = _figure(sample.cpu * seen.get(stage, 0.0) / total)
        found["all of it"][str(cell)] = _figure(sample.cpu)
        found["all of it, the least"][str(cell)] = _figure(sum(least.values()))
    gateway.stop()
    names = [name for stage in (*STAGES, "all of it") for name in (stage, f"{stage}, the least") if name in found]
    rows = [Row(measure=name, unit="µs", figures=found[name]) for name in names]
    return Table(
        subject="stages", title="stages of a request", columns=tuple(map(str, CELLS)), rows=tuple(rows), notes=_NOTES
    )


def _figure(value: float) -> Figure:
    figure = Figure.of([value])
    assert figure is not None
    return figure


def asked_of(one: Participant, cell: Cell, requests: Requests) -> tuple[Asked, ...]:
    """Return the requests of a cell, as its client writes them."""
    return tuple(one.asked(cell.way, cell.kind, number, fields) for number, fields in requests.measured)


def least_of(cell: Cell, asked: Asked, number: str) -> dict[str, float]:
    """Return the microseconds of the bare operations of each stage that has some."""
    path = _PATHS[cell.way.provider]
    body = asked.body.encode()
    name = name_of(cell.kind, cell.delivery, number)
    pieces = reply_to(f"POST {path} HTTP/1.1\r\n\r\n{name}".encode())
    assert pieces is not None
    reply = b"".join(pieces)
    head = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items())
    request = f"POST {asked.path} HTTP/1.1\r\nhost: a\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
    frames = list(_frames(reply, streamed=cell.delivery != "whole"))
    read = msgspec.json.Decoder(_REQUEST[cell.way.client])
    read_reply = msgspec.json.Decoder(_REPLY[cell.way.provider])
    write = msgspec.json.Encoder()
    whole = read.decode(body)
    with ExitStack() as ending:
        pair = socket.socketpair()
        for end in pair:
            ending.enter_context(closing(end))
            end.setblocking(False)
        rows = ending.enter_context(closing(sqlite3.connect(":memory:")))
        rows.execute(f"create table log ({', '.join(f'c{place}' for place in range(48))})")
        row = tuple(f"value {place}" for place in range(48))
        insert = f"insert into log values ({', '.join('?' * 48)})"

        def log() -> None:
            with rows:
                rows.executemany(insert, [row] * 16)

        works: dict[str, Callable[[], object]] = {
            "server": lambda: _carried(pair, request, reply, read_by=httptools.HttpRequestParser),
            "decode": lambda: read.decode(body),
            "send": lambda: _carried(pair, reply, request, read_by=httptools.HttpResponseParser),
            "reply": lambda: [read_reply.decode(frame) for frame in frames],
        }
        if not cell.way.is_forwarded:
            works["plan"] = lambda: write.encode(whole)
            answers = [read_reply.decode(frame) for frame in frames]
            works["encode"] = lambda: [write.encode(answer) for answer in answers]
        found = {stage: _timed(work) for stage, work in works.items()}
        found[THREADS] = _timed(log) / 16
    return found


def _frames(reply: bytes, *, streamed: bool) -> Iterator[bytes]:
    body = reply.partition(b"\r\n\r\n")[2]
    if not streamed:
        yield body
        return
    for line in body.splitlines():
        if line.startswith(b"data: {"):
            yield line.removeprefix(b"data: ")


class _Nobody:
    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of the head."""


def _carried(
    pair: tuple[socket.socket, socket.socket], read: bytes, sent: bytes, *, read_by: Callable[[object], Any]
) -> None:
    """Receive and parse the one, send the other. The other end's calls count too, whose time is small beside it."""
    own, other = pair
    parser = read_by(_Nobody())
    for start in range(0, len(read), 65_536):
        other.send(read[start : start + 65_536])
        parser.feed_data(own.recv(65_536))
    for start in range(0, len(sent), 65_536):
        own.send(sent[start : start + 65_536])
        other.recv(65_536)


def _timed(work: Callable[[], object]) -> float:
    """Return the microseconds of processor time of one, the least of five runs."""
    least = float("inf")
    for _ in range(5):
        before = time.thread_time()
        for _ in range(20):
            work()
        least = min(least, time.thread_time() - before)
    return least / 20 * 1e6


def spent(gateway: Gateway) -> dict[str, float]:
    """Return the seconds of each stage since this was asked last."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    try:
        connection.request("GET", PATH)
        seconds: dict[str, float] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return seconds
