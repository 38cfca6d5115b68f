"""Make the layer `cache` and what performs its effects, for a running gateway or library."""

from __future__ import annotations

from functools import partial

from bardo.adapters.config.failover import is_file_name, place_of
from bardo.adapters.config.paths import named_path
from bardo.adapters.config.pipeline import CacheSettings
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.layer import CacheLayer, CacheRules, FindReply, ReleaseWaitingCalls, Similar, StoreReply
from bardo.services.pipeline.parts import LayerParts
from bardo.services.pipeline.reply_cache.cache import CountReplies, RemoveReplies, ReplyCache
from bardo.services.pipeline.reply_cache.flights import Flights
from bardo.services.pipeline.reply_cache.opening import bounds_of, open_replies


def cache_layer(parts: LayerParts) -> CacheLayer:
    """Return the layer of a configuration, and have its effects performed. Its store is opened at the first call."""
    settings, runner = parts.pipeline.cache, parts.runner
    where = place_of(settings, parts.environment, "kept replies")
    opening = partial(open_replies, where, bounds_of(settings), timeout=settings.timeout_seconds)
    renewable = RenewableFile(named_path(where), name="kept replies", area="cache") if is_file_name(where) else None
    opened = opening if renewable is None else partial(renewable.open, opening)
    calls = StoreCalls(opened, in_memory=where == "memory", watch=runner.watch, renewable=renewable)
    flights = Flights(settings.wait_seconds, runner.watch)
    cache = ReplyCache(calls, flights, seconds=settings.timeout_seconds, clock=runner.clock)
    parts.effects.register_at_once(FindReply, cache.find)
    parts.effects.register(StoreReply, cache.keep, writes=True)
    parts.effects.register_at_once(ReleaseWaitingCalls, cache.leave, writes=True)
    parts.effects.register(CountReplies, cache.count)
    parts.effects.register(RemoveReplies, cache.remove, writes=True)
    parts.closing.append(cache.close)
    return CacheLayer(rules_of(settings), _similar(parts, cache))


def _similar(parts: LayerParts, cache: ReplyCache) -> Similar | None:
    """Return what looks for similar questions; None where that is off."""
    settings = parts.pipeline.cache
    if settings.semantic == "off":
        return None
    # Loaded where it is wanted: it reads tables of words.
    from bardo.context.cache.similar import SimilarRules
    from bardo.services.pipeline.reply_cache.similarity import similar_answers

    rules = SimilarRules(
        mode=settings.semantic,
        max_false_hit=settings.max_false_hit,
        least_cosine=settings.min_cosine,
        recheck_share=settings.recheck_share,
    )
    return similar_answers(parts, cache, rules, most=settings.max_questions)


def rules_of(settings: CacheSettings) -> CacheRules:
    """Return what the layer of a configuration decides by."""
    return CacheRules(
        ttl_seconds=settings.ttl_seconds,
        ttl_seconds_at=settings.ttl_seconds_at,
        allow=settings.allow,
        most_temperature=settings.max_temperature,
        most_bytes=settings.max_reply_bytes,
        single_flight=settings.single_flight,
    )
