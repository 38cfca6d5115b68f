"""What a server process accepts from its clients, over real sockets: bounds on heads, bodies, connections and pipelines."""

from __future__ import annotations

import asyncio
import json
import re
import select
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from bardo.adapters.config.gateway import ServerBounds
from bardo.server.protocol import BODY, HEAD, NOTHING, Connection
from bardo.server.reply import Message, Receive, Scope, Send
from bardo.server.serving import BackgroundServer
from support.patience import PATIENCE
from support.raw import RawClient, head, post

pytestmark = pytest.mark.each_python

SLOW = 60.0


class EchoApp:
    """Answers with the path and the body of a request; `/wait…` waits for `go`, `/early` answers before the body is read."""

    def __init__(self, bounds: ServerBounds) -> None:
        self.bounds = bounds
        self.go = threading.Event()
        self.asked: list[str] = []
        self.cancelled = threading.Event()
        self.arrived = threading.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        path = scope["path"]
        self.asked.append(path)
        self.arrived.release()
        if path == "/early":
            await reply(send, b"early", 413)
            return
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cancelled.set()
                return
            body += message["body"]
            if not message["more_body"]:
                break
        if path.startswith("/wait"):
            await self._wait(receive)
        await reply(send, f"{path} {len(body)}".encode(), length=not path.startswith("/stream"))

    async def _wait(self, receive: Receive) -> None:
        gone = asyncio.ensure_future(receive())
        while not self.go.is_set():
            if gone.done() and gone.result()["type"] == "http.disconnect":
                self.cancelled.set()
                return
            await asyncio.sleep(0.01)
        gone.cancel()


async def reply(send: Send, body: bytes, status: int = 200, *, length: bool = True) -> None:
    headers = [(b"content-length", str(len(body)).encode())] if length else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    half = len(body) // 2
    await send({"type": "http.response.body", "body": body[:half], "more_body": True})
    last: Message = {"type": "http.response.body", "body": body[half:]}
    await send(last)


class Deadline:
    """The deadline of a connection."""

    def __init__(self, protocol: Connection, seconds: float, due: float) -> None:
        self.protocol = protocol
        self.due = due
        self._seconds = seconds
        self._open = True

    def cancel(self) -> None:
        self._open = False

    def pass_by(self) -> None:
        if self._open:
            self._open = False
            self.protocol._check_time(self._seconds)


class Clock:
    """The time by which the deadlines of connections pass: it stands still until a test moves it."""

    def __init__(self) -> None:
        self.protocols: list[Connection] = []
        self._now = 0.0
        self._deadlines: list[Deadline] = []

    def set_deadline(self, protocol: Connection, seconds: float) -> None:
        """Stand in for the protocol's own method."""
        if protocol not in self.protocols:
            self.protocols.append(protocol)
        deadline = Deadline(protocol, seconds, self._now + seconds)
        self._deadlines.append(deadline)
        protocol._deadline = deadline  # type: ignore[assignment]

    def move(self, seconds: float) -> None:
        """Let time pass, and wait until what is due has been done."""
        self._now += seconds
        past = [one for one in self._deadlines if one.due <= self._now]
        self._deadlines = [one for one in self._deadlines if one not in past]
        for one in past:
            done = threading.Event()
            one.protocol.loop.call_soon_threadsafe(one.pass_by)
            one.protocol.loop.call_soon_threadsafe(done.set)
            assert done.wait(PATIENCE)


class Served:
    """A server and its clients, which are closed at its end."""

    def __init__(self, app: EchoApp, address: str, stack: ExitStack, clock: Clock) -> None:
        self.app = app
        self.address = address
        self.clock = clock
        self._stack = stack

    def connect(self) -> RawClient:
        return self._stack.enter_context(RawClient(self.address))

    def wait_for_connections(self, count: int, *, arriving: int = NOTHING, size: int = 0) -> None:
        """Wait until so many connections are open, and so much of the head or the body of a request has arrived on each."""
        until = time.monotonic() + PATIENCE
        while True:
            sizes = [(one._arriving, len(one._head)) for one in self.clock.protocols]
            if sum(part == arriving and read >= size for part, read in sizes) >= count:
                return
            assert time.monotonic() < until, sizes
            time.sleep(0.005)

    def pass_until_answered(self, client: RawClient, seconds: float) -> None:
        """Let so many seconds pass again and again until there is an answer: time for what waits for the application does not count."""
        until = time.monotonic() + PATIENCE
        while not select.select([client.socket], [], [], 0.01)[0]:
            assert time.monotonic() < until, "no answer came"
            self.clock.move(seconds)


