"""A store of state in PostgreSQL, which several machines share.

Its tables hold what models said in plain form. Loads SQLAlchemy: import it where a store is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, bindparam, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.stores.database.engines import address_of, open_for_reading
from bardo.adapters.stores.database.problems import DatabaseProblem, DatabaseUse
from bardo.adapters.stores.database.revisions import versions
from bardo.adapters.stores.state.sql_schema import DROP, FORM, FUNCTIONS, TABLES
from bardo.adapters.stores.state.store import Bounds, size_of

_ALL = b"*"


class PostgresStore:
    """Values in the database at `address`. `space` begins the names of its tables, so that several stores share one database."""

    waits = True
    problems: tuple[type[Exception], ...] = (SQLAlchemyError, DatabaseProblem, OSError)

    def __init__(self, address: str, bounds: Bounds | None = None, *, space: str = "replay") -> None:
        """Prepare connections; none is opened yet. Raises DatabaseUnusable for a wrong address, or without a driver."""
        self._bounds = bounds or Bounds()
        self._space = f"bardo_{space}"
        self._lock_number = int.from_bytes(f"bardo {space:<2.2}".encode())
        use = DatabaseUse(name=f"store of {space}", lock=self._lock_number)
        self._engine = open_for_reading(address_of(address, use), use)
        self._lock = threading.Lock()
        self._ready = False
        self._find = text(
            f"SELECT led.key, one.value FROM {self._space}_keys AS led JOIN {self._space}_entries AS one ON one.number = led.entry "
            "WHERE led.tenant = :tenant AND NOT led.ambiguous AND one.expires > :now AND led.key = ANY (:keys)"
        )
        self._put = text(
            f"SELECT {self._space}_put(:tenant, :keys, :value, :size, :now, :expires, :reply, "
            ":tenant_entries, :tenant_bytes, :entries, :bytes)"
        )
        self._remove = text(f"SELECT {self._space}_remove(:tenant, :key)")
        self._held = text(f"SELECT entries, bytes FROM {self._space}_shares WHERE tenant = :tenant")

    def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> bool:
        """Keep a value under its keys."""
        size, bounds = size_of(keys, value), self._bounds
        if not keys or size > min(bounds.tenant_bytes, bounds.bytes):
            return False
        values = {
            "tenant": _tenant_key(tenant),
            "keys": [_bytes(key) for key in keys],
            "value": value,
            "size": size,
            "now": now,
            "expires": now + bounds.seconds,
            "reply": _bytes(reply),
            "tenant_entries": bounds.tenant_entries,
            "tenant_bytes": bounds.tenant_bytes,
            "entries": bounds.entries,
            "bytes": bounds.bytes,
        }
        if before is None:
            return bool(self._run(self._put, values, writes=True)[0][0])
        self._prepare()
        with self._transaction() as connection:
            # The lock that every change takes: until the end of this one nobody changes what is compared.
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({self._lock_number})")
            found = connection.execute(self._find, {key: values[key] for key in ("tenant", "now", "keys")}).all()
            if [bytes(one) for _, one in found] != [before]:
                return False
            return bool(connection.execute(self._put, values).scalar())

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        """Return what these keys lead to."""
        names = {_bytes(key): key for key in keys}
        if not names:
            return {}
        rows = self._run(self._find, {"tenant": _tenant_key(tenant), "now": now, "keys": list(names)})
        return {names[bytes(key)]: bytes(value) for key, value in rows}

    def remove(self, tenant: str, key: str) -> bool:
        """Forget the value that a key leads to."""
        return bool(self._run(self._remove, {"tenant": _tenant_key(tenant), "key": _bytes(key)}, writes=True)[0][0])

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return the number of values and their bytes."""
        found = self._run(self._held, {"tenant": _ALL if tenant is None else _tenant_key(tenant)})
        return (int(found[0][0]), int(found[0][1])) if found else (0, 0)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _run(self, statement: Any, values: dict[str, Any], *, writes: bool = False) -> Sequence[Any]:
        self._prepare()
        with self._transaction() if writes else self._engine.begin() as connection:
            return connection.execute(statement, values).all()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            # What is kept here expires: a crash of the server may cost its last second, and no call waits for its disk.
            connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            yield connection

    def _prepare(self) -> None:
        """Make the tables where there are none, once."""
        with self._lock:
            if self._ready:
                return
            with self._engine.begin() as connection:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({self._lock_number})")
                _make_tables(connection, self._space, self._lock_number)
            self._ready = True


def _make_tables(connection: Connection, space: str, lock: int) -> None:
    """Make tables and functions; those of another form are removed before."""
    version = versions(f"{space}_version")
    if inspect(connection).has_table(version.name):
        if connection.scalar(version.select()) == FORM:
            return
        version.drop(connection)
    for script in (DROP, TABLES, FUNCTIONS):
        connection.exec_driver_sql(script.format(space=space, lock=lock))
    version.create(connection)
    connection.execute(version.insert().values(version_num=bindparam("form")), {"form": FORM})


def _tenant_key(tenant: str) -> bytes:
    # The row with all sums must not be a tenant's.
    return b"t:" + _bytes(tenant)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
