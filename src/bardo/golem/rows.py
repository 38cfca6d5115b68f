"""The rows of the documents' agent, typed: `golem/data/*.toml`."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Literal, TypeVar

import msgspec
import tomli

from bardo.catalog.rows import DialectName
from bardo.routing.budgets import BudgetRules
from bardo.routing.fallback_route import FallbackRoute
from bardo.routing.pipelines import PipelineRules
from bardo.routing.pressure import PressureRules
from bardo.routing.tiers import CostScenario, TierRow, TierRule
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile, ProfileEffort
from bardo.values.request import Intent, Quality


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The temperatures of a session of one subsystem.

    `cosine` falls from `first` to `last`, and begins each later cycle `decay` times as hot; `ramp` goes from `first` to `last` in equal
    steps. `steps` is how many steps there are where the caller does not say: the calls of a ramp, the steps of a cycle.
    """

    subsystem: str
    kind: Literal["cosine", "ramp"]
    first: float
    last: float
    steps: int
    decay: float = 1.0

    def temperature(self, step: int, *, steps: int | None = None, cycle: int = 0) -> float:
        """Return the temperature of a step, counted from 0, in a cycle, counted from 0. Raises InvalidRequest for a negative one."""
        total = self.steps if steps is None else steps
        if self.kind == "ramp":
            return ramp(step, total, self.first, self.last)
        return dali_temperature(step, total, reanneal(cycle, self.first, self.decay), self.last)


T = TypeVar("T")


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row. A key that it does not know is an error."""


class IntentRow(_Row, frozen=True, kw_only=True):
    """The needs of a subsystem. `tier` is its tier where tiers decide whether it is asked; `resolved` is its typical resolution."""

    name: str
    quality: Quality
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    cost_sensitivity: float
    tier: str = ""
    resolved: str = ""

    @property
    def intent(self) -> Intent:
        """The row as an intent."""
        return Intent(
            require=self.require,
            prefer=self.prefer,
            quality=self.quality,
            cost_sensitivity=self.cost_sensitivity,
            subsystem=self.name,
        )


Group = Literal["waking", "dream", "hypnagogic", "terminal"]


class ProfileRow(_Row, frozen=True, kw_only=True):
    """How a subsystem is answered. `intent` names what it needs where that is another subsystem's.

    `expects` are fields that the caller fills in for each call. `cache_key` is the prompt cache key, with `{golem}` for the agent's id,
    `{cycle}` for the number of a dream cycle and `{prefix}` for the configured prefix; empty for the usual key. `temperature_range` is
    what the document gives where a temperature moves in a session.
    """

    name: str
    group: Group
    intent: str = ""
    locked: bool = False
    expects: tuple[str, ...] = ()
    cache_key: str = ""
    temperature_range: tuple[float, float] | None = None
    parameters: InferenceProfile


class EffortRow(_Row, frozen=True, kw_only=True):
    """A level of reasoning: its tokens, and what a call costs with it as a multiple of one without."""

    level: ProfileEffort
    tokens: int
    cost: tuple[float, float]


class ProfileRows(_Row, frozen=True, kw_only=True):
    """The file profiles.toml."""

    profile: tuple[ProfileRow, ...]
    effort: tuple[EffortRow, ...]
    schedule: tuple[Schedule, ...]


class PressureRows(_Row, frozen=True, kw_only=True):
    """The file pressure.toml."""

    pressure: PressureRules
    budgets: BudgetRules


class Economy(_Row, frozen=True, kw_only=True):
    """The economy of an agent's inference, in dollars: one call of the dearest and of the cheapest model, and one day of life."""

    llm_share_of_credit: float
    opus_call_usd: float
    haiku_call_usd: float
    life_day_usd: float
    daily_target_usd: tuple[float, float]


class WithoutModel(_Row, frozen=True, kw_only=True):
    """Who answers a tick that needs no model: a name as providers have, one for people, and the dialect that the answer is in."""

    provider: str
    name: str
    dialect: DialectName


class TierRows(_Row, frozen=True, kw_only=True):
    """The file tiers.toml."""

    tier: tuple[TierRow, ...]
    rule: tuple[TierRule, ...]
    scenario: tuple[CostScenario, ...]
    economy: Economy
    without_model: WithoutModel


