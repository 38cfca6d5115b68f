"""Log rows as tuples, encoded a column at a time: what both engines hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import astuple

from bardo.adapters.stores.log.columns import LOG_COLUMNS, LogColumn
from bardo.adapters.stores.log.row import LogRow
from bardo.adapters.stores.log.stored import (
    CONTENTS,
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


class RowEncoder:
    """Turns log rows into tuples in the order of `names`: the columns of the table but the row number, in its order."""

    def __init__(self, *, keep_content: bool) -> None:
        """Choose an encoder for each column."""
        columns = [column for column in LOG_COLUMNS if not column.primary]
        self.names = tuple([column.name for column in columns])
        self.nullable = tuple([column.nullable for column in columns])
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


def _encoder_of(column: LogColumn, *, keep_content: bool) -> ColumnEncoder | None:
    """Return what makes a column's values ones that both engines hold. `None`: they are stored as they are."""
    if column.name in CONTENTS and not keep_content:
        return encode_nulls
    match column.kind:
        case "json":
            return encode_lists if column.name in LISTS else encode_json
        case "text" | "id":
            return partial(encode_texts, longest=LONGEST_TEXTS.get(column.name, LONGEST_NAME))
        case "count":
            return encode_counts
    return encode_costs if column.name == "cost_usd" else None
