"""The keys by which clients come, as `[[keys]]` of bardo.toml names them: what holds for all calls of one key."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from bardo.accounting.limits import KeyLimits
from bardo.edge.accounts.account import Account, checked_globs, nanos_of_usd, time_of
from bardo.edge.settings_problems import Place, explain
from bardo.edge.settings_rows import choices_of
from bardo.engine.aliases import ThinkingRules
from bardo.values.errors import ConfigError, InvalidRequest

Amount = Annotated[int, msgspec.Meta(ge=1)]
Money = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

_log = logging.getLogger("bardo.keys")


class KeyEntry(ThinkingRules, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[keys]]` table. `key_env` names the variable that holds the key: a key never stands in the file.

    `models` are globs, empty for all. `pipelines` are profiles of layers that its calls may name, `*` all. `operator`: it opens the whole
    panel, and chooses any profile. Budgets are US dollars, of days and months in UTC.
    `unknown_cost` is what `[budgets]` `unknown_cost` says, for this key.
    """

    id: str
    key_env: str
    tenant: str = ""
    models: tuple[str, ...] = ()
    pipelines: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    expires: str = ""
    requests_per_minute: Amount | None = None
    tokens_per_minute: Amount | None = None
    concurrency: Amount | None = None
    usd_per_day: Money | None = None
    usd_per_month: Money | None = None
    operator: bool = False
    unknown_cost: Literal["", "refuse", "estimate", "allow"] = ""


class ClientKeys:
    """What holds for the calls of each key. Keys are held as digests."""

    def __init__(self, entries: Iterable[KeyEntry] = (), environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._rules: dict[bytes, tuple[ThinkingRules, ...]] = {}
        for entry in entries:
            key = environment.get(entry.key_env, "").strip()
            if key:
                self._rules[_digest(key)] = (entry,)
            else:
                _log.warning("%s is not set: what [[keys]] %s says holds for nobody", entry.key_env, entry.id)

    def rules(self, key: str) -> tuple[ThinkingRules, ...]:
        """Return what holds for the calls of a key."""
        return self._rules.get(_digest(key), ()) if self._rules and key else ()


def account_of(entry: KeyEntry) -> Account:
    """Return the account of a key. Raises InvalidRequest for a value that makes no sense."""
    limits = KeyLimits(
        requests_per_minute=entry.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute,
        concurrency=entry.concurrency,
        usd_per_day=None if entry.usd_per_day is None else nanos_of_usd(entry.usd_per_day),
        usd_per_month=None if entry.usd_per_month is None else nanos_of_usd(entry.usd_per_month),
    )
    return Account(
        id=entry.id,
        name=entry.id,
        tenant=entry.tenant or entry.id,
        tags=entry.tags,
        models=checked_globs(entry.models),
        limits=limits,
        expires=time_of(entry.expires) if entry.expires else None,
        operator=entry.operator,
        unknown_cost=entry.unknown_cost,
    )


def keys_that_are_set(
    entries: Iterable[KeyEntry], environment: Mapping[str, str] | None = None
) -> list[tuple[str, KeyEntry]]:
    """Return the keys whose variable is set, each with its table."""
    environment = os.environ if environment is None else environment
    pairs = [(environment.get(entry.key_env, "").strip(), entry) for entry in entries]
    return [(key, entry) for key, entry in pairs if key]


def read_keys(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[KeyEntry, ...]:
    """Return the `[[keys]]` of `text`, which is the file's. Raises ConfigError naming the line."""
    entries: list[KeyEntry] = []
    for index, table in enumerate(tables):
        place = Place(text, source, "keys", index)
        try:
            entry = msgspec.convert(table, KeyEntry)
        except msgspec.ValidationError as problem:
            raise explain(problem, place, KeyEntry.__struct_fields__, choices_of(KeyEntry)) from problem
        if not entry.key_env.isidentifier():
            hint = 'write the name of the variable that holds the key: key_env = "TEAM_KEY"'
            raise ConfigError(f"{place.of('key_env')}: key {entry.id!r} names no environment variable", hint=hint)
        _check_account(entry, place)
        if any(one.id == entry.id for one in entries):
            raise ConfigError(f"{place.of('id')}: a second key is called {entry.id!r}", hint="ids are unique")
        entries.append(entry)
    return tuple(entries)


def _check_account(entry: KeyEntry, place: Place) -> None:
    try:
        account_of(entry)
    except InvalidRequest as problem:
        raise ConfigError(f"{place.of(problem.param or 'id')}: {problem.message}", hint=problem.hint) from problem


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
