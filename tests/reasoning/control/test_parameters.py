"""Nothing is sent that the target is known to refuse, and each difference is told."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.reasoning.control import ControlTarget, Fitted, fit_parameters, plan_reasoning
from bardo.values.errors import Unsupported
from bardo.values.request import ReasoningPolicy, Request, Sampling, Tool, ToolChoice

LOW = ReasoningPolicy(mode="effort", effort="low")
OFF = ReasoningPolicy(mode="off")
HIGH = ReasoningPolicy(mode="effort", effort="high")
TOKENS = ReasoningPolicy(mode="budget", budget=2000)

CLAUDE = ("anthropic", "anthropic_messages")


def fit(
    place: str | tuple[str, str],
    model: str,
    policy: ReasoningPolicy | None = None,
    *,
    limit: int | None = None,
    **asked: Any,
) -> Fitted:
    """Fit a request whose sampling has what is `asked`; other fields of a request go by their names."""
    provider, dialect = place if isinstance(place, tuple) else (place, "openai_chat")
    fields = {name: asked.pop(name) for name in ("tool_choice", "tools", "extra", "choices") if name in asked}
    request = Request(
        model=model, messages=(), sampling=Sampling(**asked), max_output_tokens=limit, reasoning=policy, **fields
    )
    return fit_parameters(
        request, plan_reasoning(policy, ControlTarget(provider, dialect, model), max_output_tokens=limit)
    )


def kept(fitted: Fitted) -> dict[str, Any]:
    sampling = fitted.request.sampling
    values = {name: getattr(sampling, name) for name in sampling.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None and value != ()}


def lost(fitted: Fitted) -> list[str]:
    return [one.what for one in fitted.degraded]


CASES: list[
    tuple[str, str | tuple[str, str], str, ReasoningPolicy | None, dict[str, Any], dict[str, Any], list[str]]
] = [
    (
        "Claude 4.8 fixes its sampling",
        CLAUDE,
        "claude-opus-4-8",
        None,
        {"temperature": 0.3, "top_k": 5},
        {},
        ["temperature", "top_k"],
    ),
    ("a default says nothing", CLAUDE, "claude-opus-4-8", None, {"temperature": 1.0, "top_p": 1.0}, {}, []),
    (
        "Claude 4.5 samples while it does not think",
        CLAUDE,
        "claude-sonnet-4-5",
        None,
        {"temperature": 0.3, "top_k": 5},
        {"temperature": 0.3, "top_k": 5},
        [],
    ),
    (
        "Claude 4.5 does not while it thinks",
        CLAUDE,
        "claude-sonnet-4-5",
        LOW,
        {"temperature": 0.3, "top_k": 5},
        {},
        ["temperature", "top_k"],
    ),
    (
        "Claude keeps a high top_p while it thinks",
        CLAUDE,
        "claude-sonnet-4-5",
        LOW,
        {"top_p": 0.97},
        {"top_p": 0.97},
        [],
    ),
    ("Claude takes no low top_p while it thinks", CLAUDE, "claude-sonnet-4-5", LOW, {"top_p": 0.5}, {}, ["top_p"]),
    (
        "Claude 4.5 takes one of two",
        CLAUDE,
        "claude-sonnet-4-5",
        None,
        {"temperature": 0.3, "top_p": 0.5},
        {"temperature": 0.3},
        ["top_p"],
    ),
    (
        "Claude 4 takes both",
        CLAUDE,
        "claude-sonnet-4-0",
        None,
        {"temperature": 0.3, "top_p": 0.5},
        {"temperature": 0.3, "top_p": 0.5},
        [],
    ),
    (
        "Claude's temperatures end at 1",
        CLAUDE,
        "claude-3-5-haiku",
        None,
        {"temperature": 1.6},
        {"temperature": 1.0},
        ["temperature"],
    ),
    (
        "Anthropic has no seed",
        CLAUDE,
        "claude-sonnet-4-5",
        None,
        {"seed": 7, "presence_penalty": 0.5},
        {},
        ["presence_penalty", "seed"],
    ),
    (
        "Claude's rules go with it",
        "openrouter",
        "anthropic/claude-opus-4.8",
        None,
        {"temperature": 0.3},
        {},
        ["temperature"],
    ),
    (
        "OpenAI's reasoning models take no sampling",
        "openai-chat",
        "o3",
        None,
        {"temperature": 0.3, "stop": ("x",)},
        {},
        ["temperature", "stop"],
    ),
    ("gpt-5.1 samples at none", "openai-chat", "gpt-5.1", OFF, {"temperature": 0.3}, {"temperature": 0.3}, []),
    ("gpt-5.1 does not while it thinks", "openai-chat", "gpt-5.1", LOW, {"temperature": 0.3}, {}, ["temperature"]),
    ("gpt-5.1 never has penalties", "openai-chat", "gpt-5.1", OFF, {"presence_penalty": 0.3}, {}, ["presence_penalty"]),
    (
        "gpt-4o is free",
        "openai-chat",
        "gpt-4o",
        None,
        {"temperature": 0.3, "seed": 7},
        {"temperature": 0.3, "seed": 7},
        [],
    ),
    (
        "Responses has no seed",
        ("openai", "openai_responses"),
        "gpt-4o",
        None,
        {"seed": 7, "stop": ("x",)},
        {},
        ["seed", "stop"],
    ),
    (
        "DeepSeek's sampling is void while it thinks",
        "deepseek",
        "deepseek-v4-flash",
        None,
        {"temperature": 0.3},
        {},
        ["temperature"],
    ),
    (
        "DeepSeek raises top_p while it thinks",
        "deepseek",
        "deepseek-v4-flash",
        None,
        {"top_p": 0.5},
        {"top_p": 0.95},
        ["top_p"],
    ),
    (
        "DeepSeek samples while it does not",
        "deepseek",
        "deepseek-v4-flash",
        OFF,
        {"temperature": 0.3},
        {"temperature": 0.3},
        [],
    ),
    ("Kimi's temperature is fixed", "moonshot", "kimi-k2.5", None, {"temperature": 0.3}, {}, ["temperature"]),
    ("moonshot-v1 is free", "moonshot", "moonshot-v1-8k", None, {"temperature": 0.3}, {"temperature": 0.3}, []),
    (
        "Groq has no penalties",
        "groq",
        "llama-3.3-70b-versatile",
        None,
        {"frequency_penalty": 0.3, "seed": 7},
        {"seed": 7},
        ["frequency_penalty"],
    ),
    (
        "xAI's reasoning models take no stop",
        "xai",
        "grok-4.5",
        None,
        {"stop": ("x",), "temperature": 0.3},
        {"temperature": 0.3},
        ["stop"],
    ),
    ("Z.ai takes one stop", "zai", "glm-4.6", None, {"stop": ("a", "b")}, {"stop": ("a",)}, ["stop"]),
    (
        "Cohere's penalties go from 0 to 1",
        ("cohere", "cohere"),
        "command-r",
        None,
        {"presence_penalty": -0.5},
        {"presence_penalty": 0.0},
        ["presence_penalty"],
    ),
    (
        "Cohere's top_p stays below 1",
        ("cohere", "cohere"),
        "command-r",
        None,
        {"top_p": 1, "top_k": 900, "temperature": 1.5},
        {"top_p": 0.99, "top_k": 500, "temperature": 1.5},
        ["top_p", "top_k"],
    ),
    (
        "Cohere takes five stops",
        ("cohere", "cohere"),
        "command-r",
        None,
        {"stop": tuple("abcdef")},
        {"stop": tuple("abcde")},
        ["stop"],
    ),
    (
        "Qwen has presence only",
        "qwen",
        "qwen-plus",
        None,
        {"presence_penalty": 0.5, "frequency_penalty": 0.5},
        {"presence_penalty": 0.5},
        ["frequency_penalty"],
    ),
    (
        "MiniMax's temperatures begin above 0",
        "minimax",
        "MiniMax-M2.5",
        None,
        {"temperature": 0.0},
        {"temperature": 0.01},
        ["temperature"],
    ),
    (
        "BlockRun's bridge drops the rest",
        "blockrun",
        "openai/gpt-4o",
        None,
        {"seed": 7, "stop": ("x",), "temperature": 0.3},
        {"temperature": 0.3},
        ["seed", "stop"],
    ),
    (
        "Venice takes all",
        "venice",
        "qwen3-6-27b",
        None,
        {"min_p": 0.1, "top_k": 5, "seed": 7},
        {"min_p": 0.1, "top_k": 5, "seed": 7},
        [],
    ),
    ("vLLM takes all", "vllm", "Qwen/Qwen3-32B", None, {"min_p": 0.1, "top_k": 5}, {"min_p": 0.1, "top_k": 5}, []),
    ("min_p becomes top_p", "openai-chat", "gpt-4o", None, {"min_p": 0.1}, {"top_p": 0.9}, ["min_p"]),
    ("top_k becomes top_p", "xai", "grok-4.5", None, {"top_k": 40}, {"top_p": 0.9}, ["top_k"]),
    ("Mistral takes top_k", "mistral", "mistral-large-latest", None, {"top_k": 40}, {"top_k": 40}, []),
    ("greedy stays greedy", "openai-chat", "gpt-4o", None, {"top_k": 1}, {"top_p": 0.01}, ["top_k"]),
    ("a broad top_k is no limit", "openai-chat", "gpt-4o", None, {"top_k": 500}, {}, ["top_k"]),
    (
        "the caller's top_p stays",
        "openai-chat",
        "gpt-4o",
        None,
        {"min_p": 0.1, "top_p": 0.5},
        {"top_p": 0.5},
        ["min_p"],
    ),
    ("nothing stands in where top_p is refused", "openai-chat", "o3", None, {"min_p": 0.1}, {}, ["min_p"]),
    (
        "Bedrock's Claude does not sample while it thinks",
        ("bedrock", "bedrock_converse"),
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        LOW,
        {"temperature": 0.3},
        {},
        ["temperature"],
    ),
]


@pytest.mark.parametrize(
    ("place", "model", "policy", "asked", "sent", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_parameter_is_sent_as_the_model_takes_it(
    place: str | tuple[str, str],
    model: str,
    policy: ReasoningPolicy | None,
    asked: dict[str, Any],
    sent: dict[str, Any],
    told: list[str],
) -> None:
    fitted = fit(place, model, policy, **asked)
    assert kept(fitted) == sent
    assert sorted(lost(fitted)) == sorted(told)


def test_a_stand_in_says_what_it_stands_for() -> None:
    (one,) = fit("openai-chat", "gpt-4o", min_p=0.1).degraded
    assert (one.asked, one.sent) == (0.1, {"top_p": 0.9})


def test_a_parameter_goes_by_the_providers_own_name() -> None:
    assert fit("mistral", "mistral-large-latest", seed=7).fields == {"random_seed": 7}
    assert fit("llama-server", "x", extra={"repetition_penalty": 1.1}).fields == {"repeat_penalty": 1.1}


def test_fields_bardo_has_no_word_for_are_taken_out_where_they_are_refused() -> None:
    fitted = fit("openai-chat", "o3", extra={"logprobs": True, "logit_bias": {"1": 2}, "verbosity": "low"})
    assert fitted.request.extra == {"verbosity": "low"}
    assert lost(fitted) == ["logprobs", "logit_bias"]


def test_one_answer_where_there_is_one() -> None:
    fitted = fit("groq", "llama-3.3-70b-versatile", choices=3)
    assert (fitted.request.choices, lost(fitted)) == (1, ["n"])


def test_a_whole_number_stays_whole_within_its_limits() -> None:
    sampling = fit(("cohere", "cohere"), "command-r", top_k=900).request.sampling
    assert (sampling.top_k, type(sampling.top_k)) == (500, int)


def test_kimi_takes_a_named_tool_and_no_other_force() -> None:
    one, two = Tool(name="answer", schema={}), Tool(name="ask", schema={})
    required = ToolChoice(mode="required")
    assert fit("moonshot", "kimi-k3", tool_choice=FORCED, tools=(one, two)).request.tool_choice == FORCED
    assert fit("moonshot", "kimi-k3", tool_choice=required, tools=(one,)).request.tool_choice == FORCED
    fitted = fit("moonshot", "kimi-k3", tool_choice=required, tools=(one, two))
    assert (fitted.request.tool_choice, lost(fitted)) == (ToolChoice(mode="auto"), ["tool_choice"])


def test_nova_takes_no_limit_at_high() -> None:
    place = ("bedrock", "bedrock_converse")
    high = fit(place, "us.amazon.nova-2-lite-v1:0", HIGH, limit=500, temperature=0.3)
    assert (high.request.max_output_tokens, kept(high)) == (None, {})
    assert sorted(lost(high)) == ["max_output_tokens", "temperature"]
    assert fit(place, "us.amazon.nova-2-lite-v1:0", LOW, limit=500).request.max_output_tokens == 500


def test_the_output_limit_is_the_plans() -> None:
    assert fit(CLAUDE, "claude-sonnet-4-5", TOKENS).request.max_output_tokens == 8192 + 2000


FORCED = ToolChoice(mode="named", name="answer")


@pytest.mark.parametrize(
    ("place", "model", "policy"),
    [
        (CLAUDE, "claude-sonnet-4-5", LOW),
        (CLAUDE, "claude-opus-4-6", TOKENS),
        ("deepseek", "deepseek-v4-flash", None),
        ("moonshot", "kimi-k2.5", None),
    ],
    ids=["a budget at Claude", "a budget at Claude 4.6", "DeepSeek thinks in silence", "Kimi"],
)
def test_thinking_gives_way_to_a_forced_tool(
    place: str | tuple[str, str], model: str, policy: ReasoningPolicy | None
) -> None:
    fitted = fit(place, model, policy, tool_choice=FORCED)
    assert fitted.request.tool_choice == FORCED
    assert (fitted.plan.fields, fitted.plan.thinks) == ({"thinking": {"type": "disabled"}}, False)
    assert fitted.plan.degraded[-1].sent == "off"


@pytest.mark.parametrize(
    ("place", "model"),
    [
        (CLAUDE, "claude-opus-5-5"),
        ("minimax", "MiniMax-M3"),
    ],
    ids=["Opus 5.5", "MiniMax"],
)
def test_a_tool_that_cannot_be_forced_is_left_to_the_model(place: str | tuple[str, str], model: str) -> None:
    fitted = fit(place, model, None, tool_choice=FORCED)
    assert fitted.request.tool_choice == ToolChoice(mode="auto")
    (one,) = fitted.degraded
    assert (one.what, one.asked, one.sent) == ("tool_choice", "answer", "auto")


def test_a_forced_tool_stays_where_it_may() -> None:
    for place, model, policy in (
        (CLAUDE, "claude-sonnet-4-5", None),
        (CLAUDE, "claude-opus-4-6", LOW),
        ("vllm", "x", LOW),
    ):
        fitted = fit(place, model, policy, tool_choice=FORCED)
        assert (fitted.request.tool_choice, fitted.degraded) == (FORCED, ())


def test_a_request_that_fits_is_left_as_it_is() -> None:
    request = Request(model="x", messages=(), sampling=Sampling(temperature=0.3))
    plan = plan_reasoning(None, ControlTarget("vllm", "openai_chat", "x"))
    assert fit_parameters(request, plan).request is request


def test_tools_beside_thinking_go_only_in_the_makers_dialect() -> None:
    tools = (Tool(name="look"),)
    fitted = fit("openai-chat", "gpt-6-luna", LOW, tools=tools)
    assert (fitted.plan.fields, fitted.plan.thinks) == ({"reasoning_effort": "none"}, False)
    assert fitted.plan.degraded[-1].what == "reasoning"
    assert fit(("openai", "openai_responses"), "gpt-6-luna", LOW, tools=tools).plan.emitted == "low"
    assert fit("openrouter", "openai/gpt-6-luna", LOW, tools=tools).plan.emitted == "low"
    with pytest.raises(Unsupported, match="gpt-6-astra takes no tools") as refused:
        fit("openai-chat", "gpt-6-astra", LOW, tools=tools)
    assert refused.value.hint


@pytest.mark.parametrize("value", ["warm", [1], {"a": 1}, True], ids=["text", "list", "object", "claim"])
@pytest.mark.parametrize(
    ("place", "model"),
    [
        (CLAUDE, "claude-opus-4-8"),
        (CLAUDE, "claude-sonnet-4-5"),
        ("openai", "gpt-5.2"),
        (("cohere", "cohere"), "command-a-03-2025"),
        (("gemini", "gemini"), "gemini-2.5-flash"),
        ("groq", "openai/gpt-oss-120b"),
        ("ark", "doubao-seed-2"),
    ],
)
def test_a_field_that_the_clients_dialect_does_not_know_may_hold_anything(
    place: str | tuple[str, str], model: str, value: Any
) -> None:
    names = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "seed", "stop")
    for policy in (None, HIGH, OFF):
        for name in names:
            fitted = fit(place, model, policy, extra={name: value, "n": value})
            assert fitted.request.sampling == Sampling()
            assert fitted.request.extra.get(name, value) == value
