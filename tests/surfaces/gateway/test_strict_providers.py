"""A client's call goes through where the simulated provider refuses, as the real one does, what the client sent."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.patience import PATIENCE

Body = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
LONG = "call_" + "x" * 80


def looped(given: str) -> list[Body]:
    call = {"id": given, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": given, "content": "a tree"},
    ]


ASKED: Body = {"messages": [{"role": "user", "content": "2 * 3"}]}
JSON_MODE: Body = {"response_format": {"type": "json_object"}}
DEVELOPED = [{"role": "developer", "content": "Be brief."}, *ASKED["messages"]]
BEGUN = [*ASKED["messages"], {"role": "assistant", "content": "It is"}]
THOUGHT = [*BEGUN[:1], {**BEGUN[1], "reasoning_content": "I multiply."}, *ASKED["messages"]]
THINKING: Body = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
CLAUDE_TOOL: Body = {"name": "look", "input_schema": {"type": "object"}}
RESPONSES_TOOL: Body = {"type": "function", "name": "look", "parameters": {"type": "object"}}
RESPONSES_LOOP = [
    {"role": "user", "content": "Look."},
    {"type": "function_call", "call_id": LONG, "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": LONG, "output": "a tree"},
]
GEMINI_BEGUN = [{"role": "user", "parts": [{"text": "2 * 3"}]}, {"role": "model", "parts": [{"text": "It is"}]}]
GEMINI_REFERRED = [
    {"role": "user", "parts": [{"text": "Look."}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
    {
        "role": "user",
        "parts": [{"functionResponse": {"name": "look", "response": {"schema": {"$ref": "#/$defs/tree"}}}}],
    },
]
FORCED: Body = {"type": "function", "function": {"name": "look"}}
REFERRED = looped("call_1")
REFERRED[-1]["content"] = '{"schema": {"$ref": "#/$defs/tree"}}'

# What clients of Chat Completions send, which other APIs refuse as it stands.
FROM_CHAT = [
    ("anthropic", "claude-opus-4-8", {"messages": BEGUN}),
    ("anthropic", "claude-sonnet-4-5", {**ASKED, "tools": TOOLS, "tool_choice": FORCED, "reasoning_effort": "high"}),
    (
        "anthropic",
        "claude-sonnet-4-6",
        {**ASKED, "tools": TOOLS, "tool_choice": "required", "reasoning_effort": "high"},
    ),
    ("anthropic", "claude-9-unheard-of", {**ASKED, "tools": TOOLS, "tool_choice": FORCED, "reasoning_effort": "high"}),
    ("anthropic", "claude-sonnet-4-5", {"messages": DEVELOPED}),
    ("gemini", "gemini-3.6-flash", {"messages": BEGUN}),
    ("anthropic", "claude-opus-5-5", {**ASKED, "tools": TOOLS, "tool_choice": FORCED}),
    ("anthropic", "claude-fable-5-1", {**ASKED, "tools": TOOLS, "tool_choice": "required"}),
    ("gemini", "gemini-2.5-flash", {"messages": REFERRED, "tools": TOOLS}),
    ("gemini", "gemini-2.5-flash", {"messages": DEVELOPED, "top_k": 4}),
    ("openai_responses", "gpt-5-mini", {"messages": looped(LONG), "tools": TOOLS}),
    ("openai_responses", "gpt-5-mini", {**ASKED, "top_k": 4, "min_p": 0.1, "seed": 1, "stop": ["."]}),
    ("fireworks", "accounts/fireworks/models/glm-5", {**ASKED, "bardo": {"reasoning": 300}}),
    ("inline_think", "Qwen/Qwen3-0.6B", {**ASKED, "bardo": {"reasoning": 300}}),
    ("moonshot", "kimi-k3", {**ASKED, "max_tokens": 500}),
    ("xai", "grok-4.3", {**ASKED, "max_tokens": 500, "presence_penalty": 0.5, "stop": ["."]}),
    ("xai", "grok-code-fast-1", {**ASKED, "reasoning_effort": "high"}),
]

CASES = [
    ("mistral", "mistral-small-latest", {"messages": looped(LONG), "tools": TOOLS}, "must be a-z, A-Z, 0-9"),
    ("mistral", "mistral-small-latest", {"messages": looped("call_1"), "tools": TOOLS}, "with a length of 9"),
    (
        "mistral",
        "mistral-small-latest",
        {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "2 * 3"}]},
        "does not match any of the expected tags",
    ),
    ("openai_chat", "gpt-4o", {"messages": looped(LONG), "tools": TOOLS}, "string too long"),
    (
        "openai_chat",
        "gpt-5-mini",
        {"messages": [{"role": "user", "content": "2 * 3"}], "max_tokens": 500},
        "Use 'max_completion_tokens' instead",
    ),
    ("groq", "qwen/qwen3-32b", {**ASKED, "tools": TOOLS, "reasoning_format": "raw"}, "must be `parsed` or `hidden`"),
    ("groq", "qwen/qwen3-32b", {**ASKED, **JSON_MODE, "reasoning_format": "raw"}, "must be `parsed` or `hidden`"),
    ("deepseek", "deepseek-v4-flash", {"messages": DEVELOPED}, "unknown variant `developer`"),
    ("qwen", "qwen3-max", {"messages": DEVELOPED}, "developer is not one of"),
    (
        "qwen",
        "qwen3.5-plus",
        {**ASKED, "tools": TOOLS, "tool_choice": "required", "enable_thinking": True},
        "does not support being set to required or object in thinking mode",
    ),
    ("cerebras", "zai-glm-4.7", {"messages": DEVELOPED}, "Input tag 'developer' found"),
    ("cerebras", "zai-glm-4.7", {**ASKED, "reasoning": {"effort": "low"}}, "property 'reasoning' is unsupported"),
    (
        "cerebras",
        "gpt-oss-120b",
        {"messages": THOUGHT},
        "property 'messages.1.assistant.reasoning_content' is unsupported",
    ),
    ("inline_think", "Qwen/Qwen3-0.6B", {**ASKED, "thinking_token_budget": 512}, "reasoning_config is not configured"),
    ("openai_responses", "gpt-5-mini", {"input": RESPONSES_LOOP, "tools": [RESPONSES_TOOL]}, "maximum length 64"),
    ("openai_responses", "gpt-5-mini", {"input": "2 * 3", "top_k": 4}, "Unknown parameter: 'top_k'"),
    (
        "anthropic",
        "claude-opus-4-8",
        {"messages": BEGUN, "max_tokens": 99},
        "does not support assistant message prefill",
    ),
    ("qwen", "qwen3.5-plus", {**ASKED, "tools": TOOLS, "tool_choice": FORCED}, "required or object in thinking mode"),
    (
        "anthropic",
        "claude-sonnet-4-5",
        {**ASKED, **THINKING, "tools": [CLAUDE_TOOL], "tool_choice": {"type": "tool", "name": "look"}},
        "Thinking may not be enabled when tool_choice forces tool use",
    ),
    (
        "anthropic",
        "claude-opus-5-5",
        {**ASKED, "max_tokens": 99, "tools": [CLAUDE_TOOL], "tool_choice": {"type": "any"}},
        'tool_choice: type \\"tool\\" and \\"any\\" are not supported for this model',
    ),
    ("gemini", "gemini-2.5-flash", {"contents": GEMINI_REFERRED}, "The referenced name `#/$defs/tree`"),
    ("gemini", "gemini-3.6-flash", {"contents": GEMINI_BEGUN}, "Requests ending with a model turn are not supported"),
]
PATHS = {
    "anthropic": "/messages",
    "openai_responses": "/responses",
    "gemini": "/models/{model}:generateContent",
}


def post(address: str, body: Body, path: str) -> tuple[int, str]:
    keys = {"authorization": "Bearer any", "x-api-key": "any", "x-goog-api-key": "any"}
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", **keys}
    request = urllib.request.Request(f"{address}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.mark.parametrize(("name", "model", "body", "words"), CASES)
def test_what_the_provider_refuses_reaches_it_otherwise(name: str, model: str, body: Body, words: str) -> None:
    simulator = Simulator(name)
    path = PATHS.get(name, "/chat/completions").format(model=model)
    asked = body if name == "gemini" else {"model": model, **body}
    with simulator.running() as server:
        preset = simulator.provider.catalog_name
        entry = ProviderEntry(id="it", preset=preset, base_url=server.base_url, api_key_env="K", models=(model,))
        settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
        status, said = post(server.base_url, asked, path)
        assert (status in (400, 422), words in said) == (True, True), said
        with BackgroundServer(gateway_of(settings, {"K": "any"})) as gateway:
            version = "/v1beta" if name == "gemini" else "/v1"
            status, said = post(f"{gateway.address}{version}", asked, path)
        assert status == 200, said


@pytest.mark.parametrize(("name", "model", "body"), FROM_CHAT)
def test_a_call_of_a_chat_client_is_taken(name: str, model: str, body: Body) -> None:
    simulator = Simulator(name)
    with simulator.running() as server:
        preset = simulator.provider.catalog_name
        entry = ProviderEntry(id="it", preset=preset, base_url=server.base_url, api_key_env="K", models=(model,))
        settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
        with BackgroundServer(gateway_of(settings, {"K": "any"})) as gateway:
            status, said = post(f"{gateway.address}/v1", {"model": model, **body}, "/chat/completions")
        asked = [request for request in server.requests if request.method == "POST"]
    # What no row knows is refused once, and sent again without it.
    assert (status, len(asked) <= 2) == (200, True), said


@pytest.mark.parametrize("name", ["$ref", "shown.png"])
def test_gemini_refuses_a_reference_to_no_part_of_a_result(name: str) -> None:
    inside = {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "shown.png"}}
    result = {"name": "look", "response": {"picture": {"$ref": name}}, "parts": [inside]}
    turns = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": result}]},
    ]
    with Simulator("gemini").running() as server:
        status, said = post(server.base_url, {"contents": turns}, "/models/gemini-2.5-flash:generateContent")
    assert (status, "The referenced name `$ref` in function_response" in said) == (
        (400, True) if name == "$ref" else (200, False)
    )
