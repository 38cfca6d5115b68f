"""Pieces of a reply can be taken as they come from the network, without waking the task that reads it: it gets all others, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

from bardo.adapters.net.calls import Call
from bardo.adapters.net.client import HttpReply
from bardo.adapters.net.connection import HttpConnection, Incoming
from bardo.values.errors import InternalError, UpstreamTimeout

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Wire:
    """A connection whose bytes the test says, and the reply that comes over it."""

    def __init__(self, *, idle: float = 60.0) -> None:
        loop = asyncio.get_running_loop()
        self.connection = HttpConnection(loop, lambda _: None)
        self.connection.connection_made(_Transport())
        self.incoming: Incoming = self.connection.send(b"", b"")
        self.connection.data_received(HEAD)
        self._open: set[HttpReply] = set()
        self.reply = HttpReply(self.incoming, Call(url="http://localhost/"), idle, self._open, resent=False)

    def say(self, *pieces: bytes) -> None:
        """Have pieces come in one read each."""
        for piece in pieces:
            self.connection.data_received(b"%x\r\n%b\r\n" % (len(piece), piece))


class _Transport(asyncio.Transport):
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def run(scene: Callable[[], object]) -> None:
    asyncio.run(scene())  # type: ignore[arg-type]


async def turns() -> None:
    """Let all tasks go as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_task_gets_what_is_not_taken_in_order() -> None:
    async def scene() -> None:
        wire, taken, read = Wire(), list[bytes](), list[bytes]()

        def take(piece: bytes) -> bool:
            taken.append(piece)
            return piece.startswith(b"t")

        async def reads() -> None:
            async for piece in wire.reply.chunks():
                read.append(piece)

        wire.reply.offer_pieces(take)
        task = asyncio.create_task(reads())
        wire.say(b"early")
        assert not taken, "nobody waits yet, so nothing is offered"
        await turns()
        wire.say(b"t1", b"t2")
        await turns()
        assert (taken, read) == ([b"t1", b"t2"], [b"early"])
        wire.say(b"own", b"t3")
        await turns()
        assert taken == [b"t1", b"t2", b"own"], "behind a piece for the task all is the task's until it waits again"
        assert read == [b"early", b"ownt3"]
        wire.say(b"t4")
        wire.connection.data_received(END)
        await task
        assert taken[-1] == b"t4"
        assert b"".join(read) == b"earlyownt3"

    run(scene)


def test_a_piece_that_cannot_be_passed_on_ends_the_reply_with_the_problem() -> None:
    async def scene() -> None:
        wire = Wire()

        def take(piece: bytes) -> bool:
            raise KeyError("a secret")

        wire.reply.offer_pieces(take)
        reading = asyncio.ensure_future(anext(wire.reply.chunks()))
        await turns()
        wire.say(b"piece")
        with pytest.raises(InternalError, match="KeyError") as told:
            await reading
        assert "a secret" not in str(told.value)
        assert isinstance(told.value.__cause__, KeyError), "the log tells where the mistake is"

    run(scene)


def test_a_cancelled_reader_and_a_closed_reply_are_offered_nothing() -> None:
    async def scene() -> None:
        wire, taken = Wire(), list[bytes]()

        def take(piece: bytes) -> bool:
            taken.append(piece)
            return True

        wire.reply.offer_pieces(take)
        reading = asyncio.ensure_future(anext(wire.reply.chunks()))
        await turns()
        reading.cancel()
        wire.say(b"too late")
        await turns()
        await wire.reply.close()
        assert not taken
        assert wire.incoming.offer is None

    run(scene)


def test_a_compressed_reply_is_read_as_usual() -> None:
    async def scene() -> None:
        wire = Wire()
        wire.incoming.headers["content-encoding"] = "gzip"
        reply = HttpReply(wire.incoming, Call(url="http://localhost/"), 60.0, set(), resent=False)
        reply.offer_pieces(lambda piece: True)
        assert wire.incoming.offer is None
        await reply.close()

    run(scene)


def test_pieces_that_are_taken_are_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience for the next piece begins anew with each, and ends where none comes, though the task was never woken."""

    async def scene() -> None:
        wire, now = Wire(idle=30.0), [1000.0]
        monkeypatch.setattr(wire.connection.loop, "time", lambda: now[0])
        wire.reply.offer_pieces(lambda piece: True)
        reading = asyncio.ensure_future(anext(wire.reply.chunks()))
        await turns()
        for _ in range(5):
            now[0] += 25.0
            wire.say(b"piece")
            wire.reply._look()
            assert not reading.done()
        now[0] += 31.0
        wire.reply._look()
        await turns()
        with pytest.raises(UpstreamTimeout):
            await reading

    run(scene)
