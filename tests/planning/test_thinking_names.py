"""A model's name with `-thinking` behind it is the model with thinking on, where no model of its own is called so."""

from __future__ import annotations

import msgspec
import pytest

from bardo.planning.model_names import ResolvedModel, with_effort, with_thinking_name
from bardo.planning.route import Provider
from bardo.surfaces.library.decoding import provider_row
from bardo.values.request import Message, ReasoningPolicy, Request


def serving(name: str, *models: str) -> Provider:
    row = provider_row(name)
    return Provider(id=name, row=row, base_url=row.base_url, models=models)


ANTHROPIC, ROUTER = serving("anthropic"), serving("openrouter", "qwen/qwen3-max", "moonshotai/kimi-k2")
MEANT = {
    "claude-sonnet-4-5-thinking": "claude-sonnet-4-5",
    "anthropic/claude-sonnet-4-5-thinking": "anthropic/claude-sonnet-4-5",
    "claude-opus-4-8-thinking": "claude-opus-4-8",
    "lab/my-model-thinking": "lab/my-model",
    "openrouter/lab/my-model-thinking": "openrouter/lab/my-model",
}
OWN = (
    "claude-sonnet-4-5",
    "moonshotai/kimi-k2-thinking",
    "qwen3-next-80b-a3b-thinking",
    "lab/listed-thinking",
    "openrouter/lab/listed-thinking",
    "somebody/else-thinking",
    "gpt-4o-thinking",
    "-thinking",
)


def name_of(model: str) -> ResolvedModel:
    router = msgspec.structs.replace(
        ROUTER, models=(*ROUTER.models, "lab/my-model", "lab/listed", "lab/listed-thinking")
    )
    return with_thinking_name(ResolvedModel(model), [ANTHROPIC, router])


@pytest.mark.parametrize(("name", "model"), MEANT.items())
def test_a_name_with_thinking_behind_it_is_the_model_with_thinking_on(name: str, model: str) -> None:
    assert name_of(name) == ResolvedModel(model, thinks=True, by_lists=True)


@pytest.mark.parametrize("name", OWN)
def test_a_name_of_a_model_of_its_own_is_itself(name: str) -> None:
    assert name_of(name) == ResolvedModel(name, by_lists=name.endswith("-thinking"))


def test_where_nobody_is_configured_the_catalogs_makers_are_meant() -> None:
    assert with_thinking_name(ResolvedModel("claude-sonnet-4-5-thinking"), ()).model == "claude-sonnet-4-5"
    assert with_thinking_name(ResolvedModel("kimi-k2-thinking"), ()) == ResolvedModel("kimi-k2-thinking", by_lists=True)


def test_an_effort_behind_the_name_is_said_already() -> None:
    found = ResolvedModel("claude-sonnet-4-5-thinking", suffix="high")
    assert with_thinking_name(found, [ANTHROPIC]) == found


@pytest.mark.parametrize(
    ("asked", "mode"),
    [(None, "auto"), (ReasoningPolicy(mode="off"), None), (ReasoningPolicy(mode="effort", effort="low"), None)],
)
def test_thinking_is_on_where_the_caller_asks_for_none_itself(asked: ReasoningPolicy | None, mode: str | None) -> None:
    request = Request(model="m-thinking", messages=(Message("user", ()),), reasoning=asked)
    policy = with_effort(request, ResolvedModel("m", thinks=True)).options.reasoning
    assert (None if policy is None else policy.mode) == mode
