"""OpenRouter's `reasoning_details`, recalled for a client that dropped them, are those of the reply: unmodified and in order."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import chat_message, chat_reply, scripted

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
CALL = {"id": "call_8f2KzPq1LmX7vB3nT5wY9rDc", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CLAUDE = "anthropic-claude-v1"
GEMINI = "google-gemini-v1"
DETAILS: dict[str, list[dict[str, Any]]] = {
    "signed text": [
        {"type": "reasoning.text", "text": "I must look.", "signature": "RXFRQkNrWQ", "format": CLAUDE, "index": 0}
    ],
    "a null id and an empty text": [
        {"type": "reasoning.text", "text": "", "signature": "RXFRQkNrWQ", "id": None, "format": CLAUDE, "index": 0},
        {"type": "reasoning.encrypted", "data": "cmVkYWN0ZWQ", "id": None, "format": CLAUDE, "index": 1},
    ],
    "a summary and a ciphertext of one index": [
        {"type": "reasoning.summary", "summary": "I look.", "format": "openai-responses-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "gAAAAABq", "id": "rs_1", "format": "openai-responses-v1", "index": 0},
    ],
    "state that names its call": [
        {"type": "reasoning.text", "text": "Hm.", "format": GEMINI, "index": 0},
        {"type": "reasoning.encrypted", "data": "Z2VtaW5p", "id": CALL["id"], "format": GEMINI, "index": 0},
    ],
    "two stretches": [
        {"type": "reasoning.text", "text": "One.", "signature": "b25l", "format": CLAUDE, "index": 0},
        {"type": "reasoning.text", "text": "Two.", "signature": "dHdv", "format": CLAUDE, "index": 1},
    ],
    "a field nobody knows": [
        {"type": "reasoning.text", "text": "Hm.", "signature": "b25l", "format": CLAUDE, "index": 0, "new": [1, None]}
    ],
}
MODELS = {CLAUDE: "anthropic/claude-sonnet-4.5", GEMINI: "google/gemini-3-pro", "openai-responses-v1": "openai/gpt-5"}


@whole_and_streamed
@pytest.mark.parametrize("details", DETAILS.values(), ids=list(DETAILS))
def test_recalled_details_are_those_of_the_reply(details: list[dict[str, Any]], stream: bool) -> None:
    model = f"openrouter/{MODELS[details[0]['format']]}"
    said = {"reasoning": "I must look.", "reasoning_details": details, "tool_calls": [CALL]}
    if stream:
        del said["reasoning"]
    with scripted(["openrouter"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [chat_reply(said, stream=stream), chat_reply({"content": "Done."}, stream=stream)]
        history: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
        body = {"model": model, "messages": history, "tools": TOOLS, "stream": stream, "reasoning_effort": "low"}
        _, answer = played.post("/v1/chat/completions", body)
        calls = chat_message(answer, stream=stream)["tool_calls"]
        history += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": CALL["id"], "content": "seen"},
        ]
        played.post("/v1/chat/completions", body)
    assert played.bodies[1]["messages"][1]["reasoning_details"] == details


def test_the_fragments_of_a_stream_are_one_detail() -> None:
    words = ["I ", "must ", "look ", "at ", "this ", "very ", "closely, ", "and ", "then ", "again."]
    head = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "content": "",
            "reasoning": word,
            "reasoning_details": [{"type": "reasoning.text", "text": word, "format": CLAUDE, "index": 0}],
        }
        for word in words
    ]
    signature = {"type": "reasoning.text", "signature": "c2ln", "format": CLAUDE, "index": 0}
    deltas += [{"reasoning_details": [signature]}, {"tool_calls": [{"index": 0, **CALL}]}]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    with scripted(["openrouter"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [[*chunks, end, "[DONE]"], chat_reply({"content": "Done."}, stream=True)]
        history: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
        body = {"model": f"openrouter/{MODELS[CLAUDE]}", "messages": history, "tools": TOOLS, "stream": True}
        played.post("/v1/chat/completions", body)
        history += [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": CALL["id"], "content": "seen"},
        ]
        played.post("/v1/chat/completions", body)
    whole = {"type": "reasoning.text", "text": "".join(words), "signature": "c2ln", "format": CLAUDE, "index": 0}
    assert played.bodies[1]["messages"][1]["reasoning_details"] == [whole]
