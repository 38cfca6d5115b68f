"""A client that speaks its provider's own dialect keeps the provider's own state, and no unsigned thinking reaches Claude."""

from __future__ import annotations

from typing import Any

import pytest

from surfaces.gateway.scripted import scripted

CIPHERTEXT = "kbiAbmYZJKG8eu5sAd//J7lGZGdNuw8eXr0Qm1=="
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Weather?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": CIPHERTEXT},
    {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
]
TOOLS = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
REPLY = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}
MODELS = {
    "xai-responses": "grok-4.3",
    "openrouter-responses": "x-ai/grok-4.3",
    "openai": "gpt-5",
    "responses-compatible": "m",
    "lmstudio-responses": "m",
}


@pytest.mark.parametrize("altered", [False, True], ids=["as it came", "written anew"])
@pytest.mark.parametrize("preset", MODELS)
def test_native_ciphertext_goes_back_to_the_provider_of_its_dialect(preset: str, altered: bool) -> None:
    with scripted([preset]) as played:
        played.replies = [REPLY]
        body: dict[str, Any] = {"model": f"{preset}/{MODELS[preset]}", "input": HISTORY, "tools": TOOLS}
        headers, _ = played.post("/v1/responses", body | ({"bardo": {"include": ["receipt"]}} if altered else {}))
        items = [item for item in played.bodies[0]["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in items] == [CIPHERTEXT]
    assert "reasoning" not in headers.get("x-bardo-degraded", "")


CLAUDE_REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Sunny."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.parametrize("budget", [None, 2000], ids=["thinking off", "thinking on"])
def test_thinking_without_a_signature_is_left_out_for_claude_and_reported(budget: int | None) -> None:
    turn = [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]
    body: dict[str, Any] = {
        "model": "anthropic/claude-sonnet-4-5",
        "max_tokens": 4000,
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": turn},
            {"role": "user", "content": result},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    }
    if budget:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    with scripted(["anthropic"]) as played:
        played.replies = [CLAUDE_REPLY]
        headers, _ = played.post("/v1/messages", body)
        sent = played.bodies[0]
    assert [block["type"] for block in sent["messages"][1]["content"]] == ["tool_use"]
    assert "reasoning" in headers["x-bardo-degraded"]
    assert sent.get("thinking", {}).get("type", "disabled") == "disabled"


def test_a_clients_own_redacted_thinking_is_sent_as_it_is() -> None:
    turn = [
        {
            "type": "redacted_thinking",
            "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ7",
        },
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": turn},
        {"role": "user", "content": result},
    ]
    body = {"model": "anthropic/claude-sonnet-4-5", "max_tokens": 4000, "messages": messages}
    with scripted(["anthropic"]) as played:
        played.replies = [CLAUDE_REPLY]
        played.post("/v1/messages", body)
        assert played.bodies[0]["messages"][1]["content"] == turn
