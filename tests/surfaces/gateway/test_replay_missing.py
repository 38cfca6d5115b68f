"""Claude refuses results whose calls have lost their thinking: recall puts it back, and a loop that nobody knows is refused once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Incoming
from bardo.simulators.exchange import Refusal
from support.gateway import House, Remembering, house
from support.patience import PATIENCE
from surfaces.gateway.looping_clients import Client, Drops, open_client
from surfaces.gateway.replay_loops import CITIES, script

MODEL = "anthropic/claude-sonnet-4-5"


class StrictClaude(Remembering):
    """Claude as it refuses, while it thinks, results of tools whose calls have no thinking before them."""

    def _answer(self, provider: Any, incoming: Incoming) -> Any:
        body: Any = incoming.fields
        messages = body["messages"]
        calling = [place for place, one in enumerate(messages) if one["role"] == "assistant"][-1:]
        thinks = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
        if thinks and calling and isinstance(messages[-1]["content"], list):
            found = messages[calling[0]]["content"][0]["type"]
            answers = messages[-1]["content"][0]["type"] == "tool_result"
            if answers and found not in ("thinking", "redacted_thinking"):
                words = f"messages.{calling[0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`."
                raise Refusal("bad_value", words)
        return super()._answer(provider, incoming)


@contextmanager
def strict_claude(*, keeps: bool) -> Iterator[House]:
    keeper = ReplayKeeper(MemoryStore() if keeps else None)
    try:
        with house([StrictClaude("anthropic", script=script())], replay=keeper) as running:
            yield running
    finally:
        keeper.close()


def ask(running: House, client: Client, **changes: Any) -> str:
    """Ask once, keep of the reply all but its thinking, and return what was told of losses."""
    answer = httpx.post(running.address + client.path, json=client.ask(client.history) | changes, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    client.take(answer.json(), client.history, "thinking")
    return str(answer.headers.get("x-bardo-degraded", ""))


@pytest.mark.parametrize("dialect", ["messages", "chat", "responses", "gemini"])
def test_what_a_client_drops_is_put_back_before_it_is_refused(dialect: str) -> None:
    with strict_claude(keeps=True) as running:
        client = open_client(dialect, MODEL)
        told = [ask(running, client) for _ in range(len(CITIES) + 1)]
        assert len(running.arrived("anthropic")) == len(told)
        assert not any("reasoning" in one for one in told)


def test_a_loop_that_was_refused_for_its_missing_thinking_is_not_refused_again() -> None:
    with strict_claude(keeps=False) as running:
        client = open_client("messages", MODEL)
        told = [ask(running, client) for _ in range(len(CITIES))]
        # The second request was refused once, and repeated without thinking.
        assert len(running.arrived("anthropic")) == len(told) + 1
        assert ["reasoning" in one for one in told] == [False, True, True]
        bodies: list[Any] = [one.body for one in running.arrived("anthropic")]
        thinking = [body["thinking"]["type"] for body in bodies]
        assert thinking == ["enabled", "enabled", "disabled", "disabled"]


def test_behind_a_new_question_the_model_thinks_again_and_another_loop_is_asked_as_its_client_asks() -> None:
    with strict_claude(keeps=False) as running:
        client = open_client("messages", MODEL)
        for _ in range(len(CITIES) + 1):
            ask(running, client)
        client.history.append({"role": "user", "content": "And tomorrow?"})
        assert "reasoning" not in ask(running, client)
        assert running.last("anthropic")["thinking"]["type"] == "enabled"
        before = len(running.arrived("anthropic"))
        other = open_client("messages", MODEL)
        ask(running, other)
        ask(running, other)
        assert len(running.arrived("anthropic")) == before + 3


def test_a_loop_with_thinking_that_the_client_keeps_goes_on_thinking_after_a_refusal() -> None:
    with strict_claude(keeps=False) as running:
        client = open_client("messages", MODEL)
        ask(running, client)
        bare = list(client.history)
        answer = httpx.post(running.address + client.path, json=client.ask(bare), timeout=PATIENCE)
        assert "reasoning" in answer.headers["x-bardo-degraded"]
        said = running.simulators["anthropic"]
        assert isinstance(said, Remembering)
        whole = open_client("messages", MODEL)
        first = httpx.Response(200, content=bytes(said.sent[0])).json()
        whole.take(first, whole.history, "nothing")
        assert "reasoning" not in ask(running, whole)
        assert running.last("anthropic")["thinking"]["type"] == "enabled"


@pytest.mark.parametrize("dialect", ["messages", "chat", "responses", "gemini"])
@pytest.mark.parametrize("drops", ["nothing", "thinking"])
def test_a_loop_whose_client_turns_thinking_off_goes_on_without_what_was_thought(dialect: str, drops: Drops) -> None:
    off: dict[str, dict[str, Any]] = {
        "messages": {"thinking": {"type": "disabled"}},
        "chat": {"reasoning_effort": "none"},
        "responses": {"reasoning": {"effort": "none"}},
        "gemini": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
    }
    with strict_claude(keeps=True) as running:
        client = open_client(dialect, MODEL)
        first = httpx.post(running.address + client.path, json=client.ask(client.history), timeout=PATIENCE)
        client.take(first.json(), client.history, drops)
        told = ask(running, client, **off[dialect])
        sent = running.last("anthropic")
        assert sent["thinking"] == {"type": "disabled"}
        assert "thinking" not in {block["type"] for block in sent["messages"][1]["content"]}
        assert "reasoning" in told
