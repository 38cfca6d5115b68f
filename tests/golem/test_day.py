"""A day of the agent beside what the documents project."""

from __future__ import annotations

import pytest

from bardo.surfaces.panel.views.costs import SubsystemSums, agent_day, agent_figures, agent_table

SUMS = {
    "heartbeat_t0": SubsystemSums(16, 0.0),
    "heartbeat_t1": SubsystemSums(3, 0.009),
    "heartbeat_t2": SubsystemSums(1, 0.03),
    "dream_rem": SubsystemSums(2, 0.2),
    "daimon_complex": SubsystemSums(1, 0.05),
    "session_compact": SubsystemSums(1, 0.001),
}


def test_each_subsystem_is_in_the_share_that_pays_for_it() -> None:
    day = agent_day(SUMS, 2.0, "needs")
    shares = {one.name: one for one in day.shares}
    assert shares["heartbeat"].calls == 20
    assert shares["heartbeat"].spent_usd == pytest.approx(0.039)
    assert shares["dream"].spent_usd == 0.2
    assert shares["dream"].budget_usd == pytest.approx(0.3)
    assert shares["daimon"].calls == 1
    assert shares["death"].budget_usd is None
    assert (shares["others"].calls, shares["others"].budget_usd) == (1, None)
    assert day.spent_usd == pytest.approx(0.29)


def test_the_nearest_day_of_the_documents_is_the_projection() -> None:
    day = agent_day(SUMS, None, "full_stack")
    assert day.ticks == {"T0": 16, "T1": 3, "T2": 1}
    assert (day.scenario, day.scenario_ticks) == ("normal", 100)
    assert day.scenario_usd == pytest.approx(0.195)
    assert (day.configured_usd, day.unrouted_usd) == (1.5, 85.0)
    assert agent_day({}, None, "needs").scenario == ""
    assert agent_day({}, None, "needs").configured_usd is None


def test_003_the_money_of_a_day_is_told_as_calls_and_days_of_life() -> None:
    day = agent_day({"risk": SubsystemSums(1, 0.25)}, None, "needs")
    assert (day.dear_calls, day.life_days) == (1.0, 1.25)
    assert round(day.cheap_calls) == 83
    assert day.credit_usd == pytest.approx(0.25 / 0.6)
    assert day.target_usd == (1.0, 2.0)


def test_the_panel_tells_the_day_beside_the_projection() -> None:
    day = agent_day(SUMS, 2.0, "blockrun_only")
    told = {name: (figure, words) for name, figure, words in agent_figures(day)}
    assert told["Agent today (UTC)"][0] == "$0.29"
    assert told["Ticks today"] == ("20", "T0 80 %, T1 15 %, T2 5 %")
    assert told["Day as projected"][0] == "$2.50"
    assert [row[0].text for row in agent_table(day).rows][:3] == ["heartbeat", "risk", "dream"]  # type: ignore[union-attr]
