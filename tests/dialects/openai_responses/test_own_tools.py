"""Custom tools, namespaces and client-run searches: read, written again for this dialect, and put as functions for another."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.dialects.openai_responses.functions import FreeInput, FunctionNames, as_functions, only_text
from bardo.values.blocks import TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Message, Request
from bardo.values.wire import Arrival

RESPONSES = dialect("openai_responses")
SPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers",
    "tools": [
        {"type": "function", "name": "find", "parameters": {"type": "object"}},
        {"type": "custom", "name": "note"},
    ],
}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": {"type": "object"}}
HISTORY: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "hi"},
    {
        "type": "custom_tool_call",
        "call_id": "c1",
        "name": "patch",
        "input": 'a "b"\n',
        "id": "ctc_1",
        "status": "completed",
    },
    {"type": "function_call", "call_id": "c2", "name": "find", "namespace": "crm", "arguments": "{}"},
    {"type": "tool_search_call", "call_id": "c3", "execution": "client", "arguments": {"query": "q"}},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    {"type": "function_call_output", "call_id": "c2", "output": "found"},
    {"type": "tool_search_output", "call_id": "c3", "execution": "client", "status": "completed", "tools": [SPACE]},
]


def request(**fields: Any) -> Request:
    body = {"model": "m", "input": HISTORY, **fields}
    return RESPONSES.decode_request(json.dumps(body).encode(), Arrival())


def test_a_search_that_bardo_made_is_sent_on_without_the_id_that_it_gave() -> None:
    items: list[dict[str, Any]] = [
        {"type": "tool_search_call", "id": "tsc_bardo_01c", "call_id": "c", "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "id": "tso_1", "call_id": "c", "execution": "server", "tools": []},
    ]
    body = json.dumps({"model": "m", "input": items}).encode()
    request = RESPONSES.decode_request(body, Arrival())
    values = [
        block.value for message in request.messages for block in message.blocks if isinstance(block, UnknownBlock)
    ]
    assert values == [{name: value for name, value in items[0].items() if name != "id"}, items[1]]
    assert request.body is not None
    assert request.body["input"] == items


def test_the_history_is_written_again_as_it_came() -> None:
    row = next(row for row in builtin().providers if row.dialect == "openai_responses")
    assert json.loads(RESPONSES.encode_request(request(), row).body)["input"] == HISTORY


@pytest.mark.parametrize("odd", [5, 1.5, True, "find", {"type": "function"}, ["find", None], None])
def test_what_lists_no_tools_lists_none(odd: Any) -> None:
    items: list[dict[str, Any]] = [
        *HISTORY[:-1],
        {"type": "tool_search_output", "call_id": "c3", "execution": "client", "tools": odd},
        {"type": "additional_tools", "tools": odd},
    ]
    asked = request(
        input=items,
        tools=[SEARCH, {"type": "namespace", "name": "crm", "tools": odd}],
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": odd},
    )
    plain = as_functions(asked)
    assert [tool.name for tool in plain.tools] == ["tool_search"]
    results = [block for message in plain.messages for block in message.blocks if isinstance(block, ToolResultBlock)]
    assert results[-1].content == (TextBlock("No tool was found."),)


@pytest.mark.parametrize("odd", [5, ["x"], {}, None])
def test_a_description_that_is_no_text_says_nothing(odd: Any) -> None:
    (plain,) = as_functions(request(input="hi", tools=[{"type": "custom", "name": "patch", "description": odd}])).tools
    assert plain.description == ""


def test_another_dialect_gets_functions() -> None:
    plain = as_functions(request(tools=[SEARCH, {"type": "custom", "name": "patch"}]))
    assert [tool.name for tool in plain.tools] == ["tool_search", "patch", "crm__find", "crm__note"]
    assert not any(tool.hosted for tool in plain.tools)
    blocks = [block for message in plain.messages for block in message.blocks]
    assert [block.name for block in blocks if isinstance(block, ToolCallBlock)] == ["patch", "crm__find", "tool_search"]
    results = [block for block in blocks if isinstance(block, ToolResultBlock)]
    assert [block.name for block in results] == ["patch", "crm__find", "tool_search"]
    assert [block.text for block in results] == ["ok", "found", "These tools can be called now: crm__find, crm__note"]
    assert [one.what for one in plain.degraded] == ["tools.namespace", "tools.custom"]


def test_turns_that_meet_where_tools_were_declared_are_one() -> None:
    declared = UnknownBlock(
        "openai_responses",
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "patch"}]},
    )
    turns = (
        Message("user", (TextBlock("hi"),)),
        Message("assistant", (TextBlock("First."),)),
        Message("assistant", (declared,)),
        Message("assistant", (TextBlock("Then."), declared)),
        Message("user", (TextBlock("and?"),)),
    )
    plain = as_functions(msgspec.structs.replace(request(), messages=turns))
    assert [tool.name for tool in plain.tools] == ["patch"]
    assert plain.messages == (turns[0], Message("assistant", (TextBlock("First."), TextBlock("Then."))), turns[4])


def test_an_earlier_call_names_its_tool_as_it_is_declared_where_names_meet() -> None:
    tools = [
        {"type": "function", "name": "crm__note", "parameters": {"type": "object"}},
        {"type": "namespace", "name": "crm", "tools": [{"type": "custom", "name": "note"}]},
    ]
    call = {"type": "custom_tool_call", "call_id": "c", "name": "note", "namespace": "crm", "input": "x"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    plain = as_functions(request(input=[HISTORY[0], call, result], tools=tools))
    function, custom = (tool.name for tool in plain.tools)
    assert function == "crm__note" != custom
    blocks = [block for message in plain.messages for block in message.blocks]
    assert [one.name for one in blocks if isinstance(one, ToolCallBlock | ToolResultBlock)] == [custom, custom]


def test_a_request_with_plain_functions_is_left_as_it_is() -> None:
    asked = request(input="hi", tools=[{"type": "function", "name": "f", "parameters": {}}])
    assert as_functions(asked) is asked


def test_a_tool_that_the_provider_runs_stays_one() -> None:
    plain = as_functions(request(input="hi", tools=[{"type": "web_search"}]))
    assert [(tool.name, tool.hosted) for tool in plain.tools] == [("web_search", True)]


def test_names_are_unique_and_short() -> None:
    spaces = [
        {"type": "namespace", "name": "n" * 60, "tools": [{"type": "function", "name": f"tool{at}"} for at in range(3)]}
    ]
    taken = [
        {"type": "function", "name": "a__b"},
        {"type": "namespace", "name": "a", "tools": [{"type": "custom", "name": "b"}]},
    ]
    asked = request(input="hi", tools=[*taken, *spaces])
    names = [tool.name for tool in as_functions(asked).tools]
    assert len({*names}) == 5
    assert max(map(len, names)) <= 64
    kinds = [form.kind if form else None for form in map(FunctionNames(asked).form, names)]
    assert kinds == [None, "custom", "function", "function", "function"]


@pytest.mark.parametrize("text", ["", "plain", 'a "b" \\ / \n\t\x00 ü 😀 \u2028', "*** Begin Patch\n+x\n"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_text_of_a_custom_tool_at_every_cut(text: str, ascii_only: bool) -> None:
    for arguments in (json.dumps({"input": text}, ensure_ascii=ascii_only), f' {{ "input" :\n{json.dumps(text)} }} '):
        for cut in range(len(arguments) + 1):
            reader = FreeInput()
            assert reader.feed(arguments[:cut]) + reader.feed(arguments[cut:]) + reader.finish() == text
        reader = FreeInput()
        assert "".join(map(reader.feed, arguments)) + reader.finish() == text
        assert only_text(arguments) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("*** Begin Patch", "*** Begin Patch"),
        ('{"patch": "p"}', "p"),
        ('{"note": 1, "input": "p"}', "p"),
        ('"p"', "p"),
        ('{"a": "b", "c": "d"}', '{"a": "b", "c": "d"}'),
        ('{"input": "cut of', "cut of"),
        ('{"input": "\\ud800x"}', "\ufffdx"),
        ("", ""),
    ],
)
def test_arguments_of_another_form(arguments: str, text: str) -> None:
    reader = FreeInput()
    assert reader.feed(arguments) + reader.finish() == text
