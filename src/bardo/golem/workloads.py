"""The agent's subsystems as workloads, which clients ask for in the place of a model: `bardo/dream_rem`."""

from __future__ import annotations

from bardo.golem.preset import (
    CACHE_KEY_PREFIX,
    Subsystem,
    pressure_of,
    select_profile_and_reasoning,
    subsystem,
    subsystem_names,
)
from bardo.golem.rows import RoutingTable, pipeline_rows, route_rows
from bardo.routing.fallback_route import RouteStep
from bardo.routing.profiles import set_fields
from bardo.routing.workloads import SubsystemRow, WorkloadRow


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
    return {one.name: _row(one, routes, pipelines=pipelines) for one in made}


def _row(part: Subsystem, routes: RoutingTable | None, *, pipelines: bool) -> SubsystemRow:
    asked = None if routes is None else routes.row(part.name) or routes.row(part.intent.subsystem)
    intent = part.intent
    return SubsystemRow(
        model=None if asked is None else f"{asked.provider}/{asked.model}",
        require=intent.require,
        prefer=intent.prefer,
        quality=intent.quality,
        cost_sensitivity=intent.cost_sensitivity,
        profile=part.profile if set_fields(part.profile) else None,
        locked=part.locked,
        route=_steps(intent.subsystem) or None,
        tier=part.tier or None,
        pipeline=_pipeline(part) if pipelines else None,
        pressure=pressure_of(part),
        about=f"the agent's subsystem {part.name}",
    )


def _pipeline(part: Subsystem) -> str:
    """Return the pipeline profile of a subsystem, by its own name or by that of its intent (000 §5)."""
    chosen = {row.subsystem for row in pipeline_rows().choice}
    name = part.name if part.name in chosen else part.intent.subsystem
    return select_profile_and_reasoning(name)[0].name


def _steps(name: str) -> tuple[RouteStep, ...]:
    return next((route.step for route in route_rows().route if route.subsystem == name), ())
