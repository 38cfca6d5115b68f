"""What Venice has and no other provider: its parameters, its own web search, and its balances in the headers of replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.any_model import Simulator
from support.gateway import House, house
from support.talk import Answer, ask, body_for, path_for, request

MODEL = "venice/qwen3-5-9b"
SEARCHES: dict[str, dict[str, Any]] = {
    "openai_chat": {"web_search_options": {}},
    "openai_responses": {"tools": [{"type": "web_search"}]},
    "anthropic_messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
}


@pytest.fixture(scope="module")
def venice() -> Iterator[House]:
    with house([Simulator("venice")]) as running:
        yield running


def searched(running: House, client: str, *, stream: bool = False) -> Answer:
    """Ask in a client's dialect, with the search tool of that dialect."""
    body = body_for(client, MODEL, stream=stream) | SEARCHES[client]
    return request(running.address, "POST", path_for(client, MODEL, stream=stream), body)


@pytest.mark.parametrize("client", SEARCHES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_search_tool_of_any_client_is_venices_own_search(venice: House, client: str, stream: bool) -> None:
    assert searched(venice, client, stream=stream).status == 200
    body = venice.last("venice")
    assert body["venice_parameters"]["enable_web_search"] == "auto"
    assert not {"tools", "web_search_options"} & body.keys()


def test_the_parameters_of_a_client_reach_venice_unchanged(venice: House) -> None:
    own = {"character_slug": "alan-watts", "include_venice_system_prompt": False, "enable_web_citations": True}
    assert ask(venice.address, "openai_chat", MODEL, venice_parameters=own).status == 200
    assert venice.last("venice")["venice_parameters"] == own
    assert ask(venice.address, "openai_chat", MODEL).status == 200
    assert "venice_parameters" not in venice.last("venice")


def asked_for_search(body: Any) -> bool:
    return bool(body.get("venice_parameters", {}).get("enable_web_search", "off") != "off")


@pytest.mark.parametrize("client", SEARCHES)
def test_the_search_is_turned_off_once_the_days_budget_is_used_up(client: str) -> None:
    with house([Simulator("venice")], each={"searches_per_day": 2}) as running:
        lost = []
        for _ in range(3):
            answer = searched(running, client)
            assert answer.status == 200
            lost.append(running.log.row(answer.headers["x-bardo-request-id"]).degraded)
            # A call without a search is none of the budget's.
            ask(running.address, client, MODEL)
        bodies = [incoming.body for incoming in running.arrived("venice")][::2]
    assert [asked_for_search(body) for body in bodies] == [True, True, False]
    said = [[one["why"] for one in each if one["what"] == "tool web_search"] for each in lost]
    assert said[:2] == [[], []]
    assert [("searches_per_day = 2" in why) for why in said[2]] == [True]


def test_the_clients_own_parameter_is_within_the_budget_too() -> None:
    with house([Simulator("venice")], each={"searches_per_day": 0}) as running:
        own = {"enable_web_search": "on", "character_slug": "x"}
        assert ask(running.address, "openai_chat", MODEL, venice_parameters=own).status == 200
        assert running.last("venice")["venice_parameters"] == {"enable_web_search": "off", "character_slug": "x"}


def test_many_calls_at_once_stay_within_the_budget() -> None:
    with house([Simulator("venice")], each={"searches_per_day": 3}) as running:
        with ThreadPoolExecutor(8) as pool:
            answers = [*pool.map(lambda _: searched(running, "openai_chat"), range(12))]
        assert {answer.status for answer in answers} == {200}
        assert sum(asked_for_search(incoming.body) for incoming in running.arrived("venice")) == 3


MONEY = "[budgets]\nsearch_usd_per_day = 0.02\n"


@pytest.mark.parametrize("client", SEARCHES)
def test_what_searches_cost_in_a_day_ends_them_which_the_client_is_told(client: str) -> None:
    with house([Simulator("venice")], toml=MONEY) as running:
        answers = [searched(running, client) for _ in range(3)]
        # A call without a search costs nothing of it.
        ask(running.address, client, MODEL)
        bodies = [incoming.body for incoming in running.arrived("venice")][:3]
        lost = [running.log.row(one.headers["x-bardo-request-id"]).degraded for one in answers]
    assert [answer.status for answer in answers] == [200] * 3
    assert [asked_for_search(body) for body in bodies] == [True, True, False]
    said = [[one["why"] for one in each if one["what"] == "tool web_search"] for each in lost]
    assert said == [[], [], ["a search costs $0.01, and $0 is left: [budgets] search_usd_per_day = 0.02"]]
    assert "tool web_search" in answers[2].headers["x-bardo-degraded"]


@pytest.mark.parametrize(("budget", "searched_at_all"), [("0", False), ("0.0099", False), ("0.01", True)])
def test_a_search_that_the_money_does_not_cover_is_not_made(budget: str, searched_at_all: bool) -> None:
    with house([Simulator("venice")], toml=f"[budgets]\nsearch_usd_per_day = {budget}\n") as running:
        own = {"enable_web_search": "on", "character_slug": "x"}
        assert ask(running.address, "openai_chat", MODEL, venice_parameters=own).status == 200
        assert asked_for_search(running.last("venice")) is searched_at_all
        assert running.last("venice")["venice_parameters"]["character_slug"] == "x"


def balances(running: House) -> Any:
    report = json.loads(request(running.address, "GET", "/v1/bardo/health").body)
    return {one["provider"]: one["balances"] for one in report["providers"]}


@pytest.mark.parametrize("stream", [False, True])
def test_what_venice_says_is_left_is_shown_with_its_health(stream: bool) -> None:
    with house([Simulator("venice"), Simulator("deepseek")]) as running:
        assert balances(running) == {"venice": {}, "deepseek": {}}
        assert ask(running.address, "anthropic_messages", MODEL, stream=stream).status == 200
        assert balances(running) == {"venice": {"diem": 12.5, "usd": 3.25}, "deepseek": {}}
