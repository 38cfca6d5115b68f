"""Responses that are kept, as their clients ask for them: shown, with their input, and deleted."""

from __future__ import annotations

from typing import NoReturn
from urllib.parse import parse_qs

from bardo.adapters.stores.response_store import ResponseStore
from bardo.dialects.openai_responses.stored import Item, page
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope, query_of
from bardo.surfaces.gateway.routes import Route
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import InvalidRequest, NotStored, UnknownRoute, Unsupported

_LEAST, _MOST, _USUAL = 1, 100, 20
_NOTHING_KEPT = "bardo keeps no responses here: none can be read or deleted later"
_HOW_TO_KEEP = 'keep them with store = "memory" under [responses] in bardo.toml'


def store_of(context: GatewayContext) -> ResponseStore:
    """Return where responses are kept. Raises UnknownRoute where none are."""
    if context.responses is None:
        raise UnknownRoute(_NOTHING_KEPT, hint=_HOW_TO_KEEP)
    return context.responses


async def show_response(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a response. Raises NotStored."""
    if parse_qs(scope["query_string"].decode("latin-1")).get("stream") == ["true"]:
        raise Unsupported("a response that is kept is not streamed again", hint="ask for it without stream")
    name = route.name
    found = (await store_of(context).responses(caller_of(scope).tenant, [name])).get(name)
    await answer.json(found.response if found is not None else _no_such_response(name))


async def delete_response(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Forget a response. Raises NotStored. A response that goes on from it can be read, and can be gone on from no more."""
    name, tenant, store = route.name, caller_of(scope).tenant, store_of(context)
    if not await store.remove_response(tenant, name):
        _no_such_response(name)
    await answer.json({"id": name, "object": "response", "deleted": True})


async def list_input(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a page of the items that a response was made from, those of the responses before it included. Raises NotStored."""
    name, tenant, store = route.name, caller_of(scope).tenant, store_of(context)
    found = (await store.responses(tenant, [name])).get(name)
    if found is None:
        _no_such_response(name)
    before = await store.responses(tenant, found.earlier)
    items = [item for one in found.earlier if one in before for item in before[one].items]
    await answer.json(page_of([*items, *found.input], scope))


def page_of(items: list[Item], scope: Scope) -> Item:
    """Return the page of a list that a request asks for. Raises InvalidRequest."""
    asked = query_of(scope)
    limit, order = asked.get("limit", str(_USUAL)), asked.get("order", "desc")
    if not limit.isascii() or not limit.isdigit() or not _LEAST <= int(limit[:4]) <= _MOST:
        raise InvalidRequest(f"limit must be a number from {_LEAST} to {_MOST}", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidRequest("order must be asc or desc", param="order")
    missing = lambda name: InvalidRequest(f"no item {name!r} in this list", param="after")  # noqa: E731
    return page(items, limit=int(limit), descending=order == "desc", after=asked.get("after", ""), missing=missing)


def _no_such_response(name: str) -> NoReturn:
    raise NotStored(f"Response with id '{name}' not found.", hint="it was deleted, or is no longer kept")
