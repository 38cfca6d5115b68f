"""Tool loops survive a client that drops all reasoning between its turns, with every provider that asks for it back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.state import SqliteStore
from support.gateway import House
from support.sdk import anthropic_client
from support.talk import SCHEMA
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.replay_loops import CITIES, MODELS, homes, loses_reasoning, received_in, talk
from surfaces.gateway.test_sdk_tool_loops import sealed_in

THOUGHTS = [f"I still need to know the weather in {city}." for city in CITIES]
each_provider = pytest.mark.parametrize("provider", list(MODELS))


@whole_and_streamed
@each_provider
def test_a_plain_chat_client_reaches_the_end_of_its_tool_loop(provider: str, stream: bool) -> None:
    with homes([provider]) as running, talk(running, stream=stream) as conversation:
        for _ in CITIES:
            assert conversation.step(provider)["tool_calls"]
        assert conversation.step(provider)["content"] == "Oslo is the coldest."
        assert_all_came_back(running, provider)
    assert not loses_reasoning(conversation)


def assert_all_came_back(running: House, provider: str) -> None:
    """Every thought of the loop stands in the last request, in order, as its provider had sent it."""
    last = running.arrived(provider)[-1].raw
    if provider in ("deepseek", "moonshot"):
        turns = [one for one in running.last(provider)["messages"] if one["role"] == "assistant"]
        assert [turn["reasoning_content"] for turn in turns] == THOUGHTS
        return
    sent = [sealed_in(running.sent(provider, place))[-1] for place in range(len(CITIES))]
    assert sealed_in(last) == sent


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ("anthropic", "reasoning"),
        ("gemini", "thoughtSignature"),
        ("deepseek", "reasoning"),
        ("moonshot", "reasoning"),
    ],
)
def test_without_a_store_the_loop_goes_on_and_what_is_lost_is_said(provider: str, said: str) -> None:
    with homes([provider], keeps=False) as running, talk(running) as conversation:
        conversation.step(provider)
        conversation.step(provider)
        assert not received_in(running.arrived(provider)[-1].raw)
    assert said in conversation.degraded[-1]


def test_a_restart_with_a_file_keeps_the_loop_whole(tmp_path: Path) -> None:
    file = tmp_path / "replay.db"
    with homes(["anthropic"], store=SqliteStore(file)) as running, talk(running) as conversation:
        conversation.step("anthropic")
        conversation.step("anthropic")
        sent = [sealed_in(running.sent("anthropic", place))[-1] for place in range(2)]
        history = conversation.history
    with homes(["anthropic"], store=SqliteStore(file)) as running, talk(running) as conversation:
        conversation.history = history
        assert conversation.step("anthropic")["tool_calls"]
        assert sealed_in(running.arrived("anthropic")[0].raw) == sent
    assert not loses_reasoning(conversation)


def test_another_key_finds_nothing_of_this_one() -> None:
    with homes(["anthropic"]) as running, talk(running) as conversation:
        conversation.step("anthropic")
        conversation.client = conversation.client.with_options(api_key="somebody-else")
        conversation.step("anthropic")
        assert not sealed_in(running.arrived("anthropic")[-1].raw)
    assert "reasoning" in conversation.degraded[-1]


@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "openai_responses", "deepseek"])
def test_a_client_that_writes_arguments_anew_loses_nothing(provider: str, stream: bool) -> None:
    with homes([provider]) as running, talk(running, stream=stream) as conversation:
        call = conversation.step(provider)["tool_calls"][0]["function"]
        call["arguments"] = call["arguments"].replace(":", " :  ")
        conversation.step(provider)
    assert not loses_reasoning(conversation)


@whole_and_streamed
def test_reasoning_the_client_does_not_want_is_kept_all_the_same(stream: bool) -> None:
    omit = {"X-Bardo-Reasoning": "omit"}
    with homes(["anthropic"]) as running, talk(running, stream=stream) as conversation:
        for _ in CITIES:
            conversation.step("anthropic", extra_headers=omit)
        conversation.step("anthropic", extra_headers=omit)
        assert_all_came_back(running, "anthropic")
    assert not loses_reasoning(conversation)


def test_a_client_of_the_dialect_itself_gets_a_changed_prefix_mended() -> None:
    """Its blocks are its own and pass through untouched, until they would no longer hold."""
    with homes(["anthropic"]) as running, closing(anthropic_client(running.address)) as client:
        tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
        fixed: Any = {"model": "anthropic/claude-fable-5-1", "max_tokens": 4000, "tools": tools}
        asked: Any = [{"role": "user", "content": "Compare."}]
        first = client.messages.create(system="Be brief.", messages=asked, **fixed)
        call = next(block for block in first.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        client.messages.create(system="Be brief.", messages=asked, **fixed)
        assert len(received_in(running.arrived("anthropic")[-1].raw)) == 1
        raw = client.messages.with_raw_response.create(system="Be long.", messages=asked, **fixed)
        assert not received_in(running.arrived("anthropic")[-1].raw)
        assert "reasoning" in raw.headers["x-bardo-degraded"]
