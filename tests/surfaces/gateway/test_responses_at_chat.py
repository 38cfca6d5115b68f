"""A Responses body at the path of Chat Completions, as Cursor sends it: read as what it is, and answered as Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from support.any_model import Simulator
from support.gateway import House, house
from support.raw import RawClient, RawReply, post

TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"messages": {}, "city": {"type": "string"}}},
}
UPSTREAMS = ("deepseek", "anthropic", "openai_responses")


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Simulator(name) for name in UPSTREAMS]) as running:
        yield running


def sent(town: House, body: dict[str, Any]) -> RawReply:
    with RawClient(town.address) as raw:
        raw.send(post(raw.host, "/v1/chat/completions", json.dumps(body).encode()))
        return raw.reply()


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("question", ["What is 27 * 43?", [{"role": "user", "content": "What is 27 * 43?"}]])
def test_a_responses_body_is_answered_as_chat_completions(town: House, upstream: str, question: object) -> None:
    body = {"model": f"{upstream}/m1", "input": question, "instructions": "Be brief.", "messages": None, "store": False}
    chat = OpenAI(base_url=f"{town.address}/v1", api_key="any").chat.completions
    whole = chat.with_raw_response.create(model="", messages=[], extra_body=body).parse()
    assert isinstance(whole, ChatCompletion)
    assert whole.choices[0].message.content == "1161"
    streamed = sent(town, {**body, "stream": True}).body.decode()
    frames = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    chunks = [ChatCompletionChunk.model_validate(frame) for frame in frames]
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "1161"
    assert chunks[-1].usage is not None
    assert streamed.endswith("data: [DONE]\n\n")


def test_its_tools_reach_a_chat_provider_in_that_form(town: House) -> None:
    answered = sent(town, {"model": "deepseek/m1", "input": "What is the weather in Paris?", "tools": [TOOL]})
    assert answered.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    upstream = town.last("deepseek")
    assert upstream["tools"][0]["function"]["name"] == "get_weather"


def test_a_body_with_messages_is_read_as_chat_completions(town: House) -> None:
    hello = [{"role": "user", "content": "What is 27 * 43?"}]
    assert sent(town, {"model": "deepseek/m1", "messages": hello, "input": "no"}).status == 200
    assert town.last("deepseek")["messages"][-1]["content"] == "What is 27 * 43?"
    assert sent(town, {"model": "deepseek/m1", "messages": []}).json["error"]["message"].startswith("Missing required")
    assert sent(town, {"model": "deepseek/m1", "input": 4}).json["error"]["param"] == "input"
    refused = sent(town, {"model": "deepseek/m1", "messages": hello, "input": "no", "max_tokens": 0})
    assert refused.json["error"]["param"] == "max_tokens"


def test_a_body_without_a_message_is_read_by_its_input(town: House) -> None:
    question = {"model": "deepseek/m1", "messages": [], "input": "What is 27 * 43?"}
    assert sent(town, question).json["choices"][0]["message"]["content"] == "1161"
