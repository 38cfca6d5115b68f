"""Conversations that are kept: made, shown, changed and deleted with their items, as OpenAI's servers do."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.adapters.stores.response_store import StoredConversation
from bardo.dialects.openai_responses.stored import Item, listed, with_ids
from bardo.dialects.shared.json_values import decode_object, optional, required, take
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.responses import missing_conversation, new_id
from bardo.surfaces.gateway.routes import Route
from bardo.surfaces.gateway.stored_responses import page_of, store_of
from bardo.surfaces.gateway.tenants import caller_of
from bardo.values.errors import NotStored, TooLarge


async def create_conversation(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Begin a conversation, with items where the request gives some. Raises InvalidRequest or TooLarge."""
    store = store_of(context)
    body = await context.body(scope, receive)
    fields = decode_object(body) if body else {}
    made = StoredConversation(
        id=new_id("conv"), created_at=store.now, metadata=_metadata(fields), items=_new_items(fields)
    )
    if not await store.put_conversation(caller_of(scope).tenant, made):
        raise _too_large()
    await answer.json(_encode_conversation(made))


async def show_conversation(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Answer with a conversation, without its items. Raises NotStored."""
    await answer.json(_encode_conversation(await _load_conversation(context, route, scope)))


async def update_conversation(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Write other metadata on a conversation. Raises NotStored or InvalidRequest."""
    metadata = _metadata(decode_object(await context.body(scope, receive)))
    changed = await store_of(context).change_conversation(
        caller_of(scope).tenant, route.name, lambda one: msgspec.structs.replace(one, metadata=metadata)
    )
    if changed is None:
        raise missing_conversation(route.name)
    await answer.json(_encode_conversation(changed))


async def delete_conversation(
    context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer
) -> None:
    """Forget a conversation with its items. Raises NotStored."""
    if not await store_of(context).remove_conversation(caller_of(scope).tenant, route.name):
        raise missing_conversation(route.name)
    await answer.json({"id": route.name, "object": "conversation.deleted", "deleted": True})


async def list_items(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a page of a conversation's items. Raises NotStored or InvalidRequest."""
    await answer.json(page_of((await _load_conversation(context, route, scope)).items, scope))


async def add_items(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Add items to a conversation, and answer with them. Raises NotStored, InvalidRequest or TooLarge."""
    added = _new_items(decode_object(await context.body(scope, receive)), needed=True)
    await _load_conversation(context, route, scope)
    if not await store_of(context).append(caller_of(scope).tenant, route.name, added):
        raise _too_large()
    ends = {"first_id": added[0]["id"], "last_id": added[-1]["id"]} if added else {"first_id": None, "last_id": None}
    await answer.json({"object": "list", "data": added, **ends, "has_more": False})


async def show_item(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with an item of a conversation. Raises NotStored."""
    await answer.json(_item(await _load_conversation(context, route, scope), route.item))


async def delete_item(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Forget an item of a conversation, and answer with the conversation. Raises NotStored."""
    _item(await _load_conversation(context, route, scope), route.item)

    def change(one: StoredConversation) -> StoredConversation:
        return msgspec.structs.replace(one, items=[item for item in one.items if item.get("id") != route.item])

    changed = await store_of(context).change_conversation(caller_of(scope).tenant, route.name, change)
    if changed is None:
        raise missing_conversation(route.name)
    await answer.json(_encode_conversation(changed))


async def _load_conversation(context: GatewayContext, route: Route, scope: Scope) -> StoredConversation:
    found = await store_of(context).conversation(caller_of(scope).tenant, route.name)
    if found is None:
        raise missing_conversation(route.name)
    return found


def _item(conversation: StoredConversation, name: str) -> Item:
    found = next((item for item in conversation.items if item.get("id") == name), None)
    if found is None:
        raise NotStored(f"Item with id '{name}' not found.", hint="list the items of the conversation")
    return found


def _new_items(fields: dict[str, Any], *, needed: bool = False) -> list[Item]:
    read = required if needed else optional
    given: list[Any] = read(fields, "items", list) or []
    return with_ids(listed([take(item, dict, f"items[{place}]") for place, item in enumerate(given)]), new_id("conv"))


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    return (optional(fields, "metadata", dict) or {}) if fields else {}


def _encode_conversation(conversation: StoredConversation) -> Item:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created_at,
        "metadata": conversation.metadata,
    }


def _too_large() -> TooLarge:
    return TooLarge(
        "the conversation is larger than what may be kept", hint="raise the bounds of [responses] in bardo.toml"
    )
