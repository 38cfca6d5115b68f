"""Set aside files of what can be made anew, such as caches and earlier reasoning, where they are damaged: the program goes on without them.

A ledger, which cannot be made anew, is never set aside.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from bardo.adapters.config.paths import what_is_no_file
from bardo.adapters.stores.migrations import LEDGER_TABLES

T = TypeVar("T")
Identity = tuple[int, int]

SUFFIX = ".corrupt"
_COMPANIONS = ("", "-wal", "-shm", "-journal")
_DAMAGES = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_MISMATCH,
)
_OF_ANOTHER_FORM = (
    "no such table",
    "no such column",
    "has no column",
    "already a",
    "values were supplied",
    "does not match any",
)


def is_damaged(problem: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, says that a file is no database of ours, or cannot be read or written as one."""
    while problem is not None:
        error = getattr(problem, "orig", None) or problem
        if isinstance(error, sqlite3.DatabaseError):
            code = getattr(error, "sqlite_errorcode", None)
            text = str(error)
            return code is None or code & 0xFF in _DAMAGES or any(words in text for words in _OF_ANOTHER_FORM)
        problem = problem.__cause__
    return False


class RenewableFile:
    """The file of one store that can be made anew. `name` is what it keeps, in the log `area`.

    Several processes may use it: one sets it aside, and the others go on with the new one.
    """

    def __init__(self, path: Path, *, name: str, area: str) -> None:
        self._path = path
        self._name = name
        self._log = logging.getLogger(f"bardo.{area}")
        self._opened: Identity | None = None
        self._last_error = ""

    def open(self, opening: Callable[[], T]) -> T:
        """Return what `opening` does; a file that it cannot use is set aside, and opened once more. Raises what `opening` raises."""
        before = _identity(self._path)
        try:
            opened = opening()
        except Exception as problem:
            if not self.set_aside(problem, before):
                raise
            opened = opening()
        self._opened = _identity(self._path)
        return opened

    @property
    def was_replaced(self) -> bool:
        """Whether another file stands in the place of the one that was opened, or none."""
        return self._opened is not None and _identity(self._path) != self._opened

    def renews(self, problem: Exception) -> bool:
        """Set the file that was opened aside where an error says that it is damaged, and return whether it is to be opened anew."""
        return self.set_aside(problem, self._opened)

    def set_aside(self, problem: Exception, was: Identity | None) -> bool:
        """Set the file aside where an error says that it is damaged, and return whether it can be made anew.

        `was` is the file that the error is about: another one in its place is left alone.
        """
        if was is None or not is_damaged(problem):
            return False
        why = reason(problem)
        try:
            with _alone(self._path.parent):
                if _identity(self._path) != was:
                    return True
                foreign = _what_it_is(self._path)
                if foreign:
                    self._tell(f"{self._path}, for {self._name}, is {foreign}, and is left alone: {why}")
                    return False
                aside = _move(self._path)
        except OSError as failure:
            reason_not = failure.strerror or failure
            self._tell(
                f"{self._path}, which keeps {self._name}, is damaged ({why}), and cannot be set aside: {reason_not}"
            )
            return False
        text = "%s, which keeps %s, is damaged (%s): it is set aside as %s, and made anew"
        self._log.warning(text, self._path, self._name, why, aside)
        return True

    def _tell(self, text: str) -> None:
        """Write a line that is true until somebody acts, once: the file is opened again and again."""
        if text != self._last_error:
            self._last_error = text
            self._log.error("%s", text)


def reason(problem: BaseException) -> str:
    """Return what the driver of SQLite said; of another error, which may tell more than a log should, its kind."""
    error: BaseException | None = problem
    while error is not None:
        driver = getattr(error, "orig", None) or error
        if isinstance(driver, sqlite3.Error):
            return str(driver)
        error = error.__cause__
    return type(problem).__name__


def _move(path: Path) -> Path:
    """Rename a file, with what SQLite keeps beside it, to a name that nothing has, and return that."""
    for number in count(1):
        aside = path.with_name(f"{path.name}{SUFFIX}" if number == 1 else f"{path.name}{SUFFIX}-{number}")
        if not any(os.path.lexists(f"{aside}{companion}") for companion in _COMPANIONS):
            break
    for companion in _COMPANIONS:
        if os.path.lexists(f"{path}{companion}"):
            Path(f"{path}{companion}").rename(f"{aside}{companion}")
    return aside


def set_file_aside(path: Path) -> Path:
    """Rename a damaged file of another kind than a database, and return its new name. Raises OSError."""
    with _alone(path.parent):
        if foreign := _what_it_is(path):
            raise OSError(f"it is {foreign}")
        return _move(path)


def _what_it_is(path: Path) -> str:
    """Return what stands where a configuration names the wrong place, a ledger or somebody's folder; nothing for what may be renamed."""
    if (what := what_is_no_file(path)) and what != "a folder":
        return what
    if not path.is_file():
        return "a folder with something in it" if path.is_dir() and any(path.iterdir()) else ""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=1.0)) as rows:
            names = {name for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return ""
    return "" if names.isdisjoint(LEDGER_TABLES) else "a ledger of bardo"


def _identity(path: Path) -> Identity | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold other processes that set a file of this folder aside back."""
    try:
        import fcntl
    except ImportError:  # Windows, where a file that another process has open cannot be renamed.
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
