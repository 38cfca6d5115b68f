"""`[inference.pipeline]` and `[inference.embeddings]`: which layers work on calls, the settings of each, and who makes vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from bardo.adapters.config.gateway import Count, Seconds, Silence
from bardo.adapters.config.mistakes import Place
from bardo.adapters.config.paths import named_path
from bardo.adapters.config.providers import ProviderEntry, provider_ids, provider_of
from bardo.adapters.config.storage import check_store
from bardo.catalog.features import features
from bardo.catalog.layer_rows import CapRow, NeedRow, layer_rows, layers_of_profile, profile_rows
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.context.injection import Action
from bardo.context.privacy.settings import PrivacySettings
from bardo.context.steps.settings import (
    CompressSettings,
    ConstraintsSettings,
    DedupSettings,
    FormatSettings,
    RelevanceSettings,
    ReorderSettings,
)
from bardo.values.errors import ConfigError
from bardo.values.request import CacheAllowance

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OWN_LAYERS = "bardo.layers"
"""The group of entry points that name layers of other packages."""


class AffinitySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server with `load_bound` times the mean number of calls under way, and at least `free_calls` of them, is passed over.

    A new session counts `balance` of each token that a server was sent lately. `half_life_seconds` is the estimate for a cache without
    observations, which go before it. Where a call may go to several models, what a cached prompt saves is spread over `turns_ahead` calls
    that are expected of a session.
    """

    load_bound: Annotated[float, msgspec.Meta(ge=1, le=100)] = 1.5
    free_calls: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8
    balance: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.25
    half_life_seconds: Annotated[float, msgspec.Meta(gt=0, le=604_800)] = 300.0
    turns_ahead: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 3.0


Probability = Annotated[float, msgspec.Meta(gt=0, le=1)]


class ClassifySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The labels of requests. `heads` is a file of `bardo classify train`; empty: those that ship. `rules_only`: no vectors are made.

    `block` are labels, as `question.label`, with the probability from which a request is refused. `needs` say what calls need that have
    certain labels, before bardo's own rows.
    """

    heads: str = ""
    rules_only: bool = False
    block: dict[str, Probability] = {}
    needs: tuple[NeedRow, ...] = ()


def check_classify(settings: ClassifySettings, place: Place) -> None:
    """Raise ConfigError for a label that is written otherwise than `question.label`, and for a feature that no row has."""
    for name in settings.block:
        question, _, label = name.partition(".")
        if not question or not label:
            hint = 'write question.label with a probability: block = { "safety.unsafe" = 0.95 }'
            raise ConfigError(f"{place.of('block')}: {name!r} names no label of a question", hint=hint)
    for row in settings.needs:
        for feature in row.prefer:
            if feature not in features().names:
                hint = f"features are {', '.join(features().names)}"
                raise ConfigError(f"{place.of('needs')}: no feature is called {feature!r}", hint=hint)


class InjectionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`report` says what was found, `mark` puts marks around it, `withhold` ends a reply that follows it, `block` refuses the request.

    `threshold`: how certain it has to be, from 0 to 1.
    """

    action: Action = "report"
    threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5


class PrefilterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target is passed over where the estimate less `margin`, a share of it, is over its window, and where one of `caps` forbids it.

    `tokenizers` are files of exact tokenizers (`tokenizer.json`), by globs of model names.
    """

    margin: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.15
    tokenizers: dict[str, str] = {}
    caps: tuple[CapRow, ...] = ()


Most = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Few = Annotated[int, msgspec.Meta(ge=0, le=100)]


class ToolsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tools of a request are chosen.

    `most` tools are sent beside those that stay in any case, and a later question of the user adds at most `added` to them. `order` is that
    of the client, or by name. With more than `meta_above` tools a model gets three functions by which it finds and calls them; 0 is never.
    `tasks` are the tools of a workload, or of a label of the classifier. `vectors`: tools are compared by vectors too, and by earlier
    `uses`. `most_searches` and `most_failures` bound what a model does with the functions in one call, and `check_arguments` has the
    arguments of its calls checked before the client gets them.
    """

    most: Most = 12
    added: Few = 1
    order: Literal["client", "name"] = "client"
    meta_above: Annotated[int, msgspec.Meta(ge=0)] = 40
    tasks: dict[str, tuple[str, ...]] = {}
    vectors: bool = True
    uses: bool = True
    most_searches: Most = 8
    most_failures: Few = 3
    check_arguments: bool = True


