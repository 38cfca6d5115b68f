"""Names of the operator's own for models, and how much these think: read from the file, resolved, asked for and listed."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.planning.model_names import Alias, Aliases, with_effort
from bardo.simulators import Fault
from bardo.values.errors import ConfigError
from bardo.values.request import Message, ReasoningPolicy, Request
from support.any_model import Simulator
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


def test_a_name_may_stand_for_several_models_in_order() -> None:
    aliases = Aliases(
        {
            "small": Alias(model="lab/a", fallbacks=("pair", "cloud/d")),
            "pair": Alias(model="cloud/b", fallbacks=("cloud/c", "lab/a")),
            "claude-*": Alias(model="lab/*", fallbacks=("claude-*", "cloud/*-mini")),
            "main": Alias(model="small", fallbacks=("cloud/e",)),
        }
    )
    assert (aliases.find("small").model, aliases.find("small").fallbacks) == (
        "lab/a",
        ("cloud/b", "cloud/c", "cloud/d"),
    )
    found = aliases.find("claude-x")
    assert (found.model, found.fallbacks) == ("lab/x", ("claude-x", "cloud/x-mini"))
    found = aliases.find("main")
    assert (found.model, found.fallbacks) == ("lab/a", ("cloud/b", "cloud/c", "cloud/d", "cloud/e"))


def test_a_name_stands_for_a_bounded_number_of_models() -> None:
    table = {f"a{place}": Alias(model=f"a{place + 1}", fallbacks=(f"a{place + 1}",) * 3) for place in range(12)}
    with pytest.raises(ConfigError, match="more than 32 models"):
        Aliases(table)


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
        ('[aliases]\na = ["m", "b"]\nb = ["n", "a"]', "refer to each other"),
        ("[aliases]\na = []", 'model = ["provider/model"'),
        ('[aliases]\na = ["m", ""]', "names no model"),
        ('[aliases]\na = ["m", "n*"]', "names no model"),
        ('[aliases]\na = ["m", 7]', "a text in quotes"),
        ('[aliases]\na = { model = ["m"], fallbacks = ["n"] }', "fallbacks twice"),
        ('[aliases]\na = ["m", "n:high"]', "an effort of its own"),
        ('[aliases]\na = ["m", "b"]\nb = { model = "n", effort = "low" }', "an effort of its own"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text)
    assert said in str(caught.value)


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "gemini"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_models_of_an_alias_are_asked_in_order(client: str, stream: bool) -> None:
    table = (
        '[aliases]\n"claude-haiku-*" = ["nobody-serves-this", "deepseek/m1", "mistral/m2"]\nnone = ["lost-1", "lost-2"]'
    )
    busy = Simulator("deepseek", fault=Fault("status", status=503))
    with house([busy, Simulator("mistral")], toml=table) as running:
        answer = ask(running.address, client, "claude-haiku-4-5", stream=stream)
        assert (answer.status, answer.headers["x-bardo-model"]) == (200, "m2")
        assert {"model", "provider"} <= set(answer.headers["x-bardo-degraded"].split(", "))
        told = {one["what"]: one for one in running.log.of_model("claude-haiku-4-5").degraded}
        assert told["model"]["asked"] == "nobody-serves-this"
        assert (told["provider"]["asked"], told["provider"]["sent"]) == ("deepseek/m1", "mistral/m2")
        refused = ask(running.address, client, "none", stream=stream)
        assert refused.status == 404
        assert "'lost-1'" in refused.text


def test_a_gateway_answers_to_its_aliases() -> None:
    table = '[aliases]\nbest = { model = "deepseek/m1", effort = "high" }\n"claude-haiku-*" = "deepseek/m1"\nlost = "nowhere/m"'
    with house([Simulator("deepseek")], toml=table) as running, closing(openai_client(running.address)) as client:
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


def test_a_gateway_turns_thinking_on_for_a_name_with_thinking_behind_it() -> None:
    with house([Simulator("anthropic")]) as running:
        for name in ("claude-sonnet-4-5", "claude-sonnet-4-5-thinking", "anthropic/claude-sonnet-4-5-thinking"):
            assert ask(running.address, "openai_chat", name).status == 200
            sent = running.last("anthropic")
            assert sent["model"] == "claude-sonnet-4-5"
            assert ("thinking" in sent) == name.endswith("-thinking")
