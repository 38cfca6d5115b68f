"""The reasoning memory of the tenant that asks: search past thinking, show one call's, forget it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope, query_of
from bardo.surfaces.gateway.own_replies import EpisodeReply, EpisodesReply, ForgottenReply
from bardo.surfaces.gateway.route_tables import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import InvalidRequest, NotStored, UnknownRoute

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

_LONGEST = 200
_TEXTS = ("session", "subsystem", "model")
_TIMES = ("since", "before")
_FILTERS = ("query", "limit", "by", *_TEXTS, *_TIMES)


async def search_memory(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer which episodes of the tenant fit. Raises InvalidRequest, and UnknownRoute where nothing is kept."""
    from bardo.adapters.stores.memory.reasoning_memory import EpisodeSelection

    memory, query = _memory(context), query_of(scope)
    unknown = sorted(query.keys() - {*_FILTERS, "key"})
    if unknown:
        name = unknown[0][:_LONGEST]
        raise InvalidRequest(f"there is no filter {name!r}", hint=f"use {', '.join(_FILTERS)}", param=name)
    chosen: dict[str, Any] = {name: query[name] for name in _TEXTS if name in query}
    chosen |= {name: _number(query, name) for name in _TIMES if name in query}
    selection = EpisodeSelection(tenant=caller_of(scope).tenant, **chosen)
    limit = int(_number(query, "limit")) if "limit" in query else 10
    by: Any = query.get("by", "both")
    found = await asyncio.to_thread(memory.search, query.get("query", ""), selection, limit=limit, by=by)
    await answer.json(msgspec.to_builtins(EpisodesReply(data=tuple(found))))


async def show_episode(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer one episode of the tenant, with its reasoning steps. Raises NotStored, and UnknownRoute where nothing is kept."""
    from bardo.adapters.stores.memory.episodes import episode_fields

    found = await asyncio.to_thread(_memory(context).show, route.name, tenant=caller_of(scope).tenant)
    if found is None:
        raise _unknown(route)
    await answer.json(msgspec.to_builtins(msgspec.convert(episode_fields(found), EpisodeReply)))


async def forget_episode(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Remove one episode of the tenant, and the content of its call. Raises NotStored, and UnknownRoute where nothing is kept."""
    from bardo.adapters.stores.memory.reasoning_memory import EpisodeSelection

    memory, chosen = _memory(context), EpisodeSelection(id=route.name, tenant=caller_of(scope).tenant)
    # The file is not written anew: a client must not be able to hold up the log of all others.
    erased = await asyncio.to_thread(memory.forget, chosen, thorough=False)
    if not erased.episodes:
        raise _unknown(route)
    await answer.json(msgspec.to_builtins(ForgottenReply(id=route.name, calls=erased.calls)))


def _memory(context: GatewayContext) -> ReasoningMemory:
    if context.memory is None:
        hint = "turn it on: enabled = true under [memory] and content = true under [log] in bardo.toml"
        raise UnknownRoute("this gateway keeps no reasoning memory", hint=hint)
    return context.memory


def _unknown(route: Route) -> NotStored:
    hint = "GET /v1/bardo/memory?query=… lists those of your own calls"
    return NotStored(f"no episode has the id {route.name[:_LONGEST]!r}", hint=hint)


def _number(query: dict[str, str], name: str) -> float:
    """Return a number that stands in the query. Raises InvalidRequest for anything else."""
    try:
        found = float(query[name][:_LONGEST])
    except ValueError:
        found = float("nan")
    if not -1e15 < found < 1e15:
        hint = "give a whole number" if name == "limit" else "give a Unix time, in seconds"
        raise InvalidRequest(f"{name} is {query[name][:_LONGEST]!r}", hint=hint, param=name)
    return found
