"""Open the keys that a configuration and its state database have, for a gateway."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bardo.adapters.config.accounts import Account, account_of, check_limits_store, keys_that_are_set
from bardo.adapters.config.gateway import is_loopback_host
from bardo.adapters.config.mistakes import Place
from bardo.adapters.config.paths import is_file
from bardo.adapters.config.settings import Settings, log_path, state_path
from bardo.adapters.config.storage import place_of
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.services.accounts.accounts import Accounts
from bardo.services.accounts.key_registry import configured_accounts
from bardo.services.accounts.usage import LogSpend, UsageReader
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from bardo.services.accounts.leases import LeaseStore

_log = logging.getLogger("bardo.keys")


def has_keys(settings: Settings, environment: Mapping[str, str] | None = None) -> bool:
    """Return whether a gateway of these settings asks for keys: a `[[keys]]` is set, or one was ever made. Raises DatabaseProblem."""
    return bool(keys_that_are_set(settings.keys, environment)) or _has_stored_keys(state_path(settings, environment))


def any_key_is_active(settings: Settings, environment: Mapping[str, str] | None = None) -> bool:
    """Return whether any key would be taken now. Raises DatabaseProblem."""
    now = time.time()
    pairs = keys_that_are_set(settings.keys, environment)
    if any(account_of(entry).state(now) == "active" for _, entry in pairs):
        return True
    place = state_path(settings, environment)
    if not _has_stored_keys(place):
        return False
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(place) as store:
        return any(stored.account.state(now) == "active" for stored in store.load()[1])


def asks_for_keys(settings: Settings, environment: Mapping[str, str] | None = None) -> bool:
    """Return what `has_keys` does; a gateway whose database server is away asks for keys until it is back. Raises DatabaseProblem."""
    try:
        return has_keys(settings, environment)
    except DatabaseProblem as problem:
        if not problem.away:
            raise
        return True


def open_accounts(settings: Settings, environment: Mapping[str, str] | None = None) -> Accounts | None:
    """Return the keys of a gateway, or None if it has none: then no database is opened.

    While the server of its database is away, they are the keys of its configuration, and no other caller is let in. Raises ConfigError
    and DatabaseProblem.
    """
    pairs = [(key, account_of(entry)) for key, entry in keys_that_are_set(settings.keys, environment)]
    place = state_path(settings, environment)
    try:
        return _open(settings, pairs, place, environment)
    except DatabaseProblem as problem:
        if not problem.away:
            raise
        _log.error("the database of keys cannot be used, and only keys of the configuration are known: %s", problem)

    def open_again() -> Accounts:
        opened = _open(settings, pairs, place, environment)
        if opened is not None:
            return opened
        # Without any key none is needed, unless other machines reach the gateway.
        if is_loopback_host(settings.gateway.host):
            return Accounts({}, optional=True)
        spend = LogSpend(log_path(settings, environment) if settings.log.enabled else None, settings.budgets.charged)
        return _with_database(settings, place, {}, spend, environment)

    return Accounts(configured_accounts(pairs), optional=settings.gateway.allow_unauthenticated, opening=open_again)


def _open(
    settings: Settings, pairs: Sequence[tuple[str, Account]], place: str | Path, environment: Mapping[str, str] | None
) -> Accounts | None:
    stored = _has_stored_keys(place)
    if not pairs and not stored:
        return None
    spend = LogSpend(log_path(settings, environment) if settings.log.enabled else None, settings.budgets.charged)
    if stored or any(account.limited for _, account in pairs):
        return _with_database(settings, place, configured_accounts(pairs), spend, environment)
    usage = UsageReader(None, spend, has_log=settings.log.enabled)
    optional = settings.gateway.allow_unauthenticated
    return Accounts(configured_accounts(pairs), usage=usage, optional=optional, close=spend.close)


def open_limits(settings: Settings, environment: Mapping[str, str] | None = None) -> Accounts:
    """Return what counts the calls of accounts that come with no key, such as the users of a chat. Raises DatabaseProblem."""
    spend = LogSpend(log_path(settings, environment) if settings.log.enabled else None, settings.budgets.charged)
    return _with_database(settings, state_path(settings, environment), {}, spend, environment)


def _with_database(
    settings: Settings,
    place: str | Path,
    configured: Mapping[bytes, Account],
    spend: LogSpend,
    environment: Mapping[str, str] | None,
) -> Accounts:
    from bardo.services.accounts.admissions import Admissions
    from bardo.services.accounts.key_store import KeyStore, open_keys

    engine = open_keys(place)
    try:
        leases = _open_leases(settings, engine, spend, environment)
    except BaseException:
        engine.dispose()
        raise

    def close() -> None:
        spend.close()
        leases.close()
        engine.dispose()

    accounts = Accounts(
        configured,
        store=KeyStore(engine),
        admissions=Admissions(leases, None, budgets=settings.budgets, clock=time.time),
        usage=UsageReader(leases, spend, has_log=settings.log.enabled),
        optional=settings.gateway.allow_unauthenticated,
        close=close,
    )
    try:
        accounts.load()
        _check_budgets(settings, accounts)
        seen: set[str] = set()
        for account in accounts.known:
            if account.id in seen:
                raise ConfigError(f"two keys have the id {account.id!r}", hint="give the one under [[keys]] another id")
            seen.add(account.id)
    except BaseException:
        close()
        raise
    return accounts


def _open_leases(
    settings: Settings, engine: Engine, spend: LogSpend, environment: Mapping[str, str] | None
) -> LeaseStore:
    """Return where the limits of all gateways are counted: Redis where one is named, else the state database. Raises ConfigError."""
    address = place_of(settings.budgets, os.environ if environment is None else environment, "limits")
    if not address:
        from bardo.services.accounts.lease_store import SqlLeaseStore

        return SqlLeaseStore(engine, _worker_name(), spend)
    check_limits_store(address, Place("", settings.budgets.store_env or "budgets.store"))
    from bardo.services.accounts.redis_leases import RedisLeaseStore

    return RedisLeaseStore(address, _worker_name(), spend)


def _worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def _check_budgets(settings: Settings, accounts: Accounts) -> None:
    """Raise ConfigError for a budget without a log: the spending would be unknown."""
    if settings.log.enabled:
        return
    for account in accounts.known:
        if account.has_budget:
            message = (
                f"the key {account.name or account.id} has a budget, and the log is off: nobody knows what is spent"
            )
            raise ConfigError(message, hint="set enabled = true under [log], or take the budget away")


def _has_stored_keys(place: str | Path) -> bool:
    """Return whether a key was ever made. Where there is no database yet, none is opened."""
    if "://" not in str(place) and not is_file(Path(place)):
        return False
    from bardo.services.accounts.key_store import holds_keys

    return holds_keys(place)
