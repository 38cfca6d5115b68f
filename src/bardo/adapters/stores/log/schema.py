"""The tables of the log for SQLAlchemy, the same for SQLite and PostgreSQL: made of the rows in `columns`.

Loads SQLAlchemy: import it where a log is read or migrated, and nowhere above.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from bardo.adapters.stores.log.columns import TABLES, Kind, LogColumn
from bardo.adapters.stores.log.stored import from_json


class ExactJson(TypeDecorator[Any]):
    """JSON that keeps what a provider sent as it was: 1e16 stays a float, keys keep their order.

    SQLite makes numbers of numeric text in a column declared JSON, so there it is declared text. PostgreSQL's JSON
    keeps the text, where JSONB would rewrite numbers. Values are written as text: `stored.to_columns` makes it.
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
