"""The writing side of a log in a database server: whole batches in, or an exception that says whether to try again.

Rows go through the driver itself: by PostgreSQL's COPY where it can, else with statements that are compiled once from the tables. Loads
SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import URL, ColumnElement, Connection, Dialect, Engine, func, insert, literal_column, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.exc import DBAPIError

from bardo.adapters.stores.database.engines import reason, shown
from bardo.adapters.stores.database.problems import DatabaseProblem, LogProblem, StoreUnavailable, problem_of_driver
from bardo.adapters.stores.log.columns import RowEncoder
from bardo.adapters.stores.log.database import inference_log, inference_log_gaps, inference_rollup, open_current
from bardo.adapters.stores.log.rollup import RollupKey, column_values, roll_up
from bardo.adapters.stores.log.row import LARGEST_COUNT, LogGap, LogRow

_ROWS_AT_ONCE = 64


class RollupWriter:
    """Adds rows to the sums that are kept beside them, within the transaction that stores the rows."""

    def __init__(self, dialect: Dialect) -> None:
        names = inference_rollup.columns.keys()
        statement = postgresql_insert(inference_rollup)
        added = {name: _added(name, statement.excluded[name]) for name in names[len(RollupKey._fields) + 1 :]}
        upsert = statement.on_conflict_do_update(index_elements=["group_id"], set_=added)
        compiled = upsert.compile(dialect=dialect, column_keys=list(names))
        self._text, self._order = str(compiled), compiled.positiontup

    def add(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        """Add rows to the sums of their days."""
        values = [column_values(key, sums) for key, sums in roll_up(rows).items()]
        # Writers that share a PostgreSQL take turns already; a fixed order keeps that true of drivers that do not.
        values.sort(key=lambda row: row["group_id"])
        if self._order is None:
            connection.exec_driver_sql(self._text, values)
        else:
            connection.exec_driver_sql(self._text, [tuple([row[name] for name in self._order]) for row in values])


def _added(name: str, further: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a stored sum and a further one together, as far as all readers hold it exactly: a provider can report any number."""
    stored: ColumnElement[Any] = inference_rollup.columns[name]
    if name == "seconds":
        return stored + further
    most: ColumnElement[int] = literal_column(str(LARGEST_COUNT))
    return func.least(func.greatest(stored + further, -most), most)


class RowInserter:
    """Stores rows within a transaction, through the driver itself."""

    def __init__(self, dialect: Dialect, *, keep_content: bool) -> None:
        self._encoder = RowEncoder(keep_content=keep_content)
        compiled = insert(inference_log).compile(dialect=dialect, column_keys=list(self._encoder.names))
        self._text = str(compiled)
        self._by_place = compiled.positiontup is not None
        self.insert = self._insert
        if dialect.driver == "psycopg":
            quote = dialect.identifier_preparer.quote
            names = ", ".join(map(quote, self._encoder.names))
            self._copy = f"COPY {quote(inference_log.name)} ({names}) FROM STDIN"
            self.insert = self._copy_in

    def _copy_in(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(self._copy) as copy:
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                for values in self._encoder.encode(rows[begin : begin + _ROWS_AT_ONCE]):
                    copy.write_row(values)

    def _insert(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        """Insert through a driver of PostgreSQL other than psycopg 3."""
        encoded = list(self._encoder.encode(rows))
        if self._by_place:
            connection.exec_driver_sql(self._text, encoded)
        else:
            connection.exec_driver_sql(
                self._text, [dict(zip(self._encoder.names, values, strict=True)) for values in encoded]
            )


class AddressedStore:
    """A log in a database server, open for appending. Used by one thread at a time."""

    def __init__(self, address: URL, *, keep_content: bool) -> None:
        """Open, create or migrate the log, with the first rows where its server is away. Raises LogUnusable or LogNewer."""
        self.name = shown(address)
        self._engine = open_current(address, may_be_away=True)
        self._inserter = RowInserter(self._engine.dialect, keep_content=keep_content)
        self._rollups = RollupWriter(self._engine.dialect)

    def append(self, rows: Sequence[LogRow]) -> None:
        """Store all rows, in order, and add them to the sums beside them, in one transaction, or none.

        Raises StoreUnavailable where it may work later, RowsRefused where it will not. After a lost connection the
        database may have stored them all the same: a row can then be there twice, which beats not at all.
        """
        if not rows:
            return
        try:
            with self._engine.begin() as connection:
                self._inserter.insert(connection, rows)
                self._rollups.add(connection, rows)
        except Exception as error:
            raise write_problem(self._engine, error) from error

    def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these calls have a row. Raises StoreUnavailable."""
        column = inference_log.c.request_id
        try:
            with self._engine.begin() as connection:
                return frozenset(connection.scalars(select(column).where(column.in_(request_ids))))
        except (DBAPIError, OSError) as error:
            raise StoreUnavailable(reason(error)) from error

    def note_gap(self, gap: LogGap) -> None:
        """Store that rows are missing. Raises as `append` does."""
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(inference_log_gaps), msgspec.structs.asdict(gap))
        except Exception as error:
            raise write_problem(self._engine, error) from error

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()


def write_problem(engine: Engine, error: Exception) -> LogProblem:
    """Return what to raise for an error of SQLAlchemy, of the driver, or of a value on its way there."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, DBAPIError | DatabaseProblem):
        return StoreUnavailable(reason(error))
    return problem_of_driver(cause, engine.dialect.loaded_dbapi)
