"""The documents' agent as a whole: its subsystems with what they need, how they are answered, and what falling vitality changes.

Everything here is for programs that are such an agent. Other programs never meet it: a gateway knows the subsystems only with `[golem]` in
its bardo.toml.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import cache

import msgspec

from bardo.golem.fields import object_schema
from bardo.golem.rows import (
    IntentRow,
    ProfileRow,
    intent_rows,
    pipeline_rows,
    pressure_rows,
    profile_rows,
    route_rows,
    tier_rows,
)
from bardo.golem.schemas import SUBSYSTEM_ANSWERS
from bardo.routing.budgets import SubsystemBudget
from bardo.routing.budgets import compute_reasoning_budgets as divide_budget
from bardo.routing.fallback_route import Offer, RouteStep, StepTaken, follow
from bardo.routing.pipelines import PipelineProfile, SecurityClass
from bardo.routing.pipelines import select_profile_and_reasoning as select_pipeline
from bardo.routing.pressure import SubsystemPressure
from bardo.routing.profiles import ReasoningConfig, override_profile
from bardo.routing.tiers import Signal, TierDecision, TierRule
from bardo.routing.tiers import decide_tier as decide
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile, ResponseSchema
from bardo.values.request import Intent

__all__ = [
    "Offer",
    "PipelineProfile",
    "ReasoningConfig",
    "RouteStep",
    "StepTaken",
    "Subsystem",
    "SubsystemBudget",
    "TierDecision",
    "TierRule",
    "compute_reasoning_budgets",
    "decide_tier",
    "follow_route",
    "golem_cache_key",
    "scheduled_temperature",
    "select_profile_and_reasoning",
    "subsystem",
    "subsystem_names",
    "under_pressure",
    "with_profile",
]

CACHE_KEY_PREFIX = "golem"


class Subsystem(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the agent: what it needs, and how it is answered. A locked profile keeps what it sets.

    `expects` names the fields of the profile that the caller fills in for each call. `tier` is empty where tiers do not decide whether
    the subsystem asks a model.
    """

    name: str
    intent: Intent
    profile: InferenceProfile
    locked: bool = False
    expects: tuple[str, ...] = ()
    tier: str = ""


def subsystem_names() -> tuple[str, ...]:
    """Return the names of all subsystems, sorted."""
    return tuple(sorted({*_intents(), *_profiles()}))


