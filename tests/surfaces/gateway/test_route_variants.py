"""Steps of a route that ask for a variant of models (003, "Estimated daily costs by configuration": "OpenRouter :floor")."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.simulators import Script, Turn
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.gateway import house
from support.talk import ask

TURN = Turn(text="done", usage=Usage(input_tokens=1000, answer_tokens=100))


def model_sent(preset: str, listed: str, asked: str, toml: str) -> Any:
    with house([Simulator(preset, script=Script(turns=(TURN,)), models=[listed])], toml=toml) as it:
        ask(it.address, "openai_chat", asked, stream=False)
        return it.last(preset)["model"]


@pytest.mark.parametrize(
    ("preset", "subsystem", "listed", "sent"),
    [
        ("openrouter", "context", "qwen/qwen-plus", "qwen/qwen-plus:floor"),
        ("openrouter", "dream", "deepseek/deepseek-r1", "deepseek/deepseek-r1:floor"),
        ("openrouter", "risk", "anthropic/claude-opus-4-6", "anthropic/claude-opus-4-6"),
        ("openai_chat", "context", "qwen-plus", "qwen-plus"),
    ],
)
def test_003_background_work_goes_to_the_cheapest_servers_where_a_provider_has_them(
    preset: str, subsystem: str, listed: str, sent: str
) -> None:
    assert model_sent(preset, listed, f"bardo/{subsystem}", "[golem]\nenabled = true\n") == sent


@pytest.mark.parametrize(
    ("variant", "listed", "sent"),
    [("nitro", "qwen/q", "qwen/q:nitro"), ("floor", "qwen/q:free", "qwen/q:free"), ("none_such", "qwen/q", "qwen/q")],
    ids=["of the operator's route", "of an id that names another", "that the provider has not"],
)
def test_a_route_of_the_operators_own_may_ask_for_a_variant(variant: str, listed: str, sent: str) -> None:
    toml = f'[workloads.night]\nroute = [{{ models = ["q*"], variant = "{variant}" }}]\n'
    assert model_sent("openrouter", listed, "bardo/night", toml) == sent