Budget = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Cosine = Annotated[float, msgspec.Meta(ge=0, le=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]


class CacheSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which replies are kept to answer equal calls with, where, how many, and for how long.

    `store` is `memory`, the path of an SQLite file, or the address of PostgreSQL, Redis or Valkey; `store_env` names the variable that
    holds it, for an address with a password. `bardo serve` with several workers turns `memory` into a file that they share and that is
    gone when it ends. A store that takes longer than `timeout_seconds` to find a reply is passed over.

    A reply is kept for `ttl_seconds`. `ttl_seconds_at` has other times for some models, by globs, and workloads, by their names; 0 keeps
    none. A reply of more than `max_reply_bytes` is not kept, and where there are more entries or bytes than allowed the oldest go.
    `allow` are reasons of refusal that do not count. A call with a temperature over `max_temperature` wants another answer each time.
    A question that is similar to an earlier one is looked for by vectors, unless `semantic` is `off`; see `SimilarRules`. Its reply is only
    compared with the provider's in `shadow`; in `serve` it is given where that has shown that at most `max_false_hit` of such replies are
    wrong. `min_cosine` is the least similarity, `recheck_share` how many of such calls are asked anew all the same, and `max_questions`
    how many questions are searched.

    `single_flight`: of equal calls that come at once one is sent, and the others wait for its reply, for at most `wait_seconds`.
    """

    store: str = "memory"
    store_env: str = ""
    timeout_seconds: Seconds = 0.1
    ttl_seconds: Seconds = 300.0
    ttl_seconds_at: dict[str, Silence] = {}
    max_entries: Count = 50_000
    max_bytes: Count = 256 * 1024 * 1024
    max_entries_per_tenant: Count = 10_000
    max_bytes_per_tenant: Count = 64 * 1024 * 1024
    max_reply_bytes: Count = 1024 * 1024
    allow: tuple[CacheAllowance, ...] = ()
    max_temperature: Temperature = 1.0
    single_flight: bool = True
    wait_seconds: Seconds = 60.0
    semantic: Literal["off", "shadow", "serve"] = "shadow"
    max_false_hit: Budget = 0.01
    min_cosine: Cosine | None = None
    recheck_share: Share = 0.05
    max_questions: Count = 100_000


def check_cache(settings: CacheSettings, place: Place) -> None:
    """Raise ConfigError for a store of a kind that bardo does not know."""
    if not settings.store:
        raise ConfigError(
            f"{place.of('store')}: the cache needs a store", hint='write "memory", or leave the layer cache out'
        )
    check_store(settings.store, place)


OFF = "off"
"""The profile without layers, for a call, an alias or a key that shall have none."""
ANY = "*"
"""Stands for all profiles where it is said which a call may name."""


class OwnProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile of the operator's own: the names of its layers. They work in bardo's order, whatever theirs is here."""

    layers: tuple[str, ...]


class PipelineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The layers of calls. `profile` holds for calls for which nothing else names one; empty: no layers.

    `locked` names layers that a call cannot turn off where its profile has them. `embedding` is a folder with a model in ONNX by which
    layers compare texts; empty: the table of vectors that ships with bardo. `max_work_seconds` is how much processor time the layers of
    one long request may take together: one for which there is none is left out, and one that masks refuses the request. `own` holds the
    settings of layers from other packages.
    """

    profile: str = ""
    profiles: dict[str, OwnProfile] = {}
    locked: tuple[str, ...] = ("injection", "privacy")
    embedding: str = ""
    max_work_seconds: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    own: dict[str, dict[str, Any]] = {}
    classify: ClassifySettings = ClassifySettings()
    prefilter: PrefilterSettings = PrefilterSettings()
    privacy: PrivacySettings = PrivacySettings()
    injection: InjectionSettings = InjectionSettings()
    affinity: AffinitySettings = AffinitySettings()
    reorder: ReorderSettings = ReorderSettings()
    compress: CompressSettings = CompressSettings()
    dedup: DedupSettings = DedupSettings()
    relevance: RelevanceSettings = RelevanceSettings()
    constraints: ConstraintsSettings = ConstraintsSettings()
    format: FormatSettings = FormatSettings()
    tools: ToolsSettings = ToolsSettings()
    cache: CacheSettings = CacheSettings()


def check_pipeline(
    own: PipelineSettings,
    named: Iterable[tuple[str, str, str]],
    allowed: Iterable[tuple[str, tuple[str, ...]]],
    place: Place,
) -> None:
    """Raise ConfigError for an unknown profile or layer; `place` is that of `[inference.pipeline]`.

    `named` are the profiles of keys, aliases and workloads: what names one, its name, and the profile; `allowed` those that callers may
    name: where that is said, and the profiles.
    """
    check_cache(own.cache, place.inside("cache"))
    profiles, layers = profile_names(own), layer_names(own)
    _check_known(own.profile, profiles, "profile", place.of("profile"))
    for profile in own.profiles.values():
        for name in profile.layers:
            _check_known(name, layers, "layer", place.of("profiles"))
    for name in own.locked:
        _check_known(name, layers, "layer", place.of("locked"))
    for name in own.own:
        _check_known(name, layers, "layer", place.of("own"))
    for table, owner, name in named:
        _check_known(name, profiles, "profile", f"{place.source}: {table} {owner!r}")
    for setting, names in allowed:
        for name in names:
            _check_known(name, (*profiles, ANY), "profile", f"{place.source}: {setting}")
    check_classify(own.classify, place.inside("classify"))
    if own.embedding:
        # Read for those who have a model of their own.
        from bardo.adapters.embedding.onnx_embedding import model_files

        model_files(named_path(own.embedding), f"{place.of('embedding')}: embedding")
    if own.privacy != PrivacySettings():
        from bardo.adapters.embedding.personal_data import check_privacy

        check_privacy(own.privacy)


def layer_names(settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of all layers: bardo's, and where others are named, those of installed packages."""
    named = {*settings.own, *settings.locked, *(name for entry in settings.profiles.values() for name in entry.layers)}
    if named.issubset(layer_rows()):
        return tuple(layer_rows())
    return (*layer_rows(), *own_layer_points())


@cache
def own_layer_points() -> dict[str, EntryPoint]:
    """Return the entry points of layers that installed packages have, by the names of the layers."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=OWN_LAYERS)}


def layers_of(profile: str, settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of the layers of a profile: one of the operator's own, or of bardo's."""
    own = settings.profiles.get(profile)
    return own.layers if own is not None else layers_of_profile(profile)


def profile_names(settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of all profiles: the operator's, bardo's, and the one without layers."""
    return tuple(dict.fromkeys((*settings.profiles, *profile_rows(), OFF)))


def _check_known(name: str, names: Sequence[str], what: str, at: str) -> None:
    if name and name not in names:
        near = get_close_matches(name[:100], names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}"
        raise ConfigError(f"{at}: bardo knows no {what} {name[:100]!r}", hint=hint)


LOCAL = "local"
"""The provider that stands for this machine: the table that ships, or the model of `[inference.pipeline] embedding`."""
VENICE = "venice"


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who makes vectors of texts (003, "Venice embeddings for the Grimoire").

    `provider` is `local`, or the id of a provider that makes vectors, with `model`; for Venice `venice_model` holds where no `model` is
    named. Vectors that take longer than `seconds` are made on this machine, and so are those of a provider that fails.
    """

    provider: str = LOCAL
    model: str = ""
    venice_model: str = "text-embedding-bge-m3"
    seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 2.0


def model_asked(asked: EmbeddingSettings, providers: Sequence[ProviderEntry], source: str) -> str | None:
    """Return the model that is asked for vectors, with its provider (`venice/text-embedding-bge-m3`), or None if no provider is."""
    if asked.provider == LOCAL:
        return None
    row = _row(asked.provider, providers, source)
    return f"{asked.provider}/{_model(asked, row)}"


def check_embeddings(
    asked: EmbeddingSettings, own_model: str, providers: Sequence[ProviderEntry], place: Place
) -> None:
    """Raise ConfigError for a provider that makes no vectors with the model that is named.

    `own_model` is the folder of a model of this machine, and `place` that of `[inference.embeddings]`.
    """
    if asked.provider == LOCAL:
        if asked.model:
            hint = f'name the provider that has it, as provider = "{VENICE}", or a folder with embedding below [inference.pipeline]'
            raise ConfigError(f'{place.of("model")}: provider = "{LOCAL}" asks no model of a provider', hint=hint)
        return
    if own_model:
        message = f"{place.of('provider')}: [inference.pipeline] embedding names a model of this machine, and provider another one"
        raise ConfigError(message, hint=f'leave one of them out; provider = "{LOCAL}" is the model of this machine')
    row = _row(asked.provider, providers, place.source)
    if row is None:
        names = (LOCAL, *provider_ids(providers))
        near = get_close_matches(asked.provider[:100], names, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f'write provider = "{LOCAL}", or add [[providers]] with this id'
        )
        raise ConfigError(f"{place.of('provider')}: no provider is called {asked.provider[:100]!r}", hint=hint)
    if not row.embeddings:
        hint = f'name one that does, as provider = "{VENICE}", or write "{LOCAL}"'
        raise ConfigError(f"{place.of('provider')}: {asked.provider} makes no vectors", hint=hint)
    model = _model(asked, row)
    key = "venice_model" if row.id == VENICE and not asked.model else "model"
    if not model:
        raise ConfigError(
            f"{place.of('provider')}: {asked.provider} needs a {key} that makes vectors", hint=_models(row)
        )
    if row.embeds(model) is None:
        raise ConfigError(f"{place.of(key)}: {asked.provider} makes no vectors with {model[:100]!r}", hint=_models(row))


def _model(asked: EmbeddingSettings, row: ProviderRow | None) -> str:
    return asked.model or (asked.venice_model if row is not None and row.id == VENICE else "")


def _row(provider: str, entries: Sequence[ProviderEntry], source: str) -> ProviderRow | None:
    """Return the row of a provider of the file, or where the file has none, of the catalog."""
    if not entries:
        return builtin().provider(provider)
    return next((provider_of(entry, source).row for entry in entries if entry.id == provider), None)


def _models(row: ProviderRow) -> str:
    globs = [glob for endpoint in row.embeddings for glob in endpoint.models if glob != "*"]
    return (
        f"its models for vectors are called {', '.join(globs)}"
        if globs
        else 'write model = "…" with the name that it has there'
    )
