"""What a maker's own API refuses is no rule of another server that runs the same weights, or takes the model's name."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.reasoning.control import ControlTarget, fit_parameters, know, plan_reasoning
from bardo.structured.modes import SchemaTarget, rungs_of
from bardo.values.request import ReasoningPolicy, Request, Sampling, ToolChoice

LOW = ReasoningPolicy(mode="effort", effort="low")
FORCED = ToolChoice(mode="named", name="answer")
OWN_SERVERS = ("vllm", "sglang", "llama-server", "ollama-openai", "lmstudio", "nvidia-nim")
HOSTS = ("openai-compatible", "groq", "cerebras", "together", "fireworks", "venice", "openrouter", "huggingface")
OPEN_WEIGHTS = (
    "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V4-Flash",
    "moonshotai/Kimi-K2-Thinking",
    "moonshotai/Kimi-K2.5",
    "moonshotai/Kimi-K3",
)


def fitted(provider: str, model: str, *, dialect: str = "openai_chat", **asked: Any) -> tuple[Request, list[str]]:
    """Return the request that is sent and the names of what differs, of a model that thinks by default."""
    request = Request(model=model, messages=(), sampling=Sampling(**asked), tool_choice=FORCED)
    plan = plan_reasoning(None, ControlTarget(provider, dialect, model))
    done = fit_parameters(request, plan)
    return done.request, [one.what for one in done.degraded]


@pytest.mark.parametrize("model", OPEN_WEIGHTS)
@pytest.mark.parametrize("provider", [*OWN_SERVERS, *HOSTS])
def test_sampling_and_a_forced_tool_reach_open_weights_that_others_serve(provider: str, model: str) -> None:
    request, lost = fitted(provider, model, temperature=0, top_p=0.5)
    assert (request.sampling.temperature, request.sampling.top_p) == (0, 0.5)
    if provider != "ollama-openai":
        assert request.tool_choice == FORCED
        assert lost == []


@pytest.mark.parametrize("alias", ["claude-sonnet-4-8", "claude-sonnet-4-5", "gpt-5", "o3-mini", "grok-4", "gpt-5.2"])
@pytest.mark.parametrize("provider", OWN_SERVERS)
@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages", "openai_responses"])
def test_a_famous_name_given_to_ones_own_model_brings_no_rule(provider: str, dialect: str, alias: str) -> None:
    request, lost = fitted(provider, alias, dialect=dialect, temperature=0.2, top_p=0.5)
    assert (request.sampling.temperature, request.sampling.top_p) == (0.2, 0.5)
    assert "temperature" not in lost


@pytest.mark.parametrize("provider", ["llama-server", "vllm", "deepseek", "moonshot"])
def test_temperatures_above_one_end_only_where_anthropic_serves(provider: str) -> None:
    request, _ = fitted(provider, "my-model", dialect="anthropic_messages", temperature=1.5)
    assert request.sampling.temperature == 1.5
    request, _ = fitted("anthropic", "my-model", dialect="anthropic_messages", temperature=1.5)
    assert request.sampling.temperature == 1


def test_the_makers_own_api_keeps_its_rules() -> None:
    for provider, model in (("deepseek", "deepseek-reasoner"), ("moonshot", "kimi-k2.5"), ("moonshot", "kimi-k3")):
        request, lost = fitted(provider, model, temperature=0)
        assert request.sampling.temperature is None
        assert "temperature" in lost


def test_a_maker_whose_models_are_not_published_is_behind_every_reseller() -> None:
    for provider in ("openrouter", "venice", "openai-compatible"):
        request, _ = fitted(provider, "anthropic/claude-opus-4.8", temperature=0)
        assert request.sampling.temperature is None


def test_the_limits_of_a_makers_api_are_not_those_of_its_weights() -> None:
    for provider, row in (("cohere", 32_000), ("vllm", None), ("together", None)):
        known = know(ControlTarget(provider, "openai_chat", "command-a-reasoning-08-2025"))
        assert known.row is not None
        assert known.row.output_limit == row
    asked = ReasoningPolicy(mode="budget", budget=40_000)
    assert plan_reasoning(asked, ControlTarget("vllm", "openai_chat", "command-a-reasoning")).budget == 40_000


def test_an_unknown_server_of_the_responses_dialect_has_no_rules_of_openai() -> None:
    request = Request(model="m", messages=(), sampling=Sampling(temperature=2.5, top_k=20), reasoning=LOW)
    plan = plan_reasoning(LOW, ControlTarget("responses-compatible", "openai_responses", "m"))
    assert fit_parameters(request, plan).request.sampling == request.sampling


@pytest.mark.parametrize(
    ("provider", "model", "other"),
    [
        ("openai-compatible", "gpt-4", "my-model"),
        ("openai-compatible", "o1-mini", "my-model"),
        ("openrouter", "openai/gpt-oss-120b", "qwen/qwen3-32b"),
        ("openrouter", "google/gemma-3-27b-it", "qwen/qwen3-32b"),
    ],
)
def test_a_schema_is_asked_for_as_the_server_takes_it_whatever_the_name(provider: str, model: str, other: str) -> None:
    row = builtin().provider(provider)
    assert row is not None
    named, plain = (SchemaTarget(provider=provider, model=one, dialect=row.dialect) for one in (model, other))
    assert rungs_of(named) == rungs_of(plain)
