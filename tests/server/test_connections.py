"""How one connection is kept, paused and ended, without a socket: a test moves its clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bardo.adapters.config.gateway import ServerBounds
from bardo.server.reply import Receive, Scope, Send, cycle_of
from support.one_connection import OneConnection

pytestmark = pytest.mark.each_python

GET = b"GET /one HTTP/1.1\r\nhost: x\r\n\r\n"


def post(path: bytes, body: bytes, *headers: bytes) -> bytes:
    """Return a request with a body."""
    return b"\r\n".join([b"POST %b HTTP/1.1" % path, b"content-length: %d" % len(body), *headers, b"", body])


class Steps:
    """An application whose answers a test gives one by one."""

    def __init__(self) -> None:
        self.bounds = ServerBounds()
        self.requests: list[tuple[Scope, Receive, Send]] = []
        self._ends: list[asyncio.Event] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append((scope, receive, send))
        self._ends.append(asyncio.Event())
        await self._ends[-1].wait()

    async def answer(self, number: int, body: bytes = b"done", *, headers: Any = ()) -> None:
        """Answer a request, and end it."""
        send = self.requests[number][2]
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": 200, "headers": [length, *headers]})
        await send({"type": "http.response.body", "body": body})
        self._ends[number].set()
        await settle()


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def inside(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test inside an event loop."""

    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


# Between requests


@inside
async def test_a_connection_without_a_next_request_is_closed_after_75_seconds() -> None:
    with OneConnection() as client:
        await client.send(GET)
        client.clock.move(74.9)
        await client.send(GET)
        client.clock.move(74.9)
        assert not client.wire.is_closing()
        client.clock.move(0.2)
        assert client.wire.is_closing()
        assert client.statuses == [200, 200]


@inside
async def test_a_connection_is_not_idle_while_a_request_is_answered_or_arrives() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(GET)
        await app.answer(0)
        await client.send(GET)
        client.clock.move(100.0)
        assert not client.wire.is_closing()
        await app.answer(1)
        client.clock.move(74.0)
        await client.send(GET[:10])
        client.clock.move(5.0)
        assert not client.wire.is_closing()
        client.clock.move(5.0)
        assert client.statuses == [200, 200, 408]


@inside
async def test_an_empty_line_behind_a_body_is_no_request() -> None:
    with OneConnection() as client:
        await client.send(post(b"/one", b"abc"), b"\r\n")
        client.clock.move(74.9)
        assert not client.wire.is_closing()
        await client.send(GET, b"\r\n")
        assert client.statuses == [200, 200]
        client.clock.move(75.1)
        assert client.statuses == [200, 200], "nobody waits for a head"
        assert client.wire.is_closing()


