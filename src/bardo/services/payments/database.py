"""Open the ledger in the state database. Loads SQLAlchemy: import it where a ledger is opened, and nowhere above."""

from __future__ import annotations

from pathlib import Path

import msgspec
from sqlalchemy import Engine, event

from bardo.adapters.stores.database.engines import address_of, is_file, open_for_reading
from bardo.adapters.stores.database.problems import STATE
from bardo.adapters.stores.database.revisions import open_current, stored_revision
from bardo.adapters.stores.migrations import PAYMENTS_BRANCH
from bardo.services.payments.ledger import Ledger
from bardo.services.payments.schema import metadata

_USE = msgspec.structs.replace(
    STATE, lock=int.from_bytes(b"bardopay"), how_to_find="it is made with the first payment of a gateway"
)


def open_ledger(path: str | Path) -> Ledger:
    """Return the ledger in a file or at an address, made where there is none. Raises DatabaseProblem."""
    address = address_of(path, _USE)
    return Ledger(open_current(address, PAYMENTS_BRANCH, metadata=metadata, use=_USE, prepare=_sync_each_commit))


def find_ledger(path: str | Path) -> Ledger | None:
    """Return the ledger in a file or at an address; None where no payment was ever made. Creates nothing. Raises DatabaseProblem."""
    address = address_of(path, _USE)
    if is_file(address) and not Path(str(address.database)).is_file():
        return None
    engine = open_for_reading(address, _USE)
    try:
        with engine.connect() as connection:
            stored = stored_revision(connection, PAYMENTS_BRANCH)
    finally:
        engine.dispose()
    return None if stored is None else open_ledger(path)


def _sync_each_commit(engine: Engine) -> None:
    """Keep a power cut from taking back that a signature left, for a disk flush with each change. PostgreSQL does so by itself."""
    if is_file(engine.url):
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = FULL"))
