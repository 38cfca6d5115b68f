"""A call of an agent that says the kind of its tick gets the tools of that kind (003, "Tool pruning (Layer 5 detail)")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import Answer, request

TOML = '[golem]\nenabled = true\n[golem.tools]\nstrategy_update = ["plan_*"]\n'
NAMES = ("vault_shares", "swap", "quote", "a_clock")


@pytest.fixture(scope="module")
def agent() -> Iterator[House]:
    turn = Turn(text="done")
    with house([Simulator("openai_chat", script=Script(turns=(turn,)), models=["gpt-5.4"])], toml=TOML) as it:
        yield it


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


def call(it: House, tick: Any, names: Any = NAMES, model: str = "bardo/operator", **fields: Any) -> Answer:
    asked = {"messages": [{"role": "user", "content": "Go on."}], "tools": [tool(name) for name in names], **fields}
    asked["bardo"] = {"tick": tick, "include": ["receipt"]}
    return request(it.address, "POST", "/v1/chat/completions", {"model": model, **asked})


def sent(it: House) -> list[str]:
    return [one["function"]["name"] for one in it.last("openai_chat").get("tools", ())]


def degraded(answer: Answer) -> dict[str, Any]:
    return {one["what"]: one for one in answer.json["bardo"]["degraded"]}


def test_a_call_has_the_tools_of_its_tick_and_is_told_what_was_left_out(agent: House) -> None:
    answer = call(agent, {"type": "TradeExecution"})
    assert sent(agent) == ["a_clock", "quote", "swap"]
    assert degraded(answer)["tools"] == {
        "what": "tools",
        "asked": "4 tools",
        "sent": "3 tools",
        "why": "left out in a tick of trade_execution: vault_shares",
    }
    told = answer.json["bardo"]["receipt"]["route"]["agent"]["tick"]
    assert told == {"type": "trade_execution", "tools": 3, "left_out": ["vault_shares"]}


def test_a_tick_without_a_kind_changes_no_tools(agent: House) -> None:
    assert "tools" not in degraded(call(agent, {}))
    assert sent(agent) == list(NAMES)


def test_where_nothing_is_left_out_the_tools_are_sorted_and_nothing_is_reported(agent: House) -> None:
    assert "tools" not in degraded(call(agent, {"type": "trade_execution"}, ("swap", "quote")))
    assert sent(agent) == ["quote", "swap"]


def test_what_was_called_and_what_is_chosen_by_name_stays(agent: House) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "vault_shares", "arguments": "{}"}}]
    history = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "written"},
    ]
    call(agent, {"type": "trade_execution"}, messages=history)
    assert sent(agent) == sorted(NAMES)
    call(
        agent,
        {"type": "trade_execution"},
        tool_choice={"type": "function", "function": {"name": "vault_shares"}},
    )
    assert sent(agent) == sorted(NAMES)


def test_where_a_tick_has_none_of_the_tools_a_forced_call_is_left_out_too(agent: House) -> None:
    answer = call(agent, {"type": "strategy_update"}, tool_choice="required")
    assert answer.status == 200
    assert {"tools", "tool_choice"} <= degraded(answer).keys()
    assert not {"tools", "tool_choice"} & agent.last("openai_chat").keys()


def test_tools_among_which_the_client_chooses_itself_are_all_sent_and_that_is_reported(agent: House) -> None:
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "vault_shares"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    answer = call(agent, {"type": "trade_execution"}, tool_choice=choice)
    assert sent(agent) == list(NAMES)
    assert degraded(answer)["tick"]["asked"] == "trade_execution"


@pytest.mark.parametrize("model", ["bardo/operator", "bardo/heartbeat"])
def test_a_kind_that_is_none_is_refused_and_the_nearest_is_named(agent: House, model: str) -> None:
    answer = call(agent, {"type": "trade_exekution"}, model=model)
    assert answer.status == 400
    assert "trade_execution" in answer.json["error"]["message"]
    assert answer.json["error"]["param"] == "bardo.tick.type"


def test_an_operators_list_is_all_that_a_kind_has(agent: House) -> None:
    call(agent, {"type": "strategy_update"}, (*NAMES, "plan_day"))
    assert sent(agent) == ["plan_day"]
