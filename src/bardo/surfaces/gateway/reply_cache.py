"""What the cache of replies holds of the tenant that asks, and how its entries are removed."""

from __future__ import annotations

from typing import Any

from bardo.context.layer import Effect, EffectFailed
from bardo.dialects.shared.json_values import decode_object, optional
from bardo.dialects.shared.options import refuse_unknown
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.own_replies import CacheReply, PurgedReply
from bardo.surfaces.gateway.route_tables import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import InternalError, UnknownRoute


async def show_cache(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer how many entries and bytes are kept. Raises UnknownRoute where there is no cache in use."""
    from bardo.services.pipeline.reply_cache.cache import CountReplies

    entries, size = await _perform(context, CountReplies(caller_of(scope).tenant))
    await answer.json(CacheReply(entries=entries, bytes=size))


async def purge_cache(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Remove entries of the tenant that asks. Raises InvalidRequest, and UnknownRoute where there is no cache in use."""
    from bardo.context.cache.entries import Selection
    from bardo.services.pipeline.reply_cache.cache import RemoveReplies

    asked = decode_object(await context.body(scope, receive))
    refuse_unknown(asked, ("tag", "model"), "")
    tag, model = optional(asked, "tag", str), optional(asked, "model", str)
    selection = Selection(tenant=caller_of(scope).tenant, tag=tag, model=model)
    await answer.json(PurgedReply(removed=await _perform(context, RemoveReplies(selection))))


async def _perform(context: GatewayContext, effect: Effect) -> Any:
    pipeline = context.runner.pipeline
    try:
        found = None if pipeline is None else await pipeline.effects.perform(effect)
    except EffectFailed as problem:
        hint = "a pipeline profile with the layer cache turns it on; it is there after the first call that uses it"
        raise UnknownRoute("this gateway has no cache of replies in use", hint=hint) from problem
    if found is None:
        raise InternalError("kept replies cannot be reached now", hint="the gateway's log says why")
    return found
