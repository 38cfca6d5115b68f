"""The problems of a database of bardo, and their messages.

DatabaseProblem
├── DatabaseMissing         nothing there to read
├── DatabaseNewer           written by a newer bardo
├── DatabaseUnusable        cannot be opened, read or written: permissions, no directory, another program's file
└── LogProblem
    ├── LogMissing          nothing there to read
    ├── LogNewer            written by a newer bardo
    ├── LogUnusable         cannot be opened, read or written: permissions, no directory, not a log
    ├── ExportFailed        rows cannot be copied to where they should go
    ├── StoreUnavailable    a write failed and may work later: a full disk, a lock, a lost connection
    └── RowsRefused         the database will never take these rows

The last two pass between a store and its writer, and never reach a caller. AmbiguousRequest, the beginning of several request ids, is the
mistake of who asked.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.values.errors import InvalidRequest, OperatorError


class DatabaseProblem(OperatorError):
    """Whoever runs bardo should look at the database, or at where it is. `away`: its server may answer again without anybody's help."""

    away = False


class DatabaseMissing(DatabaseProblem):
    """There is no database at this place."""


class DatabaseNewer(DatabaseProblem):
    """The database has a form this version of bardo does not know."""


class DatabaseUnusable(DatabaseProblem):
    """The database cannot be opened, read or written."""


class LogProblem(DatabaseProblem):
    """Whoever runs bardo should look at the log, or at where it is."""


class LogMissing(LogProblem):
    """There is no log at this place."""


class LogNewer(LogProblem):
    """The log has a form this version of bardo does not know."""


class LogUnusable(LogProblem):
    """The log cannot be opened, read or written."""


class AmbiguousRequest(InvalidRequest):
    """Several request ids begin with what was given."""


class ExportFailed(LogProblem):
    """Rows of the log cannot be copied to where they should go."""


class StoreUnavailable(LogProblem):
    """A write failed for a reason that may pass."""


class RowsRefused(LogProblem):
    """A write failed because of what the rows hold."""


class DatabaseUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of a database: its name in messages, the errors that are raised, and the number of its writers' lock in PostgreSQL.

    Any number does as a lock, as long as every writer of the same tables takes the same one.
    """

    name: str = "state database"
    article: str = "a"
    lock: int = int.from_bytes(b"bardo st")
    missing: type[DatabaseProblem] = DatabaseMissing
    newer: type[DatabaseProblem] = DatabaseNewer
    unusable: type[DatabaseProblem] = DatabaseUnusable
    how_to_find: str = "run `bardo keys create NAME`, or name the database that your gateway uses"
    how_to_part: str = "upgrade bardo, or give this one a database of its own at another path"


STATE = DatabaseUse()
"""Keys, payments and batches."""
LOG = DatabaseUse(
    name="inference log",
    article="an",
    lock=int.from_bytes(b"bardolog"),
    missing=LogMissing,
    newer=LogNewer,
    unusable=LogUnusable,
    how_to_find="start a gateway that writes one there, or name the log that yours writes",
    how_to_part="upgrade bardo, or give this one a log of its own at another path",
)
MEMORY = DatabaseUse(
    name="reasoning memory",
    lock=int.from_bytes(b"bardomem"),
    missing=LogMissing,
    newer=LogNewer,
    unusable=LogUnusable,
    how_to_find="turn it on with enabled = true under [memory] and content = true under [log]",
    how_to_part="upgrade bardo, or give this one a log of its own at another path",
)
"""The reasoning memory, which stands in the log's database."""


def in_one_line(error: BaseException) -> str:
    """Return what an error says, in one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def problem_of_driver(error: Exception, driver: Any) -> LogProblem:
    """Return what to raise for an error of a database driver (a module as PEP 249 has it), or of a value on its way there."""
    about_the_rows = (driver.DataError, driver.IntegrityError, driver.NotSupportedError, driver.ProgrammingError)
    # Other errors of a driver may pass: a full or failing disk, a lock held too long, a server that went away.
    if isinstance(error, driver.Error | OSError) and not isinstance(error, about_the_rows):
        return StoreUnavailable(in_one_line(error))
    return RowsRefused(in_one_line(error))
