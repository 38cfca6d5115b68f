"""The agent's subsystems as workloads, which clients ask for in the place of a model: `bardo/dream_rem`."""

from __future__ import annotations

import msgspec

from bardo.golem.preset import (
    CACHE_KEY_PREFIX,
    Subsystem,
    pressure_of,
    select_profile_and_reasoning,
    subsystem,
    subsystem_names,
)
from bardo.golem.rows import RoutingTable, intent_rows, pipeline_rows, route_rows, tier_rows
from bardo.golem.running import HEARTBEAT
from bardo.routing.profiles import set_fields
from bardo.routing.tiers import next_tier
from bardo.routing.workloads import PREFIX, SubsystemRow, WorkloadRow


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
    routes = next((one for one in route_rows().table if one.name == table), None)
    made = (
        subsystem(name, golem=golem, prefix=prefix, sealed=sealed, web_search=web_search) for name in subsystem_names()
    )
    rows = {one.name: _row(one, routes, pipelines=pipelines) for one in made}
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
    name = part.name if part.name in chosen else part.intent.subsystem
    return select_profile_and_reasoning(name)[0].name
