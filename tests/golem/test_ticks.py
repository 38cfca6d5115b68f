"""003, "Tool pruning (Layer 5 detail)": the kinds of ticks, and which tools each has."""

from __future__ import annotations

import random

import pytest

from bardo.golem.rows import tick_rows
from bardo.golem.running import kind_of_tick, tick_kinds, tools_of_tick
from bardo.values.errors import InvalidRequest

# 003, `TickType`, in its order.
KINDS = (
    "MarketAnalysis",
    "LpManagement",
    "VaultRebalance",
    "RiskCheck",
    "PortfolioReview",
    "TradeExecution",
    "StrategyUpdate",
)
TRADE = [f"swap_{number:02}" for number in range(20)]


def test_003_the_kinds_are_those_of_the_document_and_a_call_has_at_most_twelve_tools() -> None:
    assert tuple(map(kind_of_tick, KINDS)) == tick_kinds()
    assert tick_rows().most == 12


@pytest.mark.parametrize("said", ["RiskCheck", "risk_check", "risk-check", "RISK_CHECK", "risk check"])
def test_a_kind_is_known_however_it_is_spelled(said: str) -> None:
    assert kind_of_tick(said) == "risk_check"


@pytest.mark.parametrize(
    ("said", "hint"), [("risk_chek", "did you mean 'risk_check'"), ("x", "market_analysis"), ("7", "kinds")]
)
def test_a_kind_that_is_none_is_refused(said: str, hint: str) -> None:
    with pytest.raises(InvalidRequest, match=hint) as problem:
        kind_of_tick(said)
    assert problem.value.param == "bardo.tick.type"


@pytest.mark.parametrize("name", ["get_prices", "getPrices", "mcp__dex__price-of", "PRICE", "GETPrice"])
def test_a_name_has_a_word_in_the_singular_and_the_plural_however_words_are_joined(name: str) -> None:
    assert tools_of_tick("market_analysis", [name, "write_playbook"]) == [name]


def test_what_only_holds_the_letters_of_a_word_is_not_of_its_kind() -> None:
    assert tools_of_tick("trade_execution", ["swap", "design_playbook", "disorder_of_vaults"]) == ["swap"]


def test_003_the_tools_of_a_kind_are_sorted_by_name_and_cut_at_twelve() -> None:
    mixed = random.Random(7).sample([*TRADE, "update_playbook"], 21)
    assert tools_of_tick("trade_execution", mixed) == TRADE[:12]


def test_a_tool_of_no_kind_goes_behind_those_of_the_kind() -> None:
    assert tools_of_tick("trade_execution", [*TRADE[:11], "a_clock", "b_clock"]) == ["a_clock", *TRADE[:11]]
    assert tools_of_tick("trade_execution", [*TRADE[:12], "a_clock"]) == TRADE[:12]


def test_what_stays_goes_before_all_others_even_above_the_cap() -> None:
    assert tools_of_tick("trade_execution", [*TRADE, "write_playbook"], stay={"write_playbook"}) == [
        *TRADE[:11],
        "write_playbook",
    ]
    of_plan = [f"playbook_{number:02}" for number in range(15)]
    assert tools_of_tick("trade_execution", [*TRADE, *of_plan], stay=set(of_plan)) == of_plan


def test_the_agents_own_list_is_all_that_a_kind_has() -> None:
    own = {"risk_check": ("my_*", "exact")}
    names = ["my_b", "my_a", "exact", "inexact", "risk_of_pool", "a_clock"]
    assert tools_of_tick("risk_check", names, own=own) == ["exact", "my_a", "my_b"]
    # What another kind's list names is of that kind alone.
    assert tools_of_tick("strategy_update", names, own=own) == ["a_clock", "inexact"]