@inside
async def test_http_1_0_is_answered_once_whatever_its_client_says() -> None:
    with OneConnection() as client:
        await client.send(b"GET /one HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
        assert client.statuses == [200]
        assert client.wire.is_closing()


@inside
async def test_what_comes_behind_the_last_request_of_a_connection_is_thrown_away() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(post(b"/last", b"abc", b"connection: close") + GET, GET)
        await app.answer(0)
        assert len(app.requests) == 1
        assert client.statuses == [200]
        assert client.wire.is_closing()
        assert b"connection: close\r\n" in client.wire.written


@inside
async def test_a_client_that_goes_on_sending_behind_its_last_request_is_not_read_any_more() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(post(b"/last", b"abc", b"connection: close"))
        await client.send(*[b"x" * 1_000_000] * 4)
        assert client.wire.is_reading()
        await client.send(*[b"x" * 1_000_000] * 2)
        assert not client.wire.is_reading()
        await app.answer(0)
        assert client.statuses == [200]


# Pipelines


@inside
async def test_pipelined_requests_wait_for_the_replies_before_them_and_are_not_read_on() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(post(b"/one", b"1") + post(b"/two", b"22"))
        assert len(app.requests) == 1
        assert not client.wire.is_reading()
        await app.answer(0, b"first")
        assert client.wire.is_reading()
        assert [scope["path"] for scope, _, _ in app.requests] == ["/one", "/two"]
        await app.answer(1, b"second")
        assert client.wire.written.index(b"first") < client.wire.written.index(b"second")


@inside
async def test_a_client_is_read_on_where_somebody_waits_for_its_leaving() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(GET)
        cycle = cycle_of(app.requests[0][1])
        assert cycle is not None
        left: list[bool] = []
        cycle.watch(lambda: left.append(True))
        await client.send(GET)
        assert client.wire.is_reading()
    assert left == [True]


@inside
async def test_a_reply_that_ends_the_connection_leaves_the_requests_behind_it_unanswered() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(GET + GET)
        await app.answer(0, headers=[(b"connection", b"close")])
        assert (len(app.requests), client.statuses, client.wire.is_closing()) == (1, [200], True)


# Bodies


@inside
async def test_a_body_that_nobody_takes_is_not_read_on() -> None:
    app = Steps()
    with OneConnection(app) as client:
        whole = post(b"/large", b"x" * 300_000)
        await client.send(whole[:60_000])
        assert client.wire.is_reading()
        await client.send(whole[60_000:80_000])
        assert not client.wire.is_reading()
        receive = app.requests[0][1]
        message = await receive()
        assert message["more_body"]
        assert len(message["body"]) > 70_000
        assert client.wire.is_reading()
        await client.send(whole[80_000:])
        rest = await receive()
        assert not rest["more_body"]
        assert len(message["body"] + rest["body"]) == 300_000


@inside
async def test_a_body_counts_until_its_reply_is_complete_or_its_client_has_left() -> None:
    app = Steps()
    with OneConnection(app) as client:
        limits = client.server.limits
        await client.send(post(b"/one", b"x" * 1000) + post(b"/two", b"x" * 500) + post(b"/three", b"x" * 200))
        assert limits.body_bytes == 1700
        await app.answer(0)
        assert limits.body_bytes == 700
    assert limits.body_bytes == 0
    # What is unpacked later counts no longer than the request.
    cycle = cycle_of(app.requests[1][1])
    assert cycle is not None
    cycle.count_body(700)
    await app.answer(1)
    assert limits.body_bytes == 0


@inside
async def test_a_body_that_nobody_took_does_not_keep_the_next_request_from_being_read() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(post(b"/large", b"x" * 100_000))
        assert not client.wire.is_reading()
        await app.answer(0)
        assert client.wire.is_reading()


@inside
async def test_a_reply_before_the_request_has_arrived_ends_the_connection() -> None:
    app = Steps()
    with OneConnection(app) as client:
        whole = post(b"/large", b"x" * 300_000)
        await client.send(whole[:1000])
        await app.answer(0)
        assert b"connection: close\r\n" in client.wire.written
        assert client.wire.is_closing()
        assert client.statuses == [200]
        await client.send(whole[1000:] + GET)
        assert len(app.requests) == 1


@inside
async def test_an_expectation_is_answered_where_the_body_is_asked_for_and_not_in_http_1_0() -> None:
    for version, asked in ((b"1.1", 1), (b"1.0", 0)):
        app = Steps()
        with OneConnection(app) as client:
            whole = post(b"/expects", b"abc", b"Expect: 100-Continue").replace(b"HTTP/1.1", b"HTTP/" + version)
            await client.send(whole[:-3])
            reading = asyncio.ensure_future(app.requests[0][1]()) if app.requests else None
            await settle()
            assert bytes(client.wire.written).count(b"HTTP/1.1 100 Continue\r\n\r\n") == asked
            await client.send(whole[-3:])
            assert (await (reading or app.requests[0][1]()))["body"] == b"abc"


# Writing


@inside
async def test_a_reply_waits_while_its_client_does_not_read() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(GET)
        client.connection.pause_writing()
        answering = asyncio.ensure_future(app.answer(0))
        await settle()
        assert not client.wire.written
        client.connection.resume_writing()
        await answering
        assert client.statuses == [200]


@inside
async def test_a_connection_whose_reply_is_not_taken_is_let_go_of_and_one_that_takes_it_slowly_is_not() -> None:
    cases: list[tuple[bytes, Callable[[OneConnection], None]]] = [
        (b"connection: close\r\n", lambda client: None),
        (b"", lambda client: client.clock.move(75.0)),
        (b"", lambda client: client.connection.eof_received()),
    ]
    for headers, end in cases:
        with OneConnection() as client:
            client.wire.unsent = 100
            await client.send(GET[:-2] + headers + b"\r\n")
            end(client)
            assert client.wire.is_closing()
            for left in (50, 20):
                client.wire.unsent = left
                client.clock.move(75.0)
                assert not client.wire.aborted
            client.clock.move(75.0)
            assert client.wire.aborted


@inside
async def test_a_connection_whose_reply_is_taken_makes_no_room_for_another() -> None:
    with OneConnection() as client:
        client.wire.unsent = 100
        await client.send(GET)
        assert not client.server.close_an_idle_connection()
        client.wire.unsent = 0
        await client.send(GET)
        assert client.server.close_an_idle_connection()


@inside
async def test_a_reply_that_waits_ends_with_its_client() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(GET)
        client.connection.pause_writing()
        answering = asyncio.ensure_future(app.answer(0))
        await settle()
    await answering
    assert not client.wire.written


# The end of a server


@inside
async def test_a_server_that_ends_closes_idle_connections_at_once() -> None:
    with OneConnection() as fresh, OneConnection() as used:
        await used.send(GET)
        for client in (fresh, used):
            client.connection.shutdown()
            assert client.wire.is_closing()


@inside
async def test_a_server_that_ends_answers_all_that_has_arrived_and_closes_then() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(GET + GET)
        client.connection.shutdown()
        assert not client.wire.is_closing()
        await app.answer(0)
        assert not client.wire.is_closing()
        await app.answer(1)
        assert client.statuses == [200, 200]
        assert client.wire.is_closing()
        assert bytes(client.wire.written).count(b"connection: close\r\n") == 1


@inside
async def test_a_server_that_ends_has_a_request_answered_whose_body_has_not_arrived() -> None:
    app = Steps()
    with OneConnection(app) as client:
        await client.send(post(b"/half", b"abc")[:-1])
        assert not app.requests
        client.connection.shutdown()
        await settle()
        await app.answer(0)
        assert client.statuses == [200]
        assert client.wire.is_closing()


# Applications that fail


async def raises(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("wrong")


async def is_silent(scope: Scope, receive: Receive, send: Send) -> None:
    return None


async def stops(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})


async def fails_late(scope: Scope, receive: Receive, send: Send) -> None:
    await stops(scope, receive, send)
    raise ValueError("wrong")


@pytest.mark.parametrize(
    ("app", "status", "logged"),
    [
        (raises, 500, "the application failed"),
        (is_silent, 500, "the application has not answered"),
        (stops, 200, "the application has not ended its reply"),
        (fails_late, 200, "the application failed"),
    ],
    ids=["raises", "is silent", "stops", "fails late"],
)
def test_an_application_that_fails_does_not_leave_its_client_waiting(
    app: Any, status: int, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> None:
        with OneConnection(app) as client:
            await client.send(GET + GET)
            assert client.statuses == [status]
            assert client.wire.is_closing()
            assert not bytes(client.wire.written).endswith(b"0\r\n\r\n")

    with caplog.at_level("ERROR", "bardo.server"):
        asyncio.run(ask())
    assert [record.message for record in caplog.records] == [logged]
