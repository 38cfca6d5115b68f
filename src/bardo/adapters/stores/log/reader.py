"""Read the inference log: the last calls, one call, new calls, and the costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from bardo.adapters.stores.log.journal import journal_folder, waiting_calls
from bardo.adapters.stores.log.rollup import CostGroup, Dimension
from bardo.adapters.stores.log.row import (
    CacheTotal,
    CallFilter,
    CallOutcome,
    CallPage,
    CallTimes,
    Feedback,
    LogExtent,
    LogGap,
    LogRow,
    NewRows,
    ReplyCacheTotal,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bardo.adapters.stores.log.queries import RowPiece, RowSpan


class LogReader:
    """A log, open for reading, while others write it. All methods raise LogUnusable where it cannot be read."""

    def __init__(self, path: str | Path, *, journals: bool = False) -> None:
        """Open the log at `path` (a file, or a database address); one of an older bardo is migrated first.

        With `journals`, the calls that wait in the journals beside it count too where calls are listed, found and summed up by `costs`:
        those of a gateway that was killed, until the next one stores them. Raises LogMissing, LogNewer or LogUnusable.
        """
        from bardo.adapters.stores.log.database import address_of, open_readable

        self._address = address_of(path)
        self._engine = open_readable(self._address)
        self._journals = journal_folder(path) if journals else None

    def recent(
        self,
        limit: int,
        *,
        provider: str | None = None,
        model: str | None = None,
        since: float | None = None,
        outcome: CallOutcome | None = None,
        verdict: str | None = None,
        operation: str | None = None,
    ) -> list[LogRow]:
        """Return the last rows that match, newest first. `since` is Unix time, `verdict` the one on the call's thinking."""
        from bardo.adapters.stores.log import queries

        waiting = self._journaled()
        with self._reading() as connection:
            calls = queries.recent(
                connection,
                limit,
                provider=provider,
                model=model,
                since=since,
                outcome=outcome,
                verdict=verdict,
                operation=operation,
            )
            wanted = [
                row
                for row in _not_stored(connection, waiting)
                if provider in (None, row.provider)
                and model in (None, row.model)
                and (since is None or row.started_at >= since)
                and outcome in (None, row.outcome)
                and verdict in (None, row.reasoning_verdict)
                and operation in (None, row.operation)
            ]
        return [*reversed(wanted), *calls][:limit]

    def waiting(self) -> int:
        """Return how many calls only the journals hold."""
        waiting = self._journaled()
        with self._reading() as connection:
            return len(_not_stored(connection, waiting))

    def calls_before(self, wanted: CallFilter, before: int | None = None, *, limit: int = 50) -> CallPage:
        """Return a page of the calls that match, newest first, of those before a row; None begins with the newest."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.calls_before(connection, wanted, before, limit=limit)

    def get(self, request_id: str) -> LogRow | None:
        """Return one call, by its id or by a beginning only it has. Raises AmbiguousRequest where several do."""
        from bardo.adapters.stores.log import queries

        waiting = self._journaled()
        with self._reading() as connection:
            return queries.find(connection, request_id, _not_stored(connection, waiting))

    def get_exact(self, request_id: str) -> LogRow | None:
        """Return one call, by its whole id."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.find_exact(connection, request_id)

    def feedback(self, request_id: str) -> list[Feedback]:
        """Return what was thought of the answer to one call, by its whole id, oldest first."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.feedback_on(connection, request_id)

    def after(self, row_number: int, *, limit: int = 500) -> NewRows:
        """Return what was stored after `row_number`, oldest first, and the number to ask with next time.

        To follow a log, begin at `last_row_number()` and ask again whenever it suits.
        """
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.rows_after(connection, row_number, limit=limit)

    def last_row_number(self) -> int:
        """Return the number of the newest row, 0 where there is none."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.last_row_number(connection)

    def costs(
        self,
        by: Sequence[Dimension] = ("provider", "model"),
        *,
        since: float | None = None,
        until: float | None = None,
        key: str | None = None,
    ) -> list[CostGroup]:
        """Return calls, tokens and cost of the calls that began from `since` to before `until` (Unix time), by what they have in common.

        `key` is the id of the key whose calls alone are meant, None for those of all; so it is with the other sums.
        """
        from bardo.adapters.stores.log import costs

        waiting = self._journaled()
        with self._reading() as connection:
            further = _not_stored(connection, waiting)
            return costs.cost_groups(connection, by, since=since, until=until, of_key=key, further=further)

    def cache_totals(self, *, since: float | None = None, key: str | None = None) -> list[CacheTotal]:
        """Return what prompt caches did by provider, model and key, most input first."""
        from bardo.adapters.stores.log import costs

        with self._reading() as connection:
            return costs.cache_totals(connection, since=since, key=key)

    def reply_cache_totals(self, *, since: float | None = None, key: str | None = None) -> list[ReplyCacheTotal]:
        """Return what the cache of replies did with calls, what happened most often first."""
        from bardo.adapters.stores.log import costs

        with self._reading() as connection:
            return costs.reply_cache_totals(connection, since=since, key=key)

    def call_times(
        self, limit: int, *, since: float, until: float | None = None, key: str | None = None
    ) -> list[CallTimes]:
        """Return how long the last calls from `since` to before `until` took, newest first, and how they ended."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.call_times(connection, limit, since=since, until=until, key=key)

    def extent(self) -> LogExtent:
        """Return how many calls the log holds, how much room it takes, and the missing parts."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.extent(connection, self._address)

    def gaps(self) -> list[LogGap]:
        """Return where rows were dropped, oldest first."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.gaps(connection)

    def export_span(self, *, since: float | None = None, until: float | None = None) -> RowSpan:
        """Return the span of the rows of calls that began from `since` to before `until`, as far as they are stored now."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.span_of(connection, since=since, until=until)

    def export_pieces(self, span: RowSpan, names: Sequence[str]) -> Iterator[RowPiece]:
        """Yield the rows of a span, oldest first, as tuples of the columns `names`, a bounded number at a time."""
        from bardo.adapters.stores.log import queries

        while span.after < span.last:
            with self._reading() as connection:
                piece = queries.next_piece(connection, span, names)
            yield piece
            span = msgspec.structs.replace(span, after=piece.row_number)

    def is_another_log(self, row_number: int, request_id: str) -> bool:
        """Whether this is not the log in which row `row_number` was that of `request_id`, even where that row was removed since."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.is_another_log(connection, row_number, request_id)

    def id_of_row(self, row_number: int) -> str | None:
        """Return the request id of the last row up to a number."""
        from bardo.adapters.stores.log import queries

        with self._reading() as connection:
            return queries.id_of_row(connection, row_number)

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _journaled(self) -> list[LogRow]:
        """Return the calls in the journals, which are read before the database: rows go from them to it, so that none is missed."""
        return [] if self._journals is None else waiting_calls(self._journals)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        from sqlalchemy.exc import SQLAlchemyError

        from bardo.adapters.stores.log.database import unusable

        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise unusable(self._address, error) from error


def _not_stored(connection: Connection, waiting: Sequence[LogRow]) -> list[LogRow]:
    """Return the calls of journals that the log does not have."""
    if not waiting:
        return []
    from bardo.adapters.stores.log import queries

    stored = queries.stored(connection, [row.request_id for row in waiting])
    return [row for row in waiting if row.request_id not in stored]
