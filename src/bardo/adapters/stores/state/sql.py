"""A store of state in PostgreSQL, which several machines share: its tables and functions, and their callers.

Values expire, so that tables of another form are removed and made anew: they have no revisions. Every store has tables of its own,
whose names begin with that of the store (`{space}`); they hold what models said in plain form.

Loads SQLAlchemy: import it where a store is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.stores.database.engines import address_of, open_for_reading, without_transactions
from bardo.adapters.stores.database.problems import DatabaseProblem, DatabaseUse
from bardo.adapters.stores.database.revisions import versions
from bardo.adapters.stores.state.store import Bounds, size_of

FORM = "1"

TABLES = """
CREATE TABLE {space}_entries (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant BYTEA NOT NULL, value BYTEA NOT NULL, size BIGINT NOT NULL,
    expires DOUBLE PRECISION NOT NULL, reply BYTEA NOT NULL
);
CREATE INDEX {space}_entries_of_tenant ON {space}_entries (tenant, number);
CREATE INDEX {space}_entries_by_end ON {space}_entries (expires);
CREATE TABLE {space}_keys (
    tenant BYTEA NOT NULL, key BYTEA NOT NULL, entry BIGINT NOT NULL, ambiguous BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX {space}_keys_of_entry ON {space}_keys (entry);
-- Sums, so that looking at a bound costs nothing that grows: '*' is that of all, and a tenant has 't:' before it.
CREATE TABLE {space}_shares (tenant BYTEA PRIMARY KEY, entries BIGINT NOT NULL, bytes BIGINT NOT NULL);
"""

# Every change takes the store's lock first, so that changes come one after the other: sums are exact, and nothing waits for itself.
FUNCTIONS = """
CREATE FUNCTION {space}_drop(gone BIGINT[]) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    removed BIGINT;
BEGIN
    DELETE FROM {space}_keys WHERE entry = ANY (gone);
    WITH went AS (DELETE FROM {space}_entries WHERE number = ANY (gone) RETURNING tenant, size),
    sums AS (
        SELECT tenant, count(*) AS entries, sum(size) AS bytes FROM went GROUP BY tenant
        UNION ALL SELECT '*'::bytea, count(*), COALESCE(sum(size), 0) FROM went
    ), changed AS (
        UPDATE {space}_shares AS share SET entries = share.entries - sums.entries, bytes = share.bytes - sums.bytes
        FROM sums WHERE share.tenant = sums.tenant RETURNING 1
    )
    SELECT count(*) INTO removed FROM went;
    RETURN removed;
END $$;

CREATE FUNCTION {space}_remove(of_tenant BYTEA, of_key BYTEA) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock({lock});
    RETURN {space}_drop(ARRAY(SELECT entry FROM {space}_keys WHERE tenant = of_tenant AND key = of_key));
END $$;

CREATE FUNCTION {space}_put(
    of_tenant BYTEA, names BYTEA[], content BYTEA, counts BIGINT, now DOUBLE PRECISION, ends DOUBLE PRECISION, of_reply BYTEA,
    tenant_entries BIGINT, tenant_bytes BIGINT, all_entries BIGINT, all_bytes BIGINT
) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    added BIGINT;
    replaced BIGINT[];
    oldest BIGINT;
BEGIN
    PERFORM pg_advisory_xact_lock({lock});
    PERFORM {space}_drop(ARRAY(SELECT number FROM {space}_entries WHERE expires <= now ORDER BY expires LIMIT 100));
    INSERT INTO {space}_entries (tenant, value, size, expires, reply) VALUES (of_tenant, content, counts, ends, of_reply)
    RETURNING number INTO added;
    INSERT INTO {space}_shares VALUES (of_tenant, 1, counts), ('*', 1, counts)
    ON CONFLICT (tenant) DO UPDATE SET entries = {space}_shares.entries + 1, bytes = {space}_shares.bytes + counts;

    replaced := ARRAY(
        SELECT DISTINCT one.number FROM {space}_keys AS led JOIN {space}_entries AS one ON one.number = led.entry
        WHERE of_reply <> '' AND led.tenant = of_tenant AND led.key = ANY (names) AND one.reply = of_reply
    );
    -- A key whose latest entry is of another reply, and says something else, is ambiguous from then on.
    INSERT INTO {space}_keys AS led (tenant, key, entry) SELECT DISTINCT of_tenant, name, added FROM unnest(names) AS name
    ON CONFLICT (tenant, key) DO UPDATE SET entry = added, ambiguous = led.ambiguous OR NOT EXISTS (
        SELECT 1 FROM {space}_entries AS before WHERE before.number = led.entry
        AND (before.value = content OR (of_reply <> '' AND before.reply = of_reply))
    );
    PERFORM {space}_drop(ARRAY(
        SELECT number FROM unnest(replaced) AS number
        WHERE NOT EXISTS (SELECT 1 FROM {space}_keys AS led WHERE led.entry = number)
    ));

    WHILE EXISTS (SELECT 1 FROM {space}_shares WHERE tenant = of_tenant AND (entries > tenant_entries OR bytes > tenant_bytes)) LOOP
        SELECT min(number) INTO oldest FROM {space}_entries WHERE tenant = of_tenant;
        EXIT WHEN oldest IS NULL;
        PERFORM {space}_drop(ARRAY[oldest]);
    END LOOP;
    WHILE EXISTS (SELECT 1 FROM {space}_shares WHERE tenant = '*' AND (entries > all_entries OR bytes > all_bytes)) LOOP
        SELECT min(number) INTO oldest FROM {space}_entries;
        EXIT WHEN oldest IS NULL;
        PERFORM {space}_drop(ARRAY[oldest]);
    END LOOP;
    DELETE FROM {space}_shares WHERE tenant = of_tenant AND entries = 0;
    RETURN TRUE;
END $$;
"""

DROP = """
DROP FUNCTION IF EXISTS {space}_put(
    BYTEA, BYTEA[], BYTEA, BIGINT, DOUBLE PRECISION, DOUBLE PRECISION, BYTEA, BIGINT, BIGINT, BIGINT, BIGINT
);
DROP FUNCTION IF EXISTS {space}_remove(BYTEA, BYTEA);
DROP FUNCTION IF EXISTS {space}_drop(BIGINT[]);
DROP TABLE IF EXISTS {space}_entries, {space}_keys, {space}_shares;
"""


_ALL = b"*"
# Values here expire: a crash of the server may cost its last second, and no call waits for its disk.
_WITHOUT_DISK = "set_config('synchronous_commit', 'off', true)"


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
        self._single = without_transactions(self._engine)
        self._lock = threading.Lock()
        self._ready = False
        self._find = text(
            f"SELECT led.key, one.value FROM {self._space}_keys AS led JOIN {self._space}_entries AS one ON one.number = led.entry "
            "WHERE led.tenant = :tenant AND NOT led.ambiguous AND one.expires > :now AND led.key = ANY (:keys)"
        )
        self._put = text(
            f"SELECT {self._space}_put(:tenant, :keys, :value, :size, :now, :expires, :reply, "
            f":tenant_entries, :tenant_bytes, :entries, :bytes) FROM {_WITHOUT_DISK}"
        )
        self._remove = text(f"SELECT {self._space}_remove(:tenant, :key) FROM {_WITHOUT_DISK}")
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
            return bool(self._run(self._put, values)[0][0])
        self._prepare()
        with self._engine.begin() as connection:
            # The lock that every change takes: until the end of this one the compared rows do not change.
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({self._lock_number})")
            rows = connection.execute(self._find, {key: values[key] for key in ("tenant", "now", "keys")}).all()
            if [bytes(value) for _, value in rows] != [before]:
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
        return bool(self._run(self._remove, {"tenant": _tenant_key(tenant), "key": _bytes(key)})[0][0])

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return the number of values and their bytes."""
        sums = self._run(self._held, {"tenant": _ALL if tenant is None else _tenant_key(tenant)})
        return (int(sums[0][0]), int(sums[0][1])) if sums else (0, 0)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _run(self, statement: Any, values: dict[str, Any]) -> Sequence[Any]:
        self._prepare()
        with self._single.connect() as connection:
            return connection.execute(statement, values).all()

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
