"""A conversation that changes providers in its middle: nobody gets state that is not his own, and nothing is lost unsaid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from bardo.dialects.shared.states import unseal
from support.gateway import House
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.replay_loops import QUESTION, homes, received_in, talk
from surfaces.gateway.test_sdk_tool_loops import sealed_in

BIG_FOUR = ("openrouter", "openai_responses", "anthropic", "gemini")
"""A speaker of each of the four large dialects whose reasoning has state."""
PAIRS = list(itertools.permutations(BIG_FOUR, 2))


@pytest.fixture(scope="module")
def four() -> Iterator[House]:
    with homes(BIG_FOUR) as running:
        yield running


def made_by(running: House, provider: str) -> set[str]:
    """Return all state that a provider has sent so far."""
    return {
        state for place in range(len(running.arrived(provider))) for state in sealed_in(running.sent(provider, place))
    }


def received_by(running: House, provider: str, since: int = 0) -> set[str]:
    """Return all state that has reached a provider."""
    return {state for incoming in running.arrived(provider)[since:] for state in received_in(incoming.raw)}


@whole_and_streamed
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_there_and_back_between_turns(four: House, one: str, other: str, stream: bool) -> None:
    """A tool loop is finished with one provider, a question asked of another, and then the first goes on."""
    since = len(four.arrived(one))
    with talk(four, stream=stream) as conversation:
        for provider in (one, one, one, one, other, one):
            conversation.step(provider)
            if conversation.history[-1]["role"] == "assistant":
                conversation.history.append({"role": "user", "content": "And what would you wear?"})
    at_home, abroad = conversation.degraded[:4], conversation.degraded[4]
    assert not any("reasoning" in one for one in at_home)
    assert "reasoning" in abroad
    for provider in (one, other):
        assert received_by(four, provider) <= made_by(four, provider)
    first_loop = [sealed_in(four.sent(one, since + place))[-1] for place in range(3)]
    assert set(first_loop) <= set(sealed_in(four.arrived(one)[-1].raw)), "the first has its own back"


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_there_and_back_within_a_tool_loop(four: House, one: str, other: str) -> None:
    with talk(four) as conversation:
        for provider in (one, other, one, other):
            conversation.step(provider)
    assert conversation.history[-1]["content"] == "Oslo is the coldest."
    for provider in (one, other):
        assert received_by(four, provider) <= made_by(four, provider)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_no_seal_of_bardo_reaches_a_provider(four: House, one: str, other: str) -> None:
    with talk(four) as conversation:
        conversation.step(one)
        conversation.step(other)
    for provider in (one, other):
        assert not [state for state in received_by(four, provider) if unseal(state)]


@pytest.mark.parametrize("other", BIG_FOUR)
@pytest.mark.parametrize("one", ["deepseek", "moonshot"])
def test_a_host_that_asks_for_plain_reasoning_gets_text_of_another_or_says_that_there_is_none(
    one: str, other: str
) -> None:
    with homes([one, other]) as running, talk(running) as conversation:
        conversation.step(other)
        conversation.step(one)
        turn = running.last(one)["messages"][1]
        assert turn["reasoning_content"]
        assert "reasoning" in conversation.degraded[-1]
        conversation.step(other)
        assert received_by(running, other) <= made_by(running, other)


def test_another_model_of_openai_gets_no_ciphertext_that_it_cannot_read() -> None:
    with homes(["openai_responses"]) as running, talk(running) as conversation:
        conversation.step("openai_responses", "gpt-5")
        conversation.step("openai_responses", "gpt-5.1")
        assert not received_by(running, "openai_responses")
        assert "reasoning" in conversation.degraded[-1]
        conversation.step("openai_responses", "gpt-5")
        assert sealed_in(running.sent("openai_responses", 0))[-1] in received_by(running, "openai_responses")


def test_a_conversation_without_reasoning_is_sent_as_it_is() -> None:
    with homes(["openrouter"]) as running, talk(running) as conversation:
        history = [QUESTION, {"role": "assistant", "content": "Oslo."}, {"role": "user", "content": "Why?"}]
        conversation.history = list(history)
        conversation.step("openrouter")
        assert running.last("openrouter")["messages"] == history
    assert conversation.degraded == [""]
