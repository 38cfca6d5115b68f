"""The tables of the log for SQLAlchemy, the same for SQLite and PostgreSQL, and the database that they are in.

Loads SQLAlchemy: import it where a log is read or migrated, and nowhere above.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Double,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import TypeEngine

from bardo.adapters.stores.database import engines, revisions
from bardo.adapters.stores.database.problems import LOG, LogMissing
from bardo.adapters.stores.log.columns import TABLES, Kind, LogColumn
from bardo.adapters.stores.log.row import from_json
from bardo.adapters.stores.migrations import LOG_BRANCH, Branch
from bardo.values.errors import OperatorError


class ExactJson(TypeDecorator[Any]):
    """JSON that keeps what a provider sent as it was: 1e16 stays a float, keys keep their order.

    SQLite makes numbers of numeric text in a column declared JSON, so there it is declared text. PostgreSQL's JSON
    keeps the text, where JSONB would rewrite numbers. Values are written as text: `row.to_json` makes it.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the engine's own type."""
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else JSON(none_as_null=True))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Read JSON; PostgreSQL's type does so by itself."""
        return from_json(value) if dialect.name == "sqlite" and value is not None else value


metadata = MetaData()

_TYPES: dict[Kind, TypeEngine[Any]] = {
    # SQLite numbers rows by itself only in a column declared INTEGER.
    "row": BigInteger().with_variant(Integer, "sqlite"),
    # PostgreSQL can use its index for the beginnings of ids only in byte order.
    "id": Text().with_variant(Text(collation="C"), "postgresql"),
    "text": Text(),
    "count": BigInteger(),
    "real": Double(),
    "flag": Boolean(),
    "json": ExactJson(),
}


def _table(name: str) -> Table:
    columns = TABLES[name]
    return Table(name, metadata, *map(_column, columns), sqlite_autoincrement=columns[0].kind == "row")


def _column(column: LogColumn) -> Column[Any]:
    return Column(
        column.name,
        _TYPES[column.kind],
        primary_key=column.primary,
        autoincrement=column.kind == "row",
        nullable=column.nullable,
        index=column.indexed,
        server_default=column.default or None,
    )


inference_log = _table("inference_log")
inference_rollup = _table("inference_rollup")
inference_feedback = _table("inference_feedback")
inference_log_gaps = _table("inference_log_gaps")


def address_of(path: str | Path) -> URL:
    """Return the database address of a log: a file or an address. Raises LogUnusable where it is neither."""
    return engines.address_of(path, LOG)


def open_for_writing(address: URL) -> Engine:
    """Return an engine whose every transaction is a writer's: one at a time, in the order they end."""
    return engines.open_for_writing(address, LOG)


def unusable(address: URL, error: BaseException) -> OperatorError:
    """Return the LogUnusable to raise when a log cannot be opened or read."""
    return engines.unusable(address, error, LOG)


def open_current(address: URL, *, branch: Branch = LOG_BRANCH, may_be_away: bool = False) -> Engine:
    """Return an engine for writing to a log, which is created or migrated first. Raises LogNewer and LogUnusable.

    `may_be_away`: where its server is away, that is done once it is back.
    """
    return revisions.open_current(address, branch, metadata=metadata, use=LOG, may_be_away=may_be_away)


def open_readable(address: URL, *, branch: Branch = LOG_BRANCH) -> Engine:
    """Return an engine that reads a log and changes nothing; an older log is migrated first.

    Raises LogMissing where there is none, LogNewer, and LogUnusable.
    """
    engine = engines.open_for_reading(address, LOG)
    try:
        with engine.connect() as connection:
            stored = stored_revision(connection)
        if stored is None:
            hint = "name the log that your gateway writes, and check the path"
            raise LogMissing(f"{engines.shown(address)} holds no inference log", hint=hint)
        if stored != branch.newest:
            open_current(address, branch=branch).dispose()
    except SQLAlchemyError as error:
        engine.dispose()
        raise unusable(address, error) from error
    except BaseException:
        engine.dispose()
        raise
    return engine


def stored_revision(connection: Connection) -> str | None:
    """Return the revision a log is at, `None` where the database holds none."""
    return revisions.stored_revision(connection, LOG_BRANCH)
