"""Histories that providers refuse are mended before they are sent, and each repair is reported."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.dialects.shared.history_repair import refuse_repairs
from bardo.planning.planner import plan
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.wire import Arrival
from planning.test_plan_cache import target

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
TARGETS = (
    ("anthropic", "claude-sonnet-5"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("openai", "gpt-5.4"),
    ("openai-chat", "gpt-4.1"),
    ("mistral", "mistral-large-latest"),
)


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


USER = {"role": "user", "content": "Go on."}


def sent(provider: str, model: str, messages: list[Any]) -> tuple[Any, set[str]]:
    tools = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
    body = json.dumps({"model": model, "messages": messages, "tools": tools, "max_tokens": 9}).encode()
    attempt = plan(dialect("openai_chat").decode_request(body, Arrival()), target(provider, model))
    return json.loads(attempt.wire.body), {one.what for one in attempt.degraded if one.what.startswith("history.")}


def check_answered(provider: str, body: Any) -> None:
    """Fail where the provider would refuse: a call without its result right behind it, or a result of nothing."""
    open_calls: list[str] = []
    if provider in ("anthropic", "bedrock"):
        names = ("tool_use", "id", "tool_use_id") if provider == "anthropic" else ("toolUse", "toolUseId", "toolUseId")
        for turn in body["messages"]:
            blocks = turn["content"] if isinstance(turn["content"], list) else []
            if provider == "anthropic":
                calls = [one[names[1]] for one in blocks if one["type"] == "tool_use"]
                results = [one[names[2]] for one in blocks if one["type"] == "tool_result"]
            else:
                calls = [one["toolUse"]["toolUseId"] for one in blocks if "toolUse" in one]
                results = [one["toolResult"]["toolUseId"] for one in blocks if "toolResult" in one]
            assert sorted(results) == sorted(open_calls), body
            open_calls = calls
        assert not open_calls, body
        return
    if provider == "openai":
        called = [one["call_id"] for one in body["input"] if one.get("type") == "function_call"]
        answered = [one["call_id"] for one in body["input"] if one.get("type") == "function_call_output"]
        assert sorted(called) == sorted(answered), body
        return
    before = ""
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls, body
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, body
            assert provider != "mistral" or (before, message["role"]) != ("tool", "user"), body
            open_calls = [one["id"] for one in message.get("tool_calls") or ()]
        before = message["role"]
    assert not open_calls, body


BROKEN: dict[str, tuple[list[Any], set[str]]] = {
    "a call without its result": ([USER, call("a"), USER], {"history.call_without_result"}),
    "one of two results": ([USER, call("a", "b"), result("b"), USER], {"history.call_without_result"}),
    "a result without its call": ([USER, result("a"), USER], {"history.result_without_call"}),
    "a result twice": ([USER, call("a"), result("a"), result("a"), USER], {"history.result_twice"}),
    "the user before the result": ([USER, call("a"), USER, result("a"), USER], set()),
    "two other results": (
        [USER, call("a"), result("a"), result("a", "other"), USER],
        {"history.result_without_call"},
    ),
    "the same messages again": ([USER, call("a"), result("a"), USER, result("a"), USER], {"history.result_twice"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_is_mended_and_reported(name: str) -> None:
    messages, repairs = BROKEN[name]
    for provider, model in TARGETS:
        body, reported = sent(provider, model, messages)
        check_answered(provider, body)
        assert repairs <= reported, (provider, reported)
        assert not repairs or reported <= {*repairs, "history.result_place"}, (provider, reported)


MODEL = {"role": "assistant", "content": "Done."}
IN_A_ROW: dict[str, tuple[list[Any], list[str]]] = {
    "of the user": ([USER, USER, MODEL, USER], ["user"]),
    "of the model": ([USER, MODEL, MODEL, USER], ["assistant"]),
    "of both": ([USER, USER, MODEL, MODEL, USER], ["assistant", "user"]),
    "with nothing between": ([USER, {"role": "assistant", "content": " "}, USER], ["user"]),
    "a call behind a text": ([USER, MODEL, call("a"), result("a"), USER], ["assistant"]),
    "in alternation": ([USER, MODEL, USER], []),
    "results": ([USER, call("a", "b"), result("a"), result("b"), USER], []),
    "with the system between": ([USER, {"role": "system", "content": "Be brief."}, USER], []),
}


@pytest.mark.parametrize("name", IN_A_ROW)
def test_turns_of_one_role_that_are_joined_are_reported(name: str) -> None:
    messages, roles = IN_A_ROW[name]
    for provider, model in TARGETS:
        body = json.dumps({"model": model, "messages": messages, "max_tokens": 9}).encode()
        attempt = plan(dialect("openai_chat").decode_request(body, Arrival()), target(provider, model))
        told = [one for one in attempt.degraded if one.what == "history.turns_of_one_role"]
        joins = provider in ("anthropic", "bedrock")
        assert [(one.asked, one.sent) for one in told] == [(role, "joined") for role in roles if joins]
        if joins:
            written = [one["role"] for one in json.loads(attempt.wire.body)["messages"]]
            assert all(one != other for one, other in pairwise(written))


@pytest.mark.parametrize(
    ("client", "provider", "reported"),
    [
        ("anthropic_messages", "anthropic", False),
        ("anthropic_messages", "bedrock", True),
        ("bedrock_converse", "bedrock", True),
        ("openai_responses", "anthropic", False),
    ],
)
def test_what_a_dialect_joins_itself_and_items_are_no_turns_of_one_role(
    client: str, provider: str, reported: bool
) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": one}]} for one in "ab"]
    if client == "bedrock_converse":
        said = [{"role": "user", "content": [{"text": one}]} for one in "ab"]
    if client == "openai_responses":
        said = [{"role": "user", "content": [{"type": "input_text", "text": one}]} for one in "ab"]
    model = dict(TARGETS)[provider]
    name = "input" if client == "openai_responses" else "messages"
    body: dict[str, Any] = {name: said} if client == "bedrock_converse" else {"model": model, name: said}
    body |= {"max_tokens": 9} if client == "anthropic_messages" else {}
    request = dialect(client).decode_request(json.dumps(body).encode(), Arrival(model=model))
    attempt = plan(msgspec.structs.replace(request, model=model), target(provider, model))
    assert ("history.turns_of_one_role" in {one.what for one in attempt.degraded}) is reported


def test_turns_of_one_role_are_refused_where_no_history_is_repaired() -> None:
    with pytest.raises(InvalidRequest, match="two turns of the role user follow each other"):
        refuse_repairs([Degradation("history.turns_of_one_role", asked="user", sent="joined", why="")], "bedrock")


def test_a_sound_history_is_sent_as_it_is() -> None:
    messages = [USER, call("a", "b"), result("b"), result("a"), USER, call("c"), result("c")]
    for provider, model in TARGETS:
        body, reported = sent(provider, model, messages)
        check_answered(provider, body)
        assert not reported, provider


def test_an_id_names_one_call_where_that_is_demanded() -> None:
    messages = [USER, call("a"), result("a"), call("a"), result("a", "other"), USER]
    body, reported = sent("anthropic", "claude-sonnet-5", messages)
    check_answered("anthropic", body)
    assert reported == {"history.call_id_twice"}
    used = [
        one["id"] for turn in body["messages"] for one in turn["content"] if isinstance(one, dict) and "input" in one
    ]
    assert used == ["a", "a_2"]
    assert not sent("openai-chat", "gpt-4.1", messages)[1]


def test_any_order_of_calls_results_and_words_is_answered_in_full() -> None:
    drawn = random.Random(20261129)
    for _ in range(100):
        ids = [f"c{number}" for number in range(drawn.randint(1, 4))]
        messages: list[Any] = [USER]
        for _ in range(drawn.randint(1, 7)):
            kind = drawn.choice(["call", "result", "user", "text"])
            if kind == "call" and ids:
                messages.append(call(*[ids.pop() for _ in range(drawn.randint(1, len(ids)))]))
            elif kind == "result":
                messages.append(result(f"c{drawn.randint(0, 4)}", drawn.choice(["x", "y"])))
            elif kind == "text":
                messages.append({"role": "assistant", "content": "Fine."})
            else:
                messages.append(USER)
        messages += [USER]
        for provider, model in TARGETS:
            check_answered(provider, sent(provider, model, messages)[0])


def test_the_user_speaks_behind_the_model_where_the_template_wants_it() -> None:
    body, _ = sent("mistral", "mistral-large-latest", [USER, call("a"), result("a"), USER])
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    body, _ = sent("openai-chat", "gpt-4.1", [USER, call("a"), result("a"), USER])
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool", "user"]
