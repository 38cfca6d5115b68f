"""One contract for both transports, then what only a real connection can show."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bardo import __version__
from bardo.adapters.net.addresses import is_loopback
from bardo.adapters.net.client import Call, Deadlines
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.values.errors import BardoError, BrokenStream, InternalError, MalformedReply, Unreachable, UpstreamTimeout
from support.patience import PATIENCE
from support.tiny_provider import (
    SECRET,
    USUAL,
    Stage,
    answering,
    never,
    played,
)

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

KINDS = pytest.mark.parametrize("kind", ["real", "fake"])


@KINDS
def test_a_call_arrives_whole_and_so_does_its_reply(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        reply = await stage.transport.send(stage.call(b'{"a":1}'), USUAL)
        assert (reply.status, reply.headers["x-request-id"]) == (201, "Abc")
        assert await reply.read(100) == b"hello world"
        [call] = stage.provider.calls
        assert (call.method, call.url.removeprefix(stage.url), call.body) == (
            "POST",
            f"/v1/chat?key={SECRET}",
            b'{"a":1}',
        )
        assert call.headers["authorization"] == f"Bearer {SECRET}"

    reply = FakeReply(status=201, headers={"X-Request-Id": "Abc"}, chunks=[b"hello ", b"world"])
    played(kind, answering(reply), scene)


@KINDS
def test_the_head_does_not_wait_for_the_body_nor_a_piece_for_the_next(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        first, second = asyncio.Event(), asyncio.Event()
        gates.chunks = [first, b"one", second, b"two"]
        reply = await stage.send()
        chunks = reply.chunks()
        first.set()
        assert await anext(chunks) == b"one"
        second.set()
        assert await anext(chunks) == b"two"
        assert [piece async for piece in chunks] == []

    class Gates:
        chunks: list[bytes | BardoError | asyncio.Event]

    gates = Gates()
    played(kind, lambda call: FakeReply(chunks=gates.chunks), scene)


@KINDS
@pytest.mark.parametrize("status", [307, 401, 500])
def test_any_status_is_a_reply_and_no_redirect_is_followed(kind: str, status: int) -> None:
    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        assert reply.status == status
        assert await reply.read(100) == b"why"
        assert len(stage.provider.calls) == 1

    played(kind, answering(FakeReply(status=status, headers={"Location": "/elsewhere"}, chunks=[b"why"])), scene)


@KINDS
def test_a_body_that_breaks_off_is_a_broken_stream_after_what_came(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        chunks = reply.chunks()
        assert await anext(chunks) == b"some"
        with pytest.raises(BrokenStream):
            await anext(chunks)
        assert [piece async for piece in chunks] == []

    gap = asyncio.Event()
    gap.set()
    played(kind, answering(FakeReply(chunks=[b"some", gap, BrokenStream("cut")])), scene)


@KINDS
def test_a_whole_body_is_read_up_to_its_limit(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        assert await (await stage.send()).read(12) == b"x" * 12
        with pytest.raises(MalformedReply, match="larger than 11 bytes"):
            await (await stage.send()).read(11)

    played(kind, answering(FakeReply(chunks=[b"xxxx"] * 3)), scene)


@KINDS
def test_a_provider_that_does_not_answer_in_time_is_given_up(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        with pytest.raises(UpstreamTimeout, match=r"0\.05 s \(first_byte deadline\)") as caught:
            await stage.send(Deadlines(first_byte=0.05))
        assert caught.value.provider == "tiny"

    played(kind, never, scene)


@KINDS
def test_a_stream_that_stalls_is_given_up_and_closed(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        stall.append(asyncio.Event())
        chunks = (await stage.send(Deadlines(first_byte=PATIENCE, idle=0.05))).chunks()
        assert await anext(chunks) == b"some"
        with pytest.raises(UpstreamTimeout, match=r"0\.05 s \(idle deadline\)"):
            await anext(chunks)
        await stage.is_left_alone()

    stall: list[asyncio.Event] = []
    played(kind, lambda call: FakeReply(chunks=[b"some", *stall]), scene)


@KINDS
def test_closing_early_closes_the_connection_and_ends_the_chunks(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        forever.append(asyncio.Event())
        reply = await stage.send()
        chunks = reply.chunks()
        assert await anext(chunks) == b"some"
        await reply.close()
        await stage.is_left_alone()
        await reply.close()
        assert [piece async for piece in chunks] == []

    forever: list[asyncio.Event] = []
    played(kind, lambda call: FakeReply(chunks=[b"some", *forever]), scene)


@KINDS
def test_cancelling_a_read_and_closing_closes_the_connection(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        forever.append(asyncio.Event())
        begun = asyncio.Event()

        async def follow() -> None:
            reply = await stage.send()
            try:
                async for _ in reply.chunks():
                    begun.set()
            finally:
                await reply.close()

        following = asyncio.create_task(follow())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        await stage.is_left_alone()

    forever: list[asyncio.Event] = []
    played(kind, lambda call: FakeReply(chunks=[b"some", *forever]), scene)


@KINDS
def test_cancelling_before_the_head_closes_the_connection(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        sending = asyncio.create_task(stage.send())
        await stage.is_asked()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await stage.is_left_alone()

    played(kind, never, scene)


@KINDS
def test_nothing_is_sent_once_the_transport_is_closed(kind: str) -> None:
    async def scene(stage: Stage) -> None:
        await stage.transport.close()
        with pytest.raises(InternalError, match="closed"):
            await stage.send()

    played(kind, never, scene)


def test_a_fake_raises_what_its_handler_raises_and_keeps_the_call() -> None:
    def refuse(call: Call) -> FakeReply:
        raise Unreachable("nobody there")

    async def scene(stage: Stage) -> None:
        with pytest.raises(Unreachable, match="nobody there"):
            await stage.send()
        assert isinstance(stage.provider, FakeTransport)
        assert (len(stage.provider.calls), stage.provider.open_calls, stage.provider.abandoned) == (1, [], [])

    played("fake", refuse, scene)


def test_a_reader_that_pauses_makes_the_provider_pause() -> None:
    piece, pieces = b"x" * 65536, 1024

    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        await asyncio.wait_for(blocked.wait(), PATIENCE)
        assert len(written) < pieces / 2
        size = 0
        async for chunk in reply.chunks():
            size += len(chunk)
        assert size == len(piece) * pieces

    class Flood(list[bytes]):
        """Pieces that note how far the provider got, and when it came no further."""

        def __iter__(self) -> Any:
            loop = asyncio.get_running_loop()
            for _ in range(pieces):
                pause = loop.call_later(0.3, blocked.set)
                written.append(1)
                yield piece
                pause.cancel()

    written: list[int] = []
    blocked = asyncio.Event()
    played("real", answering(FakeReply(chunks=Flood())), scene)


def test_a_reply_has_one_reader() -> None:
    async def scene(stage: Stage) -> None:
        forever.append(asyncio.Event())
        reply = await stage.send()
        reading = asyncio.ensure_future(anext(reply.chunks()))
        await asyncio.sleep(0)
        with pytest.raises(InternalError, match="while another was reading"):
            await reply.close()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await reply.close()
        await stage.is_left_alone()

    forever: list[asyncio.Event] = []
    played("real", lambda call: FakeReply(chunks=[*forever]), scene)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def scene(stage: Stage) -> None:
        reply = await stage.send()
        assert await reply.read(10) == b"ok"
        [call] = stage.provider.calls
        assert (call.headers["user-agent"], call.headers["accept-encoding"]) == (f"bardo/{__version__}", "identity")
        assert "cookie" not in call.headers

    played("real", answering(FakeReply(headers={"Set-Cookie": "a=b"}, chunks=[b"ok"])), scene)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:8080/v1", True),
        ("http://model.localhost/v1", True),
        ("http://127.0.0.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://10.0.0.1/v1", False),
        ("https://localhost.example.com/v1", False),
        ("nonsense", False),
    ],
)
def test_loopback_addresses_are_told_from_others(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback
