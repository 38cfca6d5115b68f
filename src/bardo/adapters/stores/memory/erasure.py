"""Remove episodes so that nothing of them is left: rows, words, vectors, and the content of their calls in the log.

SQLite overwrites deleted data with zeros (`secure_delete`). Copies that it made while it moved rows are gone once the file is written
anew, and the log of writes is emptied. PostgreSQL frees the room of deleted rows, and overwrites it when it needs it.

Loads SQLAlchemy: import it where a memory is opened, and nowhere above.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, select, update
from sqlalchemy.exc import DBAPIError

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.database import engines
from bardo.adapters.stores.log.database import inference_log
from bardo.adapters.stores.memory.schema import episodes, texts

DAY = 86_400.0
AT_ONCE = 500
"""Episodes that one transaction removes: the log's writer waits for it."""
SECONDS_BETWEEN_CLEANINGS = 3_600.0
_OWN_ERASURE = (3, 44)
"""The version of SQLite from which its index of words overwrites deleted data. Older ones leave it until the index is written anew."""

_log = logging.getLogger("bardo.memory")
_column = episodes.c


def erase(engine: Engine, wanted: Sequence[ColumnElement[bool]]) -> tuple[int, int]:
    """Remove the episodes that fit, and the content of their calls. Returns how many episodes, and how many calls lost content."""
    overwrite_words(engine)
    removed = calls = 0
    while True:
        with engine.begin() as connection:
            rows = connection.execute(
                select(_column.row_number, _column.request_id).where(*wanted).limit(AT_ONCE)
            ).all()
            _remove(connection, [row.row_number for row in rows])
            calls += _without_content(connection, [row.request_id for row in rows])
        removed += len(rows)
        if len(rows) < AT_ONCE:
            return removed, calls


def remove_surplus(engine: Engine, settings: MemorySettings, now: float) -> int:
    """Remove episodes that are older than they may become, then the oldest of the tenant with the most while there are too many."""
    overwrite_words(engine)
    removed = 0
    for wanted in expired(settings, now):
        while True:
            with engine.begin() as connection:
                old = list(connection.scalars(select(_column.row_number).where(*wanted).limit(AT_ONCE)))
                _remove(connection, old)
            removed += len(old)
            if len(old) < AT_ONCE:
                break
    while True:
        with engine.begin() as connection:
            surplus = _surplus(connection, settings.max_episodes)
            _remove(connection, surplus)
        removed += len(surplus)
        if not surplus:
            return removed


def expired(settings: MemorySettings, now: float) -> list[tuple[ColumnElement[bool], ...]]:
    """Return the conditions under which an episode is too old: one for each tenant with a time of its own, and one for all others."""
    own = settings.retention_days_of
    limits: list[tuple[ColumnElement[bool], ...]] = [
        (_column.tenant == tenant, _column.started_at < now - days * DAY) for tenant, days in own.items() if days
    ]
    if settings.retention_days:
        limits.append((_column.tenant.not_in(list(own)), _column.started_at < now - settings.retention_days * DAY))
    return limits


def _surplus(connection: Connection, most: int) -> list[int]:
    """Return the next episodes to remove: the oldest of tenants that have more than their share. None if there are not too many."""
    number = func.count().label("number")
    tenants = connection.execute(select(_column.tenant, number).group_by(_column.tenant).order_by(number.desc())).all()
    counts = [row.number for row in tenants]
    over = min(sum(counts) - most, AT_ONCE)
    share = _share(counts, most)
    surplus: list[int] = []
    for row in tenants:
        few = min(over - len(surplus), row.number - share)
        if few <= 0:
            break
        oldest = select(_column.row_number).where(_column.tenant == row.tenant)
        surplus += connection.scalars(oldest.order_by(_column.started_at, _column.row_number).limit(few))
    return surplus


def _share(counts: Sequence[int], most: int) -> int:
    """Return how many episodes each tenant may keep, where all together may have `most`. `counts` begin with the largest."""
    rest = most
    for place, number in enumerate(reversed(counts)):
        share = rest // (len(counts) - place)
        if number > share:
            return share
        rest -= number
    return max(counts, default=0)


def _remove(connection: Connection, numbers: Sequence[int]) -> None:
    """Remove episodes; the tables of texts and words follow by themselves."""
    if numbers:
        connection.execute(delete(episodes).where(_column.row_number.in_(numbers)))


def _without_content(connection: Connection, request_ids: Sequence[str]) -> int:
    if not request_ids:
        return 0
    call = inference_log.c
    has_content = call.request_content.is_not(None) | call.reply_content.is_not(None)
    cleared = update(inference_log).where(call.request_id.in_(request_ids), has_content)
    return connection.execute(cleared.values(request_content=None, reply_content=None, sent_content=None)).rowcount


def overwrite_words(engine: Engine) -> None:
    """Have the index of words overwrite deleted data from now on, if this SQLite can."""
    if engine.dialect.name == "sqlite" and sqlite3.sqlite_version_info >= _OWN_ERASURE:
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1)")


class IndexCleaning:
    """Writes the index of words anew, without what was deleted from it: not more often than each hour, for it takes seconds."""

    def __init__(self, engine: Engine, *, watch: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._watch = watch
        self._at = -math.inf
        self.due = False
        """Whether something was deleted since it was written. Any thread may set it."""

    def run(self, *, at_once: bool = False) -> None:
        """Do it where it is due. Raises SQLAlchemyError."""
        if self.due and (at_once or self._watch() - self._at >= SECONDS_BETWEEN_CLEANINGS):
            self._at, self.due = self._watch(), False
            clean_index(self._engine)
            empty_journal(self._engine)


def clean_index(engine: Engine) -> None:
    """Let nothing of removed episodes stand in the index of words."""
    if engine.dialect.name != "sqlite":
        _run_alone(engine, f"VACUUM {episodes.name}, {texts.name}")
    elif sqlite3.sqlite_version_info < _OWN_ERASURE:
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO memory_words (memory_words) VALUES ('optimize')")


def rewrite(engine: Engine) -> bool:
    """Write index and file anew, without any trace of what was removed. False where the file is in use, and for PostgreSQL."""
    clean_index(engine)
    return write_anew(engine)


def write_anew(engine: Engine) -> bool:
    """Write SQLite's file anew, without the room of what was removed. False where the file is in use, and for PostgreSQL."""
    return engine.dialect.name == "sqlite" and _run_alone(engine, "VACUUM") and empty_journal(engine)


def empty_journal(engine: Engine) -> bool:
    """Move what SQLite's log of writes holds into the database, and empty it. False where a reader or a writer is in the way."""
    if engine.dialect.name != "sqlite":
        return False
    with closing(engine.raw_connection()) as raw:
        (blocked, *_) = raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not blocked


def _run_alone(engine: Engine, statement: str) -> bool:
    """Run a statement that cannot stand in a transaction."""
    try:
        if engine.dialect.name == "sqlite":
            with closing(engine.raw_connection()) as raw:
                raw.cursor().execute(statement)
        else:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql(statement)
    except (DBAPIError, sqlite3.Error) as error:
        _log.warning("the database could not be cleaned up now: %s", engines.reason(error))
        return False
    return True