@contextmanager
def serving(**bounds: Any) -> Iterator[Served]:
    app, clock = EchoApp(ServerBounds(**bounds)), Clock()

    def set_deadline(protocol: Connection, seconds: float) -> None:
        clock.set_deadline(protocol, seconds)

    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(Connection, "_set_deadline", set_deadline)
        server = stack.enter_context(BackgroundServer(app))
        yield Served(app, server.address, stack, clock)


def is_refused(client: RawClient, status: int, code: str) -> bool:
    answer = client.reply()
    assert answer.status == status, answer
    assert answer.headers["connection"] == "close"
    assert answer.json["error"]["code"] == code
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert answer.headers["request-id"].startswith("req_")
    return client.is_closed()


# Heads


def test_a_head_with_too_many_headers_is_431() -> None:
    with serving(max_headers=10) as served:
        client = served.connect()
        client.send(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 11 + b"\r\n")
        assert is_refused(client, 431, "headers_too_large")
        assert not served.app.asked


@pytest.mark.parametrize("pieces", [1, 7], ids=["at once", "in pieces"])
@pytest.mark.parametrize(
    "head_of",
    [
        lambda size: b"GET / HTTP/1.1\r\nx: " + b"y" * size + b"\r\n\r\n",
        lambda size: b"GET /" + b"y" * size + b" HTTP/1.1\r\n\r\n",
        lambda size: b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: yyyyyyyy\r\n" % n for n in range(size // 12)) + b"\r\n",
    ],
    ids=["one header", "the path", "many headers"],
)
def test_a_head_over_the_bound_is_431(head_of: Any, pieces: int) -> None:
    with serving(max_header_bytes=8000, max_headers=10_000) as served:
        fits, exceeds = head_of(6000), head_of(9000)
        first = served.connect()
        first.send(fits)
        assert first.reply().status == 200
        second = served.connect()
        step = len(exceeds) // pieces + 1
        for start in range(0, len(exceeds), step):
            second.send_as_much_as_is_taken(exceeds[start : start + step], 1)
            time.sleep(0.01)
        assert is_refused(second, 431, "headers_too_large")


def test_a_head_without_end_is_not_kept_in_memory() -> None:
    with serving() as served:
        client = served.connect()
        client.send(b"GET / HTTP/1.1\r\nx: ")
        assert client.send_as_much_as_is_taken(b"y" * 65536, 1024) < 32 * 1024 * 1024
        assert b"431" in client.rest()[:20]


def test_a_large_body_before_the_next_head_does_not_count_as_its_head() -> None:
    with serving(max_header_bytes=1000) as served:
        client = served.connect()
        client.send(post(client.host, "/one", b"x" * 50_000) + b"GET /two HTTP/1.1\r\n")
        assert client.reply().body == b"/one 50000"
        client.send(b"\r\n")
        assert client.reply().body == b"/two 0"


def test_headers_after_a_chunked_body_are_bounded_and_ignored() -> None:
    with serving(max_headers=5, max_header_bytes=1000) as served:
        start = head("x", "/", transfer_encoding="chunked") + b"2\r\nab\r\n0\r\n"
        client = served.connect()
        client.send(start + b"a: b\r\n\r\n")
        assert client.reply().body == b"/ 2"
        for flood in (b"a: b\r\n" * 8, b"a: " + b"b" * 1_000_000):
            client = served.connect()
            client.send(start)
            client.send(flood)
            assert is_refused(client, 431, "headers_too_large")


def test_a_head_that_does_not_arrive_in_time_is_408() -> None:
    with serving(head_seconds=10.0) as served:
        clients = [served.connect() for _ in range(20)]
        for client in clients:
            client.send(b"POST /v1/messages HTTP/1.1\r\nhost: ")
        served.wait_for_connections(20, arriving=HEAD)
        served.clock.move(9.0)
        served.clock.move(1.0)
        assert all(is_refused(client, 408, "request_timeout") for client in clients)


def test_a_connection_that_says_nothing_is_closed_without_a_word() -> None:
    with serving(head_seconds=10.0) as served:
        client = served.connect()
        served.wait_for_connections(1)
        served.clock.move(10.0)
        assert client.is_closed()


