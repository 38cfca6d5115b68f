"""A client that leaves takes its call with it; a client that reads slowly holds its provider back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bardo.simulators import Fault, Incoming
from bardo.simulators.delivery import Action, End, Head, Send
from support.any_model import Simulator
from support.gateway import Watched, house
from support.patience import PATIENCE
from support.talk import ALL_CLIENTS, Caller, ask, body_for, path_for
from surfaces.gateway.cells import whole_and_streamed

each_client = pytest.mark.parametrize("client", ALL_CLIENTS)


def call(address: str, client: str, model: str, *, stream: bool) -> Caller:
    return Caller(address, path_for(client, model, stream=stream), body_for(client, model, stream=stream, thinks=True))


@each_client
@whole_and_streamed
def test_leaving_before_the_reply_ends_the_providers_call(client: str, stream: bool) -> None:
    provider = Watched("deepseek", silent_first=True)
    with house([provider]) as running:
        with call(running.address, client, "deepseek/m", stream=stream):
            assert provider.asked.wait(PATIENCE)
        assert provider.over.wait(PATIENCE), "the provider's connection stays open"
        row = running.log.of_model("deepseek/m")
        assert (row.outcome, row.status, row.error_class) == ("cancelled", None, None)
        assert row.output_tokens is None


# InvokeModel's chunks hold base64, in which no word can be waited for.
@pytest.mark.parametrize("client", [client for client in ALL_CLIENTS if client != "bedrock_invoke"])
def test_leaving_in_mid_stream_ends_the_providers_call(client: str) -> None:
    provider = Watched("anthropic", fault=Fault("stall", after=12))
    with house([provider]) as running:
        with call(running.address, client, "anthropic/m", stream=True) as caller:
            caller.hear(b"I need")
            assert not provider.over.is_set()
        assert provider.over.wait(PATIENCE), "the provider's connection stays open"
        row = running.log.of_model("anthropic/m")
        assert (row.outcome, row.status, row.streamed) == ("cancelled", 200, True)
        assert row.first_byte_seconds is not None
        assert row.visibility == "visible"


@each_client
def test_leaving_while_a_whole_reply_arrives_ends_the_providers_call(client: str) -> None:
    provider = Watched("gemini", fault=Fault("stall"))
    with house([provider]) as running:
        with call(running.address, client, "gemini/m", stream=False):
            assert provider.asked.wait(PATIENCE)
        assert provider.over.wait(PATIENCE), "the provider's connection stays open"
        assert running.log.of_model("gemini/m").outcome == "cancelled"


def test_a_client_that_leaves_does_not_disturb_the_others() -> None:
    provider = Watched("deepseek", silent_first=True)
    with house([provider, Simulator("anthropic")]) as running:
        with call(running.address, "openai_chat", "deepseek/m", stream=True):
            assert provider.asked.wait(PATIENCE)
        for client in ALL_CLIENTS:
            assert ask(running.address, client, "anthropic/m").status == 200


class Flood(Simulator):
    """A provider with 64 MiB to say, which counts what it got rid of."""

    PIECE = b'data: {"id":"f","choices":[{"index":0,"delta":{"content":"' + b"x" * (256 * 1024) + b'"}}]}\n\n'
    PIECES = 256

    def __init__(self) -> None:
        super().__init__("deepseek")
        self.sent = 0
        self.progress = threading.Condition()

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        yield Head(200, (("content-type", "text/event-stream"),), None)
        for _ in range(self.PIECES):
            yield Send(self.PIECE)
            with self.progress:
                self.sent += 1
                self.progress.notify_all()
        yield Send(b'data: {"id":"f","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
        yield End()

    def wait_until_held_back(self) -> None:
        """Return once nothing moves any more."""
        with self.progress:
            assert self.progress.wait_for(lambda: self.sent > 0, PATIENCE)
            while self.progress.wait(0.5):
                pass


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"], ids=["forwarded", "translated"])
def test_a_slow_reader_holds_the_provider_back(client: str) -> None:
    flood = Flood()
    with house([flood]) as running:
        with call(running.address, client, "deepseek/m", stream=True) as caller:
            caller.hear(b"\r\n\r\n")
            flood.wait_until_held_back()
            assert flood.sent < Flood.PIECES // 2
        row = running.log.of_model("deepseek/m")
        assert row.outcome == "cancelled"


def test_a_slow_reader_gets_everything_in_the_end() -> None:
    flood = Flood()
    with house([flood]) as running:
        with call(running.address, "openai_chat", "deepseek/m", stream=True) as caller:
            flood.wait_until_held_back()
            caller.hear(b"[DONE]")
            assert len(caller.heard) > Flood.PIECES * len(Flood.PIECE)
        assert running.log.of_model("deepseek/m").outcome == "ok"


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"], ids=["forwarded", "translated"])
def test_a_slow_reader_holds_nobody_else_back(client: str) -> None:
    flood = Flood()
    with house([flood, Simulator("anthropic")]) as running, call(running.address, client, "deepseek/m", stream=True):
        flood.wait_until_held_back()
        for other in ALL_CLIENTS:
            with call(running.address, other, "anthropic/m", stream=True) as caller:
                caller.hear(b"\r\n\r\n")
            assert ask(running.address, other, "anthropic/m").status == 200
        assert flood.sent < Flood.PIECES // 2, "the slow reader was still held back"
