"""A stream that comes faster than it can be read is read in small pieces, and others have their turn between them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bardo.edge.stream_reading import MOST_AT_ONCE, StreamReading
from bardo.engine.forwarding import ReplyUpdate
from bardo.values.errors import MalformedReply


class Reply:
    """A reply that gives its pieces at once, and `offers` them to whoever takes them directly."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def chunks(self) -> Any:
        for piece in self._pieces:
            yield piece

    def offer_pieces(self, take: Any) -> None:
        self.take = take


class Reader:
    """Reads nothing, and never ends."""

    repeats = over = complete = False
    failure = None


class Forwarding:
    """Gives the bytes as they come."""

    def update(self, chunk: bytes) -> ReplyUpdate:
        return ReplyUpdate((), chunk)

    def repeated(self, chunk: bytes) -> None:
        """Know nothing that came before."""

    def rest(self) -> ReplyUpdate:
        return ReplyUpdate((), b"")

    def fail(self, problem: Exception) -> Exception:
        return problem


class Health:
    def ended(self, failure: object) -> None:
        """Take no notice."""

    left = ended


class Meter:
    """Allows so many bytes at a time."""

    def __init__(self, most: int) -> None:
        self.most = most

    def allow(self, size: int) -> int:
        return min(size, self.most)


def reading(*pieces: bytes, most_bytes: int = 10**9, meter: Any = None) -> tuple[StreamReading, Reply]:
    reply = Reply(*pieces)
    parts: dict[str, Any] = {"reply": reply, "reader": Reader(), "forwarding": Forwarding(), "health": Health()}
    return StreamReading(**parts, provider="p", most_bytes=most_bytes, meter=meter), reply


BYTES = bytes(range(256)) * 2_000


@pytest.mark.parametrize("most", [0, 10**9, 50_000, 1_000])
def test_a_long_piece_is_given_in_short_ones_with_turns_for_others_between(most: int) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def read() -> list[bytes]:
        stream, _ = reading(BYTES, b"short", BYTES, meter=Meter(most) if most else None)
        beside = asyncio.ensure_future(others())
        found = []
        while (update := await stream.next()) is not None and update.raw:
            found.append(update.raw)
        beside.cancel()
        return found

    found = asyncio.run(read())
    assert b"".join(found) == BYTES + b"short" + BYTES
    assert max(map(len, found)) <= MOST_AT_ONCE
    assert turns >= len(found) - 3


@pytest.mark.parametrize(("size", "taken"), [(MOST_AT_ONCE, True), (MOST_AT_ONCE + 1, False)])
def test_only_a_short_piece_is_passed_on_where_it_comes(size: int, taken: bool) -> None:
    async def offer() -> tuple[bool, int]:
        stream, reply = reading()
        given: list[ReplyUpdate] = []
        stream.give_directly(lambda: True, given.append)
        return reply.take(b"x" * size), len(given)

    assert asyncio.run(offer()) == (taken, int(taken))


def test_a_stream_that_is_too_long_fails_as_a_whole_piece_of_it_comes() -> None:
    async def read() -> Any:
        stream, _ = reading(b"x" * (2 * MOST_AT_ONCE), most_bytes=2 * MOST_AT_ONCE - 1)
        return await stream.next()

    assert isinstance(asyncio.run(read()), MalformedReply)
