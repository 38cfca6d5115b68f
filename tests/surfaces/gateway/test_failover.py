"""When one provider fails, the next one that serves the model answers, and the client is told; not once it has seen a byte."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest

from bardo.adapters.config.settings import ProviderEntry
from bardo.adapters.net.client import Deadlines
from bardo.simulators import Fault
from support.any_model import Simulator
from support.gateway import House, Watched, house
from support.patience import PATIENCE
from support.talk import CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import broken, refusal

MODEL = "shared-model"
each_client = pytest.mark.parametrize("client", CLIENTS)


def chain(
    *simulators: Simulator, before: Sequence[ProviderEntry] = (), idle: float = PATIENCE
) -> AbstractContextManager[House]:
    """Run a gateway whose providers, in this order, all list the model."""
    deadlines = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=idle)
    return house(simulators, before=before, each={"models": (MODEL,)}, deadlines=deadlines)


# A fault, and how often a provider is asked that has it.
FAULTS = {
    "too many": (Fault("status", status=429, retry_after=9), 1),
    "overloaded": (Fault("status", status=529), 2),
    "a server error": (Fault("status", status=500), 2),
    "a server error that asks to wait": (Fault("status", status=503, retry_after=60), 1),
    "no answer": (Fault("disconnect"), 2),
    "a page": (Fault("content-type"), 1),
    "a lie": (Fault("lying"), 1),
    "a wrong key": (Fault("status", status=401), 1),
    "no money": (Fault("status", status=402), 1),
    "no permission": (Fault("status", status=403), 1),
    "no such model": (Fault("status", status=404), 1),
}


@each_client
@whole_and_streamed
@pytest.mark.parametrize(("fault", "asked"), FAULTS.values(), ids=FAULTS)
def test_the_next_provider_answers(client: str, stream: bool, fault: Fault, asked: int) -> None:
    with chain(Simulator("deepseek", fault=fault), Simulator("anthropic")) as running:
        answer = ask(running.address, client, MODEL, stream=stream)
        assert answer.status == 200
        assert "1161" in answer.text
        assert answer.headers["x-bardo-provider"] == "anthropic"
        assert "provider" in answer.headers["x-bardo-degraded"].split(", ")
        assert "retry-after" not in answer.headers
        row = running.log.of_model(MODEL)
        assert (row.outcome, row.attempts, row.provider) == ("ok", asked + 1, "anthropic")
        assert [one.cause for one in row.attempt_records] == ["first", *["retry"] * (asked - 1), "failover"]
        assert all(one.why for one in row.attempt_records[1:])
        (told,) = [one for one in row.degraded if one["what"] == "provider"]
        assert (told["asked"], told["sent"]) == ("deepseek", "anthropic")
        assert told["why"]


@whole_and_streamed
def test_a_provider_that_is_not_there_is_passed_over(stream: bool) -> None:
    with Simulator("vllm").running() as server:
        gone = ProviderEntry(id="gone", preset="vllm", base_url=server.base_url, models=(MODEL,))
    with chain(Simulator("gemini"), before=[gone]) as running:
        answer = ask(running.address, "openai_chat", MODEL, stream=stream, bardo={"include": ["receipt"]})
        assert answer.status == 200
        assert answer.headers["x-bardo-provider"] == "gemini"
        assert "refuses connections" in answer.text


def test_a_whole_reply_that_stalls_or_breaks_is_asked_for_elsewhere() -> None:
    for kind in ("stall", "cut", "malformed", "error-event"):
        with chain(Simulator("deepseek", fault=Fault(kind)), Simulator("anthropic"), idle=2.0) as running:
            assert ask(running.address, "gemini", MODEL).headers["x-bardo-provider"] == "anthropic"


def test_a_stream_that_stalls_before_it_begins_is_asked_for_elsewhere() -> None:
    first = Watched("deepseek", fault=Fault("stall", after=0))
    with chain(first, Simulator("anthropic"), idle=2.0) as running:
        answer = ask(running.address, "openai_chat", MODEL, stream=True)
        assert answer.headers["x-bardo-provider"] == "anthropic"
        assert first.over.wait(PATIENCE), "the provider that stalls is let go of"


@pytest.mark.sampled(5)
@each_client
@pytest.mark.parametrize("kind", ["stall", "cut", "error-event", "malformed"])
def test_what_the_client_has_seen_is_not_begun_again(client: str, kind: str) -> None:
    second = Watched("anthropic")
    fault = Fault(kind, after=8)  # type: ignore[arg-type]
    with chain(Simulator("deepseek", fault=fault), second, idle=2.0) as running:
        answer = ask(running.address, client, MODEL, stream=True, thinks=True)
        assert broken(client, answer)
        assert not second.asked.is_set()
        row = running.log.of_model(MODEL)
        assert (row.outcome, row.attempts, row.provider) == ("broken", 1, "deepseek")


@each_client
@whole_and_streamed
@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_no_other_provider_can_mend_is_told_at_once(client: str, stream: bool, status: int) -> None:
    second = Watched("anthropic")
    with chain(Simulator("deepseek", fault=Fault("status", status=status)), second) as running:
        assert ask(running.address, client, MODEL, stream=stream).status == status
        assert not second.asked.is_set()


@each_client
@whole_and_streamed
def test_when_all_fail_the_last_error_is_told(client: str, stream: bool) -> None:
    first = Simulator("deepseek", fault=Fault("status", status=500))
    last = Simulator("anthropic", fault=Fault("status", status=429, retry_after=7))
    with chain(first, last) as running:
        answer = ask(running.address, client, MODEL, stream=stream)
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        assert refusal(client, answer)
        row = running.log.of_model(MODEL)
        assert (row.outcome, row.attempts, row.provider) == ("error", 3, "anthropic")


def test_a_provider_asked_by_name_has_no_substitute() -> None:
    second = Watched("anthropic")
    with chain(Simulator("deepseek", fault=Fault("status", status=429)), second) as running:
        assert ask(running.address, "openai_chat", f"deepseek/{MODEL}").status == 429
        assert not second.asked.is_set()
