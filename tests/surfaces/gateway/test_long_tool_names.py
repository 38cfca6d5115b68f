"""Names of tools that are longer than a provider takes: it gets short ones, and the client sees its own.

Claude Code names the tools of a plugin's server after both, and Anthropic takes 128 characters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import Bounds, MemoryStore
from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.talk import SCHEMA, Answer, body_for, path_for, request
from surfaces.gateway.cells import whole_and_streamed

LONG = "mcp__plugin_yt-content-strategist_youtube-analytics__get_video_enhanced_transcript"
TWIN = LONG + "_of_channel"
SHORT, SHORT_TWIN = (f"{name[:55]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}" for name in (LONG, TWIN))
BOUND = ("openai_chat", "openai_responses", "gemini", "gemini_interactions", "bedrock", "deepseek")
CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse")
ARGUMENTS = {"city": "Paris"}
HELD = json.dumps(ARGUMENTS)

each_client = pytest.mark.parametrize("client", CLIENTS)
each_provider = pytest.mark.parametrize("provider", BOUND)


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    keeper = ReplayKeeper(MemoryStore(Bounds()))
    with house([Simulator(name) for name in (*BOUND, "anthropic", "vllm")], replay=keeper) as running:
        yield running


def tools(client: str, *names: str) -> dict[str, Any]:
    functions = [{"name": name, "parameters": SCHEMA} for name in names]
    match client:
        case "openai_chat":
            return {"tools": [{"type": "function", "function": one} for one in functions]}
        case "openai_responses":
            return {"tools": [{"type": "function", **one} for one in functions]}
        case "anthropic_messages":
            return {"tools": [{"name": name, "input_schema": SCHEMA} for name in names]}
        case "gemini":
            return {"tools": [{"functionDeclarations": functions}]}
        case _:
            specs = [{"toolSpec": {"name": name, "inputSchema": {"json": SCHEMA}}} for name in names]
            return {"toolConfig": {"tools": specs}}


def choice(client: str, name: str) -> dict[str, Any]:
    match client:
        case "openai_chat":
            return {"tool_choice": {"type": "function", "function": {"name": name}}}
        case "openai_responses":
            return {"tool_choice": {"type": "function", "name": name}}
        case "anthropic_messages":
            return {"tool_choice": {"type": "tool", "name": name}}
        case "gemini":
            return {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}}
        case _:
            return {"toolConfig": {**tools(client, LONG, TWIN)["toolConfig"], "toolChoice": {"tool": {"name": name}}}}


def history(client: str, name: str) -> dict[str, Any]:
    match client:
        case "openai_chat":
            call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": HELD}}
            return {
                "messages": [
                    {"role": "user", "content": "Go on."},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
                ]
            }
        case "openai_responses":
            return {
                "input": [
                    {"role": "user", "content": "Go on."},
                    {"type": "function_call", "call_id": "c1", "name": name, "arguments": HELD},
                    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
                ]
            }
        case "anthropic_messages":
            return {
                "messages": [
                    {"role": "user", "content": "Go on."},
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": "c1", "name": name, "input": ARGUMENTS}],
                    },
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]},
                ]
            }
        case "gemini":
            return {
                "contents": [
                    {"role": "user", "parts": [{"text": "Go on."}]},
                    {"role": "model", "parts": [{"functionCall": {"name": name, "args": ARGUMENTS}}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"r": "rain"}}}]},
                ]
            }
        case _:
            use = {"toolUseId": "c1", "name": name, "input": ARGUMENTS}
            return {
                "messages": [
                    {"role": "user", "content": [{"text": "Go on."}]},
                    {"role": "assistant", "content": [{"toolUse": use}]},
                    {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "rain"}]}}]},
                ]
            }


def called(value: Any) -> set[str]:
    """Return the names of the calls in a reply, or in a request."""
    if isinstance(value, list):
        return {name for one in value for name in called(one)}
    if not isinstance(value, dict):
        return set()
    is_call = isinstance(value.get("name"), str) and not value.keys().isdisjoint(("arguments", "args", "input"))
    own = {value["name"]} if is_call else set()
    return own.union(*(called(one) for name, one in value.items() if name != "tools"))


def names_in(answer: Answer, *, stream: bool, client: str) -> set[str]:
    assert answer.status == 200, answer.text
    if client == "bedrock_converse" and stream:
        text = answer.body.decode("latin-1")
        return {name for name in (LONG, SHORT) if f'"name":"{name}"' in text}
    return called(answer.payloads if stream else answer.json)


def ask(town: House, client: str, provider: str, fields: dict[str, Any], *, stream: bool = False) -> Answer:
    model = model_of(provider)
    body = {**body_for(client, model, stream=stream), **fields}
    return request(town.address, "POST", path_for(client, model, stream=stream), body)


def answer_with(town: House, provider: str, *turns: Turn) -> None:
    town.simulators[provider].play(Script(turns, in_order=True))


@whole_and_streamed
@each_provider
@each_client
def test_a_long_name_is_short_for_the_provider_and_comes_back(
    town: House, client: str, provider: str, stream: bool
) -> None:
    answer_with(town, provider, Turn(tool_calls=(ToolCall(SHORT, ARGUMENTS),)))
    answer = ask(town, client, provider, tools(client, LONG, TWIN, "weather"), stream=stream)
    assert names_in(answer, stream=stream, client=client) == {LONG}
    sent = json.dumps(town.last(provider))
    assert LONG not in sent
    assert all(f'"{name}"' in sent for name in (SHORT, SHORT_TWIN, "weather"))
    assert SHORT.encode() not in answer.body
    assert "tool" not in answer.headers.get("x-bardo-degraded", "")


@each_provider
@each_client
def test_the_choice_and_the_history_have_the_same_short_name(town: House, client: str, provider: str) -> None:
    answer_with(town, provider, Turn(text="Done."))
    asked = {**tools(client, LONG, TWIN), **history(client, LONG), **choice(client, TWIN)}
    answer = ask(town, client, provider, asked)
    assert answer.status == 200, answer.text
    body = town.last(provider)
    sent = json.dumps(body)
    assert LONG not in sent
    # The tool and the call of the history; the other tool and the choice.
    assert sent.count(f'"{SHORT}"') >= 2
    assert sent.count(f'"{SHORT_TWIN}"') == 2


@whole_and_streamed
@each_client
def test_a_history_that_comes_again_is_short_again(town: House, client: str, stream: bool) -> None:
    asked = {**tools(client, LONG, TWIN), **history(client, LONG)}
    bodies = []
    for _ in range(3):
        answer_with(town, "openai_chat", Turn(tool_calls=(ToolCall(SHORT, ARGUMENTS),)))
        answer = ask(town, client, "openai_chat", asked, stream=stream)
        assert names_in(answer, stream=stream, client=client) == {LONG}
        bodies.append({**town.last("openai_chat"), "messages": json.dumps(town.last("openai_chat")["messages"])})
    assert bodies[0]["tools"] == bodies[1]["tools"] == bodies[2]["tools"]
    assert bodies[0]["messages"] == bodies[1]["messages"] == bodies[2]["messages"]
    assert SHORT in bodies[2]["messages"]


@pytest.mark.parametrize("others", [(), ("weather",)], ids=["no tools", "other tools"])
@pytest.mark.parametrize("provider", ["openai_chat", "openai_responses", "gemini", "deepseek"])
def test_calls_of_tools_that_are_there_no_more_have_short_names(
    town: House, provider: str, others: tuple[str, ...]
) -> None:
    asked = {**history("anthropic_messages", LONG), **(tools("anthropic_messages", *others) if others else {})}
    for _ in range(2):
        answer_with(town, provider, Turn(text="Done."))
        answer = ask(town, "anthropic_messages", provider, asked)
        assert answer.status == 200, answer.text
        sent = json.dumps(town.last(provider))
        assert LONG not in sent
        assert SHORT in sent


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("provider", ["openai_chat", "gemini"])
def test_a_choice_among_the_tools_has_short_names(town: House, provider: str, mode: str) -> None:
    listed = [{"type": "function", "function": {"name": name}} for name in (LONG, TWIN)]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
    answer_with(town, provider, Turn(text="Done."))
    asked = {**tools("openai_chat", LONG, TWIN, "weather"), "tool_choice": allowed}
    answer = ask(town, "openai_chat", provider, asked)
    assert answer.status == 200, answer.text
    sent = json.dumps(town.last(provider))
    assert LONG not in sent
    assert SHORT_TWIN in sent


@whole_and_streamed
def test_claude_code_gets_the_calls_of_several_tools_over_chat(town: House, stream: bool) -> None:
    calls = (ToolCall(SHORT_TWIN, ARGUMENTS), ToolCall("weather", ARGUMENTS), ToolCall(SHORT, {}))
    answer_with(town, "vllm", Turn(text="I look.", tool_calls=calls))
    answer = ask(town, "anthropic_messages", "vllm", tools("anthropic_messages", LONG, TWIN, "weather"), stream=stream)
    assert names_in(answer, stream=stream, client="anthropic_messages") == {LONG, TWIN, "weather"}


@whole_and_streamed
def test_thinking_that_the_client_did_not_see_goes_back_with_the_call(town: House, stream: bool) -> None:
    thought = f"I look it up, {stream}."
    answer_with(town, "deepseek", Turn(reasoning=thought, tool_calls=(ToolCall(SHORT, ARGUMENTS),)), Turn(text="Rain."))
    asked = tools("anthropic_messages", LONG)
    answer = ask(town, "anthropic_messages", "deepseek", asked, stream=stream)
    assert thought not in answer.text
    started = (
        [one["content_block"] for one in answer.payloads if one["type"] == "content_block_start"] if stream else []
    )
    call = {**(started or answer.json["content"])[-1], "input": ARGUMENTS}
    assert call["name"] == LONG
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "rain"}
    turns = [
        *body_for("anthropic_messages", "m1")["messages"],
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    assert ask(town, "anthropic_messages", "deepseek", {**asked, "messages": turns}).status == 200
    said = town.last("deepseek")["messages"][1]
    assert said["reasoning_content"] == thought
    assert said["tool_calls"][0]["function"]["name"] == SHORT


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_anthropic_gets_the_name_as_it_is(town: House, client: str) -> None:
    answer_with(town, "anthropic", Turn(tool_calls=(ToolCall(LONG, ARGUMENTS),)))
    answer = ask(town, client, "anthropic", tools(client, LONG))
    assert called(answer.json) == {LONG}
    assert town.last("anthropic")["tools"][0]["name"] == LONG


@pytest.mark.parametrize("size", [63, 64, 65, 128, 500])
def test_only_names_over_the_bound_change(town: House, size: int) -> None:
    name = "n" * size
    answer_with(town, "openai_chat", Turn(text="Done."))
    assert ask(town, "openai_chat", "openai_chat", tools("openai_chat", name)).status == 200
    sent = town.last("openai_chat")["tools"][0]["function"]["name"]
    assert (sent == name) == (size <= 64)
    assert len(sent) == min(size, 64)
