"""Kimi's calls are numbered, so its thinking is recalled by the conversation alone: in every client dialect, and for nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import Scripted, chat_reply, scripted

MODEL = "moonshot/kimi-k3"
CALL_ID = "functions.look:0"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "number"}}}
CALL = {"id": CALL_ID, "type": "function", "function": {"name": "look", "arguments": '{"at":1.0}'}}

Turns = tuple[str, dict[str, Any], dict[str, Any]]


def chat(question: str) -> Turns:
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    first: dict[str, Any] = {"model": MODEL, "tools": tools, "messages": [{"role": "user", "content": question}]}
    call = {**CALL, "function": {"name": "look", "arguments": '{"at": 1}'}}
    turn = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": CALL_ID, "content": "x"},
    ]
    parts = [{"role": "user", "content": [{"type": "text", "text": question}]}]
    return "/v1/chat/completions", first, {**first, "messages": [*parts, *turn]}


def responses(question: str) -> Turns:
    tools = [{"type": "function", "name": "look", "parameters": SCHEMA}]
    first: dict[str, Any] = {"model": MODEL, "tools": tools, "input": question}
    turn = [
        {"type": "function_call", "call_id": CALL_ID, "name": "look", "arguments": '{"at":1}'},
        {"type": "function_call_output", "call_id": CALL_ID, "output": "x"},
    ]
    return "/v1/responses", first, {**first, "input": [{"role": "user", "content": question}, *turn]}


def messages(question: str) -> Turns:
    tools = [{"name": "look", "input_schema": SCHEMA}]
    asked = [{"role": "user", "content": question}]
    first: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "tools": tools, "messages": asked}
    marked = {"type": "text", "text": question, "cache_control": {"type": "ephemeral"}}
    turn = [
        {"role": "user", "content": [marked]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": CALL_ID, "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": CALL_ID, "content": "x"}]},
    ]
    return "/v1/messages", first, {**first, "messages": turn}


def gemini(question: str) -> Turns:
    tools = [{"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]}]
    asked = {"role": "user", "parts": [{"text": question}]}
    turn = [
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "x"}}}]},
    ]
    first: dict[str, Any] = {"tools": tools, "contents": [asked]}
    return f"/v1beta/models/{MODEL}:", first, {**first, "contents": [asked, *turn]}


def gemini_cli(question: str) -> Turns:
    """Gemini CLI drops thoughts with the state that stands at them, and writes at a call that it has no signature."""
    path, first, second = gemini(question)
    [call] = second["contents"][1]["parts"]
    turn = {"role": "model", "parts": [{**call, "thoughtSignature": "skip_thought_signature_validator"}]}
    return path, first, {**second, "contents": [second["contents"][0], turn, second["contents"][2]]}


CLIENTS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini, "gemini cli": gemini_cli}
each_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))


def post(played: Scripted, path: str, body: dict[str, Any], *, stream: bool) -> dict[str, str]:
    if path.endswith(":"):
        path += "streamGenerateContent?alt=sse" if stream else "generateContent"
        return played.post(path, body)[0]
    return played.post(path, {**body, "stream": stream})[0]


def thought(number: int) -> dict[str, Any]:
    return {"reasoning_content": f"thought {number}", "tool_calls": [CALL]}


def recalled(played: Scripted) -> str:
    (turn,) = (one for one in played.bodies[-1]["messages"] if one["role"] == "assistant")
    text: str = turn["reasoning_content"]
    return text


@whole_and_streamed
@each_client
def test_interleaved_conversations_with_the_same_ids_each_get_their_own_thought(client: Any, stream: bool) -> None:
    asked = [client(f"Look, number {number}.") for number in range(3)]
    with scripted(["moonshot"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [chat_reply(thought(number), stream=stream) for number in range(3)]
        played.replies += [chat_reply({"content": "Done."}, stream=stream) for _ in range(4)]
        for path, first, _ in asked:
            post(played, path, first, stream=stream)
        for number, (path, _, second) in enumerate(asked):
            headers = post(played, path, second, stream=stream)
            assert recalled(played) == f"thought {number}"
            assert "reasoning" not in headers.get("x-bardo-degraded", "")
        path, _, unseen = client("Look, a question that nobody asked.")
        headers = post(played, path, unseen, stream=stream)
        assert "thought" not in recalled(played).split()
        assert "reasoning" in headers["x-bardo-degraded"]


@each_client
def test_two_conversations_that_cannot_be_told_apart_get_no_thought(client: Any) -> None:
    path, first, second = client("Look.")
    with scripted(["moonshot"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [chat_reply(thought(number), stream=False) for number in range(2)]
        played.replies.append(chat_reply({"content": "Done."}, stream=False))
        post(played, path, first, stream=False)
        post(played, path, first, stream=False)
        headers = post(played, path, second, stream=False)
        assert "thought" not in recalled(played).split()
        assert "reasoning" in headers["x-bardo-degraded"]
