"""The keys by which clients come, as `[[keys]]` of bardo.toml names them: what holds for all calls of one key."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bardo.edge.settings_problems import Place, explain
from bardo.edge.settings_rows import choices_of
from bardo.engine.aliases import ThinkingRules
from bardo.values.errors import ConfigError

_log = logging.getLogger("bardo.keys")


class KeyEntry(ThinkingRules, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[keys]]` table. `key_env` names the variable that holds the key: a key never stands in the file."""

    id: str
    key_env: str


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
        if any(one.id == entry.id for one in entries):
            raise ConfigError(f"{place.of('id')}: a second key is called {entry.id!r}", hint="ids are unique")
        entries.append(entry)
    return tuple(entries)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
