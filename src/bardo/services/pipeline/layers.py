"""How each layer is made from its settings. A layer's code is imported when a profile that has it is first used."""

from __future__ import annotations

import msgspec

from bardo.context.layer import Layer
from bardo.services.pipeline.parts import Builder, LayerParts
from bardo.services.pipeline.session_memory import remember_sessions, shared_sessions


def _prefilter(parts: LayerParts) -> Layer:
    from bardo.context.prefilter import Prefilter
    from bardo.services.pipeline.kept_estimates import keep_estimates

    keep_estimates(parts)
    own = parts.pipeline.prefilter
    if own.tokenizers:
        from bardo.adapters.embedding.tokenizer_files import TokenizerFiles

        parts.estimates.exact_counters = TokenizerFiles(own.tokenizers).counter
    return Prefilter(margin=own.margin, caps=own.caps)


def _injection(parts: LayerParts) -> Layer:
    from bardo.context.injection.layer import InjectionLayer

    own = parts.pipeline.injection
    return InjectionLayer(own.action, own.threshold)


def _affinity(parts: LayerParts) -> Layer:
    from bardo.context.affinity.layer import Affinity
    from bardo.services.pipeline.affinity import bounds_of, open_affinity

    open_affinity(parts.runner, parts.effects, parts.pipeline.affinity, shared_sessions(parts.runner))
    return Affinity(bounds_of(parts.pipeline.affinity))


def _reorder(parts: LayerParts) -> Layer:
    from bardo.context.steps.reorder import Reorder

    remember_sessions(parts.effects, parts.runner)
    return Reorder(parts.pipeline.reorder)


def _compress(parts: LayerParts) -> Layer:
    from bardo.context.steps.compress import Compress
    from bardo.services.pipeline.asked_models import ask_models

    remember_sessions(parts.effects, parts.runner)
    ask_models(parts.effects, parts.runner)
    return Compress(parts.pipeline.compress)


def _dedup(parts: LayerParts) -> Layer:
    from bardo.context.steps.dedup import dedup

    remember_sessions(parts.effects, parts.runner)
    return dedup(parts.pipeline.dedup)


def _relevance(parts: LayerParts) -> Layer:
    from bardo.context.steps.relevance import relevance

    remember_sessions(parts.effects, parts.runner)
    if parts.pipeline.relevance.embed:
        from bardo.services.pipeline.embeddings import perform_embed

        perform_embed(parts)
    return relevance(parts.pipeline.relevance)


def _constraints(parts: LayerParts) -> Layer:
    from bardo.context.steps.constraints import Constraints

    remember_sessions(parts.effects, parts.runner)
    return Constraints(parts.pipeline.constraints)


def _format(parts: LayerParts) -> Layer:
    from bardo.context.steps.format import format_results

    remember_sessions(parts.effects, parts.runner)
    return format_results(parts.pipeline.format)


def _tools(parts: LayerParts) -> Layer:
    from bardo.context.tool_choice.layer import ToolChoice
    from bardo.context.tool_choice.settings import ToolChoiceSettings
    from bardo.services.pipeline.embeddings import perform_embed
    from bardo.services.pipeline.tool_memory import ToolMemory

    perform_embed(parts)
    remember_sessions(parts.effects, parts.runner)
    replay = parts.runner.replay
    store = None if replay is None else replay.calls
    ToolMemory(store=store, clock=parts.runner.clock).register(parts.effects)
    return ToolChoice(ToolChoiceSettings(**msgspec.structs.asdict(parts.pipeline.tools)))


def _cache(parts: LayerParts) -> Layer:
    from bardo.services.pipeline.reply_cache.building import cache_layer

    return cache_layer(parts)


def _classify(parts: LayerParts) -> Layer:
    from bardo.services.pipeline.classify_layer import make_classify

    return make_classify(parts)


def _privacy(parts: LayerParts) -> Layer:
    from bardo.adapters.embedding.personal_data import search_of
    from bardo.context.privacy.layer import PrivacyLayer
    from bardo.context.privacy.search import FindPersonalData

    search, labels = search_of(parts.pipeline.privacy)
    parts.effects.register(FindPersonalData, search.perform)
    return PrivacyLayer(parts.pipeline.privacy.mode, labels)


BUILDERS: dict[str, Builder] = {
    "cache": _cache,
    "injection": _injection,
    "classify": _classify,
    "prefilter": _prefilter,
    "affinity": _affinity,
    "reorder": _reorder,
    "compress": _compress,
    "dedup": _dedup,
    "relevance": _relevance,
    "constraints": _constraints,
    "format": _format,
    "tools": _tools,
    "privacy": _privacy,
}
"""The builders by the names of the layers' rows, in their order."""
