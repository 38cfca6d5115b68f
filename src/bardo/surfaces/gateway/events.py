"""`GET /v1/bardo/events`: what happens in this gateway, as server-sent events that a reader can take up again."""

from __future__ import annotations

import asyncio

import msgspec

from bardo.services.facts.event_feed import EventFilter, FeedEvent, event_name
from bardo.surfaces.gateway.answer import Answer, run_until_disconnect
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope, header, query_of
from bardo.surfaces.gateway.route_tables import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import InvalidRequest, Overloaded

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
