"""Keeps and finds the reasoning of replies: the pure rules of `reasoning.replay`, with a store and a clock.

A store that fails costs a conversation its earlier reasoning, never a reply.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bardo.catalog.replay import Reader, ReplayRules, builtin_replay
from bardo.dialects import dialect
from bardo.edge.settings import ReplaySettings
from bardo.edge.state import Bounds, KeyedStore, open_store
from bardo.engine.planning import Attempt
from bardo.engine.route import Target
from bardo.reasoning.replay import (
    Memory,
    Recalled,
    decode_kept,
    encode_kept,
    has_history,
    is_only_text,
    keys_in,
    remember,
    turns_in,
    turns_of,
)
from bardo.reasoning.replay.guard import OnChange
from bardo.values.request import Request
from bardo.values.response import Response

_log = logging.getLogger("bardo.replay")
_STORE_PROBLEMS = (OSError, sqlite3.Error)


class ReplayKeeper:
    """What the runner asks. Without a store nothing is kept, and only the rules of what may be sent hold."""

    def __init__(
        self,
        store: KeyedStore | None,
        *,
        on_change: OnChange = "restore",
        rules: ReplayRules | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._on_change = on_change
        self._rules = rules or builtin_replay()
        self._clock = clock
        self._without_history = Recalled(turns=(), on_change=on_change, rules=self._rules)

    @property
    def store(self) -> KeyedStore | None:
        """Where it is kept; None where nothing is."""
        return self._store

    async def recall(self, request: Request, tenant: str = "", sent: Request | None = None) -> Recalled:
        """Return what is known of the replies in a request's history.

        `sent` is the request as layers have changed it, None where it is sent as it was asked: it says where each turn stands.
        """
        if not has_history(request):
            return self._without_history
        turns = turns_of(request) if self._store is not None and self._may_hold(tenant) else ()
        keys = keys_in(turns)
        raw = await self._find(tenant, keys) if keys else {}
        # One reply is found by several of its keys.
        kept = {value: decode_kept(value) for value in set(raw.values())}
        found = {key: one for key, value in raw.items() if (one := kept[value]) is not None}
        turns = turns if sent is None else turns_in(turns, request, sent)
        return Recalled(found=found, turns=turns, on_change=self._on_change, rules=self._rules)

    async def remember(
        self,
        response: Response,
        request: Request,
        attempt: Attempt,
        tenant: str = "",
        *,
        reply: str = "",
        fields: Mapping[int, dict[str, Any]] | None = None,
        shown: Response | None = None,
    ) -> None:
        """Keep what of a reply is needed in the turns to come.

        `reply` names it: what is kept of it later replaces this. `fields` are those its provider takes back unmodified, by choice. `shown`
        is the reply as the client got it, where that is not what the provider said.
        """
        if self._store is None or is_only_text(response, request):
            return
        reader = self._reader(attempt.target)
        omits_ids = bool(request.dialect) and dialect(request.dialect).omits_call_ids
        memories = remember(
            response,
            request,
            attempt.request or request,
            reader,
            self._rules,
            fields,
            omits_ids=omits_ids,
            shown=shown,
        )
        if memories:
            await self._put(tenant, memories, reply)

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    def _may_hold(self, tenant: str) -> bool:
        # Looking into memory costs less than the keys do; looking into a file does not.
        return self._store is not None and (self._store.waits or self._store.held(tenant)[0] > 0)

    def _reader(self, target: Target) -> Reader:
        return self._rules.reader(target.provider.id, target.provider.row, target.model)

    async def _find(self, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
        store, now = self._store, self._clock()
        assert store is not None
        try:
            if store.waits:
                return await asyncio.to_thread(store.find, tenant, keys, now=now)
            return store.find(tenant, keys, now=now)
        except _STORE_PROBLEMS as problem:
            _log.warning("earlier reasoning cannot be looked up: %s", problem)
            return {}

    async def _put(self, tenant: str, memories: Sequence[Memory], reply: str) -> None:
        store, now = self._store, self._clock()
        assert store is not None
        try:
            for memory in memories:
                value = encode_kept(memory.kept)
                name = f"{reply}/{memory.choice}" if reply else ""
                if store.waits:
                    await asyncio.to_thread(store.put, tenant, memory.keys, value, now=now, reply=name)
                else:
                    store.put(tenant, memory.keys, value, now=now, reply=name)
        except _STORE_PROBLEMS as problem:
            _log.warning("the reasoning of a reply cannot be kept: %s", problem)


def open_keeper(settings: ReplaySettings, *, clock: Callable[[], float] = time.time) -> ReplayKeeper:
    """Return the keeper that the settings describe. Raises ConfigError where its file cannot be used."""
    bounds = Bounds(
        entries=settings.max_entries,
        bytes=settings.max_bytes,
        tenant_entries=settings.max_entries_per_tenant,
        tenant_bytes=settings.max_bytes_per_tenant,
        seconds=settings.ttl_seconds,
    )
    return ReplayKeeper(open_store(settings.store, bounds), on_change=settings.prefix_changed, clock=clock)
