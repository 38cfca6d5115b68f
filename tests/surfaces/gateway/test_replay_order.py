"""Claude's interleaved thinking goes back to Claude in its order, from a Chat client that echoes the details or drops everything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import chat_message, scripted

IDS = ("toolu_01Xq7Kd92LmPvR4sT8wYzB3n", "toolu_01Jh5Gf83NcQwE6rU2iOaS9k")
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "First Paris.", "signature": "EqQBCkYIBxgCKkBkc2lnbmF0dXJlIG9uZQ"},
    {"type": "text", "text": "Let me look. "},
    {"type": "tool_use", "id": IDS[0], "name": "look", "input": {"at": 1}},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rL"},
    {"type": "thinking", "thinking": "Then Rome.", "signature": "EqQBCkYIBxgCKkBkc2lnbmF0dXJlIHR3bw"},
    {"type": "text", "text": "And there."},
    {"type": "tool_use", "id": IDS[1], "name": "look", "input": {"at": 2}},
]
USAGE = {"input_tokens": 1, "output_tokens": 1}
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": USAGE}
END = {**HEAD, "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}


def reply(*, stream: bool) -> Any:
    if not stream:
        return {**HEAD, "content": CONTENT, "stop_reason": "tool_use"}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**HEAD, "content": [], "stop_reason": None}}]
    for index, block in enumerate(CONTENT):
        empty: dict[str, Any] = {name: "" for name in ("thinking", "signature", "text") if name in block}
        start: dict[str, Any] = {**block, **empty, **({"input": {}} if "input" in block else {})}
        deltas: list[dict[str, Any]] = []
        if block["type"] == "thinking":
            deltas.append({"type": "thinking_delta", "thinking": block["thinking"]})
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "text":
            deltas.append({"type": "text_delta", "text": block["text"]})
        elif block["type"] == "tool_use":
            deltas.append({"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}})
    return [*events, {"type": "message_stop"}]


@whole_and_streamed
@pytest.mark.parametrize("echoes", [True, False], ids=["echoes the details", "drops everything"])
def test_interleaved_thinking_goes_back_in_its_order(echoes: bool, stream: bool) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    history: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    body = {"model": "anthropic/claude-sonnet-4-5", "messages": history, "tools": tools, "max_tokens": 4000}
    with scripted(["anthropic"], None if echoes else ReplayKeeper(MemoryStore())) as played:
        played.replies = [reply(stream=stream), END]
        _, answer = played.post("/v1/chat/completions", {**body, "stream": stream})
        message = chat_message(answer, stream=stream)
        kept = ("role", "content", "tool_calls", *(("reasoning_details",) if echoes else ()))
        history.append({name: message[name] for name in kept})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in message["tool_calls"]]
        headers, _ = played.post("/v1/chat/completions", body)
        sent = played.bodies[1]["messages"][1]["content"]
    assert sent == CONTENT
    assert "reasoning" not in headers.get("x-bardo-degraded", "")
