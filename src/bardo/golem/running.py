"""Decide one call of the agent: its tier, its temperature at this step, its tools, and whether the day's budget still pays for it.

Pure: what was spent, and how many steps a session has had, are arguments. Source of the tools of a tick: 003, "Tool pruning (Layer 5
detail)".

The agent's subsystems are workloads, which clients ask for in the place of a model: `bardo/dream_rem`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from bardo.catalog.matching import matches_any
from bardo.golem.preset import (
    CACHE_KEY_PREFIX,
    Subsystem,
    compute_reasoning_budgets,
    decide_tier,
    pressure_of,
    scheduled_temperature,
    select_profile_and_reasoning,
    subsystem,
    subsystem_names,
)
from bardo.golem.rows import (
    RoutingTable,
    intent_rows,
    pipeline_rows,
    pressure_rows,
    profile_rows,
    route_rows,
    tick_rows,
    tier_rows,
)
from bardo.golem.schemas import HeartbeatDecision
from bardo.routing.budgets import SpentRow, SubsystemBudget, when_spent
from bardo.routing.profiles import set_fields
from bardo.routing.tiers import TierDecision, next_tier
from bardo.routing.workloads import PREFIX, SubsystemRow, WorkloadRow
from bardo.values.agent import AgentStep, Tick
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, OverBudget
from bardo.values.profile import InferenceProfile

HEARTBEAT = "heartbeat"
"""The workload whose tier the tick decides."""
_QUIET = Tick()
_STANDS_IN = "lower_tier"
_GOES_ON = "never"


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Today's spending of the subsystems of one budget, in dollars: `diem` at providers that staked DIEM pays, `usd` elsewhere."""

    usd: float = 0.0
    diem: float = 0.0


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """The dollars that an agent may spend in a day, None for any amount; its spending today by budget; and the rest of its DIEM."""

    daily_budget_usd: float | None = None
    spent: Mapping[str, Spent] = {}
    diem: float = 0.0


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A settled call. `answer` is the answer without a model, or None if one is asked."""

    step: AgentStep
    degraded: tuple[Degradation, ...] = ()
    answer: str | None = None


def is_heartbeat(name: str) -> bool:
    """Whether tiers decide which model a workload asks."""
    return name == HEARTBEAT or any(workload_of_tier(row.name) == name for row in tier_rows().tier)


def schedule_steps(name: str) -> int | None:
    """Return how many steps the temperatures of a subsystem's session have, or of a cycle of it, or None if they do not change."""
    return next((row.steps for row in profile_rows().schedule if row.subsystem == name), None)


def budget_names() -> tuple[str, ...]:
    """Return the names of the shares of the day's budget."""
    return tuple(row.subsystem for row in pressure_rows().budgets.share)


def budget_of(name: str) -> str:
    """Return which share of the day's budget pays for a subsystem, by its intent; empty where none does."""
    intent = subsystem(name).intent.subsystem if name in subsystem_names() else name
    return next((budget for budget in budget_names() if intent == budget or intent.startswith(f"{budget}_")), "")


def budgets_of(means: Means, *, vitality: float | None, tick: Tick | None) -> Mapping[str, SubsystemBudget]:
    """Return the amount that each subsystem may spend today, or none if it is unlimited."""
    if means.daily_budget_usd is None:
        return {}
    tick_now = tick or _QUIET
    spent = sum(spending.diem for spending in means.spent.values())
    left = means.diem if tick_now.diem is None else tick_now.diem
    return compute_reasoning_budgets(
        1.0 if vitality is None else vitality,
        means.daily_budget_usd,
        sustainability=tick_now.sustainability,
        # The rest and the spent part of it are together the day's allocation.
        diem=left + spent if left else 0.0,
    )


