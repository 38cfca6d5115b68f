"""`[state]`: the database that holds keys, payments and batches."""

from __future__ import annotations

import msgspec


class StateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The database of keys, payments and batches: a file, or an address like postgresql://user@host/database.

    Empty is where the log is: the file `state.db` beside it, or the same PostgreSQL database. `url_env` names the variable that holds an
    address with a password.
    """

    url: str = ""
    url_env: str = ""
