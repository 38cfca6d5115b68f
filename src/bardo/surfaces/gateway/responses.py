"""Answer Responses clients: a request may go on from a response, or within a conversation, that the gateway keeps.

Over providers that keep nothing such a request becomes one that holds the whole conversation. An id that is not kept here goes on as it
came: its provider may keep it, and a request to one that keeps nothing is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn
from urllib.parse import parse_qs

import msgspec

from bardo.adapters.long_work import run_by_size, size_of_body
from bardo.adapters.stores.response_store import ResponseStore, StoredConversation
from bardo.call.unary import compact_at_provider
from bardo.dialects import dialect
from bardo.dialects.openai_responses.compaction import is_triggered, messages_of_user
from bardo.dialects.openai_responses.stored import (
    Item,
    StorageOptions,
    StoredResponse,
    closing_response,
    input_of,
    listed,
    missing_response,
    page,
    read_wish,
    references,
    whole_body,
    with_closing_response,
    with_ids,
    with_references,
)
from bardo.dialects.openai_responses.usage import encode_usage
from bardo.dialects.openai_responses.wire import is_made
from bardo.dialects.shared.json_values import decode_object, encode_json, optional, required, take
from bardo.replies.receipt import call_headers, cost_headers, headers_of_calls
from bardo.surfaces.gateway.answer import Answer, run_until_disconnect
from bardo.surfaces.gateway.callers import caller_of
from bardo.surfaces.gateway.compaction import (
    Compactor,
    answer_compaction,
    prepared,
    read_summaries,
    targets_to_summarize,
)
from bardo.surfaces.gateway.context import GatewayContext, new_id
from bardo.surfaces.gateway.generate import answer_request, read_request
from bardo.surfaces.gateway.http import Receive, Scope, query_of
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import InvalidRequest, NotStored, TooLarge, Unavailable, UnknownRoute, Unsupported
from bardo.values.request import KeptAs, Request


async def respond(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer a request for a response. Raises BardoError where none begins."""
    request = await read_request(context, route, scope, receive)
    kept, tenant = None, caller_of(scope).tenant
    if context.responses is None:
        _refuse_forgotten(read_wish(request))
    else:
        kept = await _plan_storage(context, context.responses, request, route, tenant)
        request = request if kept is None else kept.request
    request = await read_summaries(context, request, route, tenant)
    targets = await targets_to_summarize(context, request) if is_triggered(request) else None
    if targets is None:
        await answer_request(context, route, request, scope, receive, answer, kept=kept)
    else:
        await answer_compaction(context, route, request, scope, receive, answer, targets, kept=kept)


