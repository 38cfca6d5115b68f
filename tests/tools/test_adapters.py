"""Tools declared, calls read and results written, as each family does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.tools import (
    AnthropicToolAdapter,
    HermesToolAdapter,
    JsonToolAdapter,
    OpenAIToolAdapter,
    QwenToolAdapter,
    TextToolAdapter,
    ToolAdapter,
)
from bardo.values.blocks import ImageBlock, TextBlock, ToolResultBlock
from bardo.values.errors import Unsupported
from bardo.values.request import Tool
from bardo.values.response import ToolInvocation

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = Tool(name="weather", description="Tells the weather.", schema=SCHEMA)
CLOCK = Tool(name="clock")
EMPTY = {"type": "object", "properties": {}}
RESULTS = [
    ToolResultBlock(call_id="c1", name="weather", content=(TextBlock('{"sky": "blue"}'),)),
    ToolResultBlock(call_id="c2", name="clock", content=(TextBlock("broken"),), is_error=True),
]
ADAPTERS: dict[str, ToolAdapter] = {
    "anthropic": AnthropicToolAdapter(),
    "openai": OpenAIToolAdapter(),
    "hermes": HermesToolAdapter(),
    "qwen": QwenToolAdapter(),
    "json": JsonToolAdapter(),
    "kimi": TextToolAdapter("kimi_k2"),
}
ANTHROPIC = {
    "content": [
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
        {"type": "tool_use", "id": "c2", "name": "clock", "input": {}},
    ]
}
OPENAI = {
    "choices": [
        {
            "message": {
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}},
                    {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
                ],
            }
        }
    ]
}
TAGGED = (
    'Hi <tool_call>{"id": "c1", "name": "weather", "arguments": {"city": "Paris"}}</tool_call>\n'
    '<tool_call>{"id": "c2", "name": "clock"}</tool_call>'
)
LISTED = (
    '[{"id": "c1", "name": "weather", "arguments": {"city": "Paris"}}, {"id": "c2", "name": "clock", "arguments": {}}]'
)
KIMI = "<|tool_call_begin|>c1<|tool_call_argument_begin|>{}<|tool_call_end|>"
REPLIES: dict[str, Any] = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "hermes": TAGGED,
    "qwen": TAGGED,
    "json": LISTED,
}


@pytest.mark.parametrize("name", REPLIES)
def test_every_family_gives_the_same_invocations(name: str) -> None:
    calls = ADAPTERS[name].parse_tool_calls(REPLIES[name])
    assert [(call.id, call.name, call.arguments, call.malformed) for call in calls] == [
        ("c1", "weather", {"city": "Paris"}, False),
        ("c2", "clock", {}, False),
    ]


NONSENSE: list[Any] = [
    None,
    1,
    "",
    "Hi",
    [],
    {},
    {"content": 7},
    {"choices": [{}]},
]


@pytest.mark.parametrize("reply", NONSENSE, ids=repr)
@pytest.mark.parametrize("name", ADAPTERS)
def test_what_is_not_like_a_call_is_passed_over(name: str, reply: Any) -> None:
    assert ADAPTERS[name].parse_tool_calls(reply) == []


def test_malformed_arguments_are_kept_as_they_were_written() -> None:
    message = {"tool_calls": [{"id": "c", "function": {"name": "clock", "arguments": '{"a'}}]}
    assert OpenAIToolAdapter().parse_tool_calls(message) == [ToolInvocation("c", "clock", {}, '{"a', malformed=True)]


def test_the_older_function_call_is_read() -> None:
    message = {"function_call": {"name": "clock", "arguments": ""}}
    assert OpenAIToolAdapter().parse_tool_calls(message) == [ToolInvocation("call_1", "clock", {}, "")]


def test_calls_without_ids_are_numbered() -> None:
    message = {"tool_calls": [{"function": {"name": "clock"}}, {"function": {"name": "clock"}}]}
    assert [call.id for call in OpenAIToolAdapter().parse_tool_calls(message)] == ["call_1", "call_2"]
    twice = '<tool_call>{"name": "clock"}</tool_call>' * 2
    assert [call.id for call in HermesToolAdapter().parse_tool_calls(twice)] == ["call_1", "call_2"]
    assert [call.id for call in HermesToolAdapter(make_ids=lambda: lambda: "x").parse_tool_calls(twice)] == ["x", "x"]


def test_parameters_written_as_text_have_their_declared_types() -> None:
    tools = [Tool(name="wait", schema={"properties": {"seconds": {"type": "number"}}})]
    text = "<tool_call><function=wait><parameter=seconds>\n1.5\n</parameter></function></tool_call>"
    assert QwenToolAdapter(tools=tools).parse_tool_calls(text) == [
        ToolInvocation("call_1", "wait", {"seconds": 1.5}, '{"seconds": 1.5}')
    ]


TOOLS_AS_WRITTEN: dict[str, Any] = {
    "anthropic": [
        {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA},
        {"name": "clock", "input_schema": EMPTY},
    ],
    "openai": [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Tells the weather.", "parameters": SCHEMA},
        },
        {"type": "function", "function": {"name": "clock", "parameters": EMPTY}},
    ],
}


@pytest.mark.parametrize("name", TOOLS_AS_WRITTEN)
def test_tools_are_declared_as_the_api_takes_them(name: str) -> None:
    assert ADAPTERS[name].format_tools([WEATHER, CLOCK]) == TOOLS_AS_WRITTEN[name]
    assert ADAPTERS[name].format_tools([]) == []


@pytest.mark.parametrize("name", ["hermes", "qwen", "json"])
def test_tools_in_a_prompt_are_one_signature_a_line(name: str) -> None:
    prompt = ADAPTERS[name].format_tools([WEATHER, CLOCK])
    signatures = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"type"')]
    assert signatures == TOOLS_AS_WRITTEN["openai"]
    assert ADAPTERS[name].format_tools([]) == ""


RESULTS_AS_WRITTEN: dict[str, Any] = {
    "anthropic": {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": '{"sky": "blue"}'},
            {"type": "tool_result", "tool_use_id": "c2", "content": "broken", "is_error": True},
        ],
    },
    "openai": [
        {"role": "tool", "tool_call_id": "c1", "content": '{"sky": "blue"}'},
        {"role": "tool", "tool_call_id": "c2", "content": "broken"},
    ],
    "hermes": (
        '<tool_response>\n{"name":"weather","content":"{\\"sky\\": \\"blue\\"}"}\n</tool_response>\n'
        '<tool_response>\n{"name":"clock","content":"broken"}\n</tool_response>'
    ),
    "qwen": '<tool_response>\n{"sky": "blue"}\n</tool_response>\n<tool_response>\nbroken\n</tool_response>',
    "json": (
        '{"id":"c1","name":"weather","result":"{\\"sky\\": \\"blue\\"}"}\n'
        '{"id":"c2","name":"clock","result":"broken","is_error":true}'
    ),
}


@pytest.mark.parametrize("name", RESULTS_AS_WRITTEN)
def test_results_are_written_as_the_next_turn_takes_them(name: str) -> None:
    assert ADAPTERS[name].format_tool_results(RESULTS) == RESULTS_AS_WRITTEN[name]


@pytest.mark.parametrize("name", ADAPTERS)
def test_what_an_adapter_cannot_say_is_refused(name: str) -> None:
    with pytest.raises(Unsupported):
        ADAPTERS[name].format_tools([Tool(name="web_search", hosted=True)])
    with pytest.raises(Unsupported):
        ADAPTERS[name].format_tool_results([ToolResultBlock(call_id="c", content=(ImageBlock(url="u"),))])
