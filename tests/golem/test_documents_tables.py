"""The tables of the documents' agent, cell by cell: what each subsystem needs and how it is answered."""

from __future__ import annotations

import pytest

from bardo.golem.preset import (
    Offer,
    follow_route,
    select_profile_and_reasoning,
    subsystem,
    subsystem_names,
    with_profile,
)
from bardo.golem.rows import intent_rows, pipeline_rows, profile_rows, route_rows
from bardo.golem.schemas import SUBSYSTEM_ANSWERS
from bardo.routing.candidates import Candidate
from bardo.routing.profiles import DEPTHS
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile

# 003, "Subsystem intent declarations": quality, required features, preferred features, cost sensitivity.
INTENTS = {
    "heartbeat_t0": ("minimum", (), (), 1.0),
    "heartbeat_t1": ("low", (), ("low_effort",), 0.8),
    "heartbeat_t2": ("high", (), ("interleaved_thinking", "citations"), 0.3),
    "risk": ("maximum", (), ("interleaved_thinking", "citations"), 0.0),
    "dream": ("high", (), ("visible_thinking", "privacy"), 0.5),
    "daimon": ("low", (), ("privacy",), 0.9),
    "daimon_complex": ("high", (), ("visible_thinking", "privacy"), 0.5),
    "curator": ("medium", (), ("structured_outputs", "citations"), 0.5),
    "playbook": ("medium", (), ("predicted_outputs",), 0.6),
    "operator": ("maximum", (), ("interleaved_thinking", "citations"), 0.0),
    "death": ("maximum", ("visible_thinking",), (), 0.0),
    "session_compact": ("medium", (), ("compaction",), 0.5),
}
# 003, "Per-subsystem parameter table": temperature, top_p, top_k, min_p, effort, whether it caches, what else it sets.
PROFILES = {
    "heartbeat_t1": (0.3, 0.9, None, None, "low", True, {}),
    "heartbeat_t2": (0.5, 0.95, None, None, "high", True, {}),
    "risk": (0.1, 0.85, 40, None, "max", True, {}),
    "daimon": (0.4, 0.9, None, None, "low", None, {}),
    "daimon_complex": (0.6, 0.95, None, None, "high", None, {"visible_thinking": True}),
    "curator": (0.3, 0.9, None, None, "medium", True, {}),
    "playbook": (0.4, 0.9, None, None, "medium", None, {}),
    "operator": (0.7, 0.95, None, None, "high", True, {}),
    "mind_wandering": (0.8, None, None, 0.1, "none", None, {}),
    "dream_nrem": (0.4, 0.9, None, None, "medium", None, {}),
    "dream_rem": (0.9, None, None, 0.1, "high", None, {"web_search": True, "visible_thinking": True}),
    "dream_rem_creative": (1.2, None, None, 0.08, "medium", None, {}),
    "dream_integration": (0.3, 0.85, None, None, "high", None, {"tee_mode": True}),
    "dream_threat": (0.5, 0.9, None, None, "high", None, {}),
    "hypnagogic_induction": (1.0, None, None, 0.1, "none", None, {}),
    "hypnagogic_dali": (1.5, None, None, 0.08, "none", None, {"max_tokens": 100}),
    "hypnagogic_observer": (0.3, 0.85, None, None, "none", None, {}),
    "hypnagogic_capture": (0.5, 0.9, None, None, "low", None, {}),
    "hypnopompic_return": (0.6, 0.9, None, None, "low", None, {}),
    "death_reflect": (0.5, 0.95, None, None, "max", None, {"visible_thinking": True}),
    "death_testament": (0.4, 0.9, None, None, "high", None, {"tee_mode": True, "visible_thinking": True}),
}
FURTHER = ("web_search", "tee_mode", "visible_thinking", "max_tokens", "predicted_output", "stop_sequences", "seed")


@pytest.mark.parametrize("name", INTENTS)
def test_003_intent_table(name: str) -> None:
    row = next(row for row in intent_rows() if row.name == name)
    assert (row.quality, row.require, row.prefer, row.cost_sensitivity) == INTENTS[name]


def test_003_death_alone_has_a_hard_requirement() -> None:
    assert [row.name for row in intent_rows() if row.require] == ["death"]


@pytest.mark.parametrize("name", PROFILES)
def test_003_parameter_table(name: str) -> None:
    temperature, top_p, top_k, min_p, effort, caches, further = PROFILES[name]
    profile = subsystem(name).profile
    assert (profile.temperature, profile.top_p, profile.top_k, profile.min_p) == (temperature, top_p, top_k, min_p)
    assert (profile.reasoning_effort, profile.cache_control) == (effort, caches)
    assert {field: getattr(profile, field) for field in FURTHER if getattr(profile, field) is not None} == further


def test_003_parameter_table_is_whole() -> None:
    assert {row.name for row in profile_rows().profile} == PROFILES.keys()
    assert subsystem_names() == tuple(sorted({*PROFILES, *INTENTS, "context"}))


