"""A budget of thinking that the gateway keeps: the thought is cut, ended by its marker, and the model goes on with the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, ProviderEntry, ReasoningSettings, Settings
from bardo.simulators import Running, Script, Turn, running_many
from bardo.values.blocks import ReasoningBlock
from bardo.values.events import ContentChunk, ThinkChunk
from support.any_model import Simulator

pytestmark = pytest.mark.each_python

THOUGHT = "One more look. " * 200
SCRIPT = Script((Turn(reasoning=THOUGHT, text="The long answer."), Turn(reasoning="Again?", text="The short answer.")))
PRESETS = {"sglang": "sglang", "ollama_native": "ollama", "ollama": "ollama-openai", "inline_think": "vllm"}
BUDGET = 40


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    simulators = [Simulator(name, script=SCRIPT, delta_size=4) for name in PRESETS]
    with running_many(simulators) as running:
        yield dict(running)


def client_of(servers: dict[str, Running], name: str, **reasoning: Any) -> bardo.Client:
    base = servers[name].base_url
    entry = ProviderEntry(id="lab", preset=PRESETS[name], base_url=base, models=("qwen3:latest", "Qwen/Qwen3-0.6B"))
    own = ReasoningSettings(**{"introspect": False, "keep_budgets": True, **reasoning})
    return bardo.Client(Settings(providers=(entry,), log=LogSettings(enabled=False), reasoning=own))


def model_of(name: str) -> str:
    return "qwen3:latest" if "ollama" in name else "Qwen/Qwen3-0.6B"


def asked_of(server: Running) -> list[Any]:
    return [one.body for one in server.requests if one.path.endswith(("/chat/completions", "/chat"))]


def thought_of(reply: bardo.Response) -> str:
    return reply.reasoning.content or ""


@pytest.mark.parametrize("name", PRESETS)
def test_a_thought_that_has_used_its_budget_is_cut_and_the_model_answers(
    servers: dict[str, Running], name: str
) -> None:
    before = len(asked_of(servers[name]))
    with client_of(servers, name) as client:
        reply = client.respond(
            "How many?", model=model_of(name), reasoning=bardo.ReasoningPolicy(mode="budget", budget=BUDGET)
        )
    assert reply.text == "The short answer."
    assert 0 < len(thought_of(reply)) < len(THOUGHT) / 4
    assert THOUGHT.startswith(thought_of(reply).lstrip())
    cut = [one for one in reply.degraded if str(one.sent).startswith("cut:")]
    assert [one.asked for one in cut] == [f"budget:{BUDGET}"]
    assert not [one for one in reply.degraded if one.what == "reasoning_budget"]
    sent = asked_of(servers[name])[before:]
    last = sent[-1]["messages"][-1]
    assert last == {"role": "assistant", "content": f"<think>\n{thought_of(reply).strip()}\n</think>\n\n"}
    assert reply.usage.reasoning_tokens is None or reply.usage.reasoning_tokens >= BUDGET


@pytest.mark.parametrize("name", PRESETS)
def test_a_stream_is_cut_and_goes_on(servers: dict[str, Running], name: str) -> None:
    policy = bardo.ReasoningPolicy(mode="budget", budget=BUDGET)
    with (
        client_of(servers, name) as client,
        client.stream("How many?", model=model_of(name), reasoning=policy) as stream,
    ):
        events = list(stream)
        reply = stream.response()
    text = "".join(one.text for one in events if isinstance(one, ContentChunk))
    thought = "".join(one.text for one in events if isinstance(one, ThinkChunk))
    assert text == reply.text == "The short answer."
    assert len(thought) < len(THOUGHT) / 4
    assert reply.finish.reason == "stop"
    assert [type(block) for block in reply.blocks].count(ReasoningBlock) == 1


def test_the_last_words_of_a_cut_thought_are_the_operators(servers: dict[str, Running]) -> None:
    words = "Time is up, so I answer now."
    with client_of(servers, "sglang", budget_words=words) as client:
        client.respond(
            "How many?", model="Qwen/Qwen3-0.6B", reasoning=bardo.ReasoningPolicy(mode="budget", budget=BUDGET)
        )
    assert asked_of(servers["sglang"])[-1]["messages"][-1]["content"].endswith(f"\n\n{words}\n</think>\n\n")


def test_a_thought_within_its_budget_is_left_alone(servers: dict[str, Running]) -> None:
    before = len(asked_of(servers["sglang"]))
    with client_of(servers, "sglang") as client:
        reply = client.respond(
            "How many?", model="Qwen/Qwen3-0.6B", reasoning=bardo.ReasoningPolicy(mode="budget", budget=9000)
        )
    assert (reply.text, thought_of(reply)) == ("The long answer.", THOUGHT)
    assert len(asked_of(servers["sglang"])) == before + 1
    assert reply.degraded == ()


def test_without_the_setting_no_budget_is_kept_which_is_reported(servers: dict[str, Running]) -> None:
    with client_of(servers, "sglang", keep_budgets=False) as client:
        reply = client.respond(
            "How many?", model="Qwen/Qwen3-0.6B", reasoning=bardo.ReasoningPolicy(mode="budget", budget=BUDGET)
        )
    assert (reply.text, thought_of(reply)) == ("The long answer.", THOUGHT)
    assert [one.asked for one in reply.degraded] == [BUDGET]
