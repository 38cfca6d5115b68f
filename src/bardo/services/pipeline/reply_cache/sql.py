"""A store of replies in a database: an SQLite file that the workers of one machine share, or PostgreSQL for several machines.

What it holds can be had again, so that tables of another form are removed and made anew: they have no revisions. A file is readable by its
owner alone; values hold what models said, in plain form. Loads SQLAlchemy: import it where a store is opened, and nowhere above.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    Table,
    Text,
    bindparam,
    inspect,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.stores.database.engines import address_of, is_file, open_for_reading, open_for_writing, unusable
from bardo.adapters.stores.database.problems import DatabaseProblem, DatabaseUse
from bardo.adapters.stores.database.revisions import versions
from bardo.adapters.stores.database.sqlite_file import check_number
from bardo.context.cache.entries import CacheBounds, CacheEntry, IndexedEntry, Selection, names_of

FORM = "1"
VERSION_TABLE = "reply_cache_version"
USE = DatabaseUse(
    name="cache of replies", lock=int.from_bytes(b"bardo ca"), how_to_find="name the database that your gateway uses"
)

metadata = MetaData()
_Number = BigInteger().with_variant(Integer(), "sqlite")

entries = Table(
    "reply_cache_entries",
    metadata,
    # In the order in which they came; a number is never used again, so that others can ask for newer entries.
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("identity", LargeBinary, nullable=False, unique=True),
    Column("value", LargeBinary, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("expires", Double, nullable=False),
    Column("marks", LargeBinary),
    Index("ix_reply_cache_entries_tenant", "tenant", "number"),
    Index("ix_reply_cache_entries_expires", "expires"),
    sqlite_autoincrement=True,
)

# What an entry is removed by: `m` and a name of its model, or `t` and a tag.
labels = Table(
    "reply_cache_labels",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("label", Text, primary_key=True),
    Index("ix_reply_cache_labels_label", "label"),
)

# Sums are kept beside the entries, so that looking at a bound costs nothing that grows.
shares = Table(
    "reply_cache_shares",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("entries", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)


_AT_ONCE = 200
_FIND = text("SELECT value FROM reply_cache_entries WHERE identity = :identity AND tenant = :tenant AND expires > :now")
_REMOVE = text("DELETE FROM reply_cache_entries WHERE number IN :numbers RETURNING number, tenant, size").bindparams(
    bindparam("numbers", expanding=True)
)
_REMOVE_LABELS = text("DELETE FROM reply_cache_labels WHERE number IN :numbers").bindparams(
    bindparam("numbers", expanding=True)
)
_SAME = text("SELECT number FROM reply_cache_entries WHERE identity = :identity")
_EXPIRED = text("SELECT number FROM reply_cache_entries WHERE expires <= :now LIMIT :most")
_OLDEST = text("SELECT number, size FROM reply_cache_entries ORDER BY number LIMIT :most")
_OLDEST_OF = text("SELECT number, size FROM reply_cache_entries WHERE tenant = :tenant ORDER BY number LIMIT :most")
_INSERT = text(
    "INSERT INTO reply_cache_entries (tenant, identity, value, size, expires, marks) "
    "VALUES (:tenant, :identity, :value, :size, :expires, :marks) RETURNING number"
)
_LABEL = text("INSERT INTO reply_cache_labels (number, label) VALUES (:number, :label)")
_ADD = text(
    "INSERT INTO reply_cache_shares (tenant, entries, bytes) VALUES (:tenant, :entries, :bytes) "
    "ON CONFLICT (tenant) DO UPDATE SET entries = reply_cache_shares.entries + excluded.entries, "
    "bytes = reply_cache_shares.bytes + excluded.bytes"
)
_EMPTY = text("DELETE FROM reply_cache_shares WHERE entries = 0")
_SHARE = text("SELECT entries, bytes FROM reply_cache_shares WHERE tenant = :tenant")
_ALL = text("SELECT COALESCE(SUM(entries), 0) AS entries, COALESCE(SUM(bytes), 0) AS bytes FROM reply_cache_shares")
_INDEXED = text(
    "SELECT number, tenant, identity, marks, expires FROM reply_cache_entries "
    "WHERE number > :after AND expires > :now AND marks IS NOT NULL ORDER BY number LIMIT :most"
)


class SqlReplies:
    """Entries in a database. `where` is a file, or an address of PostgreSQL."""

    waits = True
    problems: tuple[type[Exception], ...] = (SQLAlchemyError, DatabaseProblem, OSError)

    def __init__(self, where: str | Path, bounds: CacheBounds | None = None) -> None:
        """Open the database, and make the tables where there are none. Raises DatabaseUnusable."""
        self._bounds = bounds or CacheBounds()
        address = address_of(where, USE)
        self._writer = open_for_writing(address, USE)
        self._reader = None
        try:
            with self._writer.begin() as connection:
                if is_file(address):
                    check_number(connection.connection.driver_connection, 0)  # type: ignore[arg-type]
                _make_tables(connection)
            self._reader = open_for_reading(address, USE)
        except (SQLAlchemyError, sqlite3.Error) as problem:
            self.close()
            raise unusable(address, problem, USE) from problem
        except BaseException:
            self.close()
            raise

    def find(self, tenant: str, identity: bytes, *, now: float) -> bytes | None:
        """Return the value of an entry that has not expired."""
        rows = self._read(_FIND, {"tenant": _text(tenant), "identity": identity, "now": now})
        return bytes(rows[0]["value"]) if rows else None

    def put(self, entry: CacheEntry, *, now: float) -> bool:
        """Keep an entry in the place of an earlier one, and return whether it is kept."""
        bounds, tenant = self._bounds, _text(entry.tenant)
        fits = entry.size <= min(bounds.tenant_bytes, bounds.bytes) and now < entry.expires
        with self._writer.begin() as connection:
            gone = [*connection.scalars(_SAME, {"identity": entry.identity})]
            gone += connection.scalars(_EXPIRED, {"now": now, "most": _AT_ONCE})
            _remove(connection, gone)
            if not fits:
                return False
            number = connection.scalar(
                _INSERT,
                {
                    "tenant": tenant,
                    "identity": entry.identity,
                    "value": entry.value,
                    "size": entry.size,
                    "expires": entry.expires,
                    "marks": entry.index or None,
                },
            )
            labels = {f"m{name}" for name in names_of(entry)} | {f"t{tag}" for tag in entry.tags}
            if labels:
                connection.execute(_LABEL, [{"number": number, "label": _text(label)} for label in sorted(labels)])
            connection.execute(_ADD, {"tenant": tenant, "entries": 1, "bytes": entry.size})
            _shrink(connection, tenant, bounds.tenant_entries, bounds.tenant_bytes)
            _shrink(connection, None, bounds.entries, bounds.bytes)
            return True

    def indexed(self, after: int, most: int, *, now: float) -> Sequence[IndexedEntry]:
        """Return entries that have an index, a number over `after`, and have not expired, in the order of their numbers."""
        rows = self._read(_INDEXED, {"after": after, "most": most, "now": now})
        return [
            IndexedEntry(
                number=row["number"],
                tenant=row["tenant"],
                identity=bytes(row["identity"]),
                index=bytes(row["marks"]),
                expires=row["expires"],
            )
            for row in rows
        ]

    def purge(self, selection: Selection) -> int:
        """Remove entries, and return how many there were."""
        statement, values = _selecting(selection)
        removed = 0
        while True:
            with self._writer.begin() as connection:
                gone = [*connection.scalars(text(statement), values)]
                _remove(connection, gone)
            removed += len(gone)
            if len(gone) < _AT_ONCE:
                return removed

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return how many entries and bytes are kept, of one tenant or of all."""
        sums = self._read(_ALL, {}) if tenant is None else self._read(_SHARE, {"tenant": _text(tenant)})
        return (int(sums[0]["entries"]), int(sums[0]["bytes"])) if sums else (0, 0)

    def close(self) -> None:
        """Close the connections."""
        self._writer.dispose()
        if self._reader is not None:
            self._reader.dispose()

    def _read(self, statement: Any, values: Mapping[str, Any]) -> Sequence[RowMapping]:
        assert self._reader is not None
        with self._reader.connect() as connection:
            return connection.execute(statement, values).mappings().all()


