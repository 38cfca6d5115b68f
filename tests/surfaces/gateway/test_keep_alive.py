"""A stream that is silent while the model thinks says now and then that it is alive, and readers skip it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from bardo.simulators import Incoming
from bardo.simulators.delivery import Action, Head, Pause, Send
from support.further_sdks import FURTHER_SDKS
from support.gateway import Remembering, house
from support.patience import PATIENCE
from support.sdk import SDKS
from support.talk import CLIENTS, QUESTION, THOUGHT, Caller, ask, body_for, path_for

OFTEN = 0.05
SIGNS = {
    "openai_chat": b": keep-alive\n\n",
    "openai_responses": b": keep-alive\n\n",
    "anthropic_messages": b'event: ping\ndata: {"type": "ping"}\n\n',
    "gemini": b"\r\n1\r\n\n\r\n",
}
each_client = pytest.mark.parametrize("client", CLIENTS)


class Pondering(Remembering):
    """Says its head, or some of its reply, and ponders until `go` is set."""

    def __init__(self, preset: str, *, after: int, status: int = 200) -> None:
        super().__init__(preset)
        self.go = threading.Event()
        self._after = after
        self._status = status

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        sent = 0
        for action in super().actions(incoming):
            if isinstance(action, Send) and sent == self._after:
                yield from self._ponder()
            sent += isinstance(action, Send)
            yield replace(action, status=self._status) if isinstance(action, Head) else action

    def _ponder(self) -> Iterator[Action]:
        tries = int(PATIENCE / 0.01)
        while tries and not self.go.is_set():
            tries -= 1
            yield Pause(0.01)


@each_client
@pytest.mark.parametrize("after", [0, 3], ids=["before the first word", "in mid-stream"])
def test_a_silent_stream_says_that_it_is_alive(client: str, after: int) -> None:
    provider = Pondering("deepseek", after=after)
    with house([provider], keep_alive_seconds=OFTEN) as running:
        body = body_for(client, "deepseek/m", stream=True, thinks=True)
        with Caller(running.address, path_for(client, "deepseek/m", stream=True), body) as caller:
            caller.hear(SIGNS[client])
            provider.go.set()
            caller.hear(b"1161")


def test_a_stream_that_was_kept_alive_still_fails_loudly() -> None:
    provider = Pondering("deepseek", after=0, status=500)
    with house([provider], keep_alive_seconds=OFTEN) as running:
        body = body_for("anthropic_messages", "deepseek/m", stream=True)
        with Caller(running.address, path_for("anthropic_messages", "deepseek/m"), body) as caller:
            caller.hear(SIGNS["anthropic_messages"])
            provider.go.set()
            caller.hear(b"event: error")


def test_a_gateway_may_be_told_to_keep_silent() -> None:
    provider = Pondering("deepseek", after=3)
    with house([provider], keep_alive_seconds=0.0) as running:
        threading.Timer(3 * OFTEN, provider.go.set).start()
        answer = ask(running.address, "openai_chat", "deepseek/m", stream=True)
    assert b"keep-alive" not in answer.body
    assert b"1161" in answer.body


SKIPPING = {**SDKS, **{name: kind for name, kind in FURTHER_SDKS.items() if not name.startswith("bedrock")}}


@pytest.mark.parametrize("name", SKIPPING)
@pytest.mark.parametrize("after", [0, 3], ids=["before the first word", "in mid-stream"])
def test_official_libraries_skip_the_signs(name: str, after: int) -> None:
    provider = Pondering("deepseek", after=after)
    with house([provider], keep_alive_seconds=OFTEN) as running, closing(SKIPPING[name](running.address)) as sdk:
        threading.Timer(4 * OFTEN, provider.go.set).start()
        heard = sdk.ask("deepseek/m", sdk.said(QUESTION), stream=True)
    assert heard.text == "1161"
    assert THOUGHT in heard.reasoning
    assert heard.stop == sdk.stops[0]
