"""The functions that stand for many tools: what a model is told, what reaches the client, and how a history is written for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.layer import EffectFailed
from bardo.context.own_functions import CheckArguments, OwnCall, OwnResult
from bardo.context.tool_choice.layer import PAGE, ToolFunctions, offered_functions, with_function_calls
from bardo.context.tool_choice.session import FindToolTurns, ToolChoiceSettings
from bardo.replies.own_calls import argument_failures
from bardo.values.blocks import Opaque, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.events import OpaqueState, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Message, Request, Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="get_weather", description="The weather of a city.", schema=SCHEMA)
OTHERS = tuple(Tool(name=f"tool_{number}", description=f"Does thing {number}.", schema={}) for number in range(50))
TOOLS = (*OTHERS[:25], WEATHER, *OTHERS[25:])
REQUEST = Request(model="m", messages=(), tools=TOOLS)
NAMES = offered_functions(REQUEST, len(TOOLS)).names


class Model:
    """Calls the functions of one reply."""

    def __init__(self, **settings: Any) -> None:
        self.functions = ToolFunctions(TOOLS, NAMES, "t", ToolChoiceSettings(vectors=False, **settings))

    def result(self, name: str, arguments: Any, *states: Any, block: int = 0) -> OwnResult:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        steps = self.functions.answer(OwnCall("call_1", name, text, states), block)
        try:
            effect = next(steps)
            while True:
                try:
                    assert isinstance(effect, CheckArguments)
                    result = argument_failures(effect)
                except AssertionError:
                    effect = steps.throw(EffectFailed())
                else:
                    effect = steps.send(result)
        except StopIteration as done:
            made: OwnResult = done.value
            return made

    def told(self, name: str, arguments: Any) -> Any:
        result = self.result(name, arguments)
        assert result.result is not None, "the call went to the client"
        assert not result.events
        return json.loads(result.result.text)

    def called(self, arguments: Any) -> tuple[str, Any]:
        """Return the client's call that a call of `execute_tool` became."""
        result = self.result("execute_tool", arguments)
        assert result.for_client, result
        start, chunk, end = result.events
        assert isinstance(start, ToolCallStart)
        assert isinstance(chunk, ToolCallChunk)
        assert isinstance(end, ToolCallEnd)
        assert start.id == "call_1"
        return start.name, json.loads(chunk.arguments)


def found(told: Any) -> list[str]:
    return [tool["name"] for tool in told["tools"]]


def test_a_search_finds_by_words_and_says_how_many_are_left() -> None:
    told = Model().told("search_tools", {"query": "weather city"})
    assert found(told)[0] == "get_weather"
    assert len(found(told)) == PAGE
    assert told["further_tools"] == len(TOOLS) - PAGE
    assert told["tools"][0] == {"name": "get_weather", "description": "The weather of a city.", "arguments": ["city"]}


@pytest.mark.parametrize("name", ["tool_49", "TOOL_49", "tool 49", "find tool_49 please"])
def test_an_exact_name_always_comes_first(name: str) -> None:
    assert found(Model().told("search_tools", {"query": name}))[0] == "tool_49"


def test_the_same_search_gives_the_next_page_until_all_were_shown() -> None:
    model, seen = Model(most_searches=20), []
    while True:
        told = model.told("search_tools", {"query": "thing"})
        seen += found(told)
        if not told["further_tools"]:
            break
    assert sorted(seen) == sorted(tool.name for tool in TOOLS)
    assert found(model.told("search_tools", {"query": "thing"})) == []


def test_searches_are_bounded() -> None:
    model = Model(most_searches=2)
    for number in range(2):
        assert "tools" in model.told("search_tools", {"query": f"{number}"})
    result = model.result("search_tools", {"query": "3"}).result
    assert result is not None
    assert result.is_error
    assert "no more searches" in result.text


def test_schemas_are_given_by_names() -> None:
    told = Model().told("get_tool_schema", {"names": ["get_weather", "tool_1", "Tool_2", "nothing"]})
    assert [tool["name"] for tool in told["tools"]] == ["get_weather", "tool_1"]
    assert told["tools"][0]["schema"] == SCHEMA
    assert "did you mean tool_2?" in told["errors"][0]
    assert found(Model().told("get_tool_schema", {"name": "tool_3"})) == ["tool_3"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "get_weather", "arguments": {"city": "Rome"}},
        {"name": "get_weather", "arguments": '{"city": "Rome"}'},
        {"name": "get_weather", "city": "Rome"},
    ],
    ids=["object", "text", "beside the name"],
)
def test_a_call_becomes_the_clients_own(arguments: Any) -> None:
    assert Model().called(arguments) == ("get_weather", {"city": "Rome"})


def test_a_function_may_be_called_through_the_other() -> None:
    told = Model().told("execute_tool", {"name": "search_tools", "arguments": {"query": "weather"}})
    assert found(told)[0] == "get_weather"


def test_opaque_states_go_with_the_call_into_its_block() -> None:
    state = OpaqueState(7, Opaque("signature", "abc"))
    result = Model().result("execute_tool", {"name": "get_weather", "arguments": {"city": "Rome"}}, state, block=3)
    assert OpaqueState(3, Opaque("signature", "abc")) in result.events


