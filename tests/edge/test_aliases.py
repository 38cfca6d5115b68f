"""Names of the operator's own for models, and how much these think: read from the file, resolved, asked for and listed."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest

from bardo.edge.directory import Directory
from bardo.edge.settings import parse_settings
from bardo.engine.aliases import Alias, Aliases, with_effort
from bardo.simulators import Simulator
from bardo.values.errors import ConfigError
from bardo.values.request import Message, ReasoningPolicy, Request
from support.gateway import house
from support.sdk import openai_client
from support.talk import ask


def policy_of(model: str, table: dict[str, Alias], asked: ReasoningPolicy | None = None) -> Any:
    request = Request(model=model, messages=(Message("user", ()),), reasoning=asked)
    policy = with_effort(request, Aliases(table).find(model)).options.reasoning
    return None if policy is None else policy.effort or policy.mode


def test_names_lead_to_models() -> None:
    aliases = Aliases(
        {
            "fast": Alias(model="small"),
            "claude-haiku-*": Alias(model="fast"),
            "m-*-thinking": Alias(model="m-*", effort="high"),
        }
    )
    assert aliases.find("claude-haiku-4-5").model == "small"
    assert aliases.find("m-2-thinking").model == "m-2"
    assert aliases.find("other").model == "other"
    assert (aliases.find("gpt-5:high").model, aliases.find("gpt-5:high").suffix) == ("gpt-5", "high")
    assert aliases.find("llama:8b").model == "llama:8b"


def test_an_effort_is_a_default_or_forced_or_a_bound() -> None:
    low, high = (ReasoningPolicy(mode="effort", effort=one) for one in ("low", "high"))
    budget = ReasoningPolicy(mode="budget", budget=9000)
    assert policy_of("a", {"a": Alias(model="m", effort="high")}) == "high"
    assert policy_of("a", {"a": Alias(model="m", effort="high")}, low) is None
    assert policy_of("a", {"a": Alias(model="m", forced_effort="off")}, high) == "off"
    assert policy_of("a", {"a": Alias(model="m", max_effort="medium")}, high) == "medium"
    assert policy_of("a", {"a": Alias(model="m", max_effort="medium")}, low) is None
    assert policy_of("a", {"a": Alias(model="m", max_effort="medium")}, budget) == "medium"
    assert policy_of("a", {"a": Alias(model="m", max_effort="medium")}) is None
    assert policy_of("m:low", {"m": Alias(model="m", max_effort="medium")}, high) == "low"
    assert policy_of("gpt-5", {"gpt-*": Alias(model="gpt-*", forced_effort="low")}, high) == "low"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[aliases]\na = "b"\nb = "a"', "refer to each other"),
        ('[aliases]\n"a*" = "aa*"', "refer to each other"),
        ('[aliases]\na = { model = "m", efort = "low" }', "did you mean 'effort'"),
        ('[aliases]\na = { model = "m", effort = "much" }', "minimal"),
        ('[aliases]\na = { effort = "low" }', "'model' is missing"),
        ('[aliases]\n"a*b*" = "m"', "more than one"),
        ('aliases = "a"', "write [aliases]"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text)
    assert said in str(caught.value)


def test_a_gateway_answers_to_its_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse_settings(
        '[aliases]\nbest = { model = "deepseek/m1", effort = "high" }\n"claude-haiku-*" = "deepseek/m1"\nlost = "nowhere/m"'
    )
    plain = Directory.of

    def with_aliases(configured: Any, *given: Any, **named: Any) -> Directory:
        directory = plain(configured, *given, clock=named.get("clock", time.monotonic))
        directory.aliases = Aliases(settings.aliases)
        return directory

    monkeypatch.setattr(Directory, "of", with_aliases)
    with house([Simulator("deepseek")]) as running, closing(openai_client(running.address)) as client:
        answer = ask(running.address, "anthropic_messages", "claude-haiku-4-5-20251001")
        assert (answer.status, answer.json["model"], answer.headers["x-bardo-model"]) == (
            200,
            "claude-haiku-4-5-20251001",
            "m1",
        )
        assert "reasoning_effort" not in running.last("deepseek")
        ask(running.address, "openai_chat", "best")
        assert running.last("deepseek")["model"] == "m1"
        assert running.last("deepseek")["thinking"] == {"type": "enabled"}
        ask(running.address, "openai_chat", "deepseek/m1:off")
        assert running.last("deepseek")["thinking"] == {"type": "disabled"}
        listed = {model.id for model in client.models.list()}
    assert "best" in listed
    assert not listed & {"lost", "claude-haiku-*"}
