"""The receipt of a call's thinking: what was asked, what was sent, who decided and what became of it (GW4, CT8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bardo.simulators import Script, Turn, Usage
from bardo.simulators.turns import Conversation
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import CLIENTS, Answer, ask
from surfaces.gateway.cells import whole_and_streamed

each_client = pytest.mark.parametrize("client", CLIENTS)
THOUGHT = "First 27 * 40 = 1080, then 81 more."
THINKING = Turn(reasoning=THOUGHT, text="1161", usage=Usage(10, 5, 30))
SILENT = Turn(text="1161", usage=Usage(10, 5, 0))


@dataclass(frozen=True)
class Case:
    """A model that replies with `turn`, or as its provider's thinking behaviour has it, when it is asked to think so."""

    model: str
    asked: Any
    verdict: str
    said: str
    turn: Turn = THINKING
    thinks: bool = True

    @property
    def name(self) -> str:
        return self.model.partition("/")[2]


CASES = {
    "honoured": Case("anthropic/claude-opus-4-8", "low", "honoured", "low"),
    "clamped": Case("openai_responses/gpt-5", "max", "clamped", "high"),
    "floored": Case("gemini/gemini-2.5-pro", "off", "floored", "budget:128"),
    "contradicted by text": Case("deepseek/deepseek-v4-flash", "off", "contradicted", "off"),
    "contradicted by a count": Case(
        "gemini/gemini-2.5-flash",
        1000,
        "contradicted",
        "budget:1000",
        Turn(reasoning=THOUGHT, text="1161", usage=Usage(10, 5, 5000)),
    ),
    "hidden only": Case("openai_chat/gpt-5.1", "off", "hidden_only", "off"),
    "void": Case("openai_responses/gpt-5-mini", "high", "void", "high", SILENT, thinks=False),
    "unknown": Case("openai_responses/gpt-5-nano", "low", "unknown", "low", SILENT, thinks=False),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def replies(conversation: Conversation) -> Turn:
    """Say what the case of the model says."""
    return next((case.turn for case in CASES.values() if case.name == conversation.model), THINKING)


@pytest.fixture(scope="module")
def judged() -> Iterator[House]:
    script = Script(otherwise=replies)
    scripted = [Simulator(name, script=script) for name in ("anthropic", "gemini", "openai_responses")]
    stubborn = [Simulator(name, script=script, thinking_behaviour="ignore") for name in ("deepseek", "openai_chat")]
    with house([*scripted, *stubborn, Simulator("inline_think")]) as running:
        yield running


def receipt_of(answer: Answer, *, stream: bool) -> Any:
    """Return the receipt in the body."""
    return extension_of(answer, stream=stream)["receipt"]


def extension_of(answer: Answer, *, stream: bool) -> Any:
    """Return the `bardo` object of an answer; in a stream one event has it."""
    payloads = answer.payloads if stream else [answer.json]
    told = [one.get("bardo") or one.get("response", {}).get("bardo") for one in payloads if isinstance(one, dict)]
    (found,) = filter(None, told)
    return found


def parts(header: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in header.split("; "))


def intent(case: Case) -> str:
    return f"budget:{case.asked}" if isinstance(case.asked, int) else str(case.asked)


@each_client
@whole_and_streamed
@each_case
def test_every_verdict_reaches_every_client(judged: House, client: str, stream: bool, case: Case) -> None:
    asked = {"reasoning": case.asked, "include": ["receipt"]}
    answer = ask(judged.address, client, case.model, stream=stream, bardo=asked)
    assert answer.status == 200, answer.text
    receipt = receipt_of(answer, stream=stream)
    assert (receipt["intent"], receipt["verdict"], receipt["layer"]) == (intent(case), case.verdict, "L2")
    assert receipt["emitted"]
    assert receipt["reason"]
    assert bool(receipt["observed"]["reasoning_tokens"]) is case.thinks
    header = parts(answer.headers["x-bardo-reasoning"])
    known = {"intent": intent(case), "emitted": case.said, "layer": "L2"}
    # What became of it is known once a reply is over: a stream's headers are gone by then.
    assert header == (known if stream else {**known, "verdict": case.verdict})


@each_client
@whole_and_streamed
@each_case
def test_every_verdict_is_in_the_log(judged: House, client: str, stream: bool, case: Case) -> None:
    answer = ask(judged.address, client, case.model, stream=stream, bardo={"reasoning": case.asked})
    row = judged.log.row(answer.headers["x-bardo-request-id"])
    assert (row.reasoning_intent, row.reasoning_emitted) == (intent(case), case.said)
    assert (row.reasoning_layer, row.reasoning_verdict) == ("L2", case.verdict)
    assert row.receipt is not None
    assert row.receipt["verdict"] == case.verdict


@each_case
def test_what_the_receipt_says_was_sent_is_what_arrived(judged: House, case: Case) -> None:
    asked = {"reasoning": case.asked, "include": ["receipt"]}
    answer = ask(judged.address, "openai_chat", case.model, bardo=asked)
    arrived = judged.last(case.model.partition("/")[0])
    assert within(receipt_of(answer, stream=False)["emitted"], arrived)


def within(part: Any, whole: Any) -> bool:
    """Whether all of `part` stands in `whole`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(within(value, whole.get(name)) for name, value in part.items())
    return bool(part == whole)


@each_client
@whole_and_streamed
def test_where_nothing_is_asked_the_receipt_says_so(judged: House, client: str, stream: bool) -> None:
    asked = {"include": ["receipt"]}
    answer = ask(judged.address, client, "openai_responses/gpt-5", stream=stream, bardo=asked)
    receipt = receipt_of(answer, stream=stream)
    assert (receipt["intent"], receipt["verdict"]) == ("none", "unknown")
    header = parts(answer.headers["x-bardo-reasoning"])
    assert (header["intent"], header["emitted"], header.get("verdict")) == (
        "none",
        "nothing",
        None if stream else "unknown",
    )


@each_client
def test_a_clients_own_words_are_an_intent(judged: House, client: str) -> None:
    answer = ask(judged.address, client, "anthropic/claude-opus-4-8", thinks=True)
    own = {"anthropic_messages": "budget:2048", "gemini": "auto"}.get(client, "low")
    assert parts(answer.headers["x-bardo-reasoning"])["intent"] == own


@whole_and_streamed
def test_a_reply_that_is_forwarded_has_its_receipt_too(judged: House, stream: bool) -> None:
    answer = ask(judged.address, "anthropic_messages", "anthropic/claude-sonnet-4-5", stream=stream, thinks=True)
    row = judged.log.row(answer.headers["x-bardo-request-id"])
    assert row.passed_through
    assert (row.reasoning_intent, row.reasoning_emitted, row.reasoning_verdict) == (
        "budget:2048",
        "budget:2048",
        "honoured",
    )
    assert parts(answer.headers["x-bardo-reasoning"])["emitted"] == "budget:2048"


@each_client
@whole_and_streamed
def test_an_estimate_is_marked_wherever_it_is_told(judged: House, client: str, stream: bool) -> None:
    asked = {"reasoning": "high", "include": ["receipt", "reasoning_chain"]}
    answer = ask(judged.address, client, "inline_think/Qwen/Qwen3-32B", stream=stream, bardo=asked)
    told = extension_of(answer, stream=stream)
    row = judged.log.row(answer.headers["x-bardo-request-id"])
    counts = {
        told["reasoning_chain"]["reasoning_tokens"],
        told["receipt"]["observed"]["reasoning_tokens"],
        row.reasoning_tokens,
    }
    assert len(counts) == 1
    assert counts != {0}
    # The chain carries the receipt (RC1).
    assert {name: told["receipt"][name] for name in ("intent", "emitted", "layer", "observed", "verdict")}.items() <= (
        told["reasoning_chain"]["control"].items()
    )
    assert (told["reasoning_chain"]["tokens_approx"], told["receipt"]["observed"]["approx"], row.tokens_approx) == (
        True,
    ) * 3
    assert (told["receipt"]["observed"]["reported"], told["receipt"]["verdict"]) == (False, row.reasoning_verdict)
    if not stream:
        assert answer.headers["x-bardo-reasoning-tokens-approx"] == "true"
        assert {answer.headers["x-bardo-reasoning-tokens"]} == set(map(str, counts))


def test_a_refused_call_is_in_the_log_with_what_was_sent(judged: House) -> None:
    model = "anthropic/claude-opus-4-8+fault:status=400"
    answer = ask(judged.address, "openai_chat", model, bardo={"reasoning": "low"})
    assert answer.status == 400
    row = judged.log.of_model(model)
    assert (row.reasoning_intent, row.reasoning_emitted, row.reasoning_verdict) == ("low", "low", None)