def test_wrong_arguments_are_told_and_pass_when_the_model_insists() -> None:
    model, wrong = Model(most_failures=2), {"name": "get_weather", "arguments": {"town": "Rome"}}
    for _ in range(2):
        told = model.told("execute_tool", wrong)
        assert "city" in told["failures"][0]
        assert told["tool"]["schema"] == SCHEMA
    assert model.called(wrong) == ("get_weather", {"town": "Rome"})


def test_arguments_that_are_not_to_be_checked_pass() -> None:
    assert Model(check_arguments=False).called({"name": "get_weather", "arguments": {}}) == ("get_weather", {})


@pytest.mark.parametrize("text", ["", "[", "null", "7", '"x"', "[" * 100_000, '{"name": ["x"]}', '{"name": null}'])
@pytest.mark.parametrize("name", list(NAMES.values()))
def test_arguments_of_any_kind_are_answered(name: str, text: str) -> None:
    assert isinstance(Model().told(name, text), dict)


def test_a_client_keeps_the_name_of_its_own_tool() -> None:
    own = Request(model="m", messages=(), tools=(Tool(name="search_tools", schema={}),))
    assert offered_functions(own, 1).names["search"] == "bardo_search_tools"


def written(request: Request, turns: Mapping[str, tuple[Message, ...]] | None = None) -> Request:
    """Return a request with its history as the model knows it."""
    offered = offered_functions(REQUEST, len(TOOLS))
    steps = with_function_calls(request, TOOLS, (), offered, "t")
    try:
        effect = next(steps)
        assert isinstance(effect, FindToolTurns)
        steps.send({name: turns[name] for name in effect.ids if turns and name in turns})
    except StopIteration as done:
        made: Request = done.value
        return made
    raise AssertionError("one effect is enough")


def call(number: int, name: str = "get_weather", arguments: str = '{"city":"Rome"}') -> ToolCallBlock:
    return ToolCallBlock(id=f"call_{number}", name=name, arguments=arguments)


def result(number: int, name: str = "get_weather") -> ToolResultBlock:
    return ToolResultBlock(call_id=f"call_{number}", name=name, content=(TextBlock("sunny"),))


def test_a_call_that_nobody_remembers_is_written_as_a_call_of_the_function() -> None:
    history = (Message("assistant", (TextBlock("Well."), call(1))), Message("user", (result(1),)))
    turn, answer = written(Request(model="m", messages=history)).messages
    made = turn.blocks[1]
    assert isinstance(made, ToolCallBlock)
    assert (made.id, made.name) == ("call_1", "execute_tool")
    assert json.loads(made.arguments) == {"name": "get_weather", "arguments": {"city": "Rome"}}
    assert turn.blocks[0] == TextBlock("Well.")
    assert isinstance(answer.blocks[0], ToolResultBlock)
    assert answer.blocks[0].name == "execute_tool"


def test_what_the_model_said_comes_back_whole_and_once() -> None:
    search = ToolCallBlock(id="s", name="search_tools", arguments="{}")
    execute = [ToolCallBlock(id=f"call_{number}", name="execute_tool", arguments="{ }") for number in (1, 2)]
    turns = (
        Message("assistant", (search,)),
        Message("user", (ToolResultBlock(call_id="s"),)),
        Message("assistant", (*execute, search)),
        Message("user", (ToolResultBlock(call_id="s"),)),
    )
    # Codex and others send each call of a reply as a message of its own.
    history = (
        Message("assistant", (call(1),)),
        Message("assistant", (call(2),)),
        Message("user", (result(1), result(2))),
    )
    messages = written(Request(model="m", messages=history), {"call_1": turns, "call_2": turns}).messages
    assert messages[:3] == turns[:3]
    assert [block.call_id for block in messages[3].blocks if isinstance(block, ToolResultBlock)] == [
        "s",
        "call_1",
        "call_2",
    ]
    assert len(messages) == 4


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["get_weather", "tool_1", "gone"]), st.sampled_from(['{"a":1}', "", "null", "[", "{"])
        ),
        max_size=6,
    )
)
def test_every_call_keeps_its_id_and_its_place_before_its_result(calls: list[tuple[str, str]]) -> None:
    messages: list[Message] = []
    for number, (name, arguments) in enumerate(calls):
        messages += [Message("assistant", (call(number, name, arguments),)), Message("user", (result(number, name),))]
    request = Request(model="m", messages=tuple(messages))
    after = (written(request) if calls else request).messages
    assert [message.role for message in after] == [message.role for message in messages]
    for number, (name, _) in enumerate(calls):
        made, answer = after[2 * number].blocks[0], after[2 * number + 1].blocks[0]
        assert isinstance(made, ToolCallBlock)
        assert isinstance(answer, ToolResultBlock)
        assert made.id == answer.call_id == f"call_{number}"
        assert made.name == answer.name == (name if name == "gone" else "execute_tool")
        if name != "gone":
            assert json.loads(made.arguments)["name"] == name


def test_broken_arguments_that_are_not_checked_go_on_as_the_model_wrote_them() -> None:
    written = '{"city": "Ro'
    result = Model(check_arguments=False).result("execute_tool", {"name": "get_weather", "arguments": written})
    assert [one.arguments for one in result.events if isinstance(one, ToolCallChunk)] == [written]
