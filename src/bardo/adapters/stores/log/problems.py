"""What can be wrong with a log.

LogProblem
├── LogMissing          nothing there to read
├── LogNewer            written by a newer bardo
├── LogUnusable         cannot be opened, read or written: permissions, no directory, not a log
├── AmbiguousRequest    the beginning of several request ids
├── ExportFailed        rows cannot be copied to where they should go
├── StoreUnavailable    a write failed and may work later: a full disk, a lock, a lost connection
└── RowsRefused         the database will never take these rows

The last two pass between the store and the writer, and never reach a caller.
"""

from typing import Any

from bardo.adapters.stores.database.problems import DatabaseUse, in_one_line
from bardo.values.errors import OperatorError


class LogProblem(OperatorError):
    """Whoever runs bardo should look at the log, or at where it is."""


class LogMissing(LogProblem):
    """There is no log at this place."""


class LogNewer(LogProblem):
    """The log has a form this version of bardo does not know."""


class LogUnusable(LogProblem):
    """The log cannot be opened, read or written."""


class AmbiguousRequest(LogProblem):
    """Several request ids begin with what was given."""


class ExportFailed(LogProblem):
    """Rows of the log cannot be copied to where they should go."""


class StoreUnavailable(LogProblem):
    """A write failed for a reason that may pass."""


class RowsRefused(LogProblem):
    """A write failed because of what the rows hold."""


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
"""The log as a use of a database."""


def problem_of_driver(error: Exception, driver: Any) -> LogProblem:
    """Return what to raise for an error of a database driver (a module as PEP 249 has it), or of a value on its way there."""
    about_the_rows = (driver.DataError, driver.IntegrityError, driver.NotSupportedError, driver.ProgrammingError)
    # Other errors of a driver may pass: a full or failing disk, a lock held too long, a server that went away.
    if isinstance(error, driver.Error | OSError) and not isinstance(error, about_the_rows):
        return StoreUnavailable(in_one_line(error))
    return RowsRefused(in_one_line(error))
