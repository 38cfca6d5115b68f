"""What Codex sends to a model, over providers of every other dialect: tools in namespaces, custom tools, and tools declared later.

The requests have the form of Codex 0.169; the client is OpenAI's own library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from openai import OpenAI

from bardo.adapters.config.settings import ProviderEntry
from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, House, house, model_of
from surfaces.gateway.cells import whole_and_streamed

PATCH = '*** Begin Patch\n*** Add File: "ü".txt\n+a\\b\t😀\n*** End Patch\n'
PROVIDERS = (
    "anthropic",
    "bedrock",
    "cohere",
    "deepseek",
    "gemini",
    "gemini_interactions",
    "lab",
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
    others = [Simulator(name, script=script) for name in PROVIDERS if name != "lab"]
    with Simulator("openai_responses", script=script).running() as lab:
        # A server of Codex's own dialect that is not known to take its tools.
        before = ProviderEntry(
            id="lab", preset="responses-compatible", base_url=lab.base_url, models=("m1",), api_key_env=KEY_VARIABLE
        )
        with house(others, before=[before]) as running:
            running.servers = {**running.servers, "lab": lab}
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


@whole_and_streamed
def test_a_server_that_is_not_known_to_take_such_tools_gets_functions_alone(
    town: House, client: OpenAI, stream: bool
) -> None:
    ask(client, "lab", SAID, stream=stream)
    body = town.last("lab")
    assert {tool["type"] for tool in body["tools"]} == {"function"}
    assert all(item["type"] != "additional_tools" for item in body["input"])


CHOICES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "one of two": (
        {
            "mode": "required",
            "tools": [{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}],
        },
        ["exec_command", "apply_patch"],
        "required",
    ),
    "some, if any": (
        {
            "mode": "auto",
            "tools": [{"type": "function", "name": "exec_command"}, {"type": "namespace", "name": "mcp__files"}],
        },
        ["exec_command", "mcp__files__read"],
        "auto",
    ),
    "one in a namespace": (
        {"mode": "required", "tools": [{"type": "function", "name": "read", "namespace": "mcp__files"}]},
        ["mcp__files__read"],
        "named",
    ),
}


@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "gemini", "lab"])
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_among_some_tools_sends_these_alone(town: House, client: OpenAI, provider: str, name: str) -> None:
    asked, names, mode = CHOICES[name]
    create: Any = client.responses.with_raw_response.create
    raw = create(model=model_of(provider), input="hi", tools=TOOLS, tool_choice={"type": "allowed_tools", **asked})
    assert "tool_choice.allowed_tools" in raw.headers["x-bardo-degraded"]
    told = forms(town.last(provider))
    assert told == (names, mode)


def forms(body: dict[str, Any]) -> tuple[list[str], str]:
    """Return the names of the tools of a request, and how one of them must be called."""
    declared = [one for tool in body["tools"] for one in tool.get("functionDeclarations", [tool])]
    names = [(one.get("function") or one)["name"] for one in declared]
    config = (body.get("toolConfig") or {}).get("functionCallingConfig")
    if config is not None:
        named = "named" if config.get("allowedFunctionNames") else "required"
        return names, named if config["mode"] == "ANY" else "auto"
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return names, {"any": "required", "tool": "named", "function": "named", None: "auto"}.get(kind, str(kind))


@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "gemini", "lab"])
@pytest.mark.parametrize("space", [{}, {"namespace": "mcp__files"}], ids=["by its name", "by its namespace"])
def test_a_forced_function_in_a_namespace_is_a_forced_function(
    town: House, client: OpenAI, provider: str, space: dict[str, str]
) -> None:
    create: Any = client.responses.create
    forced = {"type": "function", "name": "read", **space}
    create(model=model_of(provider), input="hi", tools=TOOLS, tool_choice=forced)
    names, mode = forms(town.last(provider))
    assert mode == "named"
    assert "mcp__files__read" in json.dumps(town.last(provider).get("tool_choice") or town.last(provider)["toolConfig"])
    assert len(names) == 3


@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "gemini", "mistral", "openai_responses"])
def test_an_answer_by_schema_beside_a_search_that_only_openai_runs(provider: str) -> None:
    # Codex always sends its search. Where the answer is a call that bardo forces, the client forced none.
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    form = {"format": {"type": "json_schema", "name": "a", "schema": {**schema, "additionalProperties": False}}}
    tools = [TOOLS[0], {"type": "web_search", "external_web_access": False}]
    script = Script((Turn(text='{"answer": 42}'),))
    with (
        house([Simulator(provider, script=script)]) as running,
        closing(OpenAI(base_url=f"{running.address}/v1", api_key="k", max_retries=0)) as client,
    ):
        ask: Any = client.responses.create
        answer = ask(model=model_of(provider), input="Answer.", tools=tools, tool_choice="auto", text=form)
    assert json.loads(answer.output_text) == {"answer": 42}
