"""A call of `execute_tool` that is not checked goes to the client as its own tool's call while it arrives, however it is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.tool_choice.layer import ToolFunctions, offered_functions
from bardo.context.tool_choice.session import ToolChoiceSettings
from bardo.replies.own_calls import OwnCallStage
from bardo.values.blocks import Opaque
from bardo.values.events import Event, Finish, OpaqueState, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Request, Tool
from support.growth import check_growth

TOOLS = (Tool(name="get_weather", schema={}),)
NAMES = offered_functions(Request(model="m", messages=(), tools=TOOLS), 1).names


def stage(**settings: Any) -> OwnCallStage:
    functions = ToolFunctions(TOOLS, NAMES, "t", ToolChoiceSettings(**{"check_arguments": False, **settings}))
    return OwnCallStage(dict.fromkeys(functions.names, functions), 200_000)


def passed(made: OwnCallStage, pieces: list[str], name: str = "execute_tool") -> list[Event]:
    events: list[Event] = [ToolCallStart(4, "call_1", name), *[ToolCallChunk(4, piece) for piece in pieces]]
    events += [OpaqueState(4, Opaque("signature", "s")), ToolCallEnd(4), Finish("tool_calls")]
    return [event for one in events for event in made.feed(one)]


def cut(text: str, places: list[int]) -> list[str]:
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[begin:end] for begin, end in pairwise(bounds)]


VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\\\{}[]:, é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"{}\\\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(alphabet='k"{}\\\\', max_size=3), VALUES, max_size=3),
    st.lists(st.integers(0, 500), max_size=8),
    st.booleans(),
)
def test_any_cut_gives_the_arguments_of_the_tool(arguments: dict[str, Any], places: list[int], spaced: bool) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    written = json.dumps({"name": "get_weather", "arguments": arguments, "more": {"a": 1}}, separators=separators)
    made = stage()
    start, *rest = passed(made, cut(written, places))
    assert start == ToolCallStart(4, "call_1", "get_weather")
    assert json.loads("".join(one.arguments for one in rest if isinstance(one, ToolCallChunk))) == arguments
    assert any(isinstance(one, OpaqueState) for one in rest)
    assert (made.calls, made.client_calls, made.opened) == ([], ["call_1"], True)


@pytest.mark.parametrize(
    ("name", "written", "settings"),
    [
        ("execute_tool", '{"name":"unknown","arguments":{}}', {}),
        ("execute_tool", '{"arguments":{},"name":"get_weather"}', {}),
        ("execute_tool", '{"name":"get_weather","arguments":"{}"}', {}),
        ("execute_tool", '{"name":"get_weather","arguments":{}}', {"check_arguments": True}),
        ("search_tools", '{"name":"get_weather","arguments":{}}', {}),
    ],
    ids=["unknown", "other order", "text", "checked", "search"],
)
def test_what_is_not_certainly_the_clients_is_held(name: str, written: str, settings: Any) -> None:
    made = stage(**settings)
    assert passed(made, [*written], name) == []
    [call] = made.calls
    assert (call.name, call.arguments, made.opened) == (name, written, False)
    assert len(call.states) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("head", ['{"name":"get_weather","arguments":{"a":"', '{"nothing":"'])
def test_time_is_linear_in_the_length_of_a_call(head: str) -> None:
    def work(count: int) -> None:
        made = stage()
        made.feed(ToolCallStart(0, "c", "execute_tool"))
        for piece in [head, *["{x}"] * count]:
            made.feed(ToolCallChunk(0, piece))

    check_growth(work, 5_000, 20_000, below=12)


def test_a_call_in_which_the_reply_broke_off_is_not_answered() -> None:
    made = stage()
    start, piece = ToolCallStart(4, "call_1", "search_tools"), ToolCallChunk(4, '{"query":"we')
    assert [event for one in (start, piece, Finish("length")) for event in made.feed(one)] == []
    assert (made.calls, made.pending) == ([], [Finish("length")])
