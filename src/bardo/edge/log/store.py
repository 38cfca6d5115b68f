"""The writing side of a log's database: whole batches in, or an exception that says whether to try again.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Insert, insert
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError

from bardo.edge.log.database import address_of, open_for_writing, reason, shown
from bardo.edge.log.problems import LogProblem, RowsRefused, StoreUnavailable
from bardo.edge.log.revisions import bring_to_current
from bardo.edge.log.row import LogGap, LogRow
from bardo.edge.log.schema import inference_log, inference_log_gaps
from bardo.edge.log.stored import to_columns

_INSERT_ROW = insert(inference_log)
_INSERT_GAP = insert(inference_log_gaps)

# Other errors of a driver may pass: a full or failing disk, a lock held too long, a server that went away.
_ABOUT_THE_ROWS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


class DatabaseStore:
    """A log's database, open for appending. Used by one thread at a time."""

    def __init__(self, path: str | Path, *, keep_content: bool) -> None:
        """Open, create or migrate the log. Raises LogUnusable or LogNewer."""
        address = address_of(path)
        self.name = shown(address)
        self._keep_content = keep_content
        self._engine = open_for_writing(address)
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
        self._insert(_INSERT_ROW, columns)

    def note_gap(self, gap: LogGap) -> None:
        """Store that rows are missing. Raises as `append` does."""
        self._insert(_INSERT_GAP, [msgspec.structs.asdict(gap)])

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def _insert(self, statement: Insert, columns: Sequence[Mapping[str, Any]]) -> None:
        try:
            with self._engine.begin() as connection:
                connection.execute(statement, columns)
        except _ABOUT_THE_ROWS as error:
            raise RowsRefused(reason(error)) from error
        except (DBAPIError, OSError) as error:
            raise StoreUnavailable(reason(error)) from error
        except Exception as error:
            # What a value did on its way to the driver must not end the log.
            raise RowsRefused(reason(error)) from error
