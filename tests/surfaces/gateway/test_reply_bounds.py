"""A provider's reply is bounded in bytes and, where that is asked for, in time; the client gets its dialect's error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bardo.adapters.net.client import Deadlines
from bardo.simulators import Incoming
from bardo.simulators.delivery import Action, Head, Pause, Send
from support.any_model import Simulator
from support.gateway import house
from support.patience import PATIENCE
from support.talk import CLIENTS, ask
from surfaces.gateway.refusals import broken, refusal

each_client = pytest.mark.parametrize("client", CLIENTS)


class Endless(Simulator):
    """A provider whose streamed reply never ends, and whose whole reply goes on after its JSON."""

    PIECE = b'data: {"id":"f","choices":[{"index":0,"delta":{"content":"' + b"x" * 1000 + b'"}}]}\n\n'

    def __init__(self, *, pause: float) -> None:
        super().__init__("deepseek")
        self._pause = pause

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        streamed = b'"stream":true' in incoming.raw.replace(b" ", b"")
        kind = "text/event-stream" if streamed else "application/json"
        yield Head(200, (("content-type", kind),), None)
        while True:
            yield Send(self.PIECE if streamed else b" " * 1000)
            yield Pause(self._pause)


@each_client
def test_a_stream_without_end_is_cut_at_its_bound_with_an_error(client: str) -> None:
    with house([Endless(pause=0.0)], max_stream_bytes=200_000) as running:
        answer = ask(running.address, client, "deepseek/m", stream=True)
        message = broken(client, answer)
        assert "larger than 200000 bytes" in message
        assert "max_stream_bytes" in message
        assert len(answer.body) < 1_000_000
        row = running.log.of_model("deepseek/m")
        assert (row.outcome, row.error_class) == ("broken", "MalformedReply")


@pytest.mark.sampled(3)
@each_client
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_reply_that_is_not_complete_in_time_is_an_error(client: str, stream: bool) -> None:
    deadlines = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=PATIENCE, total=0.5)
    with house([Endless(pause=0.02)], deadlines=deadlines) as running:
        answer = ask(running.address, client, "deepseek/m", stream=stream)
        message = broken(client, answer) if stream else refusal(client, answer)
        assert "total deadline" in message
        assert answer.status == (200 if stream else 504)
        row = running.log.of_model("deepseek/m")
        assert (row.outcome, row.error_class) == ("broken" if stream else "error", "UpstreamTimeout")


class Silent(Simulator):
    """A provider that sends no head."""

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        yield Pause(4 * PATIENCE)


def test_the_time_of_a_reply_begins_when_its_request_is_sent() -> None:
    deadlines = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=PATIENCE, total=0.3)
    with house([Silent("deepseek")], deadlines=deadlines) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m")
        assert answer.status == 504
        assert "within 0.3 s (total deadline)" in refusal("openai_chat", answer)


def test_a_reply_within_its_time_is_left_alone() -> None:
    deadlines = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=PATIENCE, total=PATIENCE)
    with house([Simulator("deepseek")], deadlines=deadlines) as running:
        assert "1161" in ask(running.address, "openai_chat", "deepseek/m", stream=True).text
