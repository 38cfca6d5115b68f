"""Store rows in the words of one driver: tuples in, encoded a column at a time, by statements compiled once from the schema.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, cast

from msgspec.structs import astuple
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Table,
    Text,
    func,
    insert,
    literal_column,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from bardo.edge.log.rollup import RollupKey, column_values, roll_up
from bardo.edge.log.row import LogRow
from bardo.edge.log.schema import ExactJson, inference_log, inference_rollup
from bardo.edge.log.stored import (
    CONTENTS,
    LARGEST_COUNT,
    LISTS,
    LONGEST_NAME,
    LONGEST_TEXTS,
    encode_costs,
    encode_counts,
    encode_json,
    encode_lists,
    encode_nulls,
    encode_texts,
)

ColumnEncoder = Callable[[Sequence[Any]], Sequence[Any]]

_MOST_TEXTS = 64
ROWS_AT_ONCE = (64, 16, 4, 1)
"""SQLite's driver gives the interpreter away for each statement, and gets it back from a busy event loop milliseconds later."""


class RowEncoder:
    """Turns log rows into tuples in the order of `names`: the columns of the table but the row number, in its order."""

    def __init__(self, table: Table = inference_log, *, keep_content: bool) -> None:
        """Choose an encoder for each column."""
        columns = [column for column in table.columns if not column.primary_key]
        self.names = tuple(column.name for column in columns)
        self.nullable = tuple(bool(column.nullable) for column in columns)
        self._places = [LogRow.__struct_fields__.index(name) for name in self.names]
        self._encoders = [_encoder_of(column, keep_content=keep_content) for column in columns]

    def encode(self, rows: Iterable[LogRow]) -> Iterator[tuple[Any, ...]]:
        """Return what each row stores. Raises TypeError, ValueError or AttributeError for a value of the wrong type."""
        return zip(*self.encode_columns(rows), strict=True)

    def encode_columns(self, rows: Iterable[LogRow]) -> list[Sequence[Any]]:
        """Return the same by columns."""
        columns = list(zip(*map(astuple, rows), strict=True))
        return [
            columns[place] if encode is None else encode(columns[place])
            for encode, place in zip(self._encoders, self._places, strict=True)
        ]


def _encoder_of(column: Column[Any], *, keep_content: bool) -> ColumnEncoder | None:
    """Return what makes a column's values ones that both engines hold. `None`: they are stored as they are."""
    if column.name in CONTENTS and not keep_content:
        return encode_nulls
    if isinstance(column.type, ExactJson):
        return encode_json if column.name not in LISTS else encode_lists
    if isinstance(column.type, Text):
        return partial(encode_texts, longest=LONGEST_TEXTS.get(column.name, LONGEST_NAME))
    if isinstance(column.type, BigInteger):
        return encode_counts
    return encode_costs if column.name == "cost_usd" else None


class RollupWriter:
    """Adds rows to the sums that are kept beside them, within the transaction that stores the rows."""

    def __init__(self, dialect: Dialect) -> None:
        names = inference_rollup.columns.keys()
        make = sqlite_insert if dialect.name == "sqlite" else postgresql_insert
        statement = make(inference_rollup)
        added = {name: _added(dialect, name, statement.excluded[name]) for name in names[len(RollupKey._fields) + 1 :]}
        upsert = statement.on_conflict_do_update(index_elements=["group_id"], set_=added)
        compiled = upsert.compile(dialect=dialect, column_keys=list(names))
        self._text, self._order = str(compiled), compiled.positiontup

    def add(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        """Add rows to the sums of their days."""
        values = [column_values(key, sums) for key, sums in roll_up(rows).items()]
        # Writers that share a PostgreSQL take turns already; a fixed order keeps that true of drivers that do not.
        values.sort(key=lambda one: one["group_id"])
        if self._order is None:
            connection.exec_driver_sql(self._text, values)
        else:
            connection.exec_driver_sql(self._text, [tuple([one[name] for name in self._order]) for one in values])


def _added(dialect: Dialect, name: str, further: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a stored sum and a further one together, as far as all readers hold it exactly: a provider can report any number."""
    stored: ColumnElement[Any] = inference_rollup.columns[name]
    if name == "seconds":
        return stored + further
    smaller, larger = (func.min, func.max) if dialect.name == "sqlite" else (func.least, func.greatest)
    most: ColumnElement[int] = literal_column(str(LARGEST_COUNT))
    return smaller(larger(stored + further, -most), most)


def _text_of(dialect: Dialect, names: tuple[str, ...], rows: int) -> str:
    """Return the statement that inserts so many rows with these columns."""
    head, word, values = str(insert(inference_log).compile(dialect=dialect, column_keys=list(names))).rpartition(
        "VALUES"
    )
    return f"{head}{word}{','.join([values] * rows)}"


class RowInserter:
    """Stores rows within a transaction, through the driver itself."""

    def __init__(self, dialect: Dialect, *, keep_content: bool) -> None:
        self._encoder = RowEncoder(keep_content=keep_content)
        compiled = insert(inference_log).compile(dialect=dialect, column_keys=list(self._encoder.names))
        self._text = str(compiled)
        self._by_place = compiled.positiontup is not None
        self.insert = self._insert
        if dialect.name == "sqlite":
            self._text_of = lru_cache(maxsize=_MOST_TEXTS)(partial(_text_of, dialect))
            self.insert = self._insert_many_at_once
        elif dialect.driver == "psycopg":
            quote = dialect.identifier_preparer.quote
            names = ", ".join(map(quote, self._encoder.names))
            self._copy = f"COPY {quote(inference_log.name)} ({names}) FROM STDIN"
            self.insert = self._copy_in

    def _insert_many_at_once(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        """Encode a few rows at a time, so that the event loop gets its turn in between."""
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        most = driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(self._encoder.names)
        begin = 0
        for size in ROWS_AT_ONCE:
            while size <= min(most, len(rows) - begin):
                names, values = self._filled_columns(rows[begin : begin + size])
                driver.execute(self._text_of(names, size), values)
                begin += size

    def _filled_columns(self, rows: Sequence[LogRow]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Return the columns in which any of the rows has a value, and these values row by row.

        Most columns of most rows are empty, and SQLite's driver takes longer for each NULL that is bound than for any value: it looks for
        an adapter of `None`.
        """
        encoder = self._encoder
        names, filled = [], []
        for name, nullable, column in zip(encoder.names, encoder.nullable, encoder.encode_columns(rows), strict=True):
            if not nullable or column.count(None) < len(column):
                names.append(name)
                filled.append(column)
        return tuple(names), tuple(chain.from_iterable(zip(*filled, strict=True)))

    def _copy_in(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(self._copy) as copy:
            for begin in range(0, len(rows), ROWS_AT_ONCE[0]):
                for values in self._encoder.encode(rows[begin : begin + ROWS_AT_ONCE[0]]):
                    copy.write_row(values)

    def _insert(self, connection: Connection, rows: Sequence[LogRow]) -> None:
        """Insert through a driver of PostgreSQL other than psycopg 3."""
        encoded = list(self._encoder.encode(rows))
        if self._by_place:
            connection.exec_driver_sql(self._text, encoded)
        else:
            connection.exec_driver_sql(
                self._text, [dict(zip(self._encoder.names, values, strict=True)) for values in encoded]
            )
