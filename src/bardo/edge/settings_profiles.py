"""`[golem]`, `[inference.profiles.NAME]` and `[inference.caching]` of `bardo.toml`: how the calls of a workload are answered.

A subsystem of the agent is a workload with `[golem]` on, and absent without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import msgspec

from bardo.edge.settings_problems import Place, explain
from bardo.edge.settings_rows import choices_of
from bardo.routing.profiles import merge_profiles, override_profile
from bardo.routing.workloads import PREFIX, WorkloadRow, builtin_workloads
from bardo.values.degradation import Degradation
from bardo.values.errors import ConfigError
from bardo.values.profile import InferenceProfile

_EMPTY = InferenceProfile()


class GolemSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agent's subsystems as workloads.

    `id` is the agent's, from which its prompt cache keys are made; without one there are none. `routes` says who is asked: whoever the
    needs of a subsystem lead to, or the models of a table. `web_search`: dreams may search the web. `sealed`: testaments and the
    integration of dreams are made in a trusted execution environment. `pipelines`: each subsystem has the pipeline profile that the
    documents name for it. `daily_budget_usd` is what an agent may spend in a day (UTC), divided among its subsystems; None: any amount.
    `web_search_budget_per_cycle_usdc` is what searches may cost in one dream cycle of a session, or in a session that counts no cycles.
    `verify`: answers that the documents have verified (`risk`) are judged by the other model, where its provider is configured.
    `tools` are globs of the names of the tools that a kind of tick is done with, by the kinds.
    """

    enabled: bool = False
    id: str = ""
    routes: Literal["needs", "blockrun_only", "full_stack"] = "needs"
    web_search: bool = True
    sealed: bool = True
    pipelines: bool = False
    verify: bool = True
    daily_budget_usd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    tools: dict[str, tuple[str, ...]] = {}
    web_search_budget_per_cycle_usdc: Annotated[float, msgspec.Meta(ge=0)] | None = None


class CachingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How prompts are cached. `auto_cache_control`: workloads whose profile says so get cache markers.

    `calls` are those whose prompts providers are told to cache by markers and keys: those of such workloads, or `all`.
    `prompt_cache_key_prefix` begins the prompt cache keys of the agent's subsystems.
    """

    calls: Literal["workloads", "all"] = "workloads"
    auto_cache_control: bool = True
    prompt_cache_key_prefix: str = "golem"


class WorkloadSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of all workloads but the built-in ones, and what of the file is not honoured because a profile is locked."""

    rows: dict[str, WorkloadRow]
    unheeded: tuple[Degradation, ...] = ()


def read_profiles(table: Any, text: str, source: str) -> dict[str, InferenceProfile]:
    """Return the profiles of `[inference.profiles.NAME]` by their names. Raises ConfigError naming the line."""
    place = Place(text, source, "inference.profiles")
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place.of('')}: profiles is not a table", hint="write [inference.profiles.NAME]")
    return {name: _profile(name, value, place) for name, value in table.items()}


def check_golem(golem: GolemSettings, place: Place) -> None:
    """Raise ConfigError for tools of a kind of tick that is not there."""
    if not golem.tools:
        return
    from bardo.golem.ticks import tick_kinds

    for name in golem.tools:
        if name not in tick_kinds():
            near = get_close_matches(name, tick_kinds(), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(tick_kinds())}"
            raise ConfigError(f"{place.inside('tools').of(name)}: no kind of tick is called {name!r}", hint=hint)


def settle_workloads(
    own: Mapping[str, WorkloadRow],
    profiles: Mapping[str, InferenceProfile],
    golem: GolemSettings,
    caching: CachingSettings,
    place: Place,
) -> WorkloadSettings:
    """Return the rows of a configuration: those of the agent, the operator's `own` over them, and `profiles` over theirs.

    A locked profile of the agent keeps what it sets. Raises ConfigError for a profile of a workload that is not there.
    """
    preset = _preset(golem, caching)
    unheeded: list[Degradation] = []
    rows = {**preset, **{name: _over(name, preset.get(name), row, unheeded) for name, row in own.items()}}
    for name, profile in profiles.items():
        if name not in rows and builtin_workloads().get(name) is None:
            raise _nobody(name, rows, golem, place)
        base = rows.get(name) or WorkloadRow(model=PREFIX + name)
        rows[name] = _over(name, base, WorkloadRow(profile=profile), unheeded)
    if not caching.auto_cache_control:
        rows = {name: _without_markers(row) for name, row in rows.items()}
    return WorkloadSettings(rows=rows, unheeded=tuple(unheeded))


def _preset(golem: GolemSettings, caching: CachingSettings) -> dict[str, WorkloadRow]:
    if not golem.enabled:
        return {}
    # Read only where somebody has such an agent.
    from bardo.golem.workloads import workload_rows

    return workload_rows(
        golem=golem.id,
        prefix=caching.prompt_cache_key_prefix,
        table="" if golem.routes == "needs" else golem.routes,
        sealed=golem.sealed,
        web_search=golem.web_search,
        pipelines=golem.pipelines,
    )


def _over(name: str, base: WorkloadRow | None, row: WorkloadRow, unheeded: list[Degradation]) -> WorkloadRow:
    """Return `base` with what `row` says in the place of its own; a locked profile holds, and what it refuses is added to `unheeded`."""
    if base is None:
        return row
    locked = bool(base.locked)
    said = {key: value for key, value in msgspec.structs.asdict(row).items() if value is not None}
    if row.profile is not None:
        profile, refused = override_profile(name, base.profile or _EMPTY, row.profile, locked=locked)
        unheeded += refused
        said["profile"] = profile
    return msgspec.structs.replace(base, **said | ({"locked": True} if locked else {}))


def _without_markers(row: WorkloadRow) -> WorkloadRow:
    if row.profile is None or row.profile.cache_control is None:
        return row
    unmarked = msgspec.structs.replace(row.profile, cache_control=None)
    return msgspec.structs.replace(row, profile=merge_profiles(_EMPTY, unmarked))


def _nobody(name: str, rows: Mapping[str, WorkloadRow], golem: GolemSettings, place: Place) -> ConfigError:
    near = get_close_matches(name, (*rows, *builtin_workloads().names), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"add [workloads.{name}]"
    if not golem.enabled:
        hint += "; the agent's subsystems are there with enabled = true under [golem]"
    return ConfigError(f"{place.inside(name).of('')}: no workload is called {name!r}", hint=hint)


def _profile(name: str, value: Any, place: Place) -> InferenceProfile:
    if not isinstance(value, Mapping):
        hint = f"write [inference.profiles.{name}] and keys below it"
        raise ConfigError(f"{place.of(name)}: the profile {name!r} is not a table", hint=hint)
    try:
        return msgspec.convert(value, InferenceProfile)
    except msgspec.ValidationError as problem:
        known, choices = InferenceProfile.__struct_fields__, choices_of(InferenceProfile)
        raise explain(problem, place.inside(name), known, choices) from problem
