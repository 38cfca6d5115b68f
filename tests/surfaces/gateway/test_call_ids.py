"""Every tool call that reaches a client has an id of its own, whatever the provider leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
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


@whole_and_streamed
@pytest.mark.parametrize("own", [("gA", "gB"), ("gA", None), (None, None)])
def test_ids_that_google_gave_go_back_to_it_with_the_results(own: tuple[str | None, ...], stream: bool) -> None:
    given = [{"name": "look", "args": {}} | ({"id": one} if one else {}) for one in own]
    parts = [{"functionCall": given[0], "thoughtSignature": "U0lH"}, {"functionCall": given[1]}]
    reply = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}
    asked = {"role": "user", "content": "Look."}
    with scripted(["gemini"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [[reply] if stream else reply, gemini_reply(stream=stream)]
        body = {"model": "gemini/gemini-3-pro", "messages": [asked], "tools": TOOLS, "stream": stream}
        said = chat_message(played.post("/v1/chat/completions", body)[1], stream=stream)
        calls = [{name: call[name] for name in ("id", "type", "function")} for call in said["tool_calls"]]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": call["id"]} for call in reversed(calls)]
        history = [asked, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
        played.post("/v1/chat/completions", {**body, "messages": history})
        _, called, answered = played.bodies[-1]["contents"]
    assert [part["functionCall"].get("id") for part in called["parts"]] == [*own]
    assert called["parts"][0]["thoughtSignature"] == "U0lH"
    sent = [part["functionResponse"] for part in answered["parts"]]
    assert [one.get("id") for one in sent] == [*own]
    assert [one["response"]["output"] for one in sent] == [call["id"] for call in calls]


def anthropic_reply(missing: dict[str, Any], *, stream: bool) -> Any:
    calls = [{"type": "tool_use", "name": "look", "input": {}, **missing} for _ in range(2)]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    if not stream:
        return {**head, "content": calls, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
    blocks = [
        one
        for place, call in enumerate(calls)
        for one in (
            {"type": "content_block_start", "index": place, "content_block": call},
            {"type": "content_block_stop", "index": place},
        )
    ]
    return [
        {"type": "message_start", "message": {**head, "content": [], "usage": usage}},
        *blocks,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def responses_reply(missing: dict[str, Any], *, stream: bool) -> Any:
    ids = {"call_id" if name == "id" else name: value for name, value in missing.items()}
    call = {"type": "function_call", "name": "look", "arguments": "{}", "status": "completed"}
    items = [{**call, "id": f"fc_{place}", **ids} for place in range(2)]
    whole = {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": items}
    if not stream:
        return whole
    events = [
        {"type": f"response.output_item.{word}", "output_index": place, "item": item}
        for place, item in enumerate(items)
        for word in ("added", "done")
    ]
    begun = {**whole, "status": "in_progress", "output": []}
    return [{"type": "response.created", "response": begun}, *events, {"type": "response.completed", "response": whole}]


def cohere_reply(missing: dict[str, Any], *, stream: bool) -> Any:
    calls = [{"type": "function", "function": {"name": "look", "arguments": "{}"}, **missing} for _ in range(2)]
    if not stream:
        message = {"role": "assistant", "tool_calls": calls}
        return {"id": "c", "message": message, "finish_reason": "TOOL_CALL", "usage": {}}
    events = [
        one
        for place, call in enumerate(calls)
        for one in (
            {"type": "tool-call-start", "index": place, "delta": {"message": {"tool_calls": call}}},
            {"type": "tool-call-end", "index": place},
        )
    ]
    start = {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}}
    return [start, *events, {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {}}}]


def objects_in(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
        for held in value.values():
            yield from objects_in(held)
    if isinstance(value, list):
        for held in value:
            yield from objects_in(held)


def payloads(answer: bytes, *, stream: bool) -> list[Any]:
    lines = [line[6:] for line in answer.decode().splitlines() if line.startswith("data: {")] if stream else [answer]
    return [json.loads(line) for line in lines]


ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Look."}], "max_tokens": 9}
FORWARDED: dict[str, tuple[Any, str, dict[str, Any], str]] = {
    "anthropic": (anthropic_reply, "/v1/messages", ASKED, "id"),
    "openai": (responses_reply, "/v1/responses", {"input": "Look."}, "call_id"),
    "cohere": (cohere_reply, "/v2/chat", ASKED, "id"),
}


@whole_and_streamed
@pytest.mark.parametrize("missing", [{"id": ""}, {"id": None}, {}], ids=["empty", "null", "absent"])
@pytest.mark.parametrize("preset", FORWARDED)
def test_a_call_without_an_id_gets_one_where_its_frames_are_forwarded(
    preset: str, missing: dict[str, Any], stream: bool
) -> None:
    make_reply, path, asked, name = FORWARDED[preset]
    with scripted([preset]) as played:
        played.replies = [make_reply(missing, stream=stream), make_reply({"id": "call_own"}, stream=stream)]
        answers = [played.post(path, {**asked, "model": f"{preset}/m", "stream": stream})[1] for _ in range(2)]
    called = [
        one
        for one in objects_in(payloads(answers[0], stream=stream))
        if one.get("type") in ("tool_use", "function_call", "function")
    ]
    assert len(called) == (6 if preset == "openai" and stream else 2)
    assert all(one[name] for one in called)
    assert len({one[name] for one in called}) == 2
    kept = {one[name] for one in objects_in(payloads(answers[1], stream=stream)) if "call_own" in one.values()}
    assert kept == {"call_own"}
    sent = make_reply({"id": "call_own"}, stream=stream)
    named = json.dumps(sent if stream else [sent]).replace('"model": "m"', f'"model": "{preset}/m"')
    assert payloads(answers[1], stream=stream) == json.loads(named), "only the model's name is the client's own"
