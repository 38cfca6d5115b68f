"""Markers of a cached prefix that Chat clients send reach Anthropic, as many as it takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.surfaces.library.decoding import provider_row
from bardo.values.wire import Arrival, WireRequest

MARK = {"type": "ephemeral"}
CLAUDE = "anthropic.claude-sonnet-4-5"


def written(target: str, **fields: Any) -> WireRequest:
    body = msgspec.json.encode({"model": "m", "max_tokens": 9, **fields})
    request = dialect("openai_chat").decode_request(body, Arrival(model="m"))
    return dialect(target).encode_request(
        request, msgspec.convert({"id": target, "name": target, "dialect": target}, ProviderRow)
    )


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words, "cache_control": MARK}


def test_markers_of_parts_and_messages_reach_anthropic() -> None:
    wire = written(
        "anthropic_messages",
        messages=[
            {"role": "system", "content": [text("Be brief.")]},
            {"role": "user", "content": "Read this.", "cache_control": MARK},
        ],
    )
    body = msgspec.json.decode(wire.body)
    assert body["system"] == [text("Be brief.")]
    assert body["messages"] == [{"role": "user", "content": [text("Read this.")]}]
    assert wire.degraded == ()


def test_no_more_markers_go_than_anthropic_takes() -> None:
    parts = [text(f"Part {number}.") for number in range(6)]
    wire = written("anthropic_messages", messages=[{"role": "user", "content": parts}])
    content = msgspec.json.decode(wire.body)["messages"][0]["content"]
    assert ["cache_control" in block for block in content] == [False] * 2 + [True] * 4
    assert [one.what for one in wire.degraded] == ["cache_control"]


@pytest.mark.parametrize("target", ["anthropic_messages", "bedrock_converse"])
def test_of_too_many_markers_the_last_are_kept_and_one_of_what_all_conversations_share(target: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}, "cache_control": MARK}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": [text("Be brief.")]},
        {"role": "user", "content": "First.", "cache_control": MARK},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [text("result")]},
        {"role": "assistant", "content": [text("Second.")]},
        {"role": "user", "content": [text("Third.")]},
    ]
    wire = written(target, model=CLAUDE, messages=messages, tools=[tool])
    names = ("cache_control", "cachePoint")
    body = msgspec.json.decode(wire.body)
    marked = [one for one in (body["system"], *body["messages"], body.get("tools"), body.get("toolConfig")) if one]
    held = [any(f'"{name}"'.encode() in msgspec.json.encode(one) for name in names) for one in marked]
    assert held == [True, False, False, True, True, True, False]
    assert [one.what for one in wire.degraded] == ["cache_control"]


@pytest.mark.parametrize("target", ["anthropic_messages", "bedrock_converse", "openai_chat"])
def test_what_stands_beside_a_function_is_kept_or_reported(target: str) -> None:
    function = {"name": "f", "parameters": {"type": "object"}, "cache_control": MARK, "x_own": 1}
    tools = [{"type": "function", "function": function}]
    wire = written(target, model=CLAUDE, messages=[{"role": "user", "content": "Hi."}], tools=tools)
    body = msgspec.json.decode(wire.body)
    lost = [one.what for one in wire.degraded]
    if target == "openai_chat":
        assert (body["tools"], lost) == (tools, [])
    else:
        assert lost == ["x_own"]
        assert any(name.encode() in wire.body for name in ("cache_control", "cachePoint"))


def test_a_marker_of_a_whole_system_message_is_a_cache_point_for_converse() -> None:
    messages = [{"role": "system", "content": "Be brief.", "cache_control": MARK}, {"role": "user", "content": "Hi."}]
    wire = written("bedrock_converse", model=CLAUDE, messages=messages)
    assert msgspec.json.decode(wire.body)["system"] == [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]
    assert wire.degraded == ()


@pytest.mark.parametrize("target", ["gemini", "openai_responses", "cohere"])
def test_a_dialect_without_markers_reports_them(target: str) -> None:
    wire = written(target, messages=[{"role": "user", "content": [text("Hi.")]}])
    assert "cache_control" in {one.what for one in wire.degraded}
    assert b"cache_control" not in wire.body


def test_a_marker_of_a_message_with_nothing_in_it_is_reported() -> None:
    silent = {"role": "user", "content": [], "cache_control": MARK}
    wire = written("anthropic_messages", messages=[{"role": "user", "content": "Hi."}, silent])
    assert b"cache_control" not in wire.body
    assert [one.what for one in wire.degraded] == ["cache_control"]


def claude(provider: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    row = provider_row(provider)
    body = msgspec.json.encode({"model": "m", "max_tokens": 9, **fields})
    request = dialect("anthropic_messages").decode_request(body, Arrival(model="m"))
    wire = dialect("openai_chat").encode_request(request, row)
    return msgspec.json.decode(wire.body), [one.what for one in wire.degraded]


CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
FOUND = {"type": "tool_result", "tool_use_id": "c1", "content": "Rain.", "cache_control": MARK}
MARKED: dict[str, Any] = {
    "system": [text("Be brief.")],
    "messages": [
        {"role": "user", "content": [text("Look.")]},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [FOUND]},
    ],
}


def test_markers_of_messages_clients_reach_a_chat_provider_that_is_known_to_take_them() -> None:
    body, lost = claude("openrouter", **MARKED)
    assert lost == []
    system, user, _, result = body["messages"]
    assert system["content"] == [text("Be brief.")]
    assert user["content"] == [text("Look.")]
    assert result["content"] == [text("Rain.")]


def test_other_chat_providers_get_no_markers() -> None:
    body, lost = claude("openai-chat", **MARKED)
    assert b"cache_control" not in msgspec.json.encode(body)
    assert lost == ["cache_control"]


def test_a_marker_where_chat_has_no_place_for_it_is_reported() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}, "cache_control": MARK}
    body, lost = claude("openrouter", messages=[{"role": "user", "content": "Hi."}], tools=[tool])
    assert b"cache_control" not in msgspec.json.encode(body)
    assert lost == ["cache_control"]


def converse(model: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    body = msgspec.json.encode({"model": model, "max_tokens": 9, **fields})
    request = dialect("anthropic_messages").decode_request(body, Arrival(model=model))
    wire = dialect("bedrock_converse").encode_request(request, provider_row("bedrock"))
    return msgspec.json.decode(wire.body), [one.what for one in wire.degraded]


def test_markers_are_cache_points_behind_their_blocks_for_converse() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}, "cache_control": {**MARK, "ttl": "1h"}}
    body, lost = converse("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", **MARKED, tools=[tool])
    point = {"cachePoint": {"type": "default"}}
    assert lost == []
    assert body["system"] == [{"text": "Be brief."}, point]
    first, _, last = body["messages"]
    assert first["content"] == [{"text": "Look."}, point]
    assert [*last["content"][0]] == ["toolResult"]
    assert last["content"][1] == point
    assert body["toolConfig"]["tools"][1] == {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert b"cache_control" not in msgspec.json.encode(body)


def test_a_model_without_cache_points_gets_none() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}}
    body, lost = converse("anthropic.claude-3-haiku-20240307-v1:0", **MARKED, tools=[tool])
    assert b"cachePoint" not in msgspec.json.encode(body)
    assert lost == ["cache_control"]


POINT, HOUR = {"cachePoint": {"type": "default"}}, {"cachePoint": {"type": "default", "ttl": "1h"}}


def of_converse(provider: str, model: str) -> tuple[dict[str, Any], list[str]]:
    """Return what a provider is sent of a Converse client's request with cache points, and what is lost of it."""
    spec = {"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}
    body = {
        "system": [{"text": "Be brief."}, HOUR],
        "messages": [
            {"role": "user", "content": [{"text": "Look."}, POINT]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "Rain."}]}}, POINT]},
        ],
        "toolConfig": {"tools": [spec, HOUR]},
    }
    request = dialect("bedrock_converse").decode_request(msgspec.json.encode(body), Arrival(model=model))
    provider_at = Provider(id=provider, row=provider_row(provider), base_url="http://x")
    attempt = plan(request, Target(provider=provider_at, model=model))
    sent = msgspec.json.decode(attempt.wire.body)
    if provider == "bedrock":
        assert sent == body
    return sent, [one.what for one in attempt.degraded]