@pytest.mark.parametrize("name", PROFILES)
def test_003_structured_output_column(name: str) -> None:
    asked = subsystem(name).profile.response_schema
    answer = SUBSYSTEM_ANSWERS.get(name)
    assert (asked and asked.schema) == (answer and answer.schema().schema)


def test_003_locked_profiles() -> None:
    assert {row.name for row in profile_rows().profile if row.locked} == {"risk", "death_reflect", "operator"}


def test_003_a_locked_profile_is_not_overridden() -> None:
    hot = InferenceProfile(temperature=0.9)
    risk, refused = with_profile(subsystem("risk"), hot)
    assert risk == subsystem("risk")
    assert [one.what for one in refused] == ["profile.risk.temperature"]
    dream, reported = with_profile(subsystem("dream_rem"), InferenceProfile(temperature=1.0, min_p=0.08))
    assert (dream.profile.temperature, dream.profile.min_p, reported) == (1.0, 0.08, ())


def test_003_playbook_edits_expect_the_current_text() -> None:
    assert subsystem("playbook").expects == ("predicted_output",)


@pytest.mark.parametrize(("name", "span"), [("hypnagogic_induction", (1.0, 1.2)), ("hypnagogic_dali", (1.2, 1.5))])
def test_003_hypnagogic_temperature_ranges(name: str, span: tuple[float, float]) -> None:
    row = next(row for row in profile_rows().profile if row.name == name)
    assert row.temperature_range == span


def test_003_dali_has_the_highest_temperature_of_the_system() -> None:
    by_heat = sorted(profile_rows().profile, key=lambda row: row.parameters.temperature or 0)
    assert by_heat[-1].name == "hypnagogic_dali"


def test_003_reasoning_levels_in_tokens_and_cost() -> None:
    rows = {row.level: (row.tokens, row.cost) for row in profile_rows().effort}
    assert tuple(rows) == DEPTHS
    assert rows == {
        "none": (0, (1.0, 1.0)),
        "low": (1024, (1.2, 1.2)),
        "medium": (4096, (1.5, 2.0)),
        "high": (16384, (2.0, 4.0)),
        "max": (65536, (4.0, 8.0)),
    }


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("heartbeat_t1", "golem-g7-heartbeat_t1"),
        ("dream_rem", "dream-rem-g7"),
        ("dream_nrem", "golem-g7-dream_nrem-3"),
    ],
)
def test_003_prompt_cache_keys(name: str, key: str) -> None:
    assert subsystem(name, golem="g7", cycle=3).profile.prompt_cache_key == key
    assert subsystem(name).profile.prompt_cache_key is None


def test_settings_leave_out_enclaves_and_searches() -> None:
    assert subsystem("death_testament", sealed=False).profile.tee_mode is None
    assert subsystem("dream_rem", web_search=False).profile.web_search is None


def test_an_unknown_subsystem_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidRequest, match="did you mean 'dream_rem'"):
        subsystem("dreamrem")


