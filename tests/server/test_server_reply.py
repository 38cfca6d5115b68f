"""What is sent for each reply, and that a whole one leaves in one write."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from bardo.server.reply import Channel, RequestCycle, ServerState, cycle_of

pytestmark = pytest.mark.each_python

PHRASES = {200: "OK", 204: "No Content", 429: "Too Many Requests", 500: "Internal Server Error"}
DATE = (b"date", b"Sun, 22 Nov 2026 21:00:00 GMT")
Said = list[dict[str, Any]]


class Carrier(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.writes.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class OneRequest(Channel):
    """A connection that counts its replies."""

    def __init__(self, carrier: Carrier) -> None:
        super().__init__(ServerState(nobody, {}))
        self.transport = carrier
        self.server.own_headers = b"%b: %b\r\n" % DATE
        self.writes_at_ends: list[int] = []

    def complete(self, cycle: RequestCycle) -> None:
        self.writes_at_ends.append(len(self.carrier.writes))
        if not cycle.keep_alive:
            self.transport.close()

    @property
    def carrier(self) -> Carrier:
        assert isinstance(self.transport, Carrier)
        return self.transport


async def nobody(*_: object) -> None:
    """Answer nothing."""


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", str(size).encode()


Outcome = tuple[bytes, int, bool, bool, int, bool]


def over_a_carrier() -> tuple[OneRequest, Carrier]:
    """Return a connection, and what keeps all that is written there."""
    carrier = Carrier()
    return OneRequest(carrier), carrier


async def sent(said: Said, *, method: str = "POST", keep_alive: bool = True, left: bool = False) -> Outcome:
    """Return what was written, in how many writes, and how the request stands then."""
    channel, carrier = over_a_carrier()
    cycle = cycle_over(channel, method=method, keep_alive=keep_alive)
    cycle.disconnected = left
    problem = False
    try:
        for message in said:
            await cycle.send(message)
    except RuntimeError:
        problem = True
    ends = len(channel.writes_at_ends)
    return b"".join(carrier.writes), len(carrier.writes), cycle.response_complete, carrier.closed, ends, problem


def expected(said: Said, *, method: str = "POST", keep_alive: bool = True) -> tuple[bytes, bool, bool]:
    """Return what HTTP/1.1 has for a reply, whether it is complete, and whether the application made a mistake."""
    begin, *pieces = said
    headers = [(name.lower(), value) for name, value in begin["headers"]]
    if any(b" " in name or b"\n" in value for name, value in headers):
        return b"", False, True
    if not keep_alive and (b"connection", b"close") not in headers:
        headers.append((b"connection", b"close"))
    length = int(dict(headers).get(b"content-length", -1))
    is_chunked = length < 0 and method != "HEAD" and begin["status"] != 204
    if is_chunked and b"transfer-encoding" not in dict(headers):
        headers.append((b"transfer-encoding", b"chunked"))
    written = f"HTTP/1.1 {begin['status']} {PHRASES[begin['status']]}\r\n".encode()
    written += b"".join(b"%b: %b\r\n" % header for header in [DATE, *headers]) + b"\r\n"
    if method == "HEAD":
        return written, True, len([piece for piece in pieces if not piece["more_body"]]) > 1
    bodies = [piece["body"] for piece in pieces]
    if is_chunked:
        chunks = [b"%x\r\n%b\r\n" % (len(body), body) for body in bodies if body]
        return written + b"".join(chunks) + b"0\r\n\r\n", True, False
    if len(bodies[0]) > length:
        return written, False, True
    has_more = len(bodies) > 1 and not pieces[0]["more_body"]
    whole = bodies[0] if has_more else b"".join(bodies)
    return written + whole, len(whole) == length, has_more or len(whole) < length


def cycle_over(
    channel: OneRequest, *, method: str = "POST", keep_alive: bool = True, body: bytes | None = b""
) -> RequestCycle:
    """Return a request on a connection, with its body where that has arrived."""
    scope = {"type": "http", "method": method}
    cycle = RequestCycle(channel, scope, keep_alive=keep_alive, expects_100_continue=False)
    if body is not None:
        cycle.add_body(b"", ends=True)
    return cycle


SAID: dict[str, Said] = {
    "whole": [start(length(5), (b"X-Id", b"1")), body(b"hello")],
    "empty": [start(length(0)), body(b"")],
    "large": [start(length(200_000)), body(b"x" * 200_000)],
    "an error": [start(length(2), status=429), body(b"{}")],
    "in two pieces": [start(length(5)), body(b"he", more=True), body(b"llo")],
    "of unknown length": [start(), body(b"he", more=True), body(b"llo")],
    "without a body": [start(length(0), status=204), body(b"")],
    "with capitals": [start((b"Content-Length", b"2"), (b"X-Id", b"1")), body(b"{}")],
    "closing": [start(length(2), (b"connection", b"close")), body(b"{}")],
    "in chunks": [start((b"transfer-encoding", b"chunked")), body(b"{}")],
    "too long": [start(length(1)), body(b"hello")],
    "too short": [start(length(9)), body(b"hello")],
    "a name with a space": [start(length(2), (b"x id", b"1")), body(b"{}")],
    "a value with a line break": [start(length(2), (b"x-id", b"1\r\nx: y")), body(b"{}")],
    "more after the end": [start(length(2)), body(b"{}"), body(b"{}")],
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
@pytest.mark.parametrize("method", ["POST", "HEAD"])
@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("left", [False, True])
def test_a_reply_is_what_http_has_for_it(said: Said, method: str, keep_alive: bool, left: bool) -> None:
    written, _, complete, closed, ends, problem = asyncio.run(
        sent(said, method=method, keep_alive=keep_alive, left=left)
    )
    if left:
        assert (written, complete, closed, ends, problem) == (b"", False, False, 0, False)
        return
    assert (written, complete, problem) == expected(said, method=method, keep_alive=keep_alive)
    closes = not keep_alive or (b"connection", b"close") in said[0]["headers"]
    assert (closed, ends) == (complete and closes, int(complete))


@pytest.mark.parametrize("name", ["whole", "empty", "large", "an error"])
def test_head_and_body_of_a_whole_reply_are_one_write(name: str) -> None:
    assert asyncio.run(sent(SAID[name]))[1] == 1


def test_an_error_takes_the_place_of_a_head_whose_body_never_came() -> None:
    said = [start(length(9)), start(length(5), status=500), body(b"wrong")]
    written, _, complete, _, ends, problem = asyncio.run(sent(said))
    assert written.startswith(b"HTTP/1.1 500 ")
    assert written.endswith(b"\r\n\r\nwrong")
    assert (complete, ends, problem) == (True, 1, False)


OWN = [("content-type", "application/json"), ("X-Id", "1")]


def own(size: int) -> list[tuple[str, str]]:
    """Return the headers of a whole reply."""
    return [OWN[0], ("content-length", str(size)), OWN[1]]


@pytest.mark.parametrize("size", [0, 5, 200_000])
@pytest.mark.parametrize("status", [200, 429])
def test_a_reply_without_messages_is_the_same(size: int, status: int) -> None:
    async def both() -> None:
        channel, carrier = over_a_carrier()
        ends, cycle = channel.writes_at_ends, cycle_over(channel)
        assert cycle.send_whole(status, own(size), b"x" * size)
        pairs = [(name.encode(), value.encode()) for name, value in OWN]
        said = [start(pairs[0], length(size), *pairs[1:], status=status), body(b"x" * size)]
        assert (b"".join(carrier.writes), cycle.response_complete, len(ends)) == (expected(said)[0], True, 1)
        assert len(carrier.writes) == 1

    asyncio.run(both())


PIECES: dict[str, list[bytes]] = {
    "at once": [b"data: 1\n\n", b"data: 2\n\n", b""],
    "large": [b"x" * 200_000, b"y" * 10, b""],
    "empty": [b""],
    "ends with a piece": [b"data: 1\n\n"],
}


@pytest.mark.parametrize("late", [False, True], ids=["in one turn", "in several turns"])
@pytest.mark.parametrize("name", PIECES)
def test_a_stream_without_a_first_message_is_the_same(name: str, late: bool) -> None:
    async def both() -> None:
        channel, carrier = over_a_carrier()
        # What is answered behind the reply's end stands behind all of it.
        written_at_end, cycle = channel.writes_at_ends, cycle_over(channel)
        assert cycle.begin_stream(OWN)
        pairs = [(name.encode(), value.encode()) for name, value in OWN]
        said = [start(*pairs), *[body(piece, more=True) for piece in PIECES[name][:-1]], body(PIECES[name][-1])]
        for message in said[1:]:
            if late:
                await asyncio.sleep(0)
            await cycle.send(message)
        written = len(carrier.writes)
        await asyncio.sleep(0)
        assert (b"".join(carrier.writes), cycle.response_complete) == expected(said)[:2]
        assert written == written_at_end[0] == len(carrier.writes)
        if not late and name != "large":
            assert written == 1

    asyncio.run(both())


@pytest.mark.parametrize("late", [False, True], ids=["in one turn", "in several turns"])
@pytest.mark.parametrize("name", PIECES)
def test_a_stream_without_messages_is_the_same(name: str, late: bool) -> None:
    async def both() -> None:
        channel, carrier = over_a_carrier()
        written_at_end, cycle = channel.writes_at_ends, cycle_over(channel)
        assert not cycle.end_stream(b"")
        assert cycle.begin_stream(OWN)
        *pieces, last = PIECES[name]
        for piece in pieces:
            if late:
                await asyncio.sleep(0)
            cycle.send_piece(piece)
        assert cycle.end_stream(last)
        assert not cycle.end_stream(last)
        pairs = [(name.encode(), value.encode()) for name, value in OWN]
        said = [start(*pairs), *[body(piece, more=True) for piece in pieces], body(last)]
        assert (b"".join(carrier.writes), cycle.response_complete) == expected(said)[:2]
        assert written_at_end == [len(carrier.writes)]

    asyncio.run(both())


def test_a_stream_that_closes_its_connection_is_ended_by_a_message() -> None:
    async def refused() -> None:
        cycle = cycle_over(OneRequest(Carrier()))
        assert cycle.begin_stream(OWN)
        cycle.keep_alive = False
        assert not cycle.end_stream(b"x")
        assert not cycle.response_complete

    asyncio.run(refused())


def test_the_head_of_a_stream_does_not_wait_for_its_text() -> None:
    async def told() -> None:
        channel, carrier = over_a_carrier()
        cycle = cycle_over(channel)
        assert cycle.begin_stream(OWN)
        assert not cycle.begin_stream(OWN)
        await asyncio.sleep(0)
        assert carrier.writes[0].startswith(b"HTTP/1.1 200 OK\r\n")

    asyncio.run(told())


def test_a_stream_that_is_left_without_its_end_closes_its_connection_behind_what_was_held() -> None:
    async def told() -> None:
        channel, carrier = over_a_carrier()
        cycle = cycle_over(channel)

        async def begin(*_: object) -> None:
            assert cycle.begin_stream(OWN)
            cycle.send_piece(b"x")

        await cycle.run(begin)
        assert (len(carrier.writes), carrier.closed) == (1, True)
        assert not b"".join(carrier.writes).endswith(b"0\r\n\r\n")

    asyncio.run(told())


@pytest.mark.parametrize(
    ("status", "value", "method", "keep_alive", "left"),
    [
        (204, "1", "POST", True, False),
        (200, "1", "HEAD", True, False),
        (200, "1", "POST", False, False),
        (200, "1", "POST", True, True),
        (200, "1\r\nx: y", "POST", True, False),
        (200, "é", "POST", True, False),
    ],
    ids=["without a body", "HEAD", "closing", "a client that left", "a line break", "a letter outside ASCII"],
)
def test_what_is_no_plain_whole_reply_needs_messages(
    status: int, value: str, method: str, keep_alive: bool, left: bool
) -> None:
    async def refused() -> None:
        channel, carrier = over_a_carrier()
        cycle = cycle_over(channel, method=method, keep_alive=keep_alive)
        cycle.disconnected = left
        assert not cycle.send_whole(status, [OWN[0], ("x-id", value)], b"hello")
        assert status != 200 or not cycle.begin_stream([OWN[0], ("x-id", value)])
        assert not carrier.writes
        assert not cycle.response_started

    asyncio.run(refused())


def test_who_watches_is_told_once_that_the_client_left() -> None:
    async def told() -> None:
        leaves: list[str] = []
        cycle = cycle_over(OneRequest(Carrier()))
        cycle.watch(lambda: leaves.append("left"))
        cycle.lose()
        cycle.lose()
        assert leaves == ["left"]
        cycle.watch(lambda: leaves.append("had left"))
        assert leaves == ["left", "had left"]
        unwatched = cycle_over(OneRequest(Carrier()))
        unwatched.watch(lambda: leaves.append("nobody asked"))
        unwatched.watch(None)
        unwatched.lose()
        assert len(leaves) == 2

    asyncio.run(told())


def test_the_request_behind_a_call_of_asgi_is_found() -> None:
    async def found() -> None:
        cycle = cycle_over(OneRequest(Carrier()))
        assert cycle_of(cycle.send) is cycle_of(cycle.receive) is cycle
        assert cycle_of(Carrier().write) is None
        assert cycle_of(len) is None

    asyncio.run(found())


@pytest.mark.parametrize("by_messages", [True, False])
def test_a_request_that_was_answered_is_in_no_circle_of_references(by_messages: bool) -> None:
    async def kept() -> object:
        cycle = cycle_over(OneRequest(Carrier()))
        cycle.watch(lambda: None)
        if by_messages:
            await cycle.send(start(length(5)))
            await cycle.send(body(b"hello"))
        else:
            assert cycle.send_whole(200, own(5), b"hello")
        cycle.watch(None)
        left = weakref.ref(cycle)
        del cycle
        return left()

    gc.disable()
    try:
        assert asyncio.run(kept()) is None
    finally:
        gc.enable()


def test_a_body_that_is_here_is_taken_once() -> None:
    async def take() -> None:
        cycle = cycle_over(OneRequest(Carrier()), body=None)
        cycle.add_body(b"he", ends=False)
        assert cycle.take_body() is None
        cycle.add_body(b"llo", ends=False)
        cycle.add_body(b"", ends=True)
        assert cycle.take_body() == b"hello"
        assert cycle.take_body() is None
        waiting = asyncio.ensure_future(cycle.receive())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        cycle.lose()
        assert await waiting == {"type": "http.disconnect"}

    asyncio.run(take())


def test_who_waits_for_a_body_gets_each_piece() -> None:
    async def wait() -> None:
        cycle = cycle_over(OneRequest(Carrier()), body=None)
        cycle.add_body(b"he", ends=False)
        assert await cycle.receive() == {"type": "http.request", "body": b"he", "more_body": True}
        waiting = asyncio.ensure_future(cycle.receive())
        await asyncio.sleep(0)
        cycle.add_body(b"", ends=True)
        assert await waiting == {"type": "http.request", "body": b"", "more_body": False}
        assert cycle.take_body() is None

    asyncio.run(wait())