async def compact(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with a compacted conversation: what the user said, and an item that stands for all of it. Raises BardoError."""
    request = await read_request(context, route, scope, receive)
    caller, store = caller_of(scope), context.responses
    if store is None:
        _refuse_forgotten(read_wish(request))
    else:
        before = await _previous_items(store, read_wish(request), caller.tenant)
        if before is not None and before[0]:
            request = await _with_items(context, request, route, [*before[0], *input_of(request)])
    said = messages_of_user(input_of(request))
    request = prepared(context, await read_summaries(context, request, route, caller.tenant), scope)
    targets = await targets_to_summarize(context, request)

    async def work() -> None:
        if targets is None:
            made = await compact_at_provider(
                context.services,
                request,
                client_key=caller.key,
                tenant=caller.tenant,
                account=caller.account,
                login=caller.login,
            )
            headers = call_headers(made.request_id, made.attempt.target, made.result.degraded)
            await answer.whole(200, made.result.body, [*headers, *cost_headers(made.cost)])
            return
        compactor = Compactor(context, route, request, caller, targets)
        item, response = await compactor.compact()
        fields = {
            "id": response.id,
            "object": "response.compaction",
            "created_at": response.created,
            "output": [*with_ids(said, response.id), item],
            "usage": encode_usage(response.usage),
        }
        await answer.whole(200, encode_json(fields), headers_of_calls(compactor.calls))

    await run_until_disconnect(receive, work())


class ResponseStorage:
    """One response that will be kept: the request as it is answered, and what is done with its reply."""

    def __init__(
        self, store: ResponseStore, tenant: str, request: Request, own: list[Item], earlier: tuple[str, ...]
    ) -> None:
        assert request.kept_as is not None
        self.request = request
        self._as: KeptAs = request.kept_as
        self._store = store
        self._tenant = tenant
        self._input = with_ids(own, self._as.id)
        self._earlier = earlier

    async def whole(self, body: bytes) -> bytes:
        """Keep a whole reply, and return it as its client gets it."""
        response = await run_by_size(size_of_body(body), lambda: msgspec.json.decode(body))
        kept = await self._keep(response)
        return body if kept else msgspec.json.encode({**response, "store": False})

    async def end(self, frames: Sequence[bytes]) -> Sequence[bytes]:
        """Keep a streamed reply, and return its last frames as its client gets them."""
        response = closing_response(frames[-1]) if frames else None
        if response is None or await self._keep(response):
            return frames
        return [*frames[:-1], with_closing_response(frames[-1], {**response, "store": False})]

    async def _keep(self, response: Item) -> bool:
        """Keep a response where it is to be, and return whether what its client is told of that is true."""
        stored = StoredResponse(response=response, input=self._input, earlier=self._earlier)
        if self._as.conversation:
            try:
                if not await self._store.append(self._tenant, self._as.conversation, stored.items):
                    return False
            except Unavailable:
                return False
        return not self._as.store or await self._store.put(self._tenant, stored)


async def _plan_storage(
    context: GatewayContext, store: ResponseStore, request: Request, route: Route, tenant: str
) -> ResponseStorage | None:
    """Return how a request is answered and its reply kept, or None if it goes on as it came. Raises BardoError."""
    storage = read_wish(request)
    if storage.elsewhere:
        # It needs state of its provider, and cannot go on from what only bardo keeps.
        name = storage.previous or storage.conversation
        if name and is_made(name):
            message = f"{name} is kept by bardo, and a call in the background or with a prompt template is its provider's alone"
            param = "previous_response_id" if storage.previous else "conversation"
            raise Unsupported(message, hint="leave out background and prompt", param=param)
        return None
    before = await _previous_items(store, storage, tenant)
    if before is None:
        return None
    history, earlier = before
    own = input_of(request)
    found = await store.items(tenant, references(own))
    own = with_references(own, found, history)
    if not (storage.keep or storage.conversation or history or found):
        return None
    kept_as = KeptAs(
        id=new_id("resp"), store=storage.keep, previous=storage.previous, conversation=storage.conversation
    )
    # A conversation in which nothing was said yet is its provider's no more than any other.
    answered = (
        await _with_items(context, request, route, [*history, *own])
        if history or found or storage.conversation
        else _without_storage_fields(request)
    )
    return ResponseStorage(store, tenant, msgspec.structs.replace(answered, kept_as=kept_as), own, earlier)


def _refuse_forgotten(storage: StorageOptions) -> None:
    """Raise the error for a response or conversation of bardo's where nothing is kept any more: no provider has it."""
    if is_made(storage.previous):
        raise missing_response(storage.previous, hint=_HOW_TO_KEEP)
    if is_made(storage.conversation):
        raise missing_conversation(storage.conversation, hint=_HOW_TO_KEEP)


async def _previous_items(
    store: ResponseStore, storage: StorageOptions, tenant: str
) -> tuple[list[Item], tuple[str, ...]] | None:
    """Return the items that a request goes on from, and the ids of their responses, or None if these are not kept here.

    Raises UnknownPreviousResponse or NotStored for what was kept here once.
    """
    if storage.previous:
        # All items up to those of the response, and the ids of the responses they stand in.
        name = storage.previous
        last = (await store.responses(tenant, [name])).get(name)
        if last is None:
            if is_made(name):
                raise missing_response(name)
            return None
        found = await store.responses(tenant, last.earlier)
        if len(found) < len(last.earlier):
            raise missing_response(next(one for one in last.earlier if one not in found))
        turns = [*(found[one] for one in last.earlier), last]
        return [item for turn in turns for item in turn.items], (*last.earlier, name)
    if not storage.conversation:
        return [], ()
    conversation = await store.conversation(tenant, storage.conversation)
    if conversation is not None:
        return conversation.items, ()
    if is_made(storage.conversation):
        raise missing_conversation(storage.conversation)
    return None


async def _with_items(context: GatewayContext, request: Request, route: Route, items: list[Item]) -> Request:
    """Return a request that holds all items itself. Raises TooLarge."""
    body = whole_body(_without_storage_fields(request).body or {}, items)
    if len(body) > context.max_body:
        raise TooLarge(
            f"the conversation that was kept and the request are over {context.max_body} bytes together",
            hint="begin a new conversation, or raise gateway.max_body_bytes in bardo.toml",
        )
    whole = await run_by_size(size_of_body(body), lambda: dialect(route.dialect).decode_request(body, route.arrival))
    # What is asked of bardo itself is in no body that goes on.
    return msgspec.structs.replace(whole, options=request.options)


def _without_storage_fields(request: Request) -> Request:
    """Return a request that says nothing of `store`: the gateway keeps the reply, and its provider need not."""
    fields = {name: value for name, value in (request.body or {}).items() if name != "store"}
    extra = {name: value for name, value in request.extra.items() if name != "store"}
    return msgspec.structs.replace(request, body=fields, extra=extra)


def missing_conversation(name: str, hint: str = "it was deleted, or is no longer kept") -> NotStored:
    """Return the error for a conversation that is not kept, in the words of OpenAI's servers."""
    return NotStored(f"Conversation with id '{name}' not found.", hint=hint)


_LEAST, _MOST, _USUAL = 1, 100, 20
_NOTHING_KEPT = "bardo keeps no responses here: none can be read or deleted later"
_HOW_TO_KEEP = 'this gateway keeps none: keep them with store = "memory" under [responses] in bardo.toml'


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
