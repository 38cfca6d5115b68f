"""The numbers of the documents' agent: pressure, budgets, tiers, schedules and what a day costs. Each test names its section."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.golem.preset import (
    compute_reasoning_budgets,
    decide_tier,
    scheduled_temperature,
    subsystem,
    subsystem_names,
    under_pressure,
)
from bardo.golem.rows import dali_temperature, pressure_rows, ramp, reanneal, tier_rows
from bardo.routing.budgets import charge, when_spent
from bardo.routing.pressure import (
    apply_mortality_pressure,
    apply_mortality_temperature,
    apply_mortality_to_reasoning,
)
from bardo.routing.profiles import ReasoningConfig
from bardo.routing.tiers import Signal, daily_costs, next_tier
from bardo.values.errors import InvalidRequest
from bardo.values.profile import ProfileEffort
from bardo.values.request import Intent, Quality

RULES = pressure_rows().pressure
EXEMPT = ("risk", "death", "operator")
VITALITIES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("sensitivity", "vitality", "expected"),
    [(0.5, 1.0, 0.5), (0.5, 0.5, 0.65), (0.5, 0.0, 0.8), (0.9, 0.0, 1.0), (0.8, 0.3, 1.0)],
)
def test_003_mortality_pressure_adds_three_tenths_of_the_pressure(
    sensitivity: float, vitality: float, expected: float
) -> None:
    intent = apply_mortality_pressure(Intent(subsystem="dream", cost_sensitivity=sensitivity), vitality, RULES)
    assert intent.cost_sensitivity == pytest.approx(expected)


@pytest.mark.parametrize(
    ("quality", "vitality", "expected"),
    [
        ("maximum", 0.3, "maximum"),
        ("maximum", 0.29, "high"),
        ("high", 0.29, "medium"),
        ("medium", 0.0, "low"),
        ("low", 0.0, "low"),
        ("minimum", 0.0, "minimum"),
    ],
)
def test_003_mortality_pressure_above_seven_tenths_lowers_the_quality_one_step(
    quality: Quality, vitality: float, expected: Quality
) -> None:
    assert apply_mortality_pressure(Intent(subsystem="dream", quality=quality), vitality, RULES).quality == expected


@pytest.mark.parametrize("name", EXEMPT)
@given(vitality=VITALITIES)
def test_003_and_000_5_exempt_subsystems_feel_no_pressure(name: str, vitality: float) -> None:
    intent = Intent(subsystem=name, quality="maximum", cost_sensitivity=0.0)
    assert apply_mortality_pressure(intent, vitality, RULES) == intent
    config = ReasoningConfig(depth="max", interleaved=True)
    assert apply_mortality_to_reasoning(config, name, vitality, RULES) == config


@pytest.mark.parametrize(
    ("depth", "vitality", "expected"),
    [
        ("max", 0.3, "max"),
        ("max", 0.29, "high"),
        ("high", 0.2, "medium"),
        ("medium", 0.2, "low"),
        ("low", 0.2, "none"),
        ("none", 0.2, "none"),
        ("max", 0.1, "high"),
        ("max", 0.09, "none"),
    ],
)
def test_000_5_mortality_lowers_the_depth_and_then_ends_it(
    depth: ProfileEffort, vitality: float, expected: ProfileEffort
) -> None:
    assert apply_mortality_to_reasoning(ReasoningConfig(depth=depth), "dream", vitality, RULES).depth == expected


@pytest.mark.parametrize(
    ("base", "vitality", "expected"), [(0.9, 1.0, 0.9), (0.9, 0.5, 0.75), (0.9, 0.0, 0.6), (0.3, 0.0, 0.3)]
)
def test_003_mortality_moves_a_temperature_half_way_to_three_tenths(
    base: float, vitality: float, expected: float
) -> None:
    assert apply_mortality_temperature(base, vitality, "dream_rem", RULES) == pytest.approx(expected)


@pytest.mark.parametrize(
    "name", ["hypnagogic_induction", "hypnagogic_dali", "death_reflect", "death_testament", "operator", "risk"]
)
@given(vitality=VITALITIES)
def test_003_exempt_temperatures_stay(name: str, vitality: float) -> None:
    assert apply_mortality_temperature(1.2, vitality, name, RULES) == 1.2


@pytest.mark.parametrize("vitality", [-0.1, 1.1, math.nan, math.inf])
def test_a_vitality_out_of_range_is_refused(vitality: float) -> None:
    with pytest.raises(InvalidRequest, match="vitality"):
        under_pressure(subsystem("dream"), vitality)


@given(name=st.sampled_from(subsystem_names()))
def test_full_vitality_changes_nothing(name: str) -> None:
    assert under_pressure(subsystem(name), 1.0) == subsystem(name)


@pytest.mark.parametrize("name", ["risk", "death_reflect", "operator", "death_testament"])
@given(vitality=VITALITIES)
def test_critical_subsystems_are_the_same_at_any_vitality(name: str, vitality: float) -> None:
    assert under_pressure(subsystem(name), vitality) == subsystem(name)


def test_pressure_changes_intent_effort_and_temperature_of_a_dream() -> None:
    dying = under_pressure(subsystem("dream_rem"), 0.2)
    assert (dying.intent.quality, dying.profile.reasoning_effort) == ("medium", "medium")
    assert dying.intent.cost_sensitivity == pytest.approx(0.74)
    assert dying.profile.temperature == pytest.approx(0.66)


# 000 §9, "Reasoning budget and mortality integration": of a day of $10, healthy and dying.
HEALTHY = {
    "heartbeat": 2.0, "risk": 1.5, "dream": 1.5, "daimon": 0.5, "context": 1.0, "curator": 1.0, "playbook": 0.5, "operator": 1.5,
    "death": math.inf,
}  # fmt: skip
DYING = {
    "heartbeat": 1.0, "risk": 1.5, "dream": 1.05, "daimon": 0.15, "context": 0.5, "curator": 0.7, "playbook": 0.25, "operator": 1.5,
    "death": math.inf,
}  # fmt: skip


def dollars(vitality: float, ratio: float | None = None) -> dict[str, float]:
    budgets = compute_reasoning_budgets(vitality, 10.0, sustainability=ratio)
    return {name: budget.usd for name, budget in budgets.items()}


@pytest.mark.parametrize(("vitality", "expected"), [(1.0, HEALTHY), (0.0, DYING)])
def test_000_9_budgets(vitality: float, expected: dict[str, float]) -> None:
    assert dollars(vitality) == pytest.approx(expected)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_000_9_a_ratio_between_the_bounds_changes_nothing(ratio: float) -> None:
    assert dollars(0.5, ratio) == dollars(0.5)


def test_000_9_budgets_expand_above_a_ratio_of_two() -> None:
    assert dollars(1.0, 2.01) == pytest.approx({name: 1.5 * usd for name, usd in HEALTHY.items()})


def test_000_9_budgets_contract_below_a_ratio_of_a_half_except_risk_and_death() -> None:
    spared = ("risk", "death")
    expected = {name: usd if name in spared else 0.3 * usd for name, usd in HEALTHY.items()}
    assert dollars(1.0, 0.49) == pytest.approx(expected)


def test_000_9_diem_pays_the_subsystems_whose_best_route_is_venice() -> None:
    budgets = compute_reasoning_budgets(1.0, 10.0, diem=3.0)
    assert {name for name, budget in budgets.items() if budget.diem == 3.0} == {"dream", "daimon", "death"}
    assert charge(0.5, diem_left=0.2).usd == pytest.approx(0.3)
    assert charge(0.5, diem_left=2.0).usd == 0.0


# 000 §9, "Degradation when budget exhausted".
SPENT = {
    "dream": "skip_cycle",
    "daimon": "deterministic_rules",
    "risk": "never",
    "context": "static_heuristics",
    "heartbeat": "lower_tier",
    "death": "never",
}


def test_000_9_degradation_table() -> None:
    rows = pressure_rows().budgets.spent
    assert {row.subsystem: row.then for row in rows} == SPENT
    assert next(row.tier for row in rows if row.subsystem == "heartbeat") == "T1"


def test_000_9_nothing_is_given_up_while_dollars_or_diem_are_left() -> None:
    rules = pressure_rows().budgets
    dream = compute_reasoning_budgets(1.0, 10.0, diem=3.0)["dream"]
    assert when_spent(dream, rules, spent_usd=1.5, spent_diem=2.9) is None
    assert when_spent(dream, rules, spent_usd=1.4, spent_diem=3.0) is None
    given_up = when_spent(dream, rules, spent_usd=1.5, spent_diem=3.0)
    assert given_up is not None
    assert given_up.then == "skip_cycle"


def test_000_9_death_is_always_funded() -> None:
    death = compute_reasoning_budgets(0.0, 10.0, sustainability=0.0)["death"]
    assert when_spent(death, pressure_rows().budgets, spent_usd=1e9, spent_diem=0.0) is None


@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf])
def test_a_budget_out_of_range_is_refused(amount: float) -> None:
    with pytest.raises(InvalidRequest, match="daily_budget_usd"):
        compute_reasoning_budgets(1.0, amount)


def test_003_expected_distribution_of_tiers() -> None:
    assert {row.name: row.share for row in tier_rows().tier} == {"T0": 0.80, "T1": 0.15, "T2": 0.05}


def test_003_tier_costs_a_call() -> None:
    costs = {row.name: row.cost_usd for row in tier_rows().tier}
    assert costs == {"T0": (0.0, 0.0), "T1": (0.001, 0.003), "T2": (0.01, 0.25)}


@pytest.mark.parametrize(
    ("signals", "tier"),
    [
        ({}, "T0"),
        ({"state_changed": False, "anomaly": 0.1}, "T0"),
        ({"state_changed": True}, "T1"),
        ({"anomaly": 0.5}, "T1"),
        ({"anomaly": 0.5, "novelty": 0.9}, "T2"),
        ({"stakes": 0.7}, "T2"),
        ({"conflict": True}, "T2"),
        ({"escalate": True, "confidence": 0.9}, "T2"),
        ({"confidence": 0.4}, "T2"),
    ],
)
def test_003_triggers_of_tiers(signals: dict[str, Signal], tier: str) -> None:
    decision = decide_tier(signals)
    assert decision.tier == tier
    assert all(rule.tier == tier for rule in decision.rules)


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ({"anomally": 1.0}, "did you mean 'anomaly'"),
        ({"anomaly": math.nan}, "finite"),
        ({"anomaly": "high"}, "a number"),
    ],
)
def test_a_signal_that_cannot_be_read_is_refused(signals: dict[str, Signal], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        decide_tier(signals)


def test_a_call_is_escalated_to_the_tier_above() -> None:
    tiers = tier_rows().tier
    assert [next_tier(name, tiers) for name in ("T0", "T1", "T2")] == ["T1", "T2", None]


# 003, "Daily cost projections": T1, T2 and the day, in dollars; the document rounds the day to cents.
SCENARIOS = {"calm": (0.024, 0.02, 0.05), "normal": (0.045, 0.15, 0.20), "volatile": (0.075, 0.75, 0.83)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_003_daily_cost_projections(name: str) -> None:
    scenario = next(row for row in tier_rows().scenario if row.name == name)
    costs = daily_costs(scenario)
    first, second, day = SCENARIOS[name]
    assert scenario.ticks == 100
    assert sum(scenario.share.values()) == pytest.approx(1)
    assert costs == pytest.approx({"T0": 0.0, "T1": first, "T2": second})
    assert sum(costs.values()) == pytest.approx(day, abs=0.007)


def test_003_one_dear_call_costs_what_83_cheap_ones_do_or_a_day_and_a_quarter() -> None:
    economy = tier_rows().economy
    assert economy.opus_call_usd // economy.haiku_call_usd == 83
    assert economy.opus_call_usd / economy.life_day_usd == pytest.approx(1.25)
    assert economy.llm_share_of_credit == 0.60
    assert economy.daily_target_usd == (1.0, 2.0)


@pytest.mark.parametrize(("high", "low"), [(1.5, 0.3), (1.2, 0.5)])
def test_003_cosine_annealing_begins_high_passes_the_middle_range_and_ends_low(high: float, low: float) -> None:
    assert dali_temperature(0, 8, high, low) == pytest.approx(high)
    assert 0.8 <= dali_temperature(4, 8, high, low) <= 1.0
    assert dali_temperature(8, 8, high, low) == pytest.approx(low)


def test_003_cosine_annealing_at_a_quarter() -> None:
    assert dali_temperature(2, 8, 1.5, 0.3) == pytest.approx(0.3 + 1.2 * (1 + math.cos(math.pi / 4)) / 2)


@pytest.mark.parametrize(("cycle", "expected"), [(0, 1.5), (1, 1.425), (2, 1.35375)])
def test_003_reanneal(cycle: int, expected: float) -> None:
    assert reanneal(cycle, 1.5, 0.95) == pytest.approx(expected)


def test_003_the_first_dream_call_starts_at_seven_tenths_and_ramps_in_four_calls() -> None:
    heats = [ramp(step, 4, 0.7, 0.9) for step in range(6)]
    assert heats == pytest.approx([0.7, 0.7 + 0.2 / 3, 0.7 + 0.4 / 3, 0.9, 0.9, 0.9])


def test_003_schedules_of_the_subsystems() -> None:
    assert scheduled_temperature("dream_rem", 0) == pytest.approx(0.7)
    assert scheduled_temperature("dream_rem", 3) == pytest.approx(subsystem("dream_rem").profile.temperature)
    assert scheduled_temperature("hypnagogic_dali", 0, cycle=1) == pytest.approx(1.425)
    assert scheduled_temperature("hypnagogic_dali", 5, steps=5) == pytest.approx(0.3)
    assert scheduled_temperature("hypnagogic_induction", 9) == pytest.approx(1.2)
    assert scheduled_temperature("curator", 9) == 0.3


@given(st.integers(0, 100), st.integers(1, 100), st.floats(0.3, 2), st.floats(0, 0.3))
def test_a_cycle_only_cools(step: int, total: int, high: float, low: float) -> None:
    here, after = dali_temperature(step, total, high, low), dali_temperature(step + 1, total, high, low)
    assert low - 1e-9 <= after <= here + 1e-9
    assert here <= high + 1e-9


@pytest.mark.parametrize(("step", "total"), [(-1, 4), (0, 0)])
def test_a_step_that_is_none_is_refused(step: int, total: int) -> None:
    with pytest.raises(InvalidRequest, match="is none"):
        dali_temperature(step, total, 1.5, 0.3)
