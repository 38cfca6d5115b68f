"""Keys in the state database: made, listed, changed and revoked. Only their digests are kept.

The tables of keys and leases stand here too: a change comes with a new revision of the branch `keys` in `stores/migrations`, and a test
compares the two. Loads SQLAlchemy: import it where keys are opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.config.accounts import Account, digest_of
from bardo.adapters.stores.database.engines import address_of, open_for_reading, unusable, without_transactions
from bardo.adapters.stores.database.revisions import open_current
from bardo.adapters.stores.migrations import KEYS_BRANCH
from bardo.services.accounts.access_keys import NewKey, make_key
from bardo.values.errors import InvalidRequest

metadata = MetaData()

access_keys = Table(
    "access_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    # The account without its id, as JSON: what a key says grows without a migration.
    Column("account", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

# One row: it goes up with each change of a key, so that a process sees at a glance whether it has to read them again.
access_keys_revision = Table(
    "access_keys_revision",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)

limit_workers = Table(
    "limit_workers", metadata, Column("worker", Text, primary_key=True), Column("seen_at", Double, nullable=False)
)

limit_leases = Table(
    "limit_leases",
    metadata,
    Column("account", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("period", BigInteger, primary_key=True, autoincrement=False),
    Column("worker", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Index("ix_limit_leases_worker", "worker"),
)

# What calls of unknown cost count as.
estimated_spend = Table(
    "estimated_spend",
    metadata,
    Column("account", Text, primary_key=True),
    Column("day", BigInteger, primary_key=True, autoincrement=False),
    Column("nanos", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)


class StoredKey(NamedTuple):
    """A key as it is kept."""

    digest: bytes
    account: Account


def open_keys(path: str | Path) -> Engine:
    """Open, create or migrate the tables of keys. Raises DatabaseProblem."""
    return open_current(address_of(path), KEYS_BRANCH, metadata=metadata)


def holds_keys(path: str | Path) -> bool:
    """Return whether a database that exists holds keys. Raises DatabaseProblem."""
    engine = open_for_reading(address_of(path))
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(access_keys.name):
                return False
            return connection.scalar(select(access_keys.c.id).limit(1)) is not None
    except SQLAlchemyError as error:
        raise unusable(address_of(path), error) from error
    finally:
        engine.dispose()


@contextmanager
def opened_keys(path: str | Path) -> Iterator[KeyStore]:
    """Open the keys of a state database for a change or two. Raises DatabaseProblem."""
    engine = open_keys(path)
    try:
        yield KeyStore(engine)
    finally:
        engine.dispose()


class KeyStore:
    """The keys of a state database. Its methods block, and raise DatabaseUnusable where it cannot be used."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, account: Account, *, own_name: bool = False) -> tuple[Account, NewKey]:
        """Store a new key for an account, which gets the key's id, and its tenant where it has none.

        `own_name`: no other key may have its name. Raises InvalidRequest where one has.
        """
        key = make_key()
        made = msgspec.structs.replace(account, id=key.id, tenant=account.tenant or key.id)
        with self._changing() as connection:
            if own_name:
                accounts = connection.execute(select(access_keys.c.account)).scalars()
                for other in map(_account, accounts):
                    if account.name in (other.name, other.id):
                        raise InvalidRequest(
                            f"a key is called {account.name[:80]!r} already: {other.id}",
                            hint="take another name, or delete that key: bardo keys delete " + other.id,
                        )
            connection.execute(
                insert(access_keys),
                {
                    "id": key.id,
                    "digest": digest_of(key.text).hex(),
                    "account": msgspec.json.encode(made).decode(),
                    "created_at": made.created,
                },
            )
        return made, key

    def load(self) -> tuple[int, Sequence[StoredKey]]:
        """Return all keys in the order in which they were made, and the number of their latest change."""
        with self._connected() as connection:
            revision = connection.scalar(select(access_keys_revision.c.revision)) or 0
            rows = connection.execute(select(access_keys).order_by(access_keys.c.created_at, access_keys.c.id)).all()
        return revision, [StoredKey(bytes.fromhex(row.digest), _account(row.account)) for row in rows]

    def revision(self) -> int:
        """Return the number of the latest change, 0 where there was none. Each process asks every second, so that no call waits for it."""
        try:
            with without_transactions(self._engine).connect() as connection:
                return connection.scalar(select(access_keys_revision.c.revision)) or 0
        except SQLAlchemyError as error:
            raise unusable(self._engine.url, error) from error

    def change(self, name: str, limits: Mapping[str, int | None], **fields: object) -> Account:
        """Change limits and what else one key says, which is named by its id, its name or the beginning of its id.

        Raises InvalidRequest where none, or several, are.
        """
        with self._changing() as connection:
            rows = connection.execute(select(access_keys.c.account)).all()
            before = _find([_account(row.account) for row in rows], name)
            changed = msgspec.structs.replace(before, limits=msgspec.structs.replace(before.limits, **limits), **fields)
            connection.execute(
                update(access_keys)
                .where(access_keys.c.id == before.id)
                .values(account=msgspec.json.encode(changed).decode())
            )
        return changed

    def delete(self, name: str) -> Account:
        """Delete a key, which is named as for `change`, and return what it was. Raises InvalidRequest where none, or several, are."""
        with self._changing() as connection:
            account = _find(
                [_account(text) for text in connection.execute(select(access_keys.c.account)).scalars()], name
            )
            connection.execute(delete(access_keys).where(access_keys.c.id == account.id))
        return account

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise unusable(self._engine.url, error) from error

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        with self._connected() as connection:
            yield connection
            revision = connection.scalar(select(access_keys_revision.c.revision)) or 0
            connection.execute(delete(access_keys_revision))
            connection.execute(insert(access_keys_revision), {"id": 1, "revision": revision + 1})


def _account(text: str) -> Account:
    return msgspec.json.decode(text, type=Account)


def _find(accounts: Sequence[Account], name: str) -> Account:
    exact = [account for account in accounts if account.id == name] or [key for key in accounts if key.name == name]
    matching = exact or [account for account in accounts if len(name) >= 4 and account.id.startswith(name)]
    if len(matching) != 1:
        subject = "no key is" if not matching else f"{len(matching)} keys are"
        raise InvalidRequest(f"{subject} called {name[:80]!r}", hint="name its id, as `bardo keys list` shows it")
    return matching[0]
