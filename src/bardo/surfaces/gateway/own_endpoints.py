"""Endpoints of bardo alone: events, feedback, usage, what refusals taught, the memory of thinking, the reply cache and its own document."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.context.layer import Effect, EffectFailed
from bardo.dialects.shared.json_values import decode_object, optional
from bardo.dialects.shared.options import refuse_unknown
from bardo.services.facts.event_feed import EventFilter, FeedEvent, event_name
from bardo.services.facts.feedback import read_feedback
from bardo.surfaces.gateway.answer import Answer, run_until_disconnect
from bardo.surfaces.gateway.callers import caller_of
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope, header, query_of
from bardo.surfaces.gateway.own_replies import (
    CacheReply,
    EpisodeReply,
    EpisodesReply,
    FeedbackReply,
    ForgottenReply,
    LessonsReply,
    PurgedReply,
    usage_reply,
)
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import Forbidden, InternalError, InvalidRequest, NotStored, Overloaded, UnknownRoute

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

SSE = "text/event-stream; charset=utf-8"
ALIVE_SECONDS = 15.0
MOST_READERS = 100
MOST_READERS_OF_A_KEY = 20
_LONGEST = 200
_FILTERS = ("request_id", "subsystem", "event")
_encode = msgspec.json.encode


async def send_events(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Send events until the client leaves. Raises InvalidRequest for a filter that there is not, Overloaded for too many readers."""
    wanted = _filter(scope)
    account = caller_of(scope).account
    if account is not None:
        wanted = msgspec.structs.replace(wanted, key_id=account.id)
    feed = context.events
    if feed.readers_by_key.total() >= MOST_READERS:
        raise Overloaded(f"{MOST_READERS} readers of events are connected", hint="close one of them")
    if account is not None and feed.readers_by_key[account.id] >= MOST_READERS_OF_A_KEY:
        message = f"{MOST_READERS_OF_A_KEY} readers of events are connected with this key"
        raise Overloaded(message, hint="close one of them")
    after = header(scope, b"last-event-id") or query_of(scope).get("last_event_id", "")

    async def work() -> None:
        events = feed.read(wanted, after[:_LONGEST])
        coming: asyncio.Future[FeedEvent] | None = asyncio.ensure_future(anext(events))
        try:
            # Once the answer has begun, nothing that happens in any worker is left out.
            await asyncio.sleep(0)
            await feed.connected()
            await answer.start((), SSE)
            await answer.piece(b": bardo's events\n\n")
            while True:
                coming = coming or asyncio.ensure_future(anext(events))
                done, _ = await asyncio.wait((coming,), timeout=ALIVE_SECONDS)
                if not done:
                    await answer.piece(b": alive\n\n")
                    continue
                try:
                    found = coming.result()
                except StopAsyncIteration:
                    break
                coming = None
                await answer.piece(_written(found))
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
            await events.aclose()
        await answer.end(b"")

    # Counted from here on, since many may come before the first of them reads.
    reader = "" if account is None else account.id
    feed.readers_by_key[reader] += 1
    try:
        with context.onlooking():
            await run_until_disconnect(receive, work())
    finally:
        feed.readers_by_key[reader] -= 1
        if not feed.readers_by_key[reader]:
            del feed.readers_by_key[reader]


def _written(found: FeedEvent) -> bytes:
    if found.event is None:
        return f"id: {found.id}\nevent: missed\ndata: {{}}\n\n".encode()
    data = _encode(found.event).decode()
    return f"id: {found.id}\nevent: {event_name(found.event)}\ndata: {data}\n\n".encode()


def _filter(scope: Scope) -> EventFilter:
    query = query_of(scope)
    unknown = sorted(query.keys() - {*_FILTERS, "last_event_id", "key"})
    if unknown:
        raise InvalidRequest(
            f"there is no filter {unknown[0][:_LONGEST]!r}",
            hint=f"use {', '.join(_FILTERS)}",
            param=unknown[0][:_LONGEST],
        )
    names = tuple(one.strip() for one in query.get("event", "").split(",") if one.strip())
    return EventFilter(request_id=query.get("request_id", ""), subsystem=query.get("subsystem", ""), names=names)


