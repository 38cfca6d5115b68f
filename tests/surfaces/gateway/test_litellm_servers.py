"""A LiteLLM server's `thinking_blocks`: read as signed thinking, given to every client, and given back as they came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import Scripted, chat_message, scripted

MODEL = "litellm/claude-sonnet-4-5"
BLOCKS = [
    {"type": "thinking", "thinking": "I must look.", "signature": "sig-1"},
    {"type": "redacted_thinking", "data": "sealed-1"},
    {"type": "thinking", "thinking": "Twice.", "signature": "sig-2"},
]
CALL = {"id": "toolu_1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "claude-sonnet-4-5"}
SCHEMA = {"type": "object", "properties": {"at": {"type": "number"}}}


def whole(message: dict[str, Any], finish: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def first_reply(*, stream: bool) -> Any:
    if not stream:
        text = "I must look.Twice."
        message = {"role": "assistant", "content": None, "reasoning_content": text, "thinking_blocks": BLOCKS}
        return whole({**message, "tool_calls": [CALL]}, "tool_calls")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for block in BLOCKS:
        if block["type"] == "redacted_thinking":
            deltas.append({"thinking_blocks": [block]})
            continue
        for piece in (block["thinking"][:3], block["thinking"][3:]):
            told = {"type": "thinking", "thinking": piece, "signature": None}
            deltas.append({"reasoning_content": piece, "thinking_blocks": [told], "content": ""})
        deltas.append({"reasoning_content": "", "thinking_blocks": [{**block, "thinking": ""}], "content": ""})
    deltas.append({"tool_calls": [{"index": 0, **CALL}]})
    chunks = [{**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return [*chunks, {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"]


def second_reply() -> dict[str, Any]:
    return whole({"role": "assistant", "content": "Seen."}, "stop")


def given_back(played: Scripted) -> Any:
    messages = played.bodies[-1]["messages"]
    return next(message for message in messages if message["role"] == "assistant")


@whole_and_streamed
def test_a_messages_client_gives_the_blocks_back(stream: bool) -> None:
    tools = [{"name": "look", "input_schema": SCHEMA}]
    asked = [{"role": "user", "content": "Look."}]
    thinking = {"type": "enabled", "budget_tokens": 2000}
    body = {"model": MODEL, "max_tokens": 4000, "tools": tools, "messages": asked, "thinking": thinking}
    with scripted(["litellm"]) as played:
        played.replies = [first_reply(stream=stream), second_reply()]
        _, raw = played.post("/v1/messages", {**body, "stream": stream})
        content = streamed_content(raw) if stream else json.loads(raw)["content"]
        thoughts = [block["thinking"] for block in content if block.get("thinking")]
        assert thoughts == ["I must look.", "Twice."]
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
        turn = [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        played.post("/v1/messages", {**body, "messages": [*asked, *turn]})
        assert given_back(played)["thinking_blocks"] == BLOCKS


def streamed_content(raw: bytes) -> list[dict[str, Any]]:
    """Return the blocks of a stream in Anthropic's form, as its library puts them together."""
    blocks: list[dict[str, Any]] = []
    for line in raw.decode().splitlines():
        event = json.loads(line[6:]) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event.get("type") == "content_block_delta":
            for name, piece in event["delta"].items():
                if name == "partial_json":
                    blocks[-1]["input"] = {"at": 1}
                elif name != "type":
                    blocks[-1][name] = str(blocks[-1].get(name) or "") + piece
    return blocks


@whole_and_streamed
@pytest.mark.parametrize("keeps", [True, False], ids=["all", "the calls alone"])
def test_a_chat_client_gives_the_blocks_back(stream: bool, keeps: bool) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    asked = [{"role": "user", "content": "Look."}]
    body = {"model": MODEL, "tools": tools, "messages": asked, "bardo": {"include": ["receipt"]}}
    with scripted(["litellm"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [first_reply(stream=stream), second_reply()]
        _, raw = played.post("/v1/chat/completions", {**body, "stream": stream})
        message = chat_message(raw, stream=stream)
        kept = message if keeps else {name: message[name] for name in ("role", "content", "tool_calls")}
        turn = [kept, {"role": "tool", "tool_call_id": "toolu_1", "content": "x"}]
        played.post("/v1/chat/completions", {**body, "messages": [*asked, *turn]})
        assert given_back(played)["thinking_blocks"] == BLOCKS


@whole_and_streamed
def test_a_client_of_litellms_own_form_is_forwarded_and_read(stream: bool) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    asked = [{"role": "user", "content": "Look."}]
    with scripted(["litellm", "anthropic"]) as played:
        played.replies = [first_reply(stream=stream), second_reply(), second_reply()]
        _, raw = played.post(
            "/v1/chat/completions", {"model": MODEL, "tools": tools, "messages": asked, "stream": stream}
        )
        assert b"sealed-1" in raw
        assert raw.count(b'"thinking_blocks"') == (8 - 1 if stream else 1)
        message = {"role": "assistant", "content": None, "thinking_blocks": BLOCKS, "tool_calls": [CALL]}
        turn = [message, {"role": "tool", "tool_call_id": "toolu_1", "content": "x"}]
        again = {"model": MODEL, "tools": tools, "messages": [*asked, *turn]}
        for body in (again, {**again, "bardo": {"include": ["receipt"]}}):
            played.post("/v1/chat/completions", body)
            assert given_back(played)["thinking_blocks"] == BLOCKS
