"""A client may write a conversation anew: the thinking of each turn comes back to the provider that thought it, and to no other turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from bardo.edge.replay_store import ReplayKeeper
from bardo.edge.state import MemoryStore
from bardo.simulators import Script, ToolCall, Turn
from support.gateway import House, Remembering, house
from support.patience import PATIENCE
from surfaces.gateway.rewriting_clients import CLIENTS, MUTATORS, Conversation, mutated, take
from surfaces.gateway.test_sdk_tool_loops import sealed_in

SIGNED = {
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-3-flash-preview",
    "openai_responses": "gpt-5",
    "openrouter": "anthropic/claude-sonnet-4.5",
}
PLAIN = {"ds4": "m", "cohere": "command-a-reasoning-08-2025", "ollama_native": "qwen3:8b"}
"""Providers that give readable thinking, and take it back as it was."""
MODELS = {**SIGNED, **PLAIN}
QUESTION = ("Compare the weather in four cities.\n",)
THOUGHTS = ("First comes Paris.", "Rome and Oslo can be asked together.", "Bonn is left.")
NATIVE = {("chat", "ds4"), ("ollama", "ollama_native"), ("cohere", "cohere")}
WRITTEN = {"thinking rewritten": "Other words than the model's.", "plan invented": "I will call the weather tool."}


def script(more: str = "") -> Script:
    """Three turns of calls, the second with two at once, and an answer; `more` is said behind each thought."""
    cities = (("Paris",), ("Rome", "Oslo"), ("Bonn",))
    turns = [
        Turn(
            text="Let me look.\n\nThis takes a moment.  " if place == 0 else "",
            reasoning=THOUGHTS[place] + more,
            tool_calls=tuple(ToolCall("weather", {"city": city}) for city in some),
        )
        for place, some in enumerate(cities)
    ]
    return Script((*turns, Turn(reasoning="I know all four.", text="Oslo is the coldest.")))


@contextmanager
def town(*providers: str) -> Iterator[House]:
    keeper = ReplayKeeper(MemoryStore())
    try:
        with house([Remembering(provider, script=script()) for provider in providers], replay=keeper) as running:
            yield running
    finally:
        keeper.close()


def ask(running: House, dialect: str, model: str, talk: Conversation, key: str = "k") -> httpx.Response:
    """Return the answer to a conversation."""
    client = CLIENTS[dialect]
    headers = {"authorization": f"Bearer {key}"}
    answer = httpx.post(
        running.address + client.path(model), json=client.write(talk, model), headers=headers, timeout=PATIENCE
    )
    assert answer.status_code == 200, answer.text
    return answer


def loop(running: House, dialect: str, provider: str, how: str, *, late: bool) -> None:
    """Go through the whole tool loop with a client that writes the conversation anew before each request."""
    client, talk = CLIENTS[dialect], Conversation(QUESTION)
    for _ in range(len(THOUGHTS) + 1):
        answer = ask(running, dialect, f"{provider}/{MODELS[provider]}", mutated(talk, how, client, late=late))
        talk = Conversation(talk.question, (*talk.turns, take(client, answer.json())))
    assert talk.turns[-1].texts == ("Oslo is the coldest.",)


@pytest.mark.sampled(60)
@pytest.mark.parametrize("how", list(MUTATORS))
@pytest.mark.parametrize("provider", list(MODELS))
@pytest.mark.parametrize("dialect", list(CLIENTS))
def test_all_thinking_comes_back_to_the_provider_that_thought_it(dialect: str, provider: str, how: str) -> None:
    for late in (False, True):
        with town(provider) as running:
            loop(running, dialect, provider, how, late=late)
            # A server of Ollama is asked for facts about its model too.
            asked = [one.raw for one in running.arrived(provider) if not one.path.endswith("/api/show")]
            assert len(asked) == len(THOUGHTS) + 1, "no request was refused"
            last = asked[-1]
            for place, thought in enumerate(THOUGHTS):
                if provider in PLAIN:
                    # A client of the provider's own dialect may write the thinking as it likes.
                    native = (dialect, provider) in NATIVE and how in WRITTEN
                    expected = WRITTEN[how] if native else thought
                    assert expected.encode() in last or thought.encode() in last, f"thought {place}, late={late}"
                else:
                    sent = sealed_in(running.sent(provider, place))
                    assert sent
                    assert set(sent) <= set(sealed_in(last)), f"thought {place}, late={late}"
