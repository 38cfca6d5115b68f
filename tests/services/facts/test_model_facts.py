"""What is known beside the catalog: an operator's rows go first, a refusal teaches once and is forgotten, a server is believed."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, ReasoningSettings, Settings, parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.call.open import open_call
from bardo.catalog.load import builtin
from bardo.catalog.models import ModelIds, ModelRow
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.errors import ConfigError, UpstreamRefused
from bardo.values.wire import Arrival, WireRequest
from bardo.wiring import assemble

REFUSAL = {
    "error": {
        "message": "Unsupported value: 'max' is not supported with this model. Supported values are: 'low' and 'medium'.",
        "type": "invalid_request_error",
        "param": "reasoning_effort",
        "code": "unsupported_value",
    }
}
MESSAGE = {"role": "assistant", "content": "hi"}
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
}


def target(preset: str, model: str) -> Target:
    row = builtin().provider(preset)
    assert row is not None
    return Target(provider=Provider(id="lab", row=row, base_url="http://127.0.0.1:9/v1"), model=model)


def test_an_operators_row_goes_before_the_catalog() -> None:
    row = ModelRow(provider="lab", match=("gpt-5*",), control=("effort",), efforts=("low", "high"))
    known = ModelFacts([row]).of(target("openai-chat", "gpt-5")).known
    assert known.levels == ("low", "high")
    assert known.layer("efforts") == "operator"
    assert ModelFacts([row]).of(target("openai-chat", "o3")).known.layer("efforts") == "L2"


def test_the_facts_of_a_target_are_one_value_until_something_new_is_known() -> None:
    memory, place = ModelFacts(), target("vllm", "m")
    first = memory.of(place)
    assert memory.of(place) is first
    memory.learn_start(place, off=True, seen="outside")
    second = memory.knowledge([place]).of(place)
    assert (second.start_of_replies(off=True), second.start_of_replies(off=False)) == ("outside", None)
    assert memory.knowledge([place], "another").of(place) is first
    memory.learn_start(place, off=True, seen=None)
    assert memory.knowledge([place]).of(place) is first


def test_a_row_of_the_configuration_is_read_and_a_wrong_one_is_a_line() -> None:
    text = '[[models]]\nprovider = "lab"\nmatch = ["m*"]\nefforts = ["low"]\n'
    assert parse_settings(text).models == (ModelRow(provider="lab", match=("m*",), efforts=("low",)),)
    with pytest.raises(ConfigError, match="line 3: unknown key 'mach'"):
        parse_settings('[[models]]\nprovider = "lab"\nmach = ["m*"]\nmatch = ["m"]\n')
    with pytest.raises(ConfigError, match="fits no model"):
        parse_settings('[[models]]\nprovider = "lab"\nmatch = []\n')
    with pytest.raises(ConfigError, match="line 4: the row says another control than its reasoning_wire"):
        parse_settings('[[models]]\nprovider = "lab"\nmatch = ["m"]\nreasoning_wire = "none"\ncontrol = ["effort"]\n')
    with pytest.raises(ConfigError, match="must differ"):
        parse_settings('[[models]]\nprovider = "lab"\nmatch = ["m"]\nmodel_ids = { thinking = "m", plain = "m" }\n')


def test_what_an_operator_says_of_the_other_id_of_a_pair_holds_for_calls_that_go_there() -> None:
    pair = ModelIds(thinking="-on", plain="-off")
    rows = [
        ModelRow(provider="lab", match=("m-*",), reasoning_wire="model_id", model_ids=pair),
        ModelRow(provider="lab", match=("m-off",), output_limit=77),
    ]
    place = target("openai-chat", "m-on")
    knowledge = ModelFacts(rows).knowledge([place])
    other = msgspec.structs.replace(place, model="m-off")
    assert knowledge.of(other).known.facts.output_limit == 77
    request = dialect("openai_chat").decode_request(
        msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "?"}], "reasoning_effort": "none"}),
        Arrival(model="m-on"),
    )
    assert plan(request, place, knowledge=knowledge).target == other


def test_the_table_between_levels_and_tokens_is_the_operators() -> None:
    read = parse_settings("[reasoning]\nintrospect = false\n[reasoning.budgets]\nlow = 500\n")
    assert (read.reasoning.introspect, read.reasoning.budgets.low, read.reasoning.budgets.high) == (False, 500, 32_768)


class Picky:
    """A provider that knows two levels only, and says so."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, call: Call) -> FakeReply:
        effort = json.loads(call.body).get("reasoning_effort")
        self.asked.append(effort)
        kind = {"content-type": "application/json"}
        if effort in (None, "low", "medium"):
            return FakeReply(headers=kind, chunks=[json.dumps(ANSWER).encode()])
        return FakeReply(status=400, headers=kind, chunks=[json.dumps(REFUSAL).encode()])


