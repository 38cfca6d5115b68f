"""Earlier reasoning comes back whole in conversations that layers have shortened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from support.gateway import House, Remembering, house
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.replay_loops import CITIES, MODELS, Talk, loses_reasoning, script, talk
from surfaces.gateway.test_replay_loops import assert_all_came_back
from surfaces.gateway.test_sdk_tool_loops import sealed_in

LONG = "\n".join(f"{hour} o'clock: sunny, with a light wind from the west and no rain at all" for hour in range(60))
SHORTEN = """
[inference.pipeline.profiles.short]
layers = ["compress", "dedup", "format"]
[inference.pipeline.compress]
above_tokens = 100
longest = 100
keep_turns = 1
cache_seconds = 0
"""
COMPACT = 'compact = ["rules"]\ncompact_above_tokens = 400\n'
each_provider = pytest.mark.parametrize("provider", list(MODELS))


@contextmanager
def homes(provider: str, toml: str) -> Iterator[House]:
    """Run a gateway that recalls reasoning and shortens prompts."""
    keeper = ReplayKeeper(MemoryStore())
    try:
        with house([Remembering(provider, script=script())], replay=keeper, toml=toml) as running:
            yield running
    finally:
        keeper.close()


def step(conversation: Talk, provider: str, model: str = "") -> None:
    """Let the model take its next turn, and answer its call with a long result."""
    conversation.step(provider, model, extra_body={"bardo": {"pipeline": "short"}})
    if conversation.history[-1]["role"] == "tool":
        conversation.history[-1]["content"] = LONG


@whole_and_streamed
@each_provider
def test_reasoning_comes_back_behind_results_that_were_shortened(provider: str, stream: bool) -> None:
    with homes(provider, SHORTEN) as running, talk(running, stream=stream) as conversation:
        for _ in (*CITIES, "the answer"):
            step(conversation, provider)
        sent = running.arrived(provider)[-1].raw.decode()
        assert conversation.history[-1]["content"] == "Oslo is the coldest."
        assert_all_came_back(running, provider)
    assert sent.count("characters left out") == 2
    assert sent.count("30 o'clock") == 1
    assert not loses_reasoning(conversation)


@each_provider
def test_behind_a_summary_the_turn_that_stays_has_its_own_reasoning(provider: str) -> None:
    with homes(provider, SHORTEN + COMPACT) as running, talk(running) as conversation:
        for _ in range(4):
            step(conversation, provider)
        before, last = running.arrived(provider)[-2:]
        # A simulated model goes by how many results it sees, so it is the third reply, whatever it says, that the fourth request ends with.
        reply = running.sent(provider, 2)
    sent = last.raw.decode()
    assert "Summary of the conversation" in sent
    if provider in ("deepseek", "moonshot"):
        turns = [one for one in last.body["messages"] if one["role"] == "assistant"]  # type: ignore[index]
        assert [turn["reasoning_content"] in reply.decode() for turn in turns] == [True]
    else:
        assert sealed_in(last.raw) == sealed_in(reply)[-1:]
        assert sealed_in(last.raw) != sealed_in(before.raw)
    assert not loses_reasoning(conversation)


def test_a_prompt_that_thinking_is_bound_to_is_left_alone() -> None:
    with homes("anthropic", SHORTEN + COMPACT) as running, talk(running) as conversation:
        for _ in (*CITIES, "the answer"):
            step(conversation, "anthropic", "claude-opus-5-5")
        sent = running.arrived("anthropic")[-1].raw.decode()
        assert_all_came_back(running, "anthropic")
    assert sent.count("30 o'clock") == 3
    assert not loses_reasoning(conversation)
