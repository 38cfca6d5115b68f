"""What a Python caller may write, and what becomes of it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bardo.surfaces.library.asking import Options, build_request, policy_of
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions, Message, ReasoningPolicy, Request, Sampling, StructuredOptions, Tool
from bardo.values.response import Response

pytestmark = pytest.mark.each_python

HELLO = Message("user", (TextBlock("Hello."),))


def built(prompt: Any, **options: Any) -> Request:
    return build_request(prompt, "m", cast(Options, options), stream=False)


def test_a_text_is_one_turn() -> None:
    assert built("Hello.").messages == (HELLO,)
    assert built("Hello.", system="Be brief.").messages == (Message("system", (TextBlock("Be brief."),)), HELLO)


def test_turns_may_be_messages_replies_or_dicts() -> None:
    thought = ReasoningBlock(text="Hm.", format="anthropic-claude-v1")
    call = ToolCallBlock(id="c", name="f", arguments="{}")
    reply = Response(blocks=(thought, call))
    result = {"role": "tool", "tool_call_id": "c", "content": "sunny"}
    turns = built([HELLO, reply, result, {"role": "user", "content": "And now?"}]).messages
    assert turns[0] == HELLO
    assert turns[1] == Message("assistant", (thought, call))
    assert isinstance(turns[2].blocks[0], ToolResultBlock)
    assert turns[3].text == "And now?"


def test_a_wrong_turn_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"prompt\[1\]"):
        built([HELLO, {"role": "wizard", "content": "x"}])


def test_options_find_their_places() -> None:
    tool = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
    request = built(
        "x", tools=[Tool(name="f"), tool], max_output_tokens=5, temperature=0.1, top_p=0.2, seed=3, stop=["a"]
    )
    assert [one.name for one in request.tools] == ["f", "g"]
    sampling = request.sampling
    assert (request.max_output_tokens, sampling.temperature, sampling.top_p, sampling.seed) == (5, 0.1, 0.2, 3)
    assert sampling.stop == ("a",)


def test_a_single_stop_is_one_stop() -> None:
    assert built("x", stop="END").sampling.stop == ("END",)


def test_an_unknown_option_is_a_type_error_as_in_any_function() -> None:
    with pytest.raises(TypeError, match=r"unknown option 'temprature'; known: .*temperature"):
        built("x", temprature=1)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, None),
        ("off", ReasoningPolicy(mode="off")),
        ("none", ReasoningPolicy(mode="off")),
        ("auto", ReasoningPolicy(mode="auto", visible=True)),
        ("low", ReasoningPolicy(mode="effort", effort="low", visible=True)),
        ("max", ReasoningPolicy(mode="effort", effort="max", visible=True)),
        (0, ReasoningPolicy(mode="budget", budget=0, visible=True)),
        (2048, ReasoningPolicy(mode="budget", budget=2048, visible=True)),
        (ReasoningPolicy(mode="auto"), ReasoningPolicy(mode="auto")),
    ],
)
def test_a_policy_is_said_shortly(asked: Any, expected: ReasoningPolicy | None) -> None:
    assert policy_of(asked) == expected


@pytest.mark.parametrize("asked", [-1, True, "deep", "", 1.5])
def test_a_policy_that_is_none_is_refused(asked: Any) -> None:
    with pytest.raises(InvalidRequest, match="reasoning"):
        policy_of(asked)


def test_an_unknown_key_of_an_option_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"structured\.retry") as refusal:
        build_request("Hello.", "m", {"structured": {"retry": 1}}, stream=False)
    assert "structured.retries" in refusal.value.hint
    asked = build_request("Hello.", "m", {"structured": {"retries": 2}, "allow_loss": ["audio"]}, stream=False)
    assert asked.options == BardoOptions(structured=StructuredOptions(retries=2), allow_loss=("audio",))


def give(city: str) -> str:
    """Give it."""
    return city


def test_further_options_find_their_places() -> None:
    request = built(
        "x", n=2, max_tokens=7, top_k=4, min_p=0.1, frequency_penalty=0.5, presence_penalty=0.25, repetition_penalty=1.1,
        on_impossible="fail", extra={"logit_bias": {"1": 2}}, tools=[give],
    )  # fmt: skip
    sampling = request.sampling
    assert (request.choices, request.max_output_tokens, request.extra) == (2, 7, {"logit_bias": {"1": 2}})
    assert (sampling.top_k, sampling.min_p, sampling.repetition_penalty) == (4, 0.1, 1.1)
    assert (sampling.frequency_penalty, sampling.presence_penalty) == (0.5, 0.25)
    assert request.options.on_impossible == "fail"
    assert request.tools[0].schema is not None
    assert request.tools[0].schema["required"] == ["city"]


@pytest.mark.parametrize(
    ("choice", "mode", "name"),
    [
        ("required", "required", ""),
        ("none", "none", ""),
        ("give", "named", "give"),
        (give, "named", "give"),
        ({"type": "function", "function": {"name": "give"}}, "named", "give"),
    ],
)
def test_the_choice_of_a_tool_is_a_word_a_name_or_the_function(choice: Any, mode: str, name: str) -> None:
    found = built("x", tools=[give], tool_choice=choice, parallel_tool_calls=False).tool_choice
    assert found is not None
    assert (found.mode, found.name, found.parallel) == (mode, name, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 0}, "n is 0"),
        ({"max_tokens": 1, "max_output_tokens": 2}, "different things"),
        ({"on_impossible": "cry"}, "on_impossible is 'cry'"),
        ({"tool_choice": 5}, "tool_choice is 5"),
        ({"tool_choice": "give"}, "tool_choice is 'give', which is none of the tools .*give the tools too"),
        ({"tool_choice": "giev", "tools": [give]}, "tool_choice is 'giev', which is none of the tools .*one of give"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        built("x", **options)


@pytest.mark.parametrize("name", Sampling.__struct_fields__)
def test_each_sampling_parameter_is_an_option(name: str) -> None:
    assert name in Options.__annotations__, (
        f"the library has no option {name!r}: add it to Options and _SAMPLED of src/bardo/surfaces/library/asking.py"
    )
    value: Any = ("END",) if name == "stop" else 1
    assert getattr(built("x", **{name: value}).sampling, name) == value
