"""The keys of a gateway: whose call it is, which models it may ask, and whether it is within its limits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.adapters.stores.log.row import LogRow
from bardo.services.accounts.access_keys import PREFIX
from bardo.services.accounts.admissions import Admission, Admissions, RowQueue, RunningCall
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.key_registry import KeyRegistry, check_active, unknown_key
from bardo.services.accounts.usage import KeyUsage, UsageReader
from bardo.values.errors import OperatorError, Unauthorized, Unavailable

if TYPE_CHECKING:
    from bardo.services.accounts.key_store import KeyStore

SYNC_SECONDS = 1.0
"""How often a process looks for changed keys, and returns what it leased and did not use."""
_LOOKS = 3
"""How often a key's figures are read at most while calls of this process go into the log."""
_SYNCS_BETWEEN_CLEANINGS = 60
_MOST_KEYS = 8

_log = logging.getLogger("bardo.keys")


class Accounts:
    """The keys that are known, and the calls that came with them. One event loop uses it; `clock` gives Unix time.

    `optional`: a call without a key is answered too. `store` and `admissions` are None if no key has limits and none is stored.
    `opening` is given while the server of the state database is away: it blocks, and returns the keys once that is back. Until then only
    `configured` keys without limits are taken.
    `close` lets go of databases, and is for a gateway that never began; `stop` ends one that did.
    """

    def __init__(
        self,
        configured: Mapping[bytes, Account],
        *,
        store: KeyStore | None = None,
        admissions: Admissions | None = None,
        usage: UsageReader | None = None,
        optional: bool = False,
        clock: Callable[[], float] = time.time,
        close: Callable[[], None] = lambda: None,
        opening: Callable[[], Accounts] | None = None,
    ) -> None:
        self._registry = KeyRegistry(configured)
        self._store = store
        self._admissions = admissions
        self._usage = usage
        self._optional = optional
        self._clock = clock
        self.close = close
        self._revision = -1
        self._syncs = 0
        self._opening = opening
        self._row_queue: RowQueue | None = None
        self._failed = opening is not None
        self._looking = asyncio.Lock()
        self._syncing: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Read the stored keys, which blocks. Raises DatabaseProblem."""
        if self._store is not None:
            self._revision, keys = self._store.load()
            self._registry.set_stored(keys)

    def use_log(self, log: RowQueue | None) -> None:
        """Say where calls are logged: what they cost counts here until their rows are stored there."""
        self._row_queue = log
        if self._admissions is not None:
            self._admissions.log = log

    @property
    def failed(self) -> bool:
        """Whether keys or limits could not be looked up at the last look: calls of keys with limits are refused then."""
        return self._failed

    @property
    def any_active(self) -> bool:
        """Whether there is a key that is taken now."""
        now = self._clock()
        return any(account.state(now) == "active" for account in self._registry)

    @property
    def known(self) -> list[Account]:
        """Every account."""
        return list(self._registry)

    @property
    def has_store(self) -> bool:
        """Whether keys are kept in a state database, so that one that is made now is known soon."""
        return self._store is not None or self._opening is not None

    def is_stored(self, own_id: str) -> bool:
        """Whether the key of this id is kept in the state database, where it can be changed."""
        return self._registry.is_stored(own_id)

    async def refresh(self) -> None:
        """Read the stored keys again where one was changed. Raises DatabaseProblem."""
        await self._look_for_changes()

    def authenticate(self, key: str) -> Account | None:
        """Return whose a key is, or None if none is needed, and the request has none of bardo's. Raises Unauthorized."""
        account = self._registry.find(key) if key else None
        if account is None:
            # Who need not send a key may send whatever a library wants to have, but no mistyped or deleted key of bardo's.
            if self._optional and not key.startswith(PREFIX):
                return None
            raise unknown_key(key, any_active=self.any_active)
        if account.expires is not None or account.revoked is not None:
            check_active(account, self._clock())
        return account

    def active_account(self, own_id: str) -> Account | None:
        """Return the account of this id, or None if it is not known, has expired or was revoked."""
        account = self._registry.by_id(own_id)
        return account if account is not None and account.state(self._clock()) == "active" else None

    async def own_key(self, keys: Sequence[str]) -> str:
        """Return the one of several keys of a request that is of this gateway, the first where none is: programs send others' keys, too.

        Raises Unauthorized if several are, since it is ambiguous which of them is meant, and Unavailable if that cannot be found out.
        """
        if len(keys) > _MOST_KEYS:
            raise Unauthorized(f"the request has more than {_MOST_KEYS} different keys", hint="send one")
        if self._store is not None and any(map(self._registry.may_be_new, keys)):
            await self._look_for_new_keys()
        own = [key for key in keys if self._registry.find(key) is not None]
        if len(own) > 1:
            hint = (
                "send one of them, in one place: `Authorization`, `x-api-key`, `x-goog-api-key`, `api-key` or `?key=`"
            )
            raise Unauthorized("the request has two different keys of this gateway", hint=hint)
        return own[0] if own else keys[0]

    async def account_of(self, key: str) -> Account | None:
        """Return whose a key is, also one that was made just now. Raises Unauthorized, and Unavailable where that cannot be found out."""
        try:
            return self.authenticate(key)
        except Unauthorized as problem:
            if self._opening is not None:
                raise _away("whether this gateway knows the key cannot be found out now") from problem
            if self._store is None or not self._registry.may_be_new(key):
                raise
            await self._look_for_new_keys()
            return self.authenticate(key)

    async def _look_for_new_keys(self) -> None:
        try:
            await self._look_for_changes()
        except DatabaseProblem as problem:
            raise _away("whether this gateway knows the key cannot be found out now") from problem

    async def admit(self, account: Account, facts: CallFacts) -> Admission | None:
        """Let a call through, which is settled by its row in the log; None for a key without limits.

        Raises RateLimited, OverBudget, and Unavailable where more must be leased of a limit and the state database cannot be asked.
        """
        if not account.limited:
            return None
        if self._admissions is None:
            if self._opening is not None:
                raise _away("what is left of the limits of this key is not known now")
            return None
        try:
            return await self._admissions.admit(account, facts)
        except DatabaseProblem as problem:
            raise _away("what is left of the limits of this key is not known now") from problem

    def watch(self, request_id: str, call: RunningCall) -> None:
        """Count what a call takes while its reply is read, where its key has limits."""
        if self._admissions is not None:
            self._admissions.watch(request_id, call)

    def admitted(self, request_id: str) -> CallFacts | None:
        """Return the facts about a call that was let through and has not ended, or None if its key has no limits."""
        return None if self._admissions is None else self._admissions.admitted(request_id)

    def settle(self, row: LogRow) -> None:
        """Count what a call took, by its row in the log."""
        if self._admissions is not None:
            self._admissions.settle(row)

    def release(self, admission: Admission) -> None:
        """Release all that a call took which was not sent and gets no row."""
        if self._admissions is not None:
            self._admissions.release(admission)

    def remaining(self, account: Account) -> Mapping[str, tuple[int, int]]:
        """Return the limits of a minute of a key, and about how much is left of each, as far as this process knows."""
        allowance = None if self._admissions is None else self._admissions.allowance(account)
        left = {} if allowance is None else allowance.remaining()
        return {
            name: (limit, left[name]) for name, limit in account.limits.named() if limit is not None and name in left
        }

    async def usage(self, account: Account) -> KeyUsage:
        """Return what a key has used, and what it may. Raises Unavailable where that cannot be read."""
        if self._opening is not None:
            raise _away("what the key has used cannot be read now")
        if self._usage is None:
            return KeyUsage(account=account)
        try:
            for _ in range(_LOOKS):
                stored = 0
                if self._admissions is not None:
                    stored = self._admissions.rows_stored
                    await self._admissions.sync()
                usage = await asyncio.to_thread(self._usage.read, account, self._clock())
                if self._admissions is None or self._admissions.rows_stored == stored:
                    break
                # A cost that went into the log meanwhile may be in the leases too.
            return usage
        except DatabaseProblem as problem:
            raise _away("what the key has used cannot be read now") from problem

    def start(self) -> None:
        """Keep in step with the state database from now on, in the running event loop."""
        if self._store is not None or self._admissions is not None or self._opening is not None:
            self._syncing = asyncio.get_running_loop().create_task(self._keep_in_step())

    async def stop(self) -> None:
        """Give the leases back, store the usage of calls, and let go of the database."""
        if self._syncing is not None:
            self._syncing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._syncing
        try:
            if self._admissions is not None:
                await self._admissions.leave()
        except DatabaseProblem as problem:
            _log.warning("what calls took of the limits of their keys cannot be stored: %s", problem)
        finally:
            await asyncio.to_thread(self.close)

    async def _keep_in_step(self) -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            try:
                await self._sync()
            except OperatorError as problem:
                if not self._failed:
                    _log.error(
                        "the database of keys, or the store of limits, cannot be used, and calls of limited keys are refused: %s",
                        problem,
                    )
                self._failed = True
            except Exception:  # noqa: BLE001 - without this task no lease is returned and no revoked key is refused
                _log.exception("a mistake in bardo, while keys were looked at")
            else:
                if self._failed:
                    _log.warning("the database of keys and the store of limits are used again")
                self._failed = False

    async def _sync(self) -> None:
        if self._opening is not None:
            await self._open(self._opening)
        try:
            await self._look_for_changes()
        finally:
            await self._sync_admissions()

    async def _open(self, opening: Callable[[], Accounts]) -> None:
        """Take over the keys of the state database, and its limits. Raises DatabaseProblem, and ConfigError where settings forbid them."""
        trying = asyncio.ensure_future(asyncio.to_thread(opening))
        try:
            opened = await asyncio.shield(trying)
        except asyncio.CancelledError:
            await asyncio.wait([trying])
            if trying.exception() is None:
                trying.result().close()
            raise
        self._registry, self._store, self._revision = opened._registry, opened._store, opened._revision
        self._admissions, self._usage, self._optional = opened._admissions, opened._usage, opened._optional
        self.close, self._opening = opened.close, None
        self.use_log(self._row_queue)

    async def _sync_admissions(self) -> None:
        """Keep the leases alive, also while the keys cannot be read: limits may be counted elsewhere."""
        if self._admissions is None:
            return
        await self._admissions.sync()
        self._syncs += 1
        if self._syncs % _SYNCS_BETWEEN_CLEANINGS == 1:
            await self._admissions.clean()

    async def _look_for_changes(self) -> None:
        """Read the keys again where one was changed. Whoever invents keys makes no more than one short question at a time."""
        if self._store is None:
            return
        async with self._looking:
            if await asyncio.to_thread(self._store.revision) != self._revision:
                self._revision, keys = await asyncio.to_thread(self._store.load)
                self._registry.set_stored(keys)


def _away(what: str) -> Unavailable:
    """Return what a caller is told while the state database is away; where that is stands in the log of the program alone."""
    return Unavailable(what, hint="try again soon; the gateway's log says why its database of keys cannot be used")