# 000 §5: the pipeline profile, depth, whether thinking is visible, whether it is interleaved.
PIPELINES = {
    "heartbeat_t0": ("minimal", "none", False, False),
    "heartbeat_t1": ("fast", "low", False, False),
    "heartbeat_t2": ("standard", "high", False, False),
    "dream": ("fast", "max", True, False),
    "daimon": ("fast", "none", False, False),
    "daimon_complex": ("fast", "max", True, False),
    "risk": ("standard", "max", False, True),
    "death": ("full", "max", True, False),
    "operator": ("standard", "high", False, True),
    "anything else": ("standard", "medium", False, False),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_000_5_select_profile_and_reasoning(name: str) -> None:
    pipeline, reasoning = select_profile_and_reasoning(name)
    assert (pipeline.name, reasoning.depth, reasoning.visible, reasoning.interleaved) == PIPELINES[name]


@pytest.mark.parametrize("name", PIPELINES)
def test_private_work_gets_every_layer_whoever_asks(name: str) -> None:
    pipeline, reasoning = select_profile_and_reasoning(name, "private")
    assert pipeline.name == "full"
    assert reasoning.depth == ("high" if name == "anything else" else PIPELINES[name][1])


def test_000_5_layers_and_times_of_the_pipeline_profiles() -> None:
    rows = {row.name: (row.layers, row.milliseconds) for row in pipeline_rows().profile}
    layers = tuple(f"L{number}" for number in range(1, 9))
    assert rows == {
        "minimal": (("L3",), (0, 1)),
        "fast": (("L1", "L3", "L6"), (5, 15)),
        "standard": (layers[:6], (20, 40)),
        "full": (layers, (30, 65)),
    }


# 003, "Concrete routing".
TABLES = {
    "blockrun_only": {
        "heartbeat_t0": "blockrun/nvidia-gpt-oss-120b",
        "heartbeat_t1": "blockrun/gemini-3-flash",
        "heartbeat_t2": "blockrun/claude-opus-4-6",
        "risk": "blockrun/claude-opus-4-6",
        "dream": "blockrun/deepseek-r1",
        "daimon": "blockrun/gemini-3-flash",
        "curator": "blockrun/claude-sonnet-4-6",
        "playbook": "blockrun/claude-sonnet-4-6",
        "operator": "blockrun/claude-opus-4-6",
        "death": "blockrun/deepseek-r1",
    },
    "full_stack": {
        "heartbeat_t0": "local/qwen3-7b",
        "heartbeat_t1": "blockrun/gemini-3-flash",
        "heartbeat_t2": "blockrun/claude-opus-4-6",
        "risk": "blockrun/claude-opus-4-6",
        "dream": "venice/deepseek-r1",
        "daimon": "venice/llama-3.3-70b",
        "curator": "blockrun/claude-sonnet-4-6",
        "context": "openrouter/qwen-plus",
        "playbook": "openai/gpt-5.4",
        "operator": "bankr/claude-opus-4-6",
        "death": "venice/deepseek-r1",
        "session_compact": "blockrun/claude-opus-4-6",
        "batch_dreams": "anthropic/claude-sonnet-4-6",
    },
}
PRICES = {"heartbeat_t1": 0.50, "heartbeat_t2": 5.0, "dream": 0.55, "curator": 3.0}


@pytest.mark.parametrize("name", TABLES)
def test_003_concrete_routing_tables(name: str) -> None:
    table = next(table for table in route_rows().table if table.name == name)
    assert {row.subsystem: f"{row.provider}/{row.model}" for row in table.rows} == TABLES[name]


def test_003_prices_in_the_routing_table() -> None:
    rows = route_rows().table[0].rows
    assert {row.subsystem: row.input_usd for row in rows if row.input_usd is not None} == PRICES


def test_003_risk_is_verified_by_another_model_where_all_backends_are_there() -> None:
    row = route_rows().table[1].row("risk")
    assert row is not None
    assert row.verified_by == "bankr"


def test_003_daily_costs_of_the_tables_and_by_configuration() -> None:
    assert [table.daily_cost_usd for table in route_rows().table] == [2.50, 1.50]
    costs = [row.daily_cost_usd for row in route_rows().configuration]
    assert costs == [2.50, 2.30, 1.80, 1.50, 0.0, 0.0, 85.0]


OFFERS = (
    Offer(provider="claude", row="anthropic", model="claude-opus-4-6"),
    Offer(provider="router", row="openrouter", model="deepseek/deepseek-r1"),
    Offer(provider="private", row="venice", model="deepseek-r1-671b"),
    Offer(provider="gpt", row="openai", model="gpt-5.4"),
)


def test_000_9_the_dream_route_and_what_each_step_loses() -> None:
    steps = follow_route("dream", OFFERS)
    assert [step.offer.provider for step in steps] == ["private", "router", "claude"]
    lost = [tuple(one.what for one in step.degraded) for step in steps]
    assert lost == [(), ("privacy",), ("visible_thinking", "privacy")]


@pytest.mark.parametrize(
    ("listed", "first"),
    [
        # 003, "Degradation is visible, not silent": dream at BlockRun alone is claude-opus-4-6.
        (["claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-4-6"], "claude-opus-4-6"),
        (["claude-sonnet-4-6", "claude-haiku-4-5"], "claude-sonnet-4-6"),
        (["claude-haiku-4-5"], "claude-haiku-4-5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_000_9_the_last_step_of_a_dream_takes_the_best_claude(listed: list[str], first: str) -> None:
    offers = [Offer(provider="blockrun", row="blockrun", model=model) for model in listed]
    steps = follow_route("dream", offers)
    assert steps[0].offer.model == first
    assert {step.offer.model for step in steps} == {*listed}


def test_a_claude_of_the_wanted_quality_goes_before_a_lesser_one_of_an_earlier_provider() -> None:
    offers = [
        Offer(provider="claude", row="anthropic", model="claude-haiku-4-5"),
        Offer(provider="market", row="blockrun", model="anthropic/claude-sonnet-4.6"),
        Offer(provider="second", row="bankr", model="claude-opus-4-6"),
    ]
    # Two of the wanted quality stay in the order of their providers.
    assert [step.offer.provider for step in follow_route("dream", offers)] == ["market", "second", "claude"]


def test_what_a_step_prefers_goes_before_the_order_and_the_quality() -> None:
    def offer(model: str, *features: str) -> Offer:
        known = Candidate(provider="p", model=model, rating=0.8, features=frozenset(features))
        return Offer(provider="p", row="blockrun", model=model, candidate=known)

    offers = [offer("claude-a"), offer("claude-b", "adaptive_thinking")]
    assert [step.offer.model for step in follow_route("dream", offers)] == ["claude-b", "claude-a"]


def test_000_9_risk_falls_back_on_high_effort() -> None:
    steps = follow_route("risk", OFFERS)
    assert [(step.offer.provider, step.step.effort) for step in steps] == [("claude", ""), ("gpt", "high")]


def test_a_subsystem_without_a_route_follows_none() -> None:
    assert follow_route("curator", OFFERS) == ()