def _make_tables(connection: Connection) -> None:
    """Make the tables; those of another form are removed before."""
    version = versions(VERSION_TABLE)
    if inspect(connection).has_table(VERSION_TABLE):
        form = connection.scalar(version.select())
        if form == FORM:
            return
        if connection.dialect.name == "sqlite":
            # A file is set aside whole, so that a newer bardo finds what it kept.
            raise sqlite3.DatabaseError(f"it is of form {form}, and this bardo writes form {FORM}")
        metadata.drop_all(connection)
        version.drop(connection)
    metadata.create_all(connection)
    version.create(connection)
    connection.execute(version.insert().values(version_num=FORM))


def _selecting(selection: Selection) -> tuple[str, dict[str, Any]]:
    """Return the statement that finds the next entries that are selected, and its values."""
    conditions, values = ["1 = 1"], dict[str, Any](most=_AT_ONCE)
    if selection.tenant is not None:
        conditions.append("tenant = :tenant")
        values["tenant"] = _text(selection.tenant)
    for name, label in (("m", selection.model), ("t", selection.tag)):
        if label is not None:
            conditions.append(f"number IN (SELECT number FROM reply_cache_labels WHERE label = :{name})")
            values[name] = _text(f"{name}{label}")
    return f"SELECT number FROM reply_cache_entries WHERE {' AND '.join(conditions)} LIMIT :most", values


def _shrink(connection: Connection, tenant: str | None, most_entries: int, most_bytes: int) -> None:
    """Remove the oldest entries, of one tenant or of all, until no more are held than allowed."""
    while True:
        share = connection.execute(_ALL if tenant is None else _SHARE, {} if tenant is None else {"tenant": tenant})
        held = share.mappings().first()
        if held is None or (held["entries"] <= most_entries and held["bytes"] <= most_bytes):
            return
        entries, size, gone = held["entries"], held["bytes"], []
        values: dict[str, Any] = {"most": _AT_ONCE}
        oldest = connection.execute(_OLDEST if tenant is None else _OLDEST_OF, values | {"tenant": tenant})
        for number, length in oldest:
            if entries <= most_entries and size <= most_bytes:
                break
            entries, size = entries - 1, size - length
            gone.append(number)
        _remove(connection, gone)


def _remove(connection: Connection, numbers: Sequence[int]) -> None:
    if not numbers:
        return
    connection.execute(_REMOVE_LABELS, {"numbers": list(numbers)})
    sums: dict[str, list[int]] = {}
    for _, tenant, size in connection.execute(_REMOVE, {"numbers": list(numbers)}):
        share = sums.setdefault(tenant, [0, 0])
        share[0] -= 1
        share[1] -= size
    changes = [{"tenant": tenant, "entries": share[0], "bytes": share[1]} for tenant, share in sorted(sums.items())]
    if changes:
        connection.execute(_ADD, changes)
        connection.execute(_EMPTY)


def _text(name: str) -> str:
    """Return a name as databases take it: PostgreSQL has no zero characters, and neither half characters."""
    return name.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
