"""Features meet: any of them asked for together, of any provider, is answered or refused, and never meets a mistake in bardo."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import Fault, Script, ToolCall, Turn
from bardo.simulators.faults import Kind
from support.gateway import all_simulators, model_of
from support.keyed_gateway import keyed_gateway
from support.sampling import NIGHTLY, rank
from support.talk import ALL_CLIENTS, SCHEMA, body_for, path_for, request

PRICES = '[[prices]]\nmatch = "*"\ninput = 1.0\noutput = 10.0\n'
SETTINGS = {
    "as it is": "",
    "cut": '[budgets]\noverrun = "cut"\n',
    "all layers": '[inference.pipeline]\nprofile = "full"\n',
    "cached": '[inference.pipeline]\nprofile = "standard"\n[inference.caching]\ncalls = "all"\n',
    "read on": "[gateway]\ndrain_cancelled = true\n",
}
REQUESTS = 1_500 if NIGHTLY else 120
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel
)
STRICT = {**SCHEMA, "additionalProperties": False}
FAULTS: tuple[Kind, ...] = (
    "status", "drip", "cut", "early-end", "disconnect", "reset", "malformed", "content-type", "lying", "error-event", "error-body",
)  # fmt: skip
ENDS = {
    "openai_chat": ("[DONE]",),
    "openai_responses": ("response.completed", "response.incomplete", "response.failed"),
    "anthropic_messages": ("message_stop",),
}
"""What the last event of a stream says, where nothing went wrong."""
HEADERS = (
    {"x-claude-code-session-id": "one"},
    {"x-claude-code-session-id": "two", "user-agent": "claude-cli/2.1.330 (external, cli)"},
    {"user-agent": "codex_cli_rs/0.160.0"},
    {"x-bardo-effort": "high"},
    {"x-bardo-effort": "none"},
    {"x-bardo-pipeline": "full"},
)
EXTENSIONS: dict[str, Any] = {
    "include": ["receipt", "chain", "structured"],
    "layers": {"cache": True},
    "stale_seconds": 60,
    "reasoning": {"effort": "high"},
    "verify": True,
}

Body = dict[str, Any]
Change = Callable[[Body], object]


def _set(**fields: Any) -> Change:
    return lambda body: body.update(json.loads(json.dumps(fields)))


def _more_tools(*tools: Body) -> Change:
    return lambda body: body.setdefault("tools", []).extend(tools)


CALLED = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
FEATURES: dict[str, tuple[Change, ...]] = {
    "openai_chat": (
        _set(max_tokens=1),
        _set(n=2),
        _set(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": STRICT, "strict": True}}),
        _set(logprobs=True, stop=["x"]),
        _set(stream_options={"include_usage": True}),
        _set(web_search_options={}),
        _set(
            messages=[
                {"role": "developer", "content": [{"type": "text", "text": "I am bob@example.com."}]},
                {"role": "user", "content": "And in Paris?"},
                {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALLED]},
                {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
            ]
        ),
        lambda body: body["messages"].append(
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}],
            }
        ),
    ),
    "openai_responses": (
        _set(store=False, include=["reasoning.encrypted_content"]),
        _set(text={"format": {"type": "json_schema", "name": "a", "schema": STRICT, "strict": True}}),
        _set(background=True),
        _set(instructions="Be kind.", max_output_tokens=16),
        _set(input=[{"role": "user", "content": "And?"}, {"type": "compaction_trigger"}]),
        _set(
            input=[
                {"role": "user", "content": "And in Paris?"},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "Rain."},
            ]
        ),
        _more_tools({"type": "tool_search"}),
        _more_tools({"type": "web_search"}),
    ),
    "anthropic_messages": (
        _set(system=[{"type": "text", "text": "I am bob@example.com.", "cache_control": {"type": "ephemeral"}}]),
        _set(cache_control={"type": "ephemeral"}),
        _set(output_config={"format": {"type": "json_schema", "schema": STRICT}}),
        _set(thinking={"type": "adaptive"}),
        _set(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]}),
        _set(
            messages=[
                {"role": "user", "content": "And in Paris?"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "abc"},
                        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Rain."}]},
            ]
        ),
        _more_tools({"type": "web_search_20250305", "name": "web_search"}),
        _more_tools(
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            {"name": "later", "defer_loading": True, "input_schema": SCHEMA},
        ),
    ),
    "gemini": (
        lambda body: body.setdefault("generationConfig", {}).update(
            responseMimeType="application/json",
            responseSchema={"type": "OBJECT", "properties": {"city": {"type": "STRING"}}},
        ),
        lambda body: body.setdefault("generationConfig", {}).update(candidateCount=2),
        lambda body: body.setdefault("generationConfig", {}).update(thinkingConfig={"thinkingBudget": 0}),
        _set(systemInstruction={"parts": [{"text": "I am bob@example.com."}]}),
        _more_tools({"googleSearch": {}}),
    ),
}


def _turn(chance: random.Random, *, tools: bool) -> Turn:
    """Return what a model says, and how its reply breaks."""
    cities = ("Paris", "", "ü\\\"'")
    calls = tuple(ToolCall("weather", {"city": chance.choice(cities)}) for _ in range(chance.randrange(4)))
    fault = Fault(
        chance.choice(FAULTS),
        status=chance.choice((400, 401, 404, 413, 422, 429, 500, 503, 529)),
        after=chance.randrange(6),
        delay=0.0,
        size=chance.choice((1, 7, 50)),
        times=chance.choice((None, 1)),
    )
    return Turn(
        text=chance.choice(("", "Yes.", '{"city": "Paris"}', "<think>x</think>y", "word " * 300)),
        reasoning=chance.choice(("", "I think. " * chance.choice((1, 60)))),
        tool_calls=calls if tools and chance.random() < 0.6 else (),
        redacted=chance.random() < 0.1,
        fault=fault if chance.random() < 0.3 else None,
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_asked_together_is_answered_or_refused(
    tmp_path: Path, settings: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Each day the same requests, so that no day comes upon what no night has seen.
    chance = random.Random(rank("feature combinations", settings) if NIGHTLY else settings)

    def likely() -> bool:
        return chance.random() < 0.2

    simulators = {one.provider.name: one for one in all_simulators()}
    with keyed_gateway(tmp_path, list(simulators.values()), toml=PRICES + SETTINGS[settings]) as gateway:
        keys = [gateway.key(), gateway.key(usd_per_day=50.0, concurrency=8), gateway.key(usd_per_session=10.0)]
        for _ in range(REQUESTS):
            provider, client = chance.choice(list(simulators)), chance.choice(ALL_CLIENTS)
            model, stream = model_of(provider), chance.random() < 0.5
            tools = client != "ollama_generate" and chance.random() < 0.4
            body = body_for(client, model, stream=stream, thinks=chance.random() < 0.5, tools=tools)
            for change in FEATURES.get(client, ()):
                if likely():
                    change(body)
            if client in ENDS and likely():
                body["bardo"] = {name: value for name, value in EXTENSIONS.items() if likely()}
            headers = {"authorization": f"Bearer {chance.choice(keys)}"} | (chance.choice(HEADERS) if likely() else {})
            simulators[provider].play(Script((_turn(chance, tools=tools),)) if chance.random() < 0.7 else Script())
            answer = request(gateway.address, "POST", path_for(client, model, stream=stream), body, headers)
            # Bedrock's frames are no text.
            text = answer.body.decode(errors="replace")
            asked = (provider, client, stream, body, headers, text[-500:], caplog.text[-3_000:])
            assert "internal_error" not in text, asked
            assert "Traceback" not in caplog.text, asked
            if answer.status == 200 and stream and "error" not in text:
                assert any(end in text for end in ENDS.get(client, ("",))), asked
