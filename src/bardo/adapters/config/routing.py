"""`[routing]`, `[failover]`, `[health]`, `[workloads]`, profiles, `[golem]` and `[search]`: who answers a call, and what if it fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import msgspec

from bardo.adapters.config.gateway import Seconds, Silence
from bardo.adapters.config.mistakes import Place, choices_of, explain
from bardo.adapters.config.providers import ProviderEntry, is_http_address
from bardo.adapters.config.storage import REDIS, refuse_nowhere
from bardo.catalog.features import features
from bardo.catalog.load import builtin
from bardo.catalog.search_apis import search_apis
from bardo.planning.knowledge import candidate_of
from bardo.planning.model_names import Alias, Aliases, ResolvedModel
from bardo.planning.route import Provider, target_at
from bardo.planning.workloads import PRIVACY, near_feature
from bardo.routing.circuit import HealthPolicy
from bardo.routing.health import HealthStore, MemoryHealth
from bardo.routing.profiles import merge_profiles, override_profile
from bardo.routing.shared_health import SharedHealth
from bardo.routing.workloads import PREFIX, WorkloadMistake, WorkloadRow, Workloads, builtin_workloads, unknown_workload
from bardo.values.degradation import Degradation
from bardo.values.errors import ConfigError
from bardo.values.profile import InferenceProfile

Strategy = Literal["order", "score", "learned"]


class LearnedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[routing.learned]`: how the strategy `learned` explores and forgets.

    `regret` is what exploring may lose on average, in success from 0 to 1. `comparison_share` of the calls ask the best single model, by
    which the report says whether routing pays. Outcomes count half after `half_life_days`. `file` stores the learned state.
    """

    file: str = ""
    half_life_days: Annotated[float, msgspec.Meta(gt=0, le=36_500)] = 30.0
    regret: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.02
    comparison_share: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.1


class RoutingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How it is chosen who answers a call that says what it needs.

    `strategy`: by the order of the providers in the file, by score, or by what was learned of earlier calls. `private_providers` are ids of
    providers that keep nothing of a call, besides those of which the catalog or their own table says so. `embedding` is a folder with a
    model in ONNX by which learned routing knows requests; empty: the table that ships with bardo.
    """

    strategy: Strategy = "order"
    private_providers: tuple[str, ...] = ()
    embedding: str = ""
    learned: LearnedSettings = LearnedSettings()


def read_workloads(table: Any, text: str, source: str) -> dict[str, WorkloadRow]:
    """Return the rows of `[workloads.NAME]` by their names. Raises ConfigError naming the line."""
    place = Place(text, source, "workloads")
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place.of('')}: workloads is not a table", hint="write [workloads.NAME] and keys below it")
    return {name: _row(name, value, place) for name, value in table.items()}


def check_workloads(rows: Mapping[str, WorkloadRow], text: str, source: str) -> None:
    """Raise ConfigError for a workload that leads to itself, or to none."""
    try:
        workloads_of(rows)
    except WorkloadMistake as problem:
        where = Place(text, source, "workloads").inside(problem.name).of("model")
        raise ConfigError(f"{where}: {problem.message}", hint=problem.hint) from problem


def workloads_of(rows: Mapping[str, WorkloadRow]) -> Workloads:
    """Return the built-in workloads and those of a configuration. Raises WorkloadMistake for one that leads to itself."""
    return builtin_workloads().with_rows(rows) if rows else builtin_workloads()


def check_names(rows: Mapping[str, WorkloadRow], aliases: Mapping[str, Alias], text: str, source: str) -> None:
    """Raise ConfigError where aliases and workloads lead to each other, or one name is both."""
    workloads, all_aliases = workloads_of(rows), Aliases(aliases)
    for name in aliases:
        _check_alias(name, all_aliases.find(name.replace("*", "x")), workloads, Place(text, source, "aliases"))
    place = Place(text, source, "workloads")
    for name in rows:
        if name in aliases:
            hint = f"rename one of them; clients may also write {PREFIX}{name} for the workload"
            raise ConfigError(f"{place.inside(name).of('')}: {name!r} is an alias and a workload", hint=hint)
        workload = workloads.get(name)
        assert workload is not None
        # Another workload may be the next where an answer is not good enough, by its full name.
        escalate = [model for model in workload.escalate if not (model.startswith(PREFIX) and workloads.find(model))]
        for model in (workload.intent.model, *workload.fallbacks, *escalate):
            further = None if model is None else workloads.find(all_aliases.find(model).model)
            if further is not None and further.name != model:
                message = f"the model {model!r} of the workload {name!r} leads to the workload {further.name!r}"
                hint = f"name the workload itself, as its model: {further.model_name!r}"
                raise ConfigError(f"{place.inside(name).of('model')}: {message}", hint=hint)


def _check_alias(name: str, alias: ResolvedModel, workloads: Workloads, place: Place) -> None:
    """Raise ConfigError for an alias that mixes a workload with models, or names one that is not there."""
    for model in (alias.model, *alias.fallbacks):
        if workloads.find(model) is not None and alias.fallbacks:
            hint = f"let the alias be {model!r} alone, and give the workload its fallbacks"
            raise ConfigError(f"{place.of(name)}: alias {name!r} lists a workload among its models", hint=hint)
        if model.startswith(PREFIX) and workloads.find(model) is None:
            problem = unknown_workload(model.removeprefix(PREFIX), workloads)
            raise ConfigError(f"{place.of(name)}: alias {name!r}: {problem.message}", hint=problem.hint)


def check_features(rows: Mapping[str, WorkloadRow], text: str, source: str) -> None:
    """Raise ConfigError for a feature that no row of the catalog has."""
    for name, row in rows.items():
        here = Place(text, source, "workloads").inside(name)
        for key in ("require", "prefer"):
            for feature in getattr(row, key) or ():
                if feature not in features().names:
                    where = here.of(key)
                    raise ConfigError(f"{where}: no feature is called {feature!r}", hint=near_feature(feature))


def check_private(
    rows: Mapping[str, WorkloadRow],
    routing: RoutingSettings,
    providers: Sequence[Provider],
    aliases: Mapping[str, Alias],
    text: str,
    source: str,
) -> None:
    """Raise ConfigError for a workload that is private, and names a model of a provider that is not, also by an alias."""
    all_aliases = Aliases(aliases)
    by_id = {provider.id: provider for provider in providers}
    for name in rows:
        workload = workloads_of(rows).get(name)
        assert workload is not None
        if not (workload.private or PRIVACY in workload.intent.require):
            continue
        named = [("model", workload.intent.model or ""), *(("fallbacks", model) for model in workload.fallbacks)]
        named += [*(("escalate", model) for model in workload.escalate), ("verify", workload.verify)]
        asked = [(key, model) for key, name in named for model in _models_of(name, all_aliases)]
        for key, model in asked:
            provider = by_id.get(model.partition("/")[0])
            if provider is None or provider.id in routing.private_providers:
                continue
            if PRIVACY not in candidate_of(target_at(provider, model)).features:
                where = Place(text, source, "workloads").inside(name).of(key)
                hint = f'name a private provider, or say under [routing]: private_providers = ["{provider.id}"]'
                message = f"the workload {name!r} must be private, and {provider.id!r}, which has {model!r}, is not"
                raise ConfigError(f"{where}: {message}", hint=hint)


def _models_of(name: str, aliases: Aliases) -> tuple[str, ...]:
    alias = aliases.find(name)
    return (alias.model, *alias.fallbacks)


def check_routing(routing: RoutingSettings, providers: Sequence[ProviderEntry], place: Place) -> None:
    """Raise ConfigError for a private provider that is not there, or that its own table calls not private."""
    public = {entry.id for entry in providers if entry.private is False}
    for name in routing.private_providers:
        if name in public:
            message = f"{place.of('private_providers')}: {name!r} is listed, and its table says private = false"
            raise ConfigError(message, hint="take it out of the list, or private = false out of its table")
    ids = [entry.id for entry in providers] or list(builtin().names())
    for name in routing.private_providers:
        if name not in ids:
            near = get_close_matches(name, ids, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name the id of a provider of this file"
            raise ConfigError(f"{place.of('private_providers')}: no provider has the id {name!r}", hint=hint)


def _row(name: str, value: Any, place: Place) -> WorkloadRow:
    here = place.inside(name)
    if not name or "/" in name or not name.isprintable():
        raise ConfigError(f"{here.of('')}: {name!r} cannot name a workload", hint="use letters, digits, - and _")
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place.of(name)}: the workload {name!r} is not a table", hint=f"write [workloads.{name}]")
    profile = value.get("profile")
    try:
        if isinstance(profile, Mapping):
            msgspec.convert(profile, InferenceProfile)
    except msgspec.ValidationError as problem:
        fields, choices = InferenceProfile.__struct_fields__, choices_of(InferenceProfile)
        raise explain(problem, here.inside("profile"), fields, choices) from problem
    try:
        return msgspec.convert(_with_fallbacks(value), WorkloadRow)
    except msgspec.ValidationError as problem:
        raise explain(problem, here, WorkloadRow.__struct_fields__, choices_of(WorkloadRow)) from problem


def _with_fallbacks(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the table of a workload: of a list of models those after the first are its fallbacks."""
    models = table.get("model")
    if not isinstance(models, list) or not models or "fallbacks" in table:
        return table
    return {**table, "model": models[0], "fallbacks": models[1:]}


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
    from bardo.golem.running import tick_kinds

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
            near = get_close_matches(name, (*rows, *builtin_workloads().names), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"add [workloads.{name}]"
            if not golem.enabled:
                hint += "; the agent's subsystems are there with enabled = true under [golem]"
            raise ConfigError(f"{place.inside(name).of('')}: no workload is called {name!r}", hint=hint)
        base = rows.get(name) or WorkloadRow(model=PREFIX + name)
        rows[name] = _over(name, base, WorkloadRow(profile=profile), unheeded)
    if not caching.auto_cache_control:
        rows = {name: _without_markers(row) for name, row in rows.items()}
    return WorkloadSettings(rows=rows, unheeded=tuple(unheeded))


def _preset(golem: GolemSettings, caching: CachingSettings) -> dict[str, WorkloadRow]:
    if not golem.enabled:
        return {}
    # Read only where somebody has such an agent.
    from bardo.golem.running import workload_rows

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
    changes = {key: value for key, value in msgspec.structs.asdict(row).items() if value is not None}
    if row.profile is not None:
        profile, refused = override_profile(name, base.profile or _EMPTY, row.profile, locked=locked)
        unheeded += refused
        changes["profile"] = profile
    return msgspec.structs.replace(base, **changes | ({"locked": True} if locked else {}))


def _without_markers(row: WorkloadRow) -> WorkloadRow:
    if row.profile is None or row.profile.cache_control is None:
        return row
    unmarked = msgspec.structs.replace(row.profile, cache_control=None)
    return msgspec.structs.replace(row, profile=merge_profiles(_EMPTY, unmarked))


def _profile(name: str, value: Any, place: Place) -> InferenceProfile:
    if not isinstance(value, Mapping):
        hint = f"write [inference.profiles.{name}] and keys below it"
        raise ConfigError(f"{place.of(name)}: the profile {name!r} is not a table", hint=hint)
    try:
        return msgspec.convert(value, InferenceProfile)
    except msgspec.ValidationError as problem:
        fields, choices = InferenceProfile.__struct_fields__, choices_of(InferenceProfile)
        raise explain(problem, place.inside(name), fields, choices) from problem


Most = Annotated[int, msgspec.Meta(ge=1, le=50)]


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The service that searches, or the `model` that is asked to; both empty: no searches.

    `service` is a row of `search_apis.toml`, `base_url` the address of a server of one's own, and `api_key_env` the variable that holds the
    key where it is not the service's usual one. `pages` are kept of a search, `most_searches` are made for one reply. `always`: also where
    the provider searches by itself.
    """

    service: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    pages: Most = 8
    most_searches: Most = 8
    seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 20.0
    always: bool = False


def check_search(search: SearchSettings, place: Place) -> None:
    """Raise ConfigError naming the line of what cannot search."""
    if search.service and search.model:
        raise ConfigError(f"{place.of('model')}: a service and a model are both to search", hint="give one of them")
    if not search.service:
        return
    row = search_apis().get(search.service)
    if row is None:
        hint = f'use {", ".join(search_apis())}, or model = "…" for a model that can search'
        raise ConfigError(f"{place.of('service')}: no search service is called {search.service!r}", hint=hint)
    if not (row.url or search.base_url):
        raise ConfigError(
            f"{place.of('service')}: {row.id} is a server of your own", hint='give its base_url = "http://…"'
        )
    if search.base_url and not is_http_address(search.base_url):
        raise ConfigError(f"{place.of('base_url')}: {search.base_url!r} is no http(s) address", hint="give one")
    if search.api_key_env and not search.api_key_env.isidentifier():
        hint = 'write the name of the variable that holds the key: api_key_env = "TAVILY_API_KEY"'
        raise ConfigError(f"{place.of('api_key_env')}: no environment variable is called so", hint=hint)


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Retries = Annotated[int, msgspec.Meta(ge=0, le=10)]
Entries = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Bytes = Annotated[int, msgspec.Meta(ge=1)]


class FailoverSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings for a provider that fails, is silent, or is slow.

    `retries` at the same provider, after pauses that double from `backoff_seconds` on; one that asks to be left alone for longer than
    `longest_pause_seconds` is left for the next. `first_token_seconds`: how long a streamed reply may take to its first token, `0` is as
    long as `[timeouts]` say; `first_token_seconds_at` has other figures for some providers, by their ids. `deadline_seconds`: within
    which a call begins to be answered (streamed) or is answered (whole), all attempts together; `0` is no bound, and a client asks for
    less with `X-Bardo-Deadline-Seconds`. `hedge`: a second provider is asked too where the first takes longer than it does in 95 of 100
    calls, for at most `hedge_share` of all calls. `stale_entries` last whole replies, of `stale_bytes` together, are kept for callers
    that would rather have an old reply than none; `0` keeps none.
    """

    retries: Retries = 1
    backoff_seconds: Silence = 0.25
    longest_pause_seconds: Silence = 1.0
    first_token_seconds: Silence = 0.0
    first_token_seconds_at: dict[str, Seconds] = {}
    deadline_seconds: Silence = 0.0
    hedge: bool = False
    hedge_share: Share = 0.05
    stale_entries: Entries = 0
    stale_bytes: Bytes = 64 * 1024 * 1024

    def first_token(self, provider: str) -> float | None:
        """Return how long a streamed reply of a provider may take to its first token, or None if only `[timeouts]` bound it."""
        return self.first_token_seconds_at.get(provider, self.first_token_seconds) or None


def check_failover(failover: FailoverSettings, providers: Collection[str], place: Place) -> None:
    """Raise ConfigError for a provider that is not there. `providers` are the ids of all that there are."""
    for name in failover.first_token_seconds_at:
        if name not in providers:
            near = get_close_matches(name, providers, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name the id of a provider of this file"
            raise ConfigError(f"{place.of('first_token_seconds_at')}: no provider has the id {name!r}", hint=hint)


_Rate = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_LeastCalls = Annotated[int, msgspec.Meta(ge=2, le=100_000)]


class HealthSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a target is down: of `least_calls` within `window_seconds` certainly more than `error_rate` fail.

    It is tried again after `rest_seconds`, then after twice that, up to `most_rest_seconds`. `ping`: providers whose list of models is free
    are asked for it every `ping_seconds`, to see whether they are there; no call that costs anything is made to find out.
    `store` is the address of Redis or Valkey over which gateways tell each other what they see, the path of a file for the workers of one
    machine, or empty; `store_env` names the variable that holds it, for an address with a password. `bardo serve` with several workers
    takes a file that they share and that is gone when the gateway ends, where nothing is named.
    """

    store: str = ""
    store_env: str = ""

    error_rate: _Rate = 0.05
    window_seconds: Seconds = 300.0
    least_calls: _LeastCalls = 5
    rest_seconds: Seconds = 15.0
    most_rest_seconds: Seconds = 300.0
    ping: bool = False
    ping_seconds: Seconds = 30.0


def policy_of(health: HealthSettings) -> HealthPolicy:
    """Return the settings as circuits go by them."""
    return HealthPolicy(
        error_rate=health.error_rate,
        window_seconds=health.window_seconds,
        least_calls=health.least_calls,
        rest_seconds=health.rest_seconds,
        most_rest_seconds=health.most_rest_seconds,
    )


def health_store(health: HealthSettings) -> HealthStore:
    """Return where the health of targets is kept: in this process, in step with other gateways where these share a server."""
    own = MemoryHealth(policy_of(health))
    return SharedHealth(own) if is_shared(health) else own


def is_shared(health: HealthSettings) -> bool:
    """Whether a place is named over which health is shared."""
    return bool(health.store_env) or health.store not in ("", "memory")


def check_health(health: HealthSettings, place: Place) -> None:
    """Raise ConfigError where the longest rest is shorter than the first, or the store is none that gateways share health over."""
    check_place(health.store, place)
    if health.most_rest_seconds < health.rest_seconds:
        message = f"{place.of('most_rest_seconds')}: the longest rest, {health.most_rest_seconds:g} s, is shorter than the first"
        raise ConfigError(message, hint=f"make it {health.rest_seconds:g} or more, or rest_seconds smaller")


def check_place(store: str, place: Place) -> None:
    """Raise ConfigError for an address of a server that health is not shared over."""
    refuse_nowhere(store, place)
    if "://" in store and not store.startswith(REDIS):
        message = f"{place.of('store')}: health is shared over Redis or Valkey, or a file, and not over {store.partition('://')[0]!r}"
        raise ConfigError(message, hint=f"write an address that begins with {', '.join(REDIS)}, or the path of a file")
