"""An SQLite file that only its owner may read, opened through the driver, and the errors if it cannot be opened."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from bardo.adapters.config.paths import what_is_no_file
from bardo.adapters.stores.database.problems import DatabaseProblem, DatabaseUse, in_one_line
from bardo.adapters.stores.migrations import LEDGER_TABLES
from bardo.values.errors import ConfigError

BUSY_SECONDS = 5.0
"""How long a statement waits for other processes."""
NUMBER_OF_STATE = 2
"""The number by which a file of the store of state tells its form; a file of any other store has 0."""
_LOOK_SECONDS = 2.0
_STEPS_BETWEEN_LOOKS = 10_000
_PASSING = (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = ("malformed", "not a database", "it is damaged")


class Executes(Protocol):
    """A connection, or a cursor of one."""

    def execute(self, statement: str, /) -> object: ...


def open_file(
    path: Path, *, timeout: float, hint: str, prepare: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    """Open or create a store of which `prepare` makes the tables, for use in any thread; readers and one writer go on side by side.

    `timeout` is how many seconds a statement waits for other processes. Raises ConfigError, with `hint`, where the file
    cannot be opened or used.
    """
    if (what := what_is_no_file(path)) and what != "a folder":
        raise ConfigError(f"the store {path} cannot be opened: it is {what}", hint=hint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as problem:
        raise ConfigError(f"the store {path} cannot be opened: {problem}", hint=hint) from problem
    try:
        use_journal(connection, timeout)
        prepare(connection)
    except sqlite3.Error as problem:
        connection.close()
        raise ConfigError(f"the store {path} cannot be used: {problem}", hint=hint) from problem
    return connection


def make_file(file: Path, use: DatabaseUse) -> None:
    """Create an absent database readable by its owner alone: it tells who asked what, and may hold content."""
    if (what := what_is_no_file(file)) and what != "a folder":
        raise unusable_file(file, f"it is {what}", use)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.touch(mode=0o600)
    except OSError as error:
        raise use.unusable(
            f"the {use.name} {file} cannot be created: {error.strerror}",
            hint="choose a path in a directory that exists or can be created, and that this user may write to",
        ) from error


def check_number(executes: sqlite3.Connection, known: int) -> None:
    """Raise sqlite3.DatabaseError for a file whose number is another than 0 and `known`: a newer bardo wrote it."""
    written = executes.execute("PRAGMA user_version").fetchone()[0]
    if written not in (0, known):
        raise sqlite3.DatabaseError(f"it is of version {written}, and this bardo writes version {known}")


def use_journal(executes: Executes, busy_seconds: float) -> None:
    """Let readers and one writer at a time go on side by side, in any number of processes."""
    give_up = time.monotonic() + busy_seconds
    while True:
        try:
            executes.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # Of several that switch a new database at once all but one fail at once: SQLite does not wait here.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def check_ledger(file: Path, use: DatabaseUse) -> None:
    """Look through a database that cannot be made anew, for as long as a start may take. Raises what `use` raises for one that is damaged.

    A file that is absent or empty is made at its first use. A link that leads nowhere is a disk that is not there: without what it holds, a
    gateway would require no keys. A file that is larger than can be looked through is taken for sound.
    """
    if file.is_symlink() and not file.exists():
        raise unusable_file(file, f"it is a link to {file.readlink()}, where nothing is", use)
    if what := what_is_no_file(file):
        raise unusable_file(file, f"it is {what}", use)
    if not file.exists() or (file.is_file() and file.stat().st_size == 0):
        return
    give_up = time.monotonic() + _LOOK_SECONDS
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=rw", uri=True)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > give_up, _STEPS_BETWEEN_LOOKS)
            problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
            number = int(connection.execute("PRAGMA user_version").fetchone()[0])
            names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as problem:
        if isinstance(problem, sqlite3.OperationalError) and problem.sqlite_errorcode & 0xFF in _PASSING:
            return
        raise unusable_file(file, in_one_line(problem), use) from problem
    if problems != ["ok"]:
        raise unusable_file(file, f"it is damaged: {' '.join(' '.join(problems).split())}", use)
    if number > NUMBER_OF_STATE:
        why = f"the {use.name} at {file} was written by a newer bardo (its number is {number})"
        raise use.newer(why, hint=use.how_to_part)
    # The store of responses, which is a ledger too, has a number instead.
    if names and names.isdisjoint(LEDGER_TABLES) and not ("entries" in names and number):
        hint = f"name another file, or move this one away: bardo makes {use.article} {use.name} of its own"
        raise use.unusable(f"the {use.name} at {file} cannot be used: it holds tables of another program", hint=hint)


def unusable_file(file: str | Path, why: str, use: DatabaseUse) -> DatabaseProblem:
    """Return the problem to raise when a file cannot be opened or read as a database."""
    hint = f"check that it is {use.article} {use.name} of bardo, that its directory can be written to, and that the disk has room"
    if any(words in why for words in _DAMAGED):
        hint = (
            f"put a copy in its place, or save what can be read with `sqlite3 {file} .recover | sqlite3 NEW`; "
            f"to begin without what it holds, move it away, with {Path(file).name}-wal and {Path(file).name}-shm where they are"
        )
    return use.unusable(f"the {use.name} at {file} cannot be used: {why}", hint=hint)
