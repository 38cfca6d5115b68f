"""Keeps and finds the reasoning of replies: the pure rules of `reasoning.replay`, with a store and a clock.

A store that fails costs a conversation its earlier reasoning, never a reply.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bardo.adapters.config.paths import named_path
from bardo.adapters.config.settings import ReplaySettings
from bardo.adapters.config.storage import is_file_name, place_of
from bardo.adapters.long_work import run_by_size, size_of, size_of_reply
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.state import Bounds, KeyedStore, MemoryStore, SqliteStore, open_store
from bardo.adapters.stores.state.calls import StateCalls
from bardo.catalog.replay import Reader, ReplayRules, builtin_replay
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.route import Target
from bardo.reasoning.replay import (
    Conversation,
    History,
    Memory,
    Recalled,
    Refusers,
    decode_kept,
    encode_kept,
    loop_calls,
    name_of,
    remember,
    state_data,
    turns_in,
)
from bardo.reasoning.replay.guard import OnChange
from bardo.reasoning.replay.keys import TurnKeys
from bardo.reasoning.replay.restore import Refused
from bardo.values.degradation import Degradation
from bardo.values.errors import ConfigError
from bardo.values.request import Request
from bardo.values.response import Response

_log = logging.getLogger("bardo.replay")
_UNREACHABLE = Degradation(
    "reasoning", asked="restored", sent="omitted", why="the store of earlier reasoning does not answer"
)


class ReplayKeeper:
    """The store of earlier reasoning as calls use it. Without a store nothing is kept, and only the rules of what may be sent hold.

    A store that takes longer than `seconds` is passed over; what it does not take is held here until it does. `reopen` opens its file
    where that is `renewable`.
    """

    def __init__(
        self,
        store: KeyedStore | None,
        *,
        on_change: OnChange = "restore",
        rules: ReplayRules | None = None,
        clock: Callable[[], float] = time.time,
        seconds: float = 5.0,
        reopen: Callable[[], KeyedStore] | None = None,
        renewable: RenewableFile | None = None,
    ) -> None:
        self._calls = (
            None
            if store is None
            else StateCalls(
                store,
                name="earlier reasoning",
                area="replay",
                seconds=seconds,
                holds_writes=True,
                reopen=reopen,
                renewable=renewable,
            )
        )
        self._on_change = on_change
        self._rules = rules or builtin_replay()
        self._clock = clock
        self._refusers = Refusers(clock)

    @property
    def calls(self) -> StateCalls | None:
        """What asks the store, or None if nothing is kept."""
        return self._calls

    async def recall(self, request: Request, tenant: str = "", sent: Request | None = None) -> Recalled:
        """Return the facts about the replies in a request's history, where it has one.

        `sent` is the request as layers have changed it, or None if it is sent as it was asked: it says where each turn stands.
        """
        calls, size = self._calls, size_of(request)
        history: History | None = None
        turns: tuple[TurnKeys, ...] = ()
        raw: dict[str, bytes] = {}
        lost: tuple[Degradation, ...] = ()
        if calls is not None and (calls.store.waits or calls.store.totals(tenant)[0] > 0):
            conversation = Conversation(request)
            keys = await run_by_size(size, conversation.first_keys)
            while keys:
                answer = await calls.find(tenant, keys, now=self._clock())
                if answer is None:
                    lost = (_UNREACHABLE,)
                    break
                raw |= answer
                keys = await run_by_size(size, partial(conversation.further_keys, raw))
            history = await run_by_size(size, conversation.history)
            turns = history.turns
        # One reply is found by several of its keys.
        by_value = {value: decode_kept(value) for value in set(raw.values())}
        records = {key: record for key, value in raw.items() if (record := by_value[value]) is not None}
        if sent is not None and sent.messages is not request.messages:
            turns = await run_by_size(size, partial(turns_in, turns, request, sent))
        refused: Refused = {}
        if not self._refusers.empty:
            kept_states = [state.data for record in by_value.values() if record is not None for state in record.states]
            states = [*state_data(sent or request), *loop_calls(sent or request), *kept_states]
            refused = self._refusers.among(tenant, states)
        return Recalled(
            found=records,
            turns=turns,
            history=history,
            on_change=self._on_change,
            rules=self._rules,
            degraded=lost,
            refused=refused,
        )

    def note_answered(self, attempt: Attempt, tenant: str) -> None:
        """Take that a tenant's attempt was answered: what its provider refused before is left out, or not thought behind, from now on."""
        self._refusers.note(tenant, name_of(self._reader(attempt.target)), attempt.left_out)

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
        """Store the parts of a reply that later turns need.

        `reply` names it: a later record of it replaces this one. `fields` are those its provider takes back unmodified, by choice. `shown`
        is the reply as the client got it, where that is not what the provider said.
        """
        if self._calls is None:
            return
        reader = self._reader(attempt.target)
        memories = await run_by_size(
            max(size_of(request), size_of_reply(response)),
            lambda: remember(
                response,
                request,
                attempt.request or request,
                reader,
                self._rules,
                fields,
                own_ids=dialect(reader.row.dialect).omits_call_ids,
                shown=shown,
                history=attempt.history,
            ),
        )
        if memories:
            await self._put(tenant, memories, reply)

    def close(self) -> None:
        """Close the store."""
        if self._calls is not None:
            self._calls.close()

    def _reader(self, target: Target) -> Reader:
        provider = target.provider
        return self._rules.reader(provider.id, provider.row, target.model, provider.account)

    async def _put(self, tenant: str, memories: Sequence[Memory], reply: str) -> None:
        calls, now = self._calls, self._clock()
        assert calls is not None
        for memory in memories:
            name = f"{reply}/{memory.choice}" if reply else ""
            await calls.put(tenant, memory.keys, encode_kept(memory.kept), now=now, reply=name)


def open_keeper(
    settings: ReplaySettings, *, clock: Callable[[], float] = time.time, environment: Mapping[str, str] | None = None
) -> ReplayKeeper:
    """Return the keeper that the settings describe. A file that is damaged is set aside, and where it cannot be, nothing is kept in it.

    Raises OperatorError where no file can be made, or for a wrong address.
    """
    bounds = Bounds(
        entries=settings.max_entries,
        bytes=settings.max_bytes,
        tenant_entries=settings.max_entries_per_tenant,
        tenant_bytes=settings.max_bytes_per_tenant,
        seconds=settings.ttl_seconds,
    )
    where = place_of(settings, os.environ if environment is None else environment, "earlier reasoning")
    file = named_path(where) if is_file_name(where) else None
    if file is None:
        store = open_store(where, bounds)
        return ReplayKeeper(store, on_change=settings.prefix_changed, clock=clock, seconds=settings.timeout_seconds)
    renewable = RenewableFile(file, name="earlier reasoning", area="replay")
    reopen = partial(renewable.open, partial(SqliteStore, file, bounds))
    try:
        states: KeyedStore = reopen()
    except ConfigError as problem:
        if not os.path.lexists(file):
            raise
        _log.error("%s: earlier reasoning is kept in memory, until bardo is started again", problem.message)
        states = MemoryStore(bounds)
    return ReplayKeeper(
        states,
        on_change=settings.prefix_changed,
        clock=clock,
        seconds=settings.timeout_seconds,
        reopen=reopen,
        renewable=renewable,
    )
