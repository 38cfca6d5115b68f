"""Keeps the responses and conversations of Responses clients: the pure rules of the dialect, with a store and a clock.

What a store cannot hold, or fails to, is told to the caller of `put`; nothing is ever half kept.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from bardo.adapters.config.settings import ResponseSettings
from bardo.adapters.config.storage import place_of
from bardo.adapters.stores.database.problems import STATE
from bardo.adapters.stores.state import Bounds, KeyedStore, open_store
from bardo.adapters.stores.state.calls import StateCalls
from bardo.dialects.openai_responses.stored import Item, StoredResponse
from bardo.values.errors import Unavailable

_RESPONSE, _CONVERSATION, _ITEM = "response:", "conversation:", "item:"
_MOST_TRIES = 20
"""How often a change of a conversation is made again, each time after another gateway was quicker."""
T = TypeVar("T")
RESPONSES = msgspec.structs.replace(STATE, name="store of responses")
"""Responses and conversations that clients go on from: a file of them is never made anew by itself."""


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation: its items in order, and what its client wrote on it. `created_at` is Unix time in seconds."""

    id: str
    created_at: int
    metadata: dict[str, Any] = {}
    items: list[Item] = []


class ResponseStore:
    """The stored responses as the gateway uses them. Everything belongs to a tenant: none finds the values of another."""

    def __init__(self, store: KeyedStore, *, clock: Callable[[], float] = time.time, seconds: float = 5.0) -> None:
        self._store = StateCalls(store, name="responses", area="responses", seconds=seconds)
        self._clock = clock
        self._changing = asyncio.Lock()

    @property
    def now(self) -> int:
        """Unix time in seconds."""
        return int(self._clock())

    async def responses(self, tenant: str, ids: Sequence[str]) -> dict[str, StoredResponse]:
        """Return the responses with these ids that are kept. Raises Unavailable where the store cannot be read."""
        values = await self._find(tenant, [f"{_RESPONSE}{name}" for name in ids])
        read = (msgspec.json.decode(value, type=StoredResponse) for value in values.values())
        return {response.id: response for response in read}

    async def items(self, tenant: str, ids: Sequence[str]) -> dict[str, Item]:
        """Return the items with these ids, of whichever response."""
        values = await self._find(tenant, [f"{_ITEM}{name}" for name in ids])
        stored = {value: msgspec.json.decode(value, type=StoredResponse) for value in set(values.values())}
        items = {item["id"]: item for row in stored.values() for item in row.items if isinstance(item.get("id"), str)}
        return {name: items[name] for name in ids if name in items}

    async def put(self, tenant: str, stored: StoredResponse) -> bool:
        """Keep a response, and return whether it is kept."""
        keys = [f"{_RESPONSE}{stored.id}", *(f"{_ITEM}{item_id}" for item_id in stored.item_ids)]
        return await self._put(tenant, keys, msgspec.json.encode(stored), name=stored.id)

    async def conversation(self, tenant: str, name: str) -> StoredConversation | None:
        """Return a conversation, or None if it is not kept."""
        values = await self._find(tenant, [f"{_CONVERSATION}{name}"])
        return next((msgspec.json.decode(value, type=StoredConversation) for value in values.values()), None)

    async def put_conversation(self, tenant: str, conversation: StoredConversation) -> bool:
        """Keep a new conversation, and return whether it is kept."""
        keys = [f"{_CONVERSATION}{conversation.id}"]
        return await self._put(tenant, keys, msgspec.json.encode(conversation), name=conversation.id)

    async def change_conversation(
        self, tenant: str, name: str, change: Callable[[StoredConversation], StoredConversation]
    ) -> StoredConversation | None:
        """Change a conversation and return it, or None if it is not kept, or has become too large to be.

        Where another gateway changes it at the same moment, `change` is made again to what that one left. Raises Unavailable.
        """
        key, tried = f"{_CONVERSATION}{name}", b""
        async with self._changing:
            for _ in range(_MOST_TRIES):
                before = (await self._find(tenant, [key])).get(key)
                if before is None or before == tried:
                    return None
                after = change(msgspec.json.decode(before, type=StoredConversation))
                encoded, now = msgspec.json.encode(after), self._clock()
                put = await self._store.put(tenant, [key], encoded, now=now, reply=name, before=before)
                if _require_answer(put):
                    return after
                tried = before
        raise Unavailable("the conversation is changed by too many calls at once", hint="send one call of it at a time")

    async def append(self, tenant: str, name: str, items: Iterable[Item]) -> bool:
        """Add items to a conversation, and return whether they are kept. Raises Unavailable."""
        added = list(items)

        def change(before: StoredConversation) -> StoredConversation:
            return msgspec.structs.replace(before, items=[*before.items, *added])

        return await self.change_conversation(tenant, name, change) is not None

    async def remove_response(self, tenant: str, name: str) -> bool:
        """Forget a response, and return whether there was one."""
        return _require_answer(await self._store.remove(tenant, f"{_RESPONSE}{name}"))

    async def remove_conversation(self, tenant: str, name: str) -> bool:
        """Forget a conversation, and return whether there was one."""
        return _require_answer(await self._store.remove(tenant, f"{_CONVERSATION}{name}"))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    async def _find(self, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
        return _require_answer(await self._store.find(tenant, keys, now=self._clock())) if keys else {}

    async def _put(self, tenant: str, keys: Sequence[str], value: bytes, *, name: str) -> bool:
        return await self._store.put(tenant, keys, value, now=self._clock(), reply=name) or False


def _require_answer(answer: T | None) -> T:
    """Return what the store answered. Raises Unavailable where it did not."""
    if answer is None:
        raise Unavailable("kept responses cannot be reached now", hint="try again soon; the gateway's log says why")
    return answer


def open_responses(
    settings: ResponseSettings, *, clock: Callable[[], float] = time.time, environment: Mapping[str, str] | None = None
) -> ResponseStore | None:
    """Return the store that the settings describe, or None if nothing is kept.

    Raises OperatorError where its file cannot be used, or its address is wrong.
    """
    bounds = Bounds(
        entries=settings.max_entries,
        bytes=settings.max_bytes,
        tenant_entries=settings.max_entries_per_tenant,
        tenant_bytes=settings.max_bytes_per_tenant,
        seconds=settings.ttl_seconds,
    )
    where = place_of(settings, os.environ if environment is None else environment, "responses")
    store = open_store(where, bounds, space="responses")
    return None if store is None else ResponseStore(store, clock=clock, seconds=settings.timeout_seconds)
