"""A provider that sends as fast as it can is read a little in each turn of the loop, so that everybody else has a turn too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps

from bardo.adapters.net.connection import BYTES_A_TURN, HttpConnection, Incoming

Test = Callable[[], Coroutine[None, None, None]]


def in_a_loop(test: Test) -> Callable[[], None]:
    """Run a test in an event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.calls.append("abort")

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")


class Scene:
    """A connection, its reply of a million bytes, and who gets the connection back."""

    def __init__(self) -> None:
        self.released: list[HttpConnection] = []
        self.transport = _Transport()
        self.connection = HttpConnection(asyncio.get_running_loop(), self.released.append)
        self.connection.connection_made(self.transport)
        self.incoming: Incoming = self.connection.send(b"", b"")

    def begin(self, length: int, *, more: bytes = b"") -> None:
        """Have a reply come in one read."""
        self.connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % length + b"a" * length + more)

    async def turns(self) -> list[int]:
        """Return how many bytes each turn of the loop gave, until none came any more."""
        taken = [len(self.incoming.take())]
        while not self.incoming.at_end and len(taken) < 1_000:
            await asyncio.sleep(0)
            taken.append(len(self.incoming.take()))
        return taken


@in_a_loop
async def test_a_turn_reads_no_more_of_a_connection_than_its_share() -> None:
    scene = Scene()
    scene.begin(1_000_000)
    taken = await scene.turns()
    assert sum(taken) == 1_000_000
    assert max(taken) <= BYTES_A_TURN
    assert len(taken) >= 1_000_000 // BYTES_A_TURN
    assert scene.transport.calls == ["pause", "resume"]
    assert scene.released == [scene.connection]


@in_a_loop
async def test_what_comes_meanwhile_comes_in_order_and_in_later_turns() -> None:
    scene = Scene()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (4 * BYTES_A_TURN)
    pieces = [bytes([letter]) * BYTES_A_TURN for letter in b"abcd"]
    scene.connection.data_received(head + pieces[0] + pieces[1])
    scene.connection.data_received(pieces[2])
    scene.connection.data_received(pieces[3])
    whole = b""
    for _ in range(10):
        whole += scene.incoming.take()
        await asyncio.sleep(0)
    assert whole == b"".join(pieces)


@in_a_loop
async def test_a_small_read_is_read_at_once() -> None:
    scene = Scene()
    scene.begin(1_000)
    assert len(scene.incoming.take()) == 1_000
    assert scene.incoming.complete
    assert scene.transport.calls == []


@in_a_loop
async def test_a_reader_that_takes_nothing_stops_the_turns_and_starts_them_again() -> None:
    scene = Scene()
    scene.begin(1_000_000)
    for _ in range(100):
        await asyncio.sleep(0)
    held = len(scene.incoming.take())
    assert 100_000 < held < 200_000
    assert held + sum(await scene.turns()) == 1_000_000


@in_a_loop
async def test_a_connection_that_pauses_with_the_end_of_a_reply_reads_the_next_one() -> None:
    scene = Scene()
    scene.begin(135_000)
    for _ in range(100):
        await asyncio.sleep(0)
    assert scene.incoming.complete
    assert scene.released == [scene.connection]
    assert scene.transport.calls[-1] == "resume"


@in_a_loop
async def test_what_came_before_the_connection_was_lost_belongs_to_the_reply() -> None:
    scene = Scene()
    scene.begin(100_000)
    scene.connection.connection_lost(None)
    assert len(scene.incoming.take()) == 100_000
    assert scene.incoming.complete
    assert scene.incoming.failure is None


@in_a_loop
async def test_a_connection_with_bytes_left_over_serves_nobody_else() -> None:
    scene = Scene()
    scene.begin(2 * BYTES_A_TURN, more=b"HTTP/1.1 200 OK\r\n" + b"x" * BYTES_A_TURN)
    await scene.turns()
    assert scene.connection.has_something_to_read()
    assert scene.released == []
    assert "abort" in scene.transport.calls


@in_a_loop
async def test_nothing_is_read_after_the_reply_has_failed() -> None:
    scene = Scene()
    scene.begin(1_000_000)
    scene.incoming.fail(ConnectionError("hung up"))
    before = len(scene.incoming.take())
    scene.connection.connection_lost(None)
    assert (before, len(scene.incoming.take())) == (before, 0)
