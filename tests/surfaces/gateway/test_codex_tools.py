"""What Codex sends to a model, over providers of every other dialect: tools in namespaces, custom tools, and tools declared later.

The requests have the form of Codex 0.169; the client is OpenAI's own library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from openai import OpenAI

from bardo.simulators import Script, Simulator, ToolCall, Turn
from support.gateway import House, house, model_of
from surfaces.gateway.cells import whole_and_streamed

PATCH = '*** Begin Patch\n*** Add File: "ü".txt\n+a\\b\t😀\n*** End Patch\n'
PROVIDERS = (
    "anthropic",
    "bedrock",
    "cohere",
    "deepseek",
    "gemini",
    "gemini_interactions",
    "mistral",
    "ollama_native",
    "vllm",
)
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "exec_command",
        "description": "Runs a command.",
        "strict": False,
        "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]},
    },
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Edits files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch" LF'},
    },
    {
        "type": "namespace",
        "name": "mcp__files",
        "description": "Files of a project",
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            }
        ],
    },
]
LATER = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [{"type": "namespace", "name": "crm", "description": "", "tools": [{"type": "function", "name": "find"}]}],
}
CALLS = (
    ToolCall("exec_command", {"cmd": "ls"}),
    ToolCall("apply_patch", {"input": PATCH}),
    ToolCall("mcp__files__read", {"path": "a"}),
    ToolCall("crm__find", {}),
)
SAID: list[Any] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are a coding agent."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it."}]},
    LATER,
]


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    script = Script((Turn(text="I will.", tool_calls=CALLS), Turn(text="Done.")))
    with house([Simulator(name, script=script) for name in PROVIDERS]) as running:
        yield running


@pytest.fixture(scope="module")
def client(town: House) -> Iterator[OpenAI]:
    with closing(OpenAI(base_url=f"{town.address}/v1", api_key="k", max_retries=0)) as made:
        yield made


def ask(client: OpenAI, provider: str, said: list[Any], *, stream: bool) -> tuple[Any, list[Any]]:
    """Return the finished response, and the events of its stream."""
    create: Any = client.responses.create
    if not stream:
        return create(model=model_of(provider), input=said, tools=TOOLS), []
    events = [*create(model=model_of(provider), input=said, tools=TOOLS, stream=True)]
    return events[-1].response, events


def calls(response: Any) -> list[tuple[Any, ...]]:
    found = []
    for item in response.output:
        if item.type == "function_call":
            found.append((item.type, item.namespace, item.name, item.arguments))
        elif item.type == "custom_tool_call":
            found.append((item.type, item.namespace, item.name, item.input))
    return found


@whole_and_streamed
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tool_loop_of_codex(town: House, client: OpenAI, provider: str, stream: bool) -> None:
    response, events = ask(client, provider, SAID, stream=stream)
    heard = calls(response)
    assert [one[:3] for one in heard] == [
        ("function_call", None, "exec_command"),
        ("custom_tool_call", None, "apply_patch"),
        ("function_call", "mcp__files", "read"),
        ("function_call", "crm", "find"),
    ]
    assert heard[1][3] == PATCH
    if stream:
        deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
        done = [event.input for event in events if event.type == "response.custom_tool_call_input.done"]
        assert ("".join(deltas), done) == (PATCH, [PATCH])
    results = [
        {"type": f"{item.type}_output", "call_id": item.call_id, "output": f"result {place}"}
        for place, item in enumerate(one for one in response.output if one.type.endswith("_call"))
    ]
    turn = [item.model_dump(exclude_none=True) for item in response.output]
    answer, _ = ask(client, provider, [*SAID, *turn, *results], stream=stream)
    assert answer.output_text == "Done."
    raw = town.arrived(provider)[-1].raw.decode()
    assert all(f"result {place}" in raw for place in range(4))
    assert all(name in raw for name in ("apply_patch", "mcp__files__read", "crm__find"))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_tools_are_the_same_bytes_on_every_turn(town: House, client: OpenAI, provider: str) -> None:
    first, _ = ask(client, provider, SAID, stream=False)
    before = town.last(provider)
    turn = [item.model_dump(exclude_none=True) for item in first.output if item.type == "function_call"][:1]
    result = {"type": "function_call_output", "call_id": turn[0]["call_id"], "output": "r"}
    ask(client, provider, [*SAID, *turn, result], stream=False)
    after = town.last(provider)
    assert before != after
    for field in ("tools", "system", "toolConfig", "systemInstruction", "system_instruction"):
        assert before.get(field) == after.get(field)


def test_a_declaration_of_tools_leaves_no_empty_message_behind(town: House, client: OpenAI) -> None:
    ask(client, "deepseek", [SAID[1], LATER, SAID[1]], stream=False)
    assert [message["role"] for message in town.last("deepseek")["messages"]] == ["user", "user"]


def test_a_forced_custom_tool_is_a_forced_function(town: House, client: OpenAI) -> None:
    create: Any = client.responses.create
    forced = {"type": "custom", "name": "apply_patch"}
    create(model=model_of("deepseek"), input="hi", tools=TOOLS, tool_choice=forced)
    assert town.last("deepseek")["tool_choice"] == {"type": "function", "function": {"name": "apply_patch"}}
