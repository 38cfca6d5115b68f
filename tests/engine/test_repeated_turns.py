"""The attempt of a turn with tools is the one that would be planned, whatever its history holds: at every provider, in any order."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import builtin_replay
from bardo.dialects import dialect
from bardo.dialects.shared import repeated_tools
from bardo.engine.attempt import Attempt
from bardo.engine.exchange import attempts
from bardo.engine.knowledge import Knowledge
from bardo.engine.repeated_attempts import CallPlan
from bardo.engine.route import Target
from bardo.reasoning.replay import Recalled, remember
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.blocks import ReasoningBlock, ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from engine.test_plan_cache import _alone, target
from engine.test_repeated_attempts import _outcome, _repeated

Turn = dict[str, Any]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def _user(content: Any) -> Turn:
    return {"role": "user", "content": content}


def _call(name: str = "f", **fields: Any) -> Turn:
    called = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [called], **fields}


def _result(content: Any = "4") -> Turn:
    return {"role": "tool", "tool_call_id": "call_1", "content": content}


CHAT: dict[str, list[Turn]] = {
    "a question": [_user("Hello.")],
    "a talk": [_user("a"), {"role": "assistant", "content": "b"}, _user("c")],
    "another talk": [{"role": "system", "content": "s"}, _user("a"), {"role": "assistant", "content": "b"}, _user("d")],
    "a call": [_user("a"), _call(), _result()],
    "two calls": [_user("a"), _call(), _result(), _call(), _result()],
    "thinking": [_user("a"), _call(reasoning_content="I call f."), _result()],
    "details": [_user("a"), _call(reasoning_details=[{"type": "reasoning.encrypted", "data": "x" * 40}]), _result()],
    "a picture in a result": [_user("a"), _call(), _result([PICTURE])],
    "a picture": [_user([PICTURE])],
    "a long name": [_user("a"), _call("f" * 90), _result()],
    "a late system message": [
        _user("a"),
        {"role": "assistant", "content": "b"},
        {"role": "developer", "content": "s"},
        _user("c"),
    ],
    "a beginning of the answer": [_user("a"), {"role": "assistant", "content": "b"}],
    "signed for Gemini": [_user("a"), _call(extra_content={"google": {"thought_signature": "s"}}), _result()],
}
MESSAGES: dict[str, list[Turn]] = {
    "a question": [_user("Hello.")],
    "a call": [
        _user("a"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        _user([{"type": "tool_result", "tool_use_id": "t", "content": "4"}]),
    ],
    "signed thinking": [
        _user("a"),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I call f.", "signature": "c2lnbmF0dXJlIG9mIHRoaXM="},
                {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            ],
        },
        _user([{"type": "tool_result", "tool_use_id": "t", "content": "4", "is_error": True}]),
    ],
    "a marker": [_user([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])],
    "a talk": [_user("a"), {"role": "assistant", "content": "b"}, _user("c")],
}


def _asked(client: str, turns: list[Turn], more: dict[str, Any]) -> Request:
    about, schema = "Does a thing. " * 30, {"type": "object", "properties": {}}
    if client == "openai_chat":
        tools: list[Any] = [{"type": "function", "function": {"name": "f", "description": about, "parameters": schema}}]
    else:
        tools = [{"name": "f", "description": about, "input_schema": schema}]
        more = {"max_tokens": 4000, **more}
    body = {"model": "m", "messages": turns, "tools": tools, **more}
    return dialect(client).decode_request(msgspec.json.encode(body), Arrival(model="m"))


@pytest.mark.parametrize(("client", "histories"), [("openai_chat", CHAT), ("anthropic_messages", MESSAGES)])
def test_it_is_the_attempt_that_is_planned_at_every_provider(
    client: str, histories: dict[str, list[Turn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_tools, "LEAST_BYTES", 1)
    monkeypatch.setattr("bardo.dialects.shared.repeated_items.LEAST_BYTES", 1)
    chance, found = random.Random(7), 0
    for row in builtin().providers:
        at, facts = target(row.id, "m"), ModelFacts()
        asked = [
            _asked(client, turns, more)
            for turns, more in itertools.product(histories.values(), ({}, {"temperature": 0.5}))
        ]
        for request in (*asked, *chance.sample(asked, len(asked))):
            attempt = _repeated(request, at, facts)
            if attempt is not None:
                assert attempt == _outcome(request, at, facts, may_forward=True), (row.id, request.messages)
                found += 1
    assert found > 300


def test_a_turn_with_other_tools_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_tools, "LEAST_BYTES", 1)
    monkeypatch.setattr("bardo.dialects.shared.repeated_items.LEAST_BYTES", 1)
    facts, at = ModelFacts(), target("groq", "m")
    asked = [_asked("openai_chat", CHAT["a call"], {}) for _ in range(2)]
    assert asked[0].tools is asked[1].tools
    assert _repeated(asked[0], at, facts) is None
    assert _repeated(asked[1], at, facts) is not None
    other = msgspec.structs.replace(asked[0], tools=(msgspec.structs.replace(asked[0].tools[0], name="g"),))
    assert _repeated(other, at, facts) is None


@pytest.mark.parametrize("preset", ["deepseek", "groq", "zai", "vllm", "anthropic", "gemini"])
def test_what_is_restored_of_earlier_thinking_is_in_the_attempt(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_tools, "LEAST_BYTES", 1)
    monkeypatch.setattr("bardo.dialects.shared.repeated_items.LEAST_BYTES", 1)
    at, facts, found = target(preset, "m"), ModelFacts(), 0
    rules = builtin_replay()
    reader = rules.reader(at.provider.id, at.provider.row, at.model)
    said = (
        ReasoningBlock(text="I call f.", format="reasoning_content"),
        ToolCallBlock(id="call_1", name="f", arguments="{}"),
    )
    before = _asked("openai_chat", [_user("a")], {})
    memories = remember(Response(blocks=said), before, before, reader)
    recalled = Recalled(found={key: one.kept for one in memories for key in one.keys})
    assert recalled.found
    for turns in [*CHAT.values(), *reversed(CHAT.values()), *CHAT.values()]:
        request, knowledge = _asked("openai_chat", turns, {}), facts.knowledge([at])
        plan = CallPlan(request, [at], knowledge, recalled, may_forward=True, route=None)
        attempt, anew = plan.find(), _planned(request, at, _alone(facts, at), recalled)
        if attempt is not None:
            assert attempt == anew, turns
            found += 1
        elif anew is not None:
            plan.keep(anew)
    assert found > 2


def _planned(request: Request, at: Target, knowledge: Knowledge, recalled: Recalled) -> Attempt | None:
    try:
        first = next(attempts(request, [at], knowledge=knowledge, recalled=recalled))
    except BardoError:
        return None
    assert isinstance(first, Attempt)
    return first