def settle(
    name: str,
    tick: Tick | None,
    *,
    vitality: float | None = None,
    means: Means | None = None,
    count: int = 0,
    golem: str = "",
    prefix: str = CACHE_KEY_PREFIX,
    asks_model: bool = False,
    seconds_left: float = 1.0,
) -> Settled:
    """Return what becomes of a call of a subsystem.

    `count` is how many calls of its session came before, `asks_model` whether the operator named a model for the tier that asks none.
    `seconds_left` are those of the day. Raises InvalidRequest for a signal that no rule knows, and OverBudget where the subsystem does
    without a model for the rest of the day.
    """
    means = means or Means()
    record: dict[str, Any] = {"subsystem": name}
    degraded: list[Degradation] = []
    workload, tier = name, ""
    if is_heartbeat(name):
        decision = _tier(name, tick)
        tier, workload = decision.tier, workload_of_tier(decision.tier)
        row = next(row for row in tier_rows().tier if row.name == tier)
        record |= {"tier": tier, "handler": row.handler, "trigger": row.trigger}
        record["rules"] = msgspec.to_builtins(decision.rules)
        if tick is not None:
            record["signals"] = dict(tick.signals)
    elif tick is not None:
        # 003, "System 1 / System 2 escalation": the other subsystems bypass the tiers.
        record["tier"] = None
    budget = budgets_of(means, vitality=vitality, tick=tick).get(budget_of(name))
    quiet = tier == tier_rows().tier[0].name and not asks_model
    if quiet:
        record["why"] = "no rule of the tick asks for a model"
    if budget is not None and not quiet:
        spent = means.spent.get(budget.subsystem, Spent())
        then = when_spent(budget, pressure_rows().budgets, spent_usd=spent.usd, spent_diem=spent.diem)
        record["budget"] = _budget_fields(budget, spent, then)
        if _is_spent(budget, spent):
            lost = _stand_in(name, budget, spent, then, tier, seconds_left)
            if lost is not None:
                degraded.append(lost)
            if then is not None and then.then == _STANDS_IN:
                record |= {"escalates": False, "stands_in_for": tier} if tier > then.tier else {"escalates": False}
                tier = record["tier"] = min(tier, then.tier)
                workload = workload_of_tier(tier)
    profile = _profile_at(workload, tick, count, golem, prefix, record)
    if not quiet:
        record |= _effort_fields(workload)
    return Settled(
        step=AgentStep(workload=workload, profile=profile, record=record),
        degraded=tuple(degraded),
        answer=_decision() if quiet else None,
    )


def _tier(name: str, tick: Tick | None) -> TierDecision:
    """Return the tier of a heartbeat: that of its tick, or else the one that its name says."""
    if tick is not None:
        return decide_tier(tick.signals)
    tiers = tier_rows().tier
    named = next((row.name for row in tiers if workload_of_tier(row.name) == name), "")
    # Whoever asks without a tick has something to ask.
    return TierDecision(tier=named or next(row.name for row in tiers if row.workload))


def workload_of_tier(tier: str) -> str:
    """Return the workload that a tier is."""
    row = next(row for row in tier_rows().tier if row.name == tier)
    return row.workload or f"{HEARTBEAT}_{tier.lower()}"


def _is_spent(budget: SubsystemBudget, spent: Spent) -> bool:
    return spent.usd >= budget.usd and spent.diem >= budget.diem


def _stand_in(
    name: str, budget: SubsystemBudget, spent: Spent, then: SpentRow | None, tier: str, seconds_left: float
) -> Degradation | None:
    """Return the report on a call that goes on although its budget is spent. Raises OverBudget for one that does not."""
    share = f"the day's budget of {budget.subsystem} is spent: ${spent.usd:.4f} of ${budget.usd:.4f}"
    if then is None:
        return Degradation("budget", asked=round(budget.usd, 6), sent=round(spent.usd, 6), why=share)
    if then.then == _GOES_ON:
        return None
    if then.then == _STANDS_IN:
        what = "tier" if tier > then.tier else "escalation"
        return Degradation(what, asked=tier, sent=then.tier, why=f"{share}: {then.why}")
    raise OverBudget(
        f"{share}, so that {name} does without a model until tomorrow (UTC): {then.then}",
        hint=then.why,
        limit=f"golem.{budget.subsystem}",
        retry_after=seconds_left,
    )


def _budget_fields(budget: SubsystemBudget, spent: Spent, then: SpentRow | None) -> dict[str, Any]:
    bounded = math.isfinite(budget.usd)
    return {
        "name": budget.subsystem,
        "usd": round(budget.usd, 9) if bounded else None,
        "spent_usd": round(spent.usd, 9),
        "diem": round(budget.diem, 9),
        "spent_diem": round(spent.diem, 9),
        "spent": _is_spent(budget, spent),
        "then": None if then is None else then.then,
    }


