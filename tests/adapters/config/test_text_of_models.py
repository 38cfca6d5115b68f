"""What models write in their text, behind servers that leave it there: thinking in any format, and calls of tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.call.open import open_call
from bardo.dialects import dialect
from bardo.reasoning import ReasoningFormat
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from bardo.wiring import Assembly, assemble

MULL = ReasoningFormat(name="mull", start="[[mull]]", end="[[/mull]]", patterns=("mull",))
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}


def ask(
    text: str,
    model: str,
    *,
    preset: str = "vllm",
    stream: bool = False,
    formats: tuple[ReasoningFormat, ...] = (),
    **asked: Any,
) -> Response:
    """Ask a server that answers with `text`, cut into pieces where it is streamed."""
    reply = _streamed(text) if stream else _whole(text)
    entry = ProviderEntry(id="lab", preset=preset, base_url="http://127.0.0.1:9/v1", models=(model,))
    settings = Settings(providers=(entry,), reasoning_formats=formats, log=LogSettings(enabled=False))
    turns = [{"role": "user", "content": "?"}]
    body = json.dumps({"model": f"lab/{model}", "messages": turns, "stream": stream, **asked}).encode()
    request = dialect("openai_chat").decode_request(body, Arrival())
    return asyncio.run(
        _answered(
            assemble(settings, transport=FakeTransport(lambda _: reply), environment={"DEEPSEEK_API_KEY": "k"}), request
        )
    )


async def _answered(assembly: Assembly, request: Request) -> Response:
    live = await open_call(assembly.services, request, may_forward=True)
    async for _ in live.updates():
        pass
    await live.close()
    await assembly.close()
    return live.response()


def _whole(text: str) -> FakeReply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return _reply("application/json", json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}))


def _streamed(text: str) -> FakeReply:
    deltas = [{"content": text[place : place + 3]} for place in range(0, len(text), 3)]
    lines = [_frame({"delta": delta}) for delta in deltas]
    return _reply("text/event-stream", *lines, _frame({"delta": {}, "finish_reason": "stop"}), "data: [DONE]\n\n")


def _frame(choice: Mapping[str, Any]) -> str:
    body = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
    return f"data: {json.dumps(body)}\n\n"


def _reply(kind: str, *chunks: str) -> FakeReply:
    return FakeReply(headers={"content-type": kind}, chunks=[chunk.encode() for chunk in chunks])


whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

TEXTS = {
    "tags": ("Qwen/Qwen3-32B", "<think>hm</think>yes"),
    "a format of the model's own": (
        "openai/gpt-oss-20b",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes",
    ),
    "a prompt that held the opener": ("deepseek-ai/DeepSeek-R1", "hm</think>yes"),
}


@whole_and_streamed
@pytest.mark.parametrize(("model", "text"), TEXTS.values(), ids=TEXTS)
def test_the_models_own_format_is_read(model: str, text: str, stream: bool) -> None:
    response = ask(text, model, stream=stream)
    assert (response.reasoning.content, response.text) == ("hm", "yes")


@whole_and_streamed
def test_a_format_of_the_users_own_holds_for_any_provider(stream: bool) -> None:
    response = ask("[[mull]]hm[[/mull]]yes", "mull-7b", preset="deepseek", stream=stream, formats=(MULL,))
    assert (response.reasoning.content, response.text) == ("hm", "yes")


@whole_and_streamed
def test_the_requests_toggles_say_where_a_reply_begins(stream: bool) -> None:
    on = ask("hm</think>yes", "Qwen/Qwen3.5-9B", stream=stream, chat_template_kwargs={"enable_thinking": True})
    assert (on.reasoning.content, on.text) == ("hm", "yes")
    off = ask("yes", "Qwen/Qwen3.5-9B", stream=stream, chat_template_kwargs={"enable_thinking": False})
    assert (off.reasoning.content, off.text) == (None, "yes")


CALLS = {
    "hermes": (
        "Qwen/Qwen3-32B",
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>',
    ),
    "coder": (
        "Qwen/Qwen3-Coder-30B",
        "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
    ),
    "harmony": (
        "openai/gpt-oss-20b",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        '<|constrain|>json<|message|>{"city": "Paris", "days": 2}<|call|>',
    ),
}


@whole_and_streamed
@pytest.mark.parametrize(("model", "text"), CALLS.values(), ids=CALLS)
def test_calls_in_the_text_are_calls(model: str, text: str, stream: bool) -> None:
    response = ask(text, model, stream=stream, tools=[WEATHER])
    (call,) = response.tool_calls
    assert (call.name, call.arguments) == ("weather", {"city": "Paris", "days": 2})
    assert call.id
    assert response.text == ""
    assert (response.finish.reason, response.finish.raw) == ("tool_calls", "stop")


@whole_and_streamed
def test_a_call_that_is_none_stays_text_and_says_so(stream: bool) -> None:
    text = "<tool_call>\nnothing of the kind\n</tool_call>"
    response = ask(text, "Qwen/Qwen3-32B", stream=stream, tools=[WEATHER])
    assert response.text == text
    assert not response.tool_calls
    assert [one.what for one in response.degraded] == ["tool_calls"]


def test_without_tools_nothing_is_a_call() -> None:
    _, text = CALLS["hermes"]
    assert ask(text, "Qwen/Qwen3-32B").text == text
