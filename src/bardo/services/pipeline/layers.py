"""The layers of a gateway, made from its settings, with what each needs of the gateway around it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.config.paths import what_is_no_file
from bardo.adapters.config.pipeline import OFF
from bardo.adapters.stores.database.set_aside import set_file_aside
from bardo.catalog.layer_rows import cache_rows, tool_choice_rows
from bardo.context.effects import AskModel, ModelAnswer
from bardo.context.layer import EffectFailed, Layer
from bardo.planning.token_counting import PromptEstimates
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.parts import Builder, LayerParts
from bardo.services.pipeline.session_memory import remember_sessions, shared_sessions
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import BardoOptions, Message, ReasoningPolicy, Request

if TYPE_CHECKING:
    from bardo.services.pipeline.effects import OpenCall
    from bardo.services.pipeline.parts import LayerParts


def _prefilter(parts: LayerParts) -> Layer:
    from bardo.context.prefilter import Prefilter

    keep_estimates(parts)
    own = parts.pipeline.prefilter
    if own.tokenizers:
        from bardo.adapters.embedding.tokenizer_files import TokenizerFiles

        parts.host.estimates.exact_counters = TokenizerFiles(own.tokenizers).counter
    return Prefilter(margin=own.margin, caps=own.caps)


def _injection(parts: LayerParts) -> Layer:
    from bardo.context.injection.hidden import decoded_texts
    from bardo.context.injection.layer import InjectionLayer
    from bardo.context.injection.provenance import parts_of_user
    from bardo.context.injection.scan import find_matches

    own = parts.pipeline.injection
    # The patterns of all languages are made with the first text: they are not to be made for a call.
    tuple(parts_of_user(text := "x")), tuple(decoded_texts(text)), find_matches(text, trusted=False)
    return InjectionLayer(own.action, own.threshold)


def _affinity(parts: LayerParts) -> Layer:
    from bardo.context.affinity.layer import Affinity
    from bardo.services.pipeline.affinity import bounds_of, open_affinity

    host, settings = parts.host, parts.pipeline.affinity
    parts.affinity.append(open_affinity(host, parts.effects, settings, shared_sessions(host)))
    return Affinity(bounds_of(parts.pipeline.affinity))


def _reorder(parts: LayerParts) -> Layer:
    from bardo.context.steps.order import Reorder

    remember_sessions(parts.effects, parts.host)
    return Reorder(parts.pipeline.reorder)


def _compress(parts: LayerParts) -> Layer:
    from bardo.context.steps.compress import Compress

    remember_sessions(parts.effects, parts.host)
    ask_models(parts.effects, parts.host.open_call)
    return Compress(parts.pipeline.compress)


def _dedup(parts: LayerParts) -> Layer:
    from bardo.context.steps.shortening import dedup

    remember_sessions(parts.effects, parts.host)
    return dedup(parts.pipeline.dedup)


def _relevance(parts: LayerParts) -> Layer:
    from bardo.context.steps.shortening import relevance

    remember_sessions(parts.effects, parts.host)
    if parts.pipeline.relevance.embed:
        from bardo.services.pipeline.embeddings import perform_embed

        perform_embed(parts)
    return relevance(parts.pipeline.relevance)


def _constraints(parts: LayerParts) -> Layer:
    from bardo.context.steps.order import Constraints

    remember_sessions(parts.effects, parts.host)
    return Constraints(parts.pipeline.constraints)


def _format(parts: LayerParts) -> Layer:
    from bardo.context.steps.shortening import format_results

    remember_sessions(parts.effects, parts.host)
    return format_results(parts.pipeline.format)


def _tools(parts: LayerParts) -> Layer:
    from bardo.context.tool_choice.layer import ToolChoice
    from bardo.context.tool_choice.session import ToolChoiceSettings
    from bardo.services.pipeline.embeddings import perform_embed
    from bardo.services.pipeline.tool_memory import ToolMemory

    perform_embed(parts)
    remember_sessions(parts.effects, parts.host)
    replay = parts.host.replay
    store = None if replay is None else replay.calls
    tool_choice_rows()
    ToolMemory(store=store, clock=parts.host.clock).register(parts.effects)
    return ToolChoice(ToolChoiceSettings(**msgspec.structs.asdict(parts.pipeline.tools)))


def _cache(parts: LayerParts) -> Layer:
    from bardo.services.pipeline.reply_cache.opening import cache_layer

    cache_rows()
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


def ask_models(effects: Effects, open_call: OpenCall) -> None:
    """Register calls as the performer of `AskModel`."""

    async def ask(effect: AskModel) -> ModelAnswer:
        try:
            async with asyncio.timeout(effect.seconds):
                live = await open_call(_request(effect), tenant=effect.tenant)
                try:
                    await live.read()
                except asyncio.CancelledError as cancelled:
                    live.log_cancelled(cancelled)
                    raise
                finally:
                    await live.close()
                return ModelAnswer(text=live.response().text, request_id=live.request_id, cost_nanos=live.cost.nanos)
        except (BardoError, TimeoutError) as problem:
            raise EffectFailed(f"{effect.model} did not answer") from problem

    if not effects.performs(AskModel):
        effects.register(AskModel, ask)


def _request(effect: AskModel) -> Request:
    messages = (
        Message(role="system", blocks=(TextBlock(effect.instructions),)),
        Message(role="user", blocks=(TextBlock(effect.prompt),)),
    )
    return Request(
        model=effect.model,
        messages=messages,
        max_output_tokens=effect.max_output_tokens,
        reasoning=ReasoningPolicy(mode="off"),
        options=BardoOptions(
            pipeline=OFF, layers=(("privacy", True),) if effect.masked else (), private=effect.private
        ),
    )


FILE = "prompt_estimates_by_caller.json"
_MOST_BYTES = 1_000_000
_log = logging.getLogger("bardo.pipeline")
_Stored = list[tuple[str, str, str, float]]


def keep_estimates(parts: LayerParts) -> None:
    """Load the corrections, and have them stored when the layers are closed, where something was learned."""
    path, estimates = parts.folder / FILE, parts.host.estimates
    _load(path, estimates)
    learned = estimates.learned

    async def store() -> None:
        if estimates.learned != learned:
            await asyncio.to_thread(_store, path, estimates)

    parts.closing.append(store)


def _load(path: Path, estimates: PromptEstimates) -> None:
    try:
        if what := what_is_no_file(path):
            raise OSError(errno.EINVAL, f"it is {what}")
        if path.stat().st_size <= _MOST_BYTES:
            estimates.restore(msgspec.json.decode(path.read_bytes(), type=_Stored))
    except FileNotFoundError:
        return
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        try:
            aside = set_file_aside(path)
        except OSError as failure:
            _log.warning(
                "%s cannot be read (%s), nor set aside: %s", path, type(problem).__name__, failure.strerror or failure
            )
        else:
            _log.warning("%s cannot be read (%s): it is set aside as %s", path, type(problem).__name__, aside)


def _store(path: Path, estimates: PromptEstimates) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        if what := what_is_no_file(path):
            raise OSError(errno.EINVAL, f"it is {what}")
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(msgspec.json.encode(estimates.corrections()))
        beside.replace(path)
    except OSError as problem:
        _log.warning("%s is not written: %s", path.name, type(problem).__name__)
        beside.unlink(missing_ok=True)
