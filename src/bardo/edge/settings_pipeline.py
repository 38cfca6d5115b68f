"""`[inference.pipeline]`: which layers work on calls before they are sent, and the settings of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from bardo.catalog.pipeline_rows import layer_rows, layers_of_profile, profile_rows
from bardo.context.steps.settings import (
    CompressSettings,
    ConstraintsSettings,
    DedupSettings,
    FormatSettings,
    RelevanceSettings,
    ReorderSettings,
)
from bardo.edge.named_paths import named_path
from bardo.edge.settings_affinity import AffinitySettings
from bardo.edge.settings_cache import CacheSettings, check_cache
from bardo.edge.settings_classify import ClassifySettings, check_classify
from bardo.edge.settings_injection import InjectionSettings
from bardo.edge.settings_prefilter import PrefilterSettings
from bardo.edge.settings_privacy import PrivacySettings
from bardo.edge.settings_problems import Place
from bardo.edge.settings_tools import ToolsSettings
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from bardo.edge.settings import Settings

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


def check_pipeline(settings: Settings, place: Place) -> None:
    """Raise ConfigError for a profile or a layer that nobody knows; `place` is that of `[inference.pipeline]`."""
    own = settings.inference.pipeline
    check_cache(own.cache, place.inside("cache"))
    profiles, layers = profile_names(own), known_layers(own)
    _check_known(own.profile, profiles, "profile", place.of("profile"))
    for profile in own.profiles.values():
        for name in profile.layers:
            _check_known(name, layers, "layer", place.of("profiles"))
    for name in own.locked:
        _check_known(name, layers, "layer", place.of("locked"))
    for name in own.own:
        _check_known(name, layers, "layer", place.of("own"))
    for table, owner, named in profiles_named(settings):
        _check_known(named, profiles, "profile", f"{settings.source}: {table} {owner!r}")
    for table, owner, allowed in _profiles_allowed(settings):
        for name in allowed:
            _check_known(name, (*profiles, ANY), "profile", f"{settings.source}: {table} {owner}".rstrip())
    check_classify(own.classify, place.inside("classify"))
    if own.embedding:
        # Read for those who have a model of their own.
        from bardo.edge.onnx_embedding import model_files

        model_files(named_path(own.embedding), f"{place.of('embedding')}: embedding")
    if own.privacy != PrivacySettings():
        from bardo.edge.personal_data import check_privacy

        check_privacy(own.privacy)


def known_layers(settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of all layers: bardo's, and where others are named, those of installed packages."""
    named = {*settings.own, *settings.locked, *(name for one in settings.profiles.values() for name in one.layers)}
    if named.issubset(layer_rows()):
        return tuple(layer_rows())
    from bardo.edge.pipeline.own_layers import own_layer_names

    return (*layer_rows(), *own_layer_names())


def profiles_named(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield which profiles keys, aliases and workloads name: what names one, its name, and the profile."""
    yield from (("key", one.id, one.pipeline) for one in settings.keys if one.pipeline)
    yield from (("alias", name, one.pipeline) for name, one in settings.aliases.items() if one.pipeline)
    yield from (("workload", name, one.pipeline) for name, one in settings.workloads.items() if one.pipeline)


def may_mask(settings: Settings) -> bool:
    """Whether a call may have the layer `privacy`: a profile that the configuration names has it, or one that callers may name."""
    own = settings.inference.pipeline
    used = {own.profile, *(profile for _, _, profile in profiles_named(settings))} - {"", OFF}
    allowed = {name for _, _, names in _profiles_allowed(settings) for name in names}
    used |= set(profile_names(own)) - {OFF} if ANY in allowed else allowed - {OFF}
    layers = {layer for name in used for layer in layers_of(name, own)}
    return "privacy" in layers or own.privacy != PrivacySettings()


def layers_of(profile: str, settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of the layers of a profile: one of the operator's own, or of bardo's."""
    own = settings.profiles.get(profile)
    return own.layers if own is not None else layers_of_profile(profile)


def _profiles_allowed(settings: Settings) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield "[gateway] client_pipelines", "", settings.gateway.client_pipelines
    yield from (("key", f"{one.id!r} pipelines", one.pipelines) for one in settings.keys)


def profile_names(settings: PipelineSettings) -> tuple[str, ...]:
    """Return the names of all profiles: the operator's, bardo's, and the one without layers."""
    return tuple(dict.fromkeys((*settings.profiles, *profile_rows(), OFF)))


def _check_known(name: str, known: Sequence[str], what: str, at: str) -> None:
    if name and name not in known:
        near = get_close_matches(name[:100], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
        raise ConfigError(f"{at}: bardo knows no {what} {name[:100]!r}", hint=hint)
