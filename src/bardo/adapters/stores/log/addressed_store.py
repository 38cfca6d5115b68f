"""The writing side of a log in a database server: whole batches in, or an exception that says whether to try again.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import URL, Engine, insert, select
from sqlalchemy.exc import DBAPIError

from bardo.adapters.stores.log.database import bring_to_current, open_for_writing, reason, shown
from bardo.adapters.stores.log.insert import RollupWriter, RowInserter
from bardo.adapters.stores.log.problems import LogProblem, StoreUnavailable, problem_of_driver
from bardo.adapters.stores.log.row import LogGap, LogRow
from bardo.adapters.stores.log.schema import inference_log, inference_log_gaps


class AddressedStore:
    """A log in a database server, open for appending. Used by one thread at a time."""

    def __init__(self, address: URL, *, keep_content: bool) -> None:
        """Open, create or migrate the log. Raises LogUnusable or LogNewer."""
        self.name = shown(address)
        self._engine = open_for_writing(address)
        self._inserter = RowInserter(self._engine.dialect, keep_content=keep_content)
        self._rollups = RollupWriter(self._engine.dialect)
        try:
            bring_to_current(self._engine)
        except BaseException:
            self._engine.dispose()
            raise

    def append(self, rows: Sequence[LogRow]) -> None:
        """Store all rows, in order, and add them to the sums beside them, in one transaction, or none.

        Raises StoreUnavailable where it may work later, RowsRefused where it will not. After a lost connection the
        database may have stored them all the same: a row can then be there twice, which beats not at all.
        """
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
    if isinstance(cause, DBAPIError):
        return StoreUnavailable(reason(error))
    return problem_of_driver(cause, engine.dialect.loaded_dbapi)