def test_a_head_that_trickles_in_is_not_waited_for() -> None:
    with serving(head_seconds=10.0) as served:
        client = served.connect()
        client.send(b"GET / HTTP/1.1\r\n")
        served.wait_for_connections(1, arriving=HEAD)
        for size in (1, 7):
            served.clock.move(4.0)
            client.send(b"a: b\r\n")
            served.wait_for_connections(1, arriving=HEAD, size=16 + size)
        served.clock.move(2.0)
        assert is_refused(client, 408, "request_timeout")


def test_the_time_for_a_head_and_that_for_a_body_begin_anew_with_each_request() -> None:
    with serving(head_seconds=10.0, body_seconds=10.0) as served:
        client = served.connect()
        for _ in range(3):
            request = post(client.host, "/", b"x" * 10)
            client.send(request[:40])
            served.wait_for_connections(1, arriving=HEAD)
            served.clock.move(9.0)
            client.send(request[40:-5])
            served.wait_for_connections(1, arriving=BODY)
            served.clock.move(9.0)
            client.send(request[-5:])
            assert client.reply().status == 200


BROKEN = {
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no version": b"GET /\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\nhost: x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "another address": b"GET http://example.com/ HTTP/1.1\r\nhost: x\r\n\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
    "a tunnel": b"CONNECT example.com:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    "a space in a name": b"GET / HTTP/1.1\r\nho st: x\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n",
    "a null": b"GET / HTTP/1.1\r\na: b\x00c\r\n\r\n",
    "length and chunks": b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "chunks and length": b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    "a length that is none": b"POST / HTTP/1.1\r\ncontent-length: +5\r\n\r\nabcde",
    "chunks that do not end": b"POST / HTTP/1.1\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunk size that is none": b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("request_bytes", BROKEN.values(), ids=BROKEN)
def test_what_is_no_http_request_is_refused(request_bytes: bytes) -> None:
    with serving() as served:
        client = served.connect()
        client.send(request_bytes)
        is_another_version = re.search(rb"HTTP/(2\.0|9\.9)", request_bytes)
        assert is_refused(client, 505 if is_another_version else 400, "invalid_request")
        assert "/x" not in served.app.asked, "a request was smuggled in"


# Bodies


@pytest.mark.parametrize(("size", "begun"), [(100, False), (100_000, True)], ids=["short", "long"])
def test_a_body_that_does_not_arrive_in_time_is_408(size: int, begun: bool) -> None:
    with serving(body_seconds=10.0) as served:
        client = served.connect()
        client.send(post(client.host, "/", b"x" * size)[:-1])
        served.wait_for_connections(1, arriving=BODY)
        served.pass_until_answered(client, 10.0)
        assert is_refused(client, 408, "request_timeout")
        if begun:
            assert served.app.cancelled.wait(PATIENCE)
        assert bool(served.app.asked) == begun


def test_a_body_in_pieces_arrives_whole_and_the_connection_lives_on() -> None:
    with serving() as served:
        client = served.connect()
        for _ in range(2):
            request = post(client.host, "/", b"x" * 300_000)
            for start in range(0, len(request), 50_000):
                client.send(request[start : start + 50_000])
            answer = client.reply()
            assert answer.body == b"/ 300000"
            assert "connection" not in answer.headers


def test_the_bodies_of_all_requests_are_bounded_together() -> None:
    with serving(max_total_body_bytes=1_000_000) as served:
        holders = [served.connect() for _ in range(3)]
        for client in holders:
            client.send(post(client.host, "/wait", b"x" * 300_000))
            assert served.app.arrived.acquire(timeout=PATIENCE)
        late = served.connect()
        late.send_as_much_as_is_taken(post(late.host, "/", b"x" * 300_000), 1)
        assert is_refused(late, 503, "overloaded")
        served.app.go.set()
        assert [client.reply().status for client in holders] == [200] * 3
        again = served.connect()
        again.send(post(again.host, "/", b"x" * 900_000))
        assert again.reply().body == b"/ 900000"


def test_bodies_of_clients_that_leave_are_not_counted_any_more() -> None:
    with serving(max_total_body_bytes=100_000) as served:
        for _ in range(5):
            client = served.connect()
            client.send(post(client.host, "/wait", b"x" * 80_000))
            served.app.cancelled.clear()
            assert served.app.arrived.acquire(timeout=PATIENCE)
            client.close()
            assert served.app.cancelled.wait(PATIENCE)
        last = served.connect()
        last.send(post(last.host, "/", b"x" * 80_000))
        assert last.reply().status == 200


def test_what_comes_after_an_early_answer_is_not_read_on() -> None:
    with serving() as served:
        client = served.connect()
        client.send(head(client.host, "/early", content_length="1000000000"))
        answer = client.reply()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert client.send_as_much_as_is_taken(b"x" * 65536, 4096) < 64 * 1024 * 1024
        assert client.is_closed()


def test_an_early_answer_reaches_a_client_that_sends_first_and_reads_then() -> None:
    with serving() as served:
        client = served.connect()
        client.send(head(client.host, "/early", content_length="2000000"))
        client.send(b"x" * 2_000_000)
        assert client.reply().body == b"early"
        assert client.is_closed()


def test_an_answer_after_the_whole_body_leaves_the_connection_open() -> None:
    with serving() as served:
        client = served.connect()
        client.send(post(client.host, "/early", b"x" * 10))
        assert "connection" not in client.reply().headers
        client.send(post(client.host, "/", b"x" * 10))
        assert client.reply().body == b"/ 10"


def test_a_client_that_waits_for_100_continue_is_asked_to_go_on_or_refused() -> None:
    with serving() as served:
        client = served.connect()
        client.send(head(client.host, "/", content_length="3", expect="100-continue"))
        assert client.reply(head_only=True).status == 100
        client.send(b"abc")
        assert client.reply().body == b"/ 3"
        refused = served.connect()
        refused.send(head(refused.host, "/early", content_length="3", expect="100-continue"))
        assert refused.reply().status == 413


# Connections


def test_connections_over_the_bound_are_503_and_served_again_once_others_close() -> None:
    with serving(max_connections=3) as served:
        first = [served.connect() for _ in range(3)]
        for client in first:
            client.send(post(client.host, "/wait", b""))
            assert served.app.arrived.acquire(timeout=PATIENCE)
        surplus = served.connect()
        surplus.send(post(surplus.host, "/", b""))
        assert is_refused(surplus, 503, "overloaded")
        for client in first:
            client.close()
        until = time.monotonic() + PATIENCE
        while True:
            client = served.connect()
            client.send(post(client.host, "/", b""))
            if client.reply().status == 200:
                break
            assert time.monotonic() < until


def test_a_connection_over_the_bound_takes_the_place_of_the_one_that_is_idle_for_longest() -> None:
    with serving(max_connections=3) as served:
        longest, busy, shorter = [served.connect() for _ in range(3)]
        for client in (busy, longest, shorter):
            client.send(post(client.host, "/", b""))
            assert client.reply().status == 200
        busy.send(post(busy.host, "/wait", b""))
        assert served.app.arrived.acquire(timeout=PATIENCE)
        for closed in (longest, shorter):
            more = served.connect()
            more.send(post(more.host, "/wait", b""))
            assert served.app.arrived.acquire(timeout=PATIENCE), "the new one is served"
            assert closed.is_closed()
        surplus = served.connect()
        surplus.send(post(surplus.host, "/", b""))
        assert is_refused(surplus, 503, "overloaded")
        served.app.go.set()
        assert busy.reply().status == 200


def test_many_connections_over_the_bound_are_closed_at_once() -> None:
    with serving(max_connections=1) as served:
        clients = [served.connect() for _ in range(60)]
        for client in clients[-20:]:
            assert client.is_closed()


def test_pipelined_requests_are_answered_in_their_order_up_to_the_bound() -> None:
    with serving(max_pipelined_requests=4) as served:
        client = served.connect()
        requests = [post(client.host, f"/{number}", b"x" * number) for number in range(1, 5)]
        client.send(post(client.host, "/wait", b"") + b"".join(requests))
        assert served.app.arrived.acquire(timeout=PATIENCE)
        served.app.go.set()
        assert client.reply().body == b"/wait 0"
        for number in range(1, 5):
            assert client.reply().body == f"/{number} {number}".encode()


def test_pipelined_requests_over_the_bound_are_503_after_the_replies_before_them() -> None:
    with serving(max_pipelined_requests=4) as served:
        client = served.connect()
        # In one piece, so that all are read before the first is answered, however busy the machine is.
        client.send(post(client.host, "/wait", b"") + post(client.host, "/stream", b"") * 20)
        assert served.app.arrived.acquire(timeout=PATIENCE)
        served.app.go.set()
        assert client.reply().body == b"/wait 0"
        for _ in range(4):
            assert client.reply().body == b"/stream 0"
        assert is_refused(client, 503, "overloaded")
        assert len(served.app.asked) == 5


def test_a_broken_request_behind_another_is_answered_after_it() -> None:
    with serving() as served:
        client = served.connect()
        client.send(post(client.host, "/wait", b"") + b"nonsense\r\n\r\n")
        assert served.app.arrived.acquire(timeout=PATIENCE)
        served.app.go.set()
        assert client.reply().body == b"/wait 0"
        assert is_refused(client, 400, "invalid_request")


def test_a_half_request_behind_another_is_answered_after_it() -> None:
    with serving(body_seconds=10.0) as served:
        client = served.connect()
        client.send(post(client.host, "/wait", b"") + post(client.host, "/second", b"xx")[:-1])
        assert served.app.arrived.acquire(timeout=PATIENCE)
        served.wait_for_connections(1, arriving=BODY)
        served.clock.move(10.0)
        served.clock.move(10.0)
        served.app.go.set()
        assert client.reply().body == b"/wait 0"
        served.pass_until_answered(client, 10.0)
        assert is_refused(client, 408, "request_timeout")
        assert served.app.asked == ["/wait"]


def test_a_client_that_leaves_with_requests_waiting_ends_the_one_that_is_being_answered() -> None:
    with serving() as served:
        client = served.connect()
        client.send(post(client.host, "/wait", b"") + post(client.host, "/second", b""))
        assert served.app.arrived.acquire(timeout=PATIENCE)
        client.close()
        assert served.app.cancelled.wait(PATIENCE)


# Versions and other protocols


@pytest.mark.parametrize("path", ["/plain", "/stream"], ids=["of known length", "of unknown length"])
def test_an_http_1_0_client_gets_no_chunks(path: str) -> None:
    with serving() as served:
        client = served.connect()
        client.send(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = client.reply()
        assert "transfer-encoding" not in answer.headers
        assert answer.body == f"{path} 0".encode()
        assert client.is_closed()


def test_a_wish_for_another_protocol_is_ignored() -> None:
    with serving() as served:
        client = served.connect()
        upgrade = head(
            client.host, "/one", "GET", connection="Upgrade, HTTP2-Settings", upgrade="h2c", http2_settings="AAMA"
        )
        client.send(upgrade + post(client.host, "/two", b"abc"))
        assert client.reply().body == b"/one 0"
        assert client.reply().body == b"/two 3"
        client.send(post(client.host, "/three", b"abc", connection="Upgrade", upgrade="h2c"))
        assert client.reply().body == b"/three 3"


def test_errors_are_json_with_a_hint() -> None:
    with serving() as served:
        client = served.connect()
        client.send(b"nonsense\r\n\r\n")
        answer = client.reply()
        assert answer.headers["content-type"] == "application/json"
        assert "HTTP" in json.dumps(answer.json)


def test_each_request_of_a_connection_has_its_own_path() -> None:
    with serving() as served:
        client = served.connect()
        paths = ["/one", "/one", "/two?x=1", "/two", "/a%20b", "/one"]
        for path in paths:
            client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert client.reply().status == 200
        assert served.app.asked == ["/one", "/one", "/two", "/two", "/a b", "/one"]


@pytest.mark.parametrize("size", [0, 1, 60_000, 200_000])
def test_a_head_and_a_body_that_come_apart_are_one_request(size: int) -> None:
    with serving() as served:
        client = served.connect()
        whole = post(client.host, "/apart", b"x" * size)
        begin = whole.index(b"\r\n\r\n") + 4
        for _ in range(2):
            for piece in (whole[:begin], whole[begin : begin + size // 2], whole[begin + size // 2 :]):
                client.send(piece)
                time.sleep(0.02)
            assert client.reply().body == f"/apart {size}".encode()
        assert served.app.asked == ["/apart", "/apart"]


def test_a_short_body_that_is_refused_leaves_nothing_behind() -> None:
    with serving(max_total_body_bytes=1000) as served:
        client = served.connect()
        client.send(post(client.host, "/", b"x" * 2000)[:-1])
        assert is_refused(client, 503, "overloaded")
        assert not served.app.asked
        second = served.connect()
        second.send(post(second.host, "/", b"x" * 900))
        assert second.reply().body == b"/ 900"
