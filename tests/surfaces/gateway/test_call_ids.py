"""Every tool call that reaches a client has an id of its own, whatever the provider leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import Scripted, chat_message, chat_reply, scripted

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
BARE = {"type": "function", "function": {"name": "look", "arguments": "{}"}}


def gemini_reply(*, stream: bool) -> Any:
    parts = [{"functionCall": {"name": "look", "args": {}}}, {"functionCall": {"name": "look", "args": {}}}]
    reply = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}
    return [reply] if stream else reply


def ids_of(played: Scripted, model: str, *, stream: bool) -> list[str]:
    body = {"model": model, "messages": [{"role": "user", "content": "Look."}], "tools": TOOLS, "stream": stream}
    _, answer = played.post("/v1/chat/completions", body)
    calls = chat_message(answer, stream=stream)["tool_calls"]
    assert [call["function"] for call in calls] == [{"name": "look", "arguments": "{}"}] * 2
    return [call["id"] for call in calls]


@whole_and_streamed
@pytest.mark.parametrize("missing", [{"id": ""}, {"id": None}, {}], ids=["empty", "null", "absent"])
@pytest.mark.parametrize("preset", ["openai-compatible", "deepseek", "vllm"])
def test_a_chat_servers_calls_without_ids_get_ids(preset: str, missing: dict[str, Any], stream: bool) -> None:
    with scripted([preset]) as played:
        played.replies = [chat_reply({"tool_calls": [{**BARE, **missing}] * 2}, stream=stream) for _ in range(2)]
        ids = [one for _ in range(2) for one in ids_of(played, f"{preset}/m", stream=stream)]
    assert all(ids)
    assert len(set(ids)) == 4


@whole_and_streamed
def test_geminis_calls_without_ids_get_ids_that_no_other_reply_has(stream: bool) -> None:
    with scripted(["gemini"]) as played:
        played.replies = [gemini_reply(stream=stream) for _ in range(2)]
        ids = [one for _ in range(2) for one in ids_of(played, "gemini/gemini-3-pro", stream=stream)]
    assert all(ids)
    assert len(set(ids)) == 4


@whole_and_streamed
def test_a_call_with_an_id_goes_to_a_client_of_the_same_dialect_as_it_came(stream: bool) -> None:
    with scripted(["openai-compatible"]) as played:
        calls = [{**BARE, "id": "call_0"}, {**BARE, "id": "call_1"}]
        played.replies = [chat_reply({"tool_calls": calls}, stream=stream)]
        assert ids_of(played, "openai-compatible/m", stream=stream) == ["call_0", "call_1"]


@whole_and_streamed
@pytest.mark.parametrize("preset", ["openai-compatible", "deepseek"])
def test_the_older_form_of_a_call_goes_to_its_client_as_it_came(preset: str, stream: bool) -> None:
    called = {"name": "look", "arguments": "{}"}
    with scripted([preset]) as played:
        played.replies = [chat_reply({"function_call": called}, stream=stream)]
        asked = {"model": f"{preset}/m", "messages": [{"role": "user", "content": "Look."}], "stream": stream}
        _, answer = played.post("/v1/chat/completions", asked)
    assert ('"function_call"' in answer.decode()) is (preset == "deepseek"), "only DeepSeek's frames need no change"
    assert '"id":""' not in answer.decode().replace(" ", "")


@whole_and_streamed
def test_a_gemini_client_is_given_no_id_that_google_did_not_give(stream: bool) -> None:
    with scripted(["gemini"]) as played:
        played.replies = [gemini_reply(stream=stream)]
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        asked = {"contents": [{"role": "user", "parts": [{"text": "Look."}]}]}
        _, answer = played.post(f"/v1beta/models/gemini/gemini-3-pro:{verb}", asked)
    text = answer.decode().removeprefix("data: ").split("\r\n\r\n")[0].split("\n\n")[0]
    parts = json.loads(text)["candidates"][0]["content"]["parts"]
    assert [part["functionCall"] for part in parts] == [{"name": "look", "args": {}}] * 2