class RoutingRow(_Row, frozen=True, kw_only=True):
    """Where a subsystem's calls go. `input_usd` is the price of a million input tokens where the document says it.

    `verified_by` is the provider whose model `verifier` is asked whether it agrees with the answer; empty for none.
    """

    subsystem: str
    provider: str
    model: str
    input_usd: float | None = None
    verified_by: str = ""
    verifier: str = ""
    why: str


class RoutingTable(_Row, frozen=True, kw_only=True):
    """One concrete table of routes, and what a day of it costs in dollars."""

    name: str
    daily_cost_usd: float
    rows: tuple[RoutingRow, ...]

    def row(self, subsystem: str) -> RoutingRow | None:
        """Return the row of a subsystem, or None if the table has none."""
        return next((row for row in self.rows if row.subsystem == subsystem), None)


class Configuration(_Row, frozen=True, kw_only=True):
    """The cost of a day with some providers, in dollars."""

    name: str
    daily_cost_usd: float
    why: str


class RouteRows(_Row, frozen=True, kw_only=True):
    """The file routes.toml. `paid_by_diem` are the providers that take staked DIEM."""

    paid_by_diem: tuple[str, ...]
    table: tuple[RoutingTable, ...]
    configuration: tuple[Configuration, ...]
    route: tuple[FallbackRoute, ...]


class TickKind(_Row, frozen=True, kw_only=True):
    """A kind of work that a tick may be. A tool belongs to it if its name has one of the words of `tools`."""

    name: str
    tools: frozenset[str]


class TickRows(_Row, frozen=True, kw_only=True):
    """The file ticks.toml. `most` is how many tools a call of a tick has."""

    most: int
    kind: tuple[TickKind, ...]


class _IntentRows(_Row, frozen=True, kw_only=True):
    intent: tuple[IntentRow, ...]


@cache
def intent_rows() -> tuple[IntentRow, ...]:
    """Return what each subsystem needs."""
    return _load_rows("intents", _IntentRows).intent


@cache
def profile_rows() -> ProfileRows:
    """Return how each subsystem is answered."""
    return _load_rows("profiles", ProfileRows)


@cache
def pressure_rows() -> PressureRows:
    """Return what falling vitality changes, and the daily budget."""
    return _load_rows("pressure", PressureRows)


@cache
def tier_rows() -> TierRows:
    """Return the tiers and their rules."""
    return _load_rows("tiers", TierRows)


@cache
def pipeline_rows() -> PipelineRules:
    """Return which layers work on a call."""
    return _load_rows("pipelines", PipelineRules)


@cache
def route_rows() -> RouteRows:
    """Return where calls go."""
    return _load_rows("routes", RouteRows)


@cache
def tick_rows() -> TickRows:
    """Return the kinds of ticks, with their tools."""
    return _load_rows("ticks", TickRows)


def _load_rows(name: str, kind: type[T]) -> T:
    text = files("bardo.golem").joinpath(f"data/{name}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), kind)


def dali_temperature(step: int, total_steps: int, t_high: float, t_low: float) -> float:
    """Return the temperature at `step` of a cycle: `t_high` at step 0, `t_low` at step `total_steps` and after it, a cosine between.

    Source: 003, "Hypnagogic cosine annealing". Raises InvalidRequest for a negative step and for a cycle without steps.
    """
    progress = _progress(step, total_steps)
    return t_low + (t_high - t_low) * ((1 + math.cos(progress * math.pi)) / 2)


def reanneal(cycle: int, base_high: float, decay: float) -> float:
    """Return the hottest temperature of a cycle, counted from 0: `decay` times that of the cycle before it.

    Source: 003, "Hypnagogic cosine annealing" (`reanneal`). Raises InvalidRequest for a negative cycle.
    """
    if cycle < 0:
        raise InvalidRequest(f"cycle {cycle} is negative", hint="cycles are counted from 0", param="cycle")
    return base_high * decay**cycle


def ramp(step: int, calls: int, first: float, last: float) -> float:
    """Return the temperature of a call, counted from 0: `first` for call 0, `last` for the last of `calls` and those after it.

    Source: 003, "Dream phase transitions". Raises InvalidRequest for a negative step and for a ramp without calls.
    """
    if calls == 1:
        return last
    return first + (last - first) * _progress(step, calls - 1)


def _progress(step: int, total: int) -> float:
    if step < 0 or total < 1:
        message = f"step {step} of {total} is none"
        raise InvalidRequest(message, hint="steps are counted from 0, and there is at least one", param="step")
    return min(step / total, 1.0)
