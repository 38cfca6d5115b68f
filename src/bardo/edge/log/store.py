"""The writing side of a log's database: whole batches in, or an exception that says whether to try again.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Insert, insert, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError

from bardo.edge.log.database import address_of, open_for_writing, reason, shown
from bardo.edge.log.problems import LogProblem, RowsRefused, StoreUnavailable
from bardo.edge.log.revisions import bring_to_current
from bardo.edge.log.row import LogGap, LogRow
from bardo.edge.log.schema import inference_log, inference_log_gaps
from bardo.edge.log.stored import to_columns

# Other errors of a driver may pass: a full or failing disk, a lock held too long, a server that went away.
_ABOUT_THE_ROWS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)

_ROWS_AT_ONCE = 24
"""SQLite takes 999 values in a statement wherever it is; a row has fewer than 41."""


class Statement:
    """An INSERT in the words of one engine.

    Values go to the driver as they are: looking at each of them again costs as much as storing it.
    """

    def __init__(self, engine: Engine, statement: Insert, columns: Sequence[str]) -> None:
        compiled = statement.compile(engine, column_keys=list(columns))
        self._text = str(compiled)
        # Drivers take values by place or by name.
        self._order = compiled.positiontup
        head, word, values = self._text.rpartition("VALUES")
        self._many = f"{head}{word}{','.join([values] * _ROWS_AT_ONCE)}"

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows in order.

        SQLite's driver gives the interpreter away for each statement, and gets it back from a busy event loop milliseconds later: many
        rows go in one.
        """
        if self._order is None:
            connection.exec_driver_sql(self._text, list(rows))
            return
        whole = len(rows) - len(rows) % _ROWS_AT_ONCE
        for begin in range(0, whole, _ROWS_AT_ONCE):
            batch = rows[begin : begin + _ROWS_AT_ONCE]
            connection.exec_driver_sql(self._many, tuple([row[name] for row in batch for name in self._order]))
        for row in rows[whole:]:
            connection.exec_driver_sql(self._text, tuple([row[name] for name in self._order]))


class DatabaseStore:
    """A log's database, open for appending. Used by one thread at a time."""

    def __init__(self, path: str | Path, *, keep_content: bool) -> None:
        """Open, create or migrate the log. Raises LogUnusable or LogNewer."""
        address = address_of(path)
        self.name = shown(address)
        self._keep_content = keep_content
        self._engine = open_for_writing(address)
        self._row_statement = Statement(self._engine, insert(inference_log), LogRow.__struct_fields__)
        self._gap_statement = Statement(self._engine, insert(inference_log_gaps), LogGap.__struct_fields__)
        try:
            bring_to_current(self._engine)
        except LogProblem:
            self._engine.dispose()
            raise

    def append(self, rows: Sequence[LogRow]) -> None:
        """Store all rows, in order, in one transaction, or none.

        Raises StoreUnavailable where it may work later, RowsRefused where it will not. After a lost connection the
        database may have stored them all the same: a row can then be there twice, which beats not at all.
        """
        try:
            columns = [to_columns(row, keep_content=self._keep_content) for row in rows]
        except (TypeError, ValueError, AttributeError) as error:
            raise RowsRefused(reason(error)) from error
        self._insert(self._row_statement, columns)

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
        self._insert(self._gap_statement, [msgspec.structs.asdict(gap)])

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def _insert(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        try:
            with self._engine.begin() as connection:
                statement.run(connection, rows)
        except _ABOUT_THE_ROWS as error:
            raise RowsRefused(reason(error)) from error
        except (DBAPIError, OSError) as error:
            raise StoreUnavailable(reason(error)) from error
        except Exception as error:
            # What a value did on its way to the driver must not end the log.
            raise RowsRefused(reason(error)) from error
