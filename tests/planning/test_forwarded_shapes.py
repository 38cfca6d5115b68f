"""A body that is sent on has the shape that its target takes, and no plan of a shape has a value of what stood in for its tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.values.wire import Arrival
from planning.test_plan_cache import target

CLAUDES = (("anthropic", "claude-sonnet-5"), ("bedrock-invoke", "anthropic.claude-sonnet-4-5-20250929-v1:0"))


def planned(client: str, provider: str, model: str, **fields: Any) -> tuple[Attempt, dict[str, Any]]:
    body = {"model": model, "max_tokens": 9, **fields}
    attempt = plan(dialect(client).decode_request(json.dumps(body).encode(), Arrival()), target(provider, model))
    return attempt, json.loads(attempt.wire.body)


def called(*ids: str) -> list[dict[str, Any]]:
    calls = [{"type": "tool_use", "id": one, "name": "find", "input": {}} for one in ids]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "found"} for one in ids]
    return [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


@pytest.mark.parametrize(("provider", "model"), CLAUDES)
def test_ids_of_calls_that_claude_refuses_become_others_and_still_match(provider: str, model: str) -> None:
    ids = ("functions.find:0", "call|1", "functions.find:1")
    attempt, body = planned("anthropic_messages", provider, model, messages=called(*ids))
    _, calls, results = body["messages"]
    sent = [one["id"] for one in calls["content"]]
    assert len(set(sent)) == 3
    assert all(one.replace("_", "").isalnum() for one in sent)
    assert [one["tool_use_id"] for one in results["content"]] == sent
    assert [one.asked for one in attempt.degraded] == ["functions.find:0"]


def test_ids_that_claude_takes_leave_the_body_as_it_came() -> None:
    messages = called("toolu_1", "call-2")
    attempt, body = planned("anthropic_messages", "anthropic", "claude-sonnet-5", messages=messages)
    assert body["messages"] == messages
    assert not attempt.degraded


def test_a_long_history_with_one_such_id_at_its_end_or_its_beginning_is_mended() -> None:
    good = [message for number in range(6) for message in called(f"toolu_{number}")]
    for messages in ([*good, *called("a:0")], [*called("a:0"), *good]):
        attempt, body = planned("anthropic_messages", "anthropic", "claude-sonnet-5", messages=messages)
        assert "a:0" not in json.dumps(body)
        assert [one.what for one in attempt.degraded] == ["tool_call.id"]


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


HELLO = [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize("model", ["kimi-k2.5", "kimi-k2-thinking", "kimi-k3"])
@pytest.mark.parametrize("thinking", [{}, {"thinking": {"type": "disabled"}}], ids=["as it is", "off"])
def test_a_model_that_is_forced_by_name_only_gets_the_name_of_the_only_tool(model: str, thinking: Any) -> None:
    for name in ("find", "tool", "other"):
        fields = {"messages": HELLO, "tools": tools(name), "tool_choice": "required", **thinking}
        _, body = planned("openai_chat", "moonshot", model, **fields)
        assert body["tool_choice"] == {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_of_several_tools_none_is_chosen_for_a_model_that_is_forced_by_name_only(client: str) -> None:
    if client == "openai_chat":
        fields: dict[str, Any] = {"tools": tools("a", "b"), "tool_choice": "required"}
    else:
        declared = [{"name": name, "input_schema": {"type": "object"}} for name in ("a", "b")]
        fields = {"tools": declared, "tool_choice": {"type": "any"}}
    attempt, body = planned(client, "moonshot", "kimi-k2.5", messages=HELLO, **fields)
    assert body.get("tool_choice", "auto") == "auto"
    assert any(one.what == "tool_choice" and one.sent == "auto" for one in attempt.degraded)


def test_a_tool_that_the_client_named_itself_stays_the_one_that_is_forced() -> None:
    chosen = {"type": "function", "function": {"name": "b"}}
    fields = {"messages": HELLO, "tools": tools("a", "b"), "tool_choice": chosen}
    assert planned("openai_chat", "moonshot", "kimi-k2.5", **fields)[1]["tool_choice"] == chosen