def _profile_at(
    name: str, tick: Tick | None, count: int, golem: str, prefix: str, record: dict[str, Any]
) -> InferenceProfile | None:
    """Return what the profile of a subsystem has at a step of its session, and note that, or None if it is as it always is."""
    cycle = None if tick is None else tick.cycle
    changed: dict[str, Any] = {}
    if (steps := schedule_steps(name)) is not None:
        # Step `steps` is the last of a cycle; who counts no cycles has one begin behind it (003, "Hypnagogic cosine annealing").
        of_session, step = (cycle, count) if cycle is not None else divmod(count, steps + 1)
        ramps = next(row.kind == "ramp" for row in profile_rows().schedule if row.subsystem == name)
        step, of_session = (count, 0) if ramps else (step, of_session)
        temperature = scheduled_temperature(name, step, cycle=of_session)
        span = next(row.temperature_range for row in profile_rows().profile if row.name == name)
        record |= {"step": step, "cycle": of_session, "temperature": temperature}
        if span is not None:
            record["temperature_range"] = list(span)
        changed["temperature"] = temperature
    if cycle is not None and golem and name in subsystem_names():
        key = subsystem(name, golem=golem, cycle=cycle, prefix=prefix).profile.prompt_cache_key
        if key != subsystem(name, golem=golem, prefix=prefix).profile.prompt_cache_key:
            record["cycle"] = cycle
            changed["prompt_cache_key"] = key
    return InferenceProfile(**changed) if changed else None


def _effort_fields(name: str) -> dict[str, Any]:
    """Return how deep a subsystem thinks by its profile, and what that costs as a multiple of a call without (003, cost multipliers)."""
    effort = subsystem(name).profile.reasoning_effort if name in subsystem_names() else None
    row = next((row for row in profile_rows().effort if row.level == effort), None)
    return {} if row is None else {"effort": {"level": row.level, "tokens": row.tokens, "cost": list(row.cost)}}


def _decision() -> str:
    """Return the answer of the lowest tier: what a heartbeat decides where no rule asks for a model."""
    rationale = "No significant change of state: no rule of the tick asks for a model."
    decision = HeartbeatDecision(
        severity="none", action="observe", confidence=1.0, rationale=rationale, signals=[], escalate=False
    )
    return msgspec.json.encode(decision).decode()


def verifier_of(name: str) -> tuple[str, str] | None:
    """Return the provider, by its row, and the model that are asked whether they agree with the answers of a subsystem."""
    rows = (row for table in route_rows().table for row in table.rows if row.subsystem == name and row.verified_by)
    return next(((row.verified_by, row.verifier) for row in rows), None)


