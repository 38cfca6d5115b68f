"""A stream's pieces are passed on from where they arrive: each client gets what it gets where its task reads all of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from bardo.adapters.net.client import HttpReply
from bardo.adapters.net.connection import Incoming
from bardo.simulators import Fault, Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.talk import CLIENTS, Answer, ask

TEXT = " ".join(f"word-{number}" for number in range(60)) + ' and "quotes", é, 🙂 and a \\ at the end.'
THOUGHT = " ".join(f"step-{number}" for number in range(40))
CALLS = (ToolCall("weather", {"city": "Paris"}),)
PRESETS = ("deepseek", "anthropic", "openai_responses", "vllm", "mistral")
# Ids and times that are made anew for each reply.
_NEW = re.compile(
    rb'(?:resp|msg|rs|fc|call|chatcmpl|req|toolu|bardo)[-_][A-Za-z0-9_-]+|"(?:created|[a-z]+_at|responseId|obfuscation)": ?"?[\w.-]+"?'
)


def script() -> Script:
    return Script((Turn(text=TEXT, reasoning=THOUGHT, fault=Fault("slow", delay=0.0015)),))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the pieces that are passed on without waking a task."""
    found, offer = list[bytes](), HttpReply.offer_pieces

    def offer_pieces(self: HttpReply, take: Callable[[bytes], bool]) -> None:
        def noting(piece: bytes) -> bool:
            passed = take(piece)
            if passed:
                found.append(piece)
            return passed

        offer(self, noting)

    monkeypatch.setattr(HttpReply, "offer_pieces", offer_pieces)
    return found


def row_of(running: House, model: str) -> tuple[object, ...]:
    row = running.log.of_model(model)
    return (
        row.outcome,
        row.finish_reason,
        row.input_tokens,
        row.output_tokens,
        row.reasoning_tokens,
        row.degraded,
        row.reply_content,
    )


def said(answer: Answer) -> bytes:
    return _NEW.sub(b"", answer.body)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_the_same_bytes(
    client: str, preset: str, taken: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with house([Simulator(preset, script=script())], keep_content=True) as running:
        direct = ask(running.address, client, model_of(preset), stream=True, thinks=True)
        logged = row_of(running, model_of(preset))
    assert direct.status == 200, direct.text
    assert taken, "some pieces come while the task waits"
    monkeypatch.setattr(Incoming, "_offered", lambda self, piece: False)
    with house([Simulator(preset, script=script())], keep_content=True) as running:
        usual = ask(running.address, client, model_of(preset), stream=True, thinks=True)
        assert row_of(running, model_of(preset)) == logged
    assert said(direct) == said(usual)
    assert logged[0] == "ok"


@pytest.mark.parametrize("kind", ["cut", "malformed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_breaks_behind_such_pieces_fails_loudly(client: str, kind: str, taken: list[bytes]) -> None:
    fault = Fault(kind, after=30)  # type: ignore[arg-type]
    with house([Simulator("deepseek", script=Script((Turn(text=TEXT, fault=fault),)))], keep_content=True) as running:
        answer = ask(running.address, client, "deepseek/m", stream=True)
        row = running.log.of_model("deepseek/m")
    assert row.outcome == "broken"
    assert b"d-3 word" in answer.body
    assert b"error" in answer.body


def test_a_call_with_text_behind_it_passes_the_call_whole(taken: list[bytes]) -> None:
    turns = (Turn(text=TEXT, tool_calls=CALLS, fault=Fault("slow", delay=0.001)),)
    with house([Simulator("deepseek", script=Script(turns))]) as running:
        for client in CLIENTS:
            answer = ask(running.address, client, "deepseek/m", stream=True, tools=True)
            assert b"Paris" in answer.body
        assert {row.finish_reason for row in running.log.wait(lambda row: True)} == {"tool_calls"}
    assert taken


def test_a_stream_longer_than_allowed_ends_with_an_error(taken: list[bytes]) -> None:
    with house([Simulator("deepseek", script=script())], max_stream_bytes=9000) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", stream=True)
        assert running.log.of_model("deepseek/m").outcome == "broken"
    assert b"max_stream_bytes" in answer.body
    assert len(answer.body) < 12_000