def test_cache_points_are_markers_of_what_stands_before_them() -> None:
    body, lost = of_converse("anthropic", "claude-sonnet-4-5")
    hour = {**MARK, "ttl": "1h"}
    assert lost == []
    assert body["system"][0]["cache_control"] == body["tools"][0]["cache_control"] == hour
    first, _, last = body["messages"]
    assert first["content"] == [text("Look.")]
    assert last["content"][0]["cache_control"] == MARK
    body, lost = of_converse("openrouter", "anthropic/claude-sonnet-4.5")
    assert [("cache_control" in str(one["content"])) for one in body["messages"]] == [True, True, False, True]
    assert lost == ["cache_control"], "Chat has no place for the one of the tools"
    assert of_converse("bedrock", CLAUDE)[1] == []


def test_cache_points_are_markers_for_claude_by_invoke_and_stay_what_they_are_for_nova() -> None:
    body, lost = of_converse("bedrock-invoke", CLAUDE)
    assert lost == []
    assert body["system"][0]["cache_control"] == body["tools"][0]["cache_control"] == {**MARK, "ttl": "1h"}
    assert [("cache_control" in str(one)) for one in body["messages"]] == [True, False, True]
    body, lost = of_converse("bedrock-invoke", "amazon.nova-pro-v1:0")
    assert lost == []
    assert body["system"] == [{"text": "Be brief."}, HOUR]
    assert [str(one["content"]).count("cachePoint") for one in body["messages"]] == [1, 0, 1]


def test_a_cache_point_with_nothing_before_it_is_reported() -> None:
    body = {"messages": [{"role": "user", "content": [POINT, {"text": "Hi."}]}]}
    request = dialect("bedrock_converse").decode_request(msgspec.json.encode(body), Arrival(model="m"))
    provider = Provider(id="a", row=provider_row("anthropic"), base_url="http://x")
    attempt = plan(request, Target(provider=provider, model="claude-sonnet-4-5"))
    assert b"cache" not in attempt.wire.body
    assert "content.bedrock_converse" in {one.what for one in attempt.degraded}