OwnTools = Mapping[str, Sequence[str]]
"""Globs of the names of an agent's own tools, by the kinds of ticks."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NO_LETTER = re.compile(r"[^a-z]")


def tick_kinds() -> tuple[str, ...]:
    """Return the kinds of work that a tick may be."""
    return tuple(row.name for row in tick_rows().kind)


def kind_of_tick(said: str) -> str:
    """Return the kind that a tick says, however it is spelled: `TradeExecution`, `trade-execution`.

    Raises InvalidRequest for a kind that no row has.
    """
    spelled = {_NO_LETTER.sub("", name): name for name in tick_kinds()}
    plain = _NO_LETTER.sub("", said.lower())
    if plain in spelled:
        return spelled[plain]
    near = get_close_matches(plain, spelled, n=1)
    hint = f"did you mean {spelled[near[0]]!r}?" if near else f"kinds of ticks: {', '.join(tick_kinds())}"
    raise InvalidRequest(f"no kind of tick is called {said[:100]!r}", hint=hint, param="bardo.tick.type")


def tools_of_tick(
    kind: str, names: Sequence[str], *, stay: Collection[str] = (), own: OwnTools | None = None
) -> list[str]:
    """Return which of the tools with these names a kind of tick is done with, sorted: no more than `most` of the rows.

    Those that `stay` go first, then those of the kind, then those of no kind, which may be of use in any; within each by name. Where `own`
    has the kind, its globs alone select the tools of it.
    """
    own = own or {}
    of_kind = {name: _kinds_of(name, own) for name in names}
    ranked = sorted(
        {name for name, kinds in of_kind.items() if name in stay or kind in kinds or (not kinds and kind not in own)},
        key=lambda name: (name not in stay, kind not in of_kind[name], name),
    )
    return sorted(ranked[: max(tick_rows().most, sum(name in stay for name in ranked))])


def _kinds_of(name: str, own: OwnTools) -> set[str]:
    """Return the kinds of ticks that a tool belongs to."""
    words = {word.lower() for word in _WORD.findall(name)}
    words |= {word.removesuffix("s") for word in words}
    return {
        row.name
        for row in tick_rows().kind
        if (matches_any(name, tuple(own[row.name])) if row.name in own else not words.isdisjoint(row.tools))
    }


def workload_rows(
    *,
    golem: str = "",
    prefix: str = CACHE_KEY_PREFIX,
    table: str = "",
    sealed: bool = True,
    web_search: bool = True,
    pipelines: bool = False,
) -> dict[str, WorkloadRow]:
    """Return the rows of all subsystems by their names.

    `golem` is the agent's id, for prompt cache keys; `table` names a table of routes whose models are asked, empty for whoever fits the
    needs. `sealed` and `web_search` are those of `subsystem`. `pipelines`: each has the pipeline profile that the documents name.
    """
    routes = next((row for row in route_rows().table if row.name == table), None)
    made = (
        subsystem(name, golem=golem, prefix=prefix, sealed=sealed, web_search=web_search) for name in subsystem_names()
    )
    rows = {workload.name: _row(workload, routes, pipelines=pipelines) for workload in made}
    # A tick decides which tier answers it; without one, the lowest that asks a model does.
    lowest = next(row.workload for row in tier_rows().tier if row.workload)
    about = "the agent's heartbeat: its tick decides on the tier"
    return {HEARTBEAT: msgspec.structs.replace(rows[lowest], about=about), **rows}


def _row(part: Subsystem, routes: RoutingTable | None, *, pipelines: bool) -> SubsystemRow:
    asked = None if routes is None else routes.row(part.name) or routes.row(part.intent.subsystem)
    intent = part.intent
    # Where the subsystem's calls go, and what a million tokens of input cost there.
    typical = next((row.resolved for row in intent_rows() if row.name == part.intent.subsystem), "")
    if asked is not None:
        price = "" if asked.input_usd is None else f", ${asked.input_usd:g} a million input tokens"
        typical = f"{asked.provider}/{asked.model}{price}"
    return SubsystemRow(
        model=None if asked is None else f"{asked.provider}/{asked.model}",
        require=intent.require,
        prefer=intent.prefer,
        quality=intent.quality,
        cost_sensitivity=intent.cost_sensitivity,
        profile=part.profile if set_fields(part.profile) else None,
        locked=part.locked,
        route=next((route.step for route in route_rows().route if route.subsystem == intent.subsystem), ()) or None,
        tier=part.tier or None,
        escalate=_escalation(part),
        pipeline=_pipeline(part) if pipelines else None,
        pressure=pressure_of(part),
        about=f"the agent's subsystem {part.name}" + (f" ({typical})" if typical else ""),
    )


def _escalation(part: Subsystem) -> tuple[str, ...] | None:
    """Return the workload that is asked where a tier's answer is not good enough: that of the next tier that asks a model."""
    tiers = tier_rows().tier
    if not part.tier or not next(row.workload for row in tiers if row.name == part.tier):
        return None
    above = next_tier(part.tier, tiers)
    workload = next((row.workload for row in tiers if row.name == above), "")
    return (PREFIX + workload,) if workload else None


def _pipeline(part: Subsystem) -> str:
    """Return the pipeline profile of a subsystem, by its own name or by that of its intent (000 §5)."""
    chosen = {row.subsystem for row in pipeline_rows().choice}
    return select_profile_and_reasoning(part.name if part.name in chosen else part.intent.subsystem)[0].name
