"""A provider that is silent, or only says that it is alive, is left for the next in time; and a call ends by its deadline."""

from __future__ import annotations

import pytest

from bardo.adapters.config.routing import FailoverSettings
from bardo.services.facts.failover import Failover
from bardo.simulators import Fault, Script, Turn
from support.any_model import Simulator
from support.gateway import House, Watched, house
from support.patience import PATIENCE
from support.talk import CLIENTS, Answer, ask
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import refusal

MODEL = "shared-model"
each_client = pytest.mark.parametrize("client", CLIENTS)


def settings(**chosen: object) -> Failover:
    return Failover(FailoverSettings(backoff_seconds=0.01, **chosen))  # type: ignore[arg-type]


def check_moved(running: House, answer: Answer, first: Watched) -> None:
    assert answer.status == 200
    assert answer.headers["x-bardo-provider"] == "anthropic"
    assert first.over.wait(PATIENCE), "the silent provider is let go of"
    row = running.log.of_model(MODEL)
    assert [one.cause for one in row.attempt_records] == ["first", "failover"]
    assert row.attempt_records[0].error == "UpstreamTimeout"


@pytest.mark.sampled(1, of="client")
@each_client
@pytest.mark.parametrize("kind", ["stall", "keep-alive"])
@pytest.mark.parametrize("after", [0, 1], ids=["before the head", "after the role"])
def test_a_stream_without_a_first_token_is_asked_for_elsewhere(client: str, kind: str, after: int) -> None:
    first = Watched("openai_chat", fault=Fault(kind, after=after))  # type: ignore[arg-type]
    # Only the silent one is left for being late, however long the other takes on a busy machine.
    chosen = settings(first_token_seconds=1.0, first_token_seconds_at={"anthropic": PATIENCE})
    with house([first, Simulator("anthropic")], each={"models": (MODEL,)}, failover=chosen) as running:
        answer = ask(running.address, client, MODEL, stream=True)
        check_moved(running, answer, first)


def test_one_provider_may_take_longer_than_the_others() -> None:
    slow = Simulator("vllm", fault=Fault("slow", delay=0.05))
    chosen = settings(first_token_seconds=0.001, first_token_seconds_at={"vllm": PATIENCE})
    with house([slow, Simulator("anthropic")], each={"models": (MODEL,)}, failover=chosen) as running:
        assert ask(running.address, "openai_chat", MODEL, stream=True).headers["x-bardo-provider"] == "vllm"


def test_thinking_that_is_shown_is_a_first_token() -> None:
    thinks = Simulator("deepseek", script=None, fault=Fault("slow", delay=0.02))
    with house([thinks], failover=settings(first_token_seconds=5.0)) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", stream=True, thinks=True)
        assert answer.status == 200
        assert "1161" in answer.text


def test_thinking_that_is_not_shown_is_held_and_the_next_provider_answers_where_it_breaks_off() -> None:
    first = Simulator("deepseek", fault=Fault("cut", after=6))
    with house([first, Simulator("groq")], each={"models": (MODEL,)}, failover=settings()) as running:
        answer = ask(running.address, "anthropic_messages", MODEL, stream=True)
        assert answer.headers["x-bardo-provider"] == "groq"
        assert running.log.of_model(MODEL).outcome == "ok"


@whole_and_streamed
@each_client
def test_a_call_ends_by_the_deadline_of_its_client(client: str, stream: bool) -> None:
    with house([Watched("deepseek", silent_first=True)], failover=settings()) as running:
        answer = ask(running.address, client, "deepseek/m", stream=stream, bardo={"deadline_seconds": 0.5})
        assert answer.status == 504
        assert "0.5 s" in refusal(client, answer)
        assert running.log.of_model("deepseek/m").outcome == "error"


@pytest.mark.parametrize("bardo", [{"deadline_seconds": 300}, {}], ids=["a longer one", "none"])
def test_the_deadline_of_the_operator_holds_whatever_the_client_says(bardo: dict[str, object]) -> None:
    with house([Watched("deepseek", silent_first=True)], failover=settings(deadline_seconds=0.4)) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo=bardo)
        assert "0.4 s" in refusal("openai_chat", answer)


@pytest.mark.parametrize("seconds", [0, -1, "soon", True])
def test_a_deadline_that_is_none_is_refused(seconds: object) -> None:
    with house([Simulator("deepseek")]) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo={"deadline_seconds": seconds})
        assert answer.status == 400
        assert "bardo.deadline_seconds" in refusal("openai_chat", answer)


@whole_and_streamed
@each_client
@pytest.mark.parametrize("kind", ["disconnect", "reset", "status"])
def test_a_fault_that_mends_itself_is_seen_by_nobody_but_the_receipt(client: str, kind: str, stream: bool) -> None:
    fault = Fault(kind, status=503, times=1)  # type: ignore[arg-type]
    with house([Simulator("deepseek", fault=fault)], failover=settings()) as running:
        answer = ask(running.address, client, "deepseek/m", stream=stream)
        assert answer.status == 200
        assert "1161" in answer.text
        assert "provider" not in answer.headers.get("x-bardo-degraded", "")
        row = running.log.of_model("deepseek/m")
        assert [one.cause for one in row.attempt_records] == ["first", "retry"]


def test_a_typed_answer_of_the_second_provider_is_whole() -> None:
    turn = Turn(text='{"city": "Paris"}')
    script = Script((turn,))
    first, second = (
        Simulator("openai_chat", fault=Fault("cut", after=4), script=script),
        Simulator("mistral", script=script),
    )
    form = {"type": "json_schema", "json_schema": {"name": "c", "schema": {"type": "object", "required": ["city"]}}}
    with house([first, second], each={"models": (MODEL,)}, failover=settings()) as running:
        answer = ask(running.address, "openai_chat", MODEL, response_format=form)
        assert answer.json["choices"][0]["message"]["content"] == turn.text
        assert answer.headers["x-bardo-provider"] == "mistral"