async def take_feedback(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Store what a client thinks of an answer. Raises InvalidRequest, and NotStored for a call that is not the client's."""
    taker = context.feedback
    if taker is None:
        hint = "turn the log on with enabled = true under [log] in bardo.toml"
        raise UnknownRoute("this gateway keeps no log, so that no feedback can be stored", hint=hint)
    feedback = read_feedback(decode_object(await context.body(scope, receive)), context.services.clock())
    await taker.take(feedback, caller_of(scope).tenant)
    context.services.routing.note_feedback(feedback.request_id, feedback.score)
    await answer.json(FeedbackReply(request_id=feedback.request_id, score=feedback.score))


def sees_lessons_of(context: GatewayContext, scope: Scope) -> str | None:
    """Return whose lessons a request may see: those of all (None) for an operator, and where the gateway asks for no keys."""
    caller = caller_of(scope)
    sees_all = context.accounts is None or (caller.account is not None and caller.account.operator)
    return None if sees_all else caller.tenant


async def list_lessons(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer which lessons hold in this process, the newest first."""
    own = sees_lessons_of(context, scope)
    lessons = [one for one in context.services.facts.lessons.all() if own in (None, one.caller)]
    await answer.json(LessonsReply(data=tuple(lessons)))


async def forget_lessons(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Forget one lesson, or all of them. Raises Forbidden for whoever is no operator, and NotStored for a lesson that is not there."""
    if sees_lessons_of(context, scope) is not None:
        raise Forbidden("lessons are forgotten by operators", hint="ask whoever runs this gateway")
    removed = context.services.facts.lessons.forget(route.name)
    if route.name and not removed:
        hint = "GET /v1/bardo/lessons lists those that hold"
        raise NotStored(f"no lesson has the id {route.name[:_LONGEST]!r}", hint=hint)
    await answer.json(PurgedReply(removed=removed))


_TEXTS = ("session", "subsystem", "model")
_TIMES = ("since", "before")
_MEMORY_FILTERS = ("query", "limit", "by", *_TEXTS, *_TIMES)


async def search_memory(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer which episodes of the tenant fit. Raises InvalidRequest, and UnknownRoute where nothing is kept."""
    from bardo.adapters.stores.memory.episodes import EpisodeSelection

    memory, query = _memory(context), query_of(scope)
    unknown = sorted(query.keys() - {*_MEMORY_FILTERS, "key"})
    if unknown:
        name = unknown[0][:_LONGEST]
        raise InvalidRequest(f"there is no filter {name!r}", hint=f"use {', '.join(_MEMORY_FILTERS)}", param=name)
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
    from bardo.adapters.stores.memory.episodes import EpisodeSelection

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
    pipeline = context.services.pipeline
    try:
        found = None if pipeline is None else await pipeline.effects.perform(effect)
    except EffectFailed as problem:
        hint = "a pipeline profile with the layer cache turns it on; it is there after the first call that uses it"
        raise UnknownRoute("this gateway has no cache of replies in use", hint=hint) from problem
    if found is None:
        raise InternalError("kept replies cannot be reached now", hint="the gateway's log says why")
    return found


async def show_usage(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer what the key of the request has used, and what it may. Raises UnknownRoute where no keys are asked for."""
    accounts, account = context.accounts, caller_of(scope).account
    if accounts is None or account is None:
        hint = "make a key with `bardo keys create NAME`, and send it"
        raise UnknownRoute("usage is counted by key, and the request has none", hint=hint)
    await answer.json(usage_reply((await accounts.usage(account)).fields()))


async def show_openapi(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the OpenAPI document, or with 304 where the client has it."""
    # Few clients ask for it: a gateway that starts does not load it.
    from bardo.surfaces.gateway.openapi.document import openapi_bytes

    body, tag = openapi_bytes()
    headers = [("etag", tag), ("cache-control", "no-cache")]
    asked = header(scope, b"if-none-match")
    # Tags are compared weakly (RFC 9110, section 13.1.2).
    if asked.strip() == "*" or tag in [one.strip().removeprefix("W/") for one in asked.split(",")]:
        await answer.whole(304, b"", headers)
    else:
        await answer.whole(200, body, headers)
