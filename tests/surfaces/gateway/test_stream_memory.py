"""What a stream holds in memory does not grow with its length, forwarded and translated; Responses repeats all text at its end."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Iterator

import pytest

from bardo.adapters.net.calls import Call, Deadlines
from bardo.dialects import dialect
from bardo.surfaces.gateway import generate
from bardo.values.events import ContentChunk, Event, Finish, ReplyStart, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.fold import ResponseFold
from bardo.values.request import Request
from bardo.values.wire import Arrival
from support.scripted import Scripted, content_type, reply

PIECE = "x" * 100


class Generated:
    """A transport, and its one reply: a stream of `size` characters, made piece by piece as it is read."""

    status = 200
    resent = False

    def __init__(self, provider: str, size: int, piece: str, *, thinks: bool) -> None:
        self.headers = {"content-type": content_type(provider, stream=True)}
        self._provider = provider
        self._size = size
        self._piece = piece
        self._thinks = thinks

    async def send(self, call: Call, deadlines: Deadlines) -> Generated:
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        encoder = dialect(self._provider).open_encoder(Request(model="m1", messages=(), stream=True), Arrival())
        for event in self._events():
            for piece in encoder.feed(event):
                yield piece
        for piece in encoder.finish():
            yield piece

    async def read(self, limit: int) -> bytes:
        raise AssertionError("a stream is not read whole")

    async def finish(self) -> None:
        """Nothing is open."""

    async def close(self) -> None:
        """Nothing is open."""

    def _events(self) -> Iterator[Event]:
        yield ReplyStart(id="r1", model="m1")
        if self._thinks:
            yield ThinkStart(0)
        for _ in range(self._size // len(self._piece)):
            yield ThinkChunk(0, self._piece) if self._thinks else ContentChunk(0, self._piece)
        if self._thinks:
            yield ThinkEnd(0)
            yield ContentChunk(1, "done")
        yield Finish("stop", "stop")


def peak(provider: str, client: str, size: int, *, thinks: bool, piece: str = PIECE) -> int:
    """Return the most memory that a stream of `size` characters took beside what its client was sent."""
    transport = Generated(provider, size, piece, thinks=thinks)
    gateway = Scripted(provider, lambda _: reply(provider, [], stream=True), drops=True, transport=transport)
    gateway.ask(client, stream=True)
    gateway.rows.clear()
    tracemalloc.start()
    try:
        gateway.ask(client, stream=True)
        assert gateway.rows[0].outcome == "ok"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("thinks", [False, True], ids=["text", "thinking"])
@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "gemini"])
@pytest.mark.parametrize("provider", ["openai_chat", "anthropic_messages", "gemini"])
def test_memory_stays_flat(provider: str, client: str, thinks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "MOST_STREAMED_TEXT", 20_000)
    small = peak(provider, client, 100_000, thinks=thinks)
    # What another thread of the process takes meanwhile counts too, so that one run of several has to be flat.
    assert any(peak(provider, client, 800_000, thinks=thinks) < small + 100_000 for _ in range(3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("thinks", [False, True], ids=["text", "thinking"])
@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "openai_responses", "gemini"])
@pytest.mark.parametrize("provider", ["openai_chat", "anthropic_messages", "openai_responses", "gemini"])
def test_text_takes_as_much_memory_in_whatever_pieces_it_comes(provider: str, client: str, thinks: bool) -> None:
    whole = peak(provider, client, 40_000, thinks=thinks)
    # As many texts of four letters would take half a megabyte for each list that holds them.
    assert any(peak(provider, client, 40_000, thinks=thinks, piece="x" * 4) < whole + 150_000 for _ in range(3))


def test_what_is_not_held_is_counted() -> None:
    events: list[Event] = [
        ThinkStart(0),
        *(ThinkChunk(0, PIECE) for _ in range(100)),
        ThinkEnd(0),
        ContentChunk(1, "a"),
    ]
    held, bounded = ResponseFold(), ResponseFold(most_text=1_000)
    for event in events:
        held.feed(event)
        bounded.feed(event)
    assert (held.whole, bounded.whole) == (True, False)
    assert len(bounded.response().reasoning.content or "") == 1_000
    assert bounded.response().reasoning.reasoning_tokens == held.response().reasoning.reasoning_tokens == 2_500
    assert [type(block) for block in bounded.response().blocks] == [type(block) for block in held.response().blocks]
