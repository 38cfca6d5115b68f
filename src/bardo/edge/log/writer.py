"""Write the inference log without holding up a call: rows queue up, and a thread of the log's own stores them.

What the log promises: a program that ends normally stores every row; one that is killed leaves them, and its open calls, in its journal,
from which the next one stores them; one whose disk fails keeps rows up to `capacity` and tries on. Rows that are dropped all the same
are counted, reported through `logging`, and noted in the log as a gap.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from bardo.edge.log.journal import CallJournal, journal_folder
from bardo.edge.log.problems import RowsRefused, StoreUnavailable
from bardo.edge.log.recovery import RecoveringStore, recover
from bardo.edge.log.row import CallBegun, LogGap, LogRow
from bardo.edge.log.waiting import WaitingRows

FIRST_REST_SECONDS = 0.5
LONGEST_REST_SECONDS = 30.0
SECONDS_BETWEEN_NOTES = 10.0
SECONDS_BETWEEN_RECOVERIES = 60.0
# How often a failing store is tried again once the program wants to end.
LAST_TRIES = 3
REFUSED = "the database refused them"
UNWRITABLE = "the database could not be written"

logger = logging.getLogger("bardo.log")


class Store(Protocol):
    """Where rows end up. The real one is `store.DatabaseStore`."""

    name: str

    def append(self, rows: Sequence[LogRow]) -> None:
        """Store all rows or none. Raises StoreUnavailable or RowsRefused."""

    def note_gap(self, gap: LogGap) -> None:
        """Store that rows are missing. Raises StoreUnavailable or RowsRefused."""

    def close(self) -> None:
        """Let go of what the store holds."""


class LogWriter:
    """The log, open for appending. Open it in the process that writes; any thread may call `write`."""

    def __init__(
        self,
        path: str | Path,
        *,
        keep_content: bool = False,
        flush_seconds: float = 0.5,
        batch: int = 500,
        capacity: int = 100_000,
        store: Store | None = None,
        journal: Path | None = None,
    ) -> None:
        """Open the log at `path` (a file, or a database address), creating or migrating it.

        Takes about a quarter of a second the first time, to load the database library. `keep_content` stores what was
        asked and answered. `store` takes the place of the database, for tests. `journal` is the folder of the call journals,
        by default beside the log. Raises LogUnusable or LogNewer.
        """
        self._store = store or _open_store(path, keep_content=keep_content)
        folder = journal or (journal_folder(path) if store is None else None)
        self._journal = CallJournal(folder) if folder is not None else None
        self._recovered_at = -math.inf
        self._recovered = threading.Event()
        self._flush_seconds = flush_seconds
        self._batch = batch
        self._waiting = WaitingRows(capacity, is_over=_program_is_over)
        self._failures = 0
        self._last_tries = LAST_TRIES
        self._noted_at = -SECONDS_BETWEEN_NOTES
        self._closed = False
        self._warned_closed = False
        self._thread = _LogThread(target=self._work, name="bardo-log", daemon=False)
        self._thread.start()
        atexit.register(self.close)
        _open_writers.add(self)

    @property
    def dropped(self) -> int:
        """How many rows were given to `write` and will never be in the log."""
        return self._waiting.dropped

    @property
    def waiting(self) -> int:
        """How many rows are not stored yet."""
        return len(self._waiting)

    def begin(self, call: CallBegun) -> None:
        """Note a call before it is sent: its row comes by `write`, or at the next start where this process is killed before."""
        if self._journal is not None:
            self._journal.begin(call)

    def write(self, row: LogRow) -> None:
        """Queue one row. Takes a few microseconds and never waits, so an event loop may call it."""
        if self._journal is not None:
            self._journal.end(row)
        if self._waiting.add(row):
            return
        self._forget([row])
        if self._closed and not self._warned_closed:
            self._warned_closed = True
            logger.warning("a row came after the inference log at %s was closed, and is dropped", self._store.name)

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until the rows written so far are stored. `False` where that took too long. Blocks."""
        return self._waiting.wait_settled(timeout_seconds)

    def wait_recovered(self, timeout_seconds: float) -> bool:
        """Wait until the calls of processes that had died before this one began are stored. `False` where that took too long. Blocks."""
        return self._recovered.wait(timeout_seconds)

    def close(self) -> None:
        """Store what waits, and close. Blocks; a failing disk is tried a few times more, then rows stay in the journal or are dropped."""
        if self._closed:
            return
        self._closed = True
        self._waiting.close()
        self._thread.join()
        # The thread may have ended before the last rows came: at exit, threads end first and exit handlers run last.
        self._work()
        if self._journal is not None:
            self._journal.close()
        self._store.close()
        atexit.unregister(self.close)
        _open_writers.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        """Store batches until the end; the loop of the log's thread."""
        self._recover()
        self._recovered.set()
        while rows := self._waiting.next_batch(self._batch, within=self._flush_seconds):
            try:
                self._store_rows(rows)
            except StoreUnavailable as problem:
                self._try_later(problem)
            else:
                self._stored()
        self._note_gaps()

    def _store_rows(self, rows: Sequence[LogRow]) -> None:
        try:
            self._store.append(rows)
        except RowsRefused:
            self._store_singly(rows)
        else:
            self._settle(rows)

    def _settle(self, rows: Sequence[LogRow], *, dropped_because: str | None = None) -> None:
        self._forget(rows)
        self._waiting.settle(len(rows), dropped_because=dropped_because)

    def _forget(self, rows: Sequence[LogRow]) -> None:
        if self._journal is not None:
            self._journal.settle([row.request_id for row in rows])

    def _recover(self) -> None:
        """Store the calls of processes that died, from time to time: another worker of this log may have been killed."""
        journal, store = self._journal, self._store
        if journal is None or not isinstance(store, RecoveringStore):
            return
        if time.monotonic() - self._recovered_at < SECONDS_BETWEEN_RECOVERIES:
            return
        self._recovered_at = time.monotonic()
        try:
            recover(journal.folder, store, own=journal.path)
        except (StoreUnavailable, OSError) as problem:
            logger.warning("the journals in %s cannot be read now, and are kept: %s", journal.folder, problem)

    def _store_singly(self, rows: Sequence[LogRow]) -> None:
        """Store what can be stored of a batch that was refused as a whole."""
        for row in rows:
            try:
                self._store.append([row])
            except RowsRefused as problem:
                logger.error("the row of request %s cannot be logged: %s", row.request_id, problem.message)
                self._settle([row], dropped_because=REFUSED)
            else:
                self._settle([row])

    def _try_later(self, problem: StoreUnavailable) -> None:
        self._failures += 1
        if self._failures == 1:
            text = "the inference log at %s cannot be written (%s): rows are kept and tried again"
            logger.error(text, self._store.name, problem.message)
        if self._waiting.ending:
            self._last_tries -= 1
        if self._last_tries < 0:
            self._give_up(problem)
        else:
            self._waiting.rest(self._rest_seconds())

    def _rest_seconds(self) -> float:
        if self._waiting.ending:
            return FIRST_REST_SECONDS
        return min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2.0 ** min(self._failures - 1, 10))

    def _give_up(self, problem: StoreUnavailable) -> None:
        if self._journal is not None and self._journal.works:
            text = "%d rows stay in the journal %s until the next start: the inference log at %s could not be written to the end (%s)"
            logger.error(text, len(self._waiting), self._journal.path, self._store.name, problem.message)
            self._waiting.settle(len(self._waiting))
            return
        text = "%d rows are lost: the inference log at %s could not be written to the end (%s)"
        logger.error(text, len(self._waiting), self._store.name, problem.message)
        self._waiting.settle(len(self._waiting), dropped_because=UNWRITABLE)

    def _stored(self) -> None:
        if self._failures:
            logger.warning("the inference log at %s is written again", self._store.name)
        self._failures = 0
        self._recover()
        if time.monotonic() - self._noted_at >= SECONDS_BETWEEN_NOTES:
            self._note_gaps()

    def _note_gaps(self) -> None:
        """Tell the operator and the log's readers about rows that were dropped."""
        for why, rows in self._waiting.unnoted().items():
            self._noted_at = time.monotonic()
            try:
                self._store.note_gap(LogGap(noticed_at=time.time(), rows=rows, why=why))
            except (StoreUnavailable, RowsRefused) as problem:
                text = "%d rows are missing in the inference log at %s (%s), and it cannot be noted there: %s"
                logger.error(text, rows, self._store.name, why, problem.message)
                return
            logger.warning("%d rows are missing in the inference log at %s: %s", rows, self._store.name, why)
            self._waiting.note(why, rows)

    def _abandon(self) -> None:
        """Stop being a log: this is the copy in a forked child, without a thread, and its rows are the parent's."""
        if self._journal is not None:
            self._journal.abandon()
        self._waiting = WaitingRows(0)
        self._waiting.close()
        self._closed = True


class _LogThread(threading.Thread):
    """A log's thread, to tell it from the program's own."""


def _program_is_over() -> bool:
    """Whether the main thread has ended and only logs are left.

    Python waits for threads that are no daemons before it runs exit handlers, so a log's thread must see the end itself.
    """
    if threading.main_thread().is_alive():
        return False
    return all(thread.daemon or isinstance(thread, _LogThread) for thread in threading.enumerate() if thread.is_alive())


def _open_store(path: str | Path, *, keep_content: bool) -> Store:
    from bardo.edge.log.store import DatabaseStore  # Loads SQLAlchemy.

    return DatabaseStore(path, keep_content=keep_content)


_open_writers: weakref.WeakSet[LogWriter] = weakref.WeakSet()


def _abandon_writers() -> None:
    for writer in list(_open_writers):
        writer._abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_writers)