def subsystem(
    name: str,
    *,
    golem: str = "",
    cycle: int = 0,
    prefix: str = CACHE_KEY_PREFIX,
    sealed: bool = True,
    web_search: bool = True,
) -> Subsystem:
    """Return a subsystem by its name.

    `golem` is the agent's id, from which its prompt cache keys are made; without one there are none. `cycle` is the number of the dream
    cycle. `sealed` False leaves out trusted execution environments, `web_search` False the searches of dreams.
    Raises InvalidRequest for a name that no subsystem has.
    """
    needs, answered = _intents(), _profiles().get(name)
    if name not in needs and answered is None:
        near = get_close_matches(name, subsystem_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"subsystems: {', '.join(subsystem_names())}"
        raise InvalidRequest(f"no subsystem is called {name!r}", hint=hint, param="subsystem")
    row = needs[answered.intent or name] if answered is not None else needs[name]
    profile = _reasoning_of(name) if answered is None else _profile(answered, golem, cycle, prefix)
    if not sealed:
        profile = msgspec.structs.replace(profile, tee_mode=None)
    if not web_search:
        profile = msgspec.structs.replace(profile, web_search=None)
    return Subsystem(
        name=name,
        intent=row.intent,
        profile=profile,
        locked=answered is not None and answered.locked,
        expects=() if answered is None else answered.expects,
        tier=row.tier,
    )


def under_pressure(part: Subsystem, vitality: float) -> Subsystem:
    """Return a subsystem of an agent with this vitality, 0 (dying) to 1 (healthy): its intent, its reasoning and its temperature.

    Raises InvalidRequest for a vitality out of range.
    """
    pressure = pressure_of(part)
    intent, profile = pressure.intent_at(part.intent, vitality), pressure.profile_at(part.profile, vitality)
    return msgspec.structs.replace(part, intent=intent, profile=profile)


def pressure_of(part: Subsystem) -> SubsystemPressure:
    """Return how falling vitality changes the calls of a subsystem."""
    return SubsystemPressure(rules=pressure_rows().pressure, intent=part.intent.subsystem, profile=part.name)


def with_profile(part: Subsystem, over: InferenceProfile) -> tuple[Subsystem, tuple[Degradation, ...]]:
    """Return a subsystem with the fields that `over` sets in its profile, and those not honoured: a locked profile keeps its own."""
    profile, refused = override_profile(part.name, part.profile, over, locked=part.locked)
    return msgspec.structs.replace(part, profile=profile), refused


def golem_cache_key(golem_id: str, subsystem: str, *, prefix: str = CACHE_KEY_PREFIX) -> str:
    """Return the prompt cache key of an agent's subsystem (003, "Session-level caching")."""
    return f"{prefix}-{golem_id}-{subsystem}"


def select_profile_and_reasoning(
    subsystem: str, security_class: SecurityClass = "standard"
) -> tuple[PipelineProfile, ReasoningConfig]:
    """Return which layers work on a subsystem's calls, and how deep its model thinks (000 §5); private work gets all layers."""
    return select_pipeline(subsystem, security_class, pipeline_rows())


def compute_reasoning_budgets(
    vitality: float, daily_budget_usd: float, *, sustainability: float | None = None, diem: float = 0.0
) -> Mapping[str, SubsystemBudget]:
    """Return what each subsystem may spend in a day, by its name (000 §9).

    `sustainability` is what the agent earns by what it spends, `diem` the rest of the day's DIEM in dollars: it pays for the
    subsystems whose best route is a provider that takes it. Raises InvalidRequest for a number out of range.
    """
    return divide_budget(
        vitality,
        daily_budget_usd,
        pressure_rows().budgets,
        sustainability=sustainability,
        diem=diem,
        paid_by_diem=paid_by_diem(),
    )


def decide_tier(signals: Mapping[str, Signal]) -> TierDecision:
    """Return the tier that the signals of a tick ask for, by the rows of tiers.toml.

    Raises InvalidRequest for a signal that no rule knows.
    """
    rows = tier_rows()
    return decide(signals, rows.rule, rows.tier)


def scheduled_temperature(name: str, step: int, *, steps: int | None = None, cycle: int = 0) -> float | None:
    """Return a subsystem's temperature at a step of its session, counted from 0; that of its profile where nothing changes it.

    `steps` is how many steps the session has, or a cycle of it, where that differs from the row; `cycle` counts cycles from 0
    (003, "Temperature scheduling within sessions"). Raises InvalidRequest for a negative number and for an unknown subsystem.
    """
    for schedule in profile_rows().schedule:
        if schedule.subsystem == name:
            return schedule.temperature(step, steps=steps, cycle=cycle)
    return subsystem(name).profile.temperature


def follow_route(name: str, offers: Iterable[Offer]) -> tuple[StepTaken, ...]:
    """Return the offers that a subsystem may take, best first, each with the step of its route that leads to it (000 §9).

    Empty for a subsystem without a route of its own.
    """
    route = next((route for route in route_rows().route if route.subsystem == name), None)
    if route is None:
        return ()
    needs = _intents().get(name)
    return tuple(follow(route, offers, Intent() if needs is None else needs.intent))


def paid_by_diem() -> Collection[str]:
    """Return the subsystems whose calls DIEM may pay: those that the full table sends to a provider that takes it."""
    rows = route_rows()
    return {row.subsystem for row in rows.table[-1].rows if row.provider in rows.paid_by_diem}


def _reasoning_of(name: str) -> InferenceProfile:
    """Return the profile of a subsystem without a row of parameters: the reasoning that 000 §5 gives it."""
    chosen = next((row.reasoning for row in pipeline_rows().choice if row.subsystem == name), None)
    if chosen is None:
        return InferenceProfile()
    return InferenceProfile(reasoning_effort=chosen.depth, visible_thinking=chosen.visible or None)


def _profile(row: ProfileRow, golem: str, cycle: int, prefix: str) -> InferenceProfile:
    answer = SUBSYSTEM_ANSWERS.get(row.name)
    schema = None
    if answer is not None:
        schema = ResponseSchema(name=answer.schema().name, schema=object_schema(answer))
    key = None
    if golem:
        key = row.cache_key.format(golem=golem, cycle=cycle, prefix=prefix) or golem_cache_key(
            golem, row.name, prefix=prefix
        )
    return msgspec.structs.replace(row.parameters, response_schema=schema, prompt_cache_key=key)


@cache
def _intents() -> Mapping[str, IntentRow]:
    return {row.name: row for row in intent_rows()}


@cache
def _profiles() -> Mapping[str, ProfileRow]:
    return {row.name: row for row in profile_rows().profile}