async def ask_twice(provider: Picky, effort: str) -> list[dict[str, Any]]:
    entry = ProviderEntry(id="lab", preset="openai-compatible", base_url="http://127.0.0.1:9/v1", models=("gpt-5.2",))
    silent = Settings(providers=(entry,), log=LogSettings(enabled=False), reasoning=ReasoningSettings(introspect=False))
    assembly = assemble(silent, transport=FakeTransport(provider), environment={})
    turns = [{"role": "user", "content": "?"}]
    body = json.dumps({"model": "lab/gpt-5.2", "messages": turns, "reasoning_effort": effort}).encode()
    told = []
    for _ in range(2):
        live = await open_call(assembly.services, dialect("openai_chat").decode_request(body, Arrival()))
        async for _step in live.updates():
            pass
        told.append({"degraded": [one.what for one in live.response().degraded], "layer": live.attempt.control.layer})  # type: ignore[union-attr]
        await live.close()
    await assembly.close()
    return told


def test_a_refusal_repairs_its_call_once_and_the_next_one_needs_none() -> None:
    provider = Picky()
    first, second = asyncio.run(ask_twice(provider, "high"))
    assert provider.asked == ["high", "medium", "medium"]
    assert first == second == {"degraded": ["reasoning_effort"], "layer": "L1"}


def test_a_refusal_of_something_else_is_the_callers() -> None:
    provider = Picky()
    too_long = {"message": "the prompt is too long", "type": "invalid_request_error"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REFUSAL, "error", too_long)
        with pytest.raises(UpstreamRefused, match="too long"):
            asyncio.run(ask_twice(provider, "high"))
    assert provider.asked == ["high"]


class Local:
    """A server of a user's own that says what it can, and answers."""

    def __init__(self, facts: Any, path: str) -> None:
        self.facts = facts
        self.path = path
        self.asked: list[Any] = []

    def __call__(self, call: Call) -> FakeReply:
        kind = {"content-type": "application/json"}
        if call.url.endswith(self.path):
            return FakeReply(headers=kind, chunks=[json.dumps(self.facts).encode()])
        self.asked.append(json.loads(call.body))
        return FakeReply(headers=kind, chunks=[json.dumps(ANSWER).encode()])


async def first_call(preset: str, server: Local, **fields: Any) -> Any:
    """Return the receipt of the first call of a process."""
    entry = ProviderEntry(id="lab", preset=preset, base_url="http://127.0.0.1:9/v1", models=("m",))
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
    assembly = assemble(settings, transport=FakeTransport(server), environment={})
    turns = [{"role": "user", "content": "?"}]
    body = json.dumps({"model": "lab/m", "messages": turns, **fields}).encode()
    try:
        live = await open_call(assembly.services, dialect("openai_chat").decode_request(body, Arrival()))
        async for _step in live.updates():
            pass
        await live.close()
        return live.attempt.control
    finally:
        await assembly.close()


def test_the_first_call_knows_what_the_server_says() -> None:
    ds4 = Local({"reasoning": {"supported_efforts": ["none", "high"], "aliases": {"max": "high"}}}, "/props")
    plan = asyncio.run(first_call("ds4", ds4, reasoning_effort="max"))
    assert (plan.layer, plan.emitted, plan.clamped) == ("L1", "high", True)
    assert ds4.asked[0]["reasoning_effort"] == "high"


def test_the_first_call_sends_nothing_of_thinking_to_a_model_that_cannot() -> None:
    ollama = Local({"capabilities": ["completion", "tools"]}, "/api/show")
    plan = asyncio.run(first_call("ollama-openai", ollama, reasoning_effort="high"))
    assert "reasoning_effort" not in ollama.asked[0]
    assert "think" not in ollama.asked[0]
    assert (plan.layer, plan.emitted) == ("L1", "nothing")


def test_a_model_that_shuts_down_is_a_line_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    row = builtin().provider("anthropic")
    assert row is not None
    provider = Provider(id="claude", row=row, base_url="http://x")
    early, late = (ModelFacts(clock=lambda at=at: at) for at in (1_780_000_000.0, 1_800_000_000.0))  # type: ignore[misc]
    with caplog.at_level(logging.WARNING, logger="bardo.control"):
        for facts in (early, early, late):
            for model in ("claude-sonnet-4-5-20250929", "claude-opus-5"):
                at = Target(provider=provider, model=model)
                facts.warnings.note(Attempt(target=at, wire=WireRequest(path="", body=b"")), facts.knowledge([at]))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "shuts down on 2026-11-30" in told[0]
    assert "was to shut down on 2026-11-30" in told[1]
