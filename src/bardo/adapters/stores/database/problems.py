"""What can be wrong with a database, and the words in which that is said.

DatabaseProblem
├── DatabaseMissing     nothing there to read
├── DatabaseNewer       written by a newer bardo
└── DatabaseUnusable    cannot be opened, read or written: permissions, no directory, another program's file
"""

from __future__ import annotations

import msgspec

from bardo.values.errors import OperatorError


class DatabaseProblem(OperatorError):
    """Whoever runs bardo should look at the database, or at where it is."""


class DatabaseMissing(DatabaseProblem):
    """There is no database at this place."""


class DatabaseNewer(DatabaseProblem):
    """The database has a form this version of bardo does not know."""


class DatabaseUnusable(DatabaseProblem):
    """The database cannot be opened, read or written."""


class DatabaseUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a database is used for: its name in messages, the errors that are raised, and the number of its writers' lock in PostgreSQL.

    Any number does as a lock, as long as every writer of the same tables takes the same one.
    """

    name: str = "state database"
    article: str = "a"
    lock: int = int.from_bytes(b"bardo st")
    missing: type[OperatorError] = DatabaseMissing
    newer: type[OperatorError] = DatabaseNewer
    unusable: type[OperatorError] = DatabaseUnusable
    how_to_find: str = "run `bardo keys create NAME`, or name the database that your gateway uses"
    how_to_part: str = "upgrade bardo, or give this one a database of its own at another path"


STATE = DatabaseUse()
"""Keys, payments and batches."""


def in_one_line(error: BaseException) -> str:
    """Return what an error says, in one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
