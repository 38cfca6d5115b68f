"""The statement that stores rows is made from the schema, and SQLAlchemy reads back what the driver was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Double, select

from bardo.adapters.stores.log import LogRow
from bardo.adapters.stores.log.columns import RowEncoder
from bardo.adapters.stores.log.database import ExactJson, address_of, inference_log, open_readable
from bardo.adapters.stores.log.row import LISTS
from bardo.adapters.stores.log.sqlite_store import ROWS_AT_ONCE
from bardo.adapters.stores.log.store import open_store

pytestmark = pytest.mark.each_python

_LISTS = ("degraded", *LISTS)
_COLUMNS = [column for column in inference_log.columns if not column.primary_key]


def row_of_distinct_values(seed: int) -> LogRow:
    """Return a row in which every column has a value that no other column has."""
    values: dict[str, Any] = {}
    for number, column in enumerate(_COLUMNS, start=seed * 100):
        if isinstance(column.type, ExactJson):
            values[column.name] = ({"at": number},) if column.name in _LISTS else {"at": number}
        elif isinstance(column.type, Boolean):
            values[column.name] = number % 2 == 0
        elif isinstance(column.type, Double):
            values[column.name] = number + 0.25
        else:
            values[column.name] = number if column.type.python_type is int else f"text {number}"
    return LogRow(**values)


def test_a_row_has_a_field_for_every_column_and_no_other() -> None:
    assert sorted(RowEncoder(keep_content=True).names) == sorted(LogRow.__struct_fields__)


@pytest.mark.parametrize("count", [1, 3, 4, 16, 63, 64, 65, sum(ROWS_AT_ONCE) * 2 + 3])
def test_every_column_of_every_row_reads_back_by_sqlalchemy(tmp_path: Path, count: int) -> None:
    rows = [row_of_distinct_values(seed) for seed in range(count)]
    path = tmp_path / "log.db"
    store = open_store(path, keep_content=True)
    store.append(rows)
    store.close()
    engine = open_readable(address_of(path))
    with engine.connect() as connection:
        found = connection.execute(select(inference_log).order_by(inference_log.c.row_number)).all()
    engine.dispose()
    assert len(found) == count
    for one, row in zip(found, rows, strict=True):
        for column in _COLUMNS:
            wanted = getattr(row, column.name)
            assert getattr(one, column.name) == (list(wanted) if column.name in _LISTS else wanted), column.name


def test_rows_with_values_in_different_columns_are_stored_in_one_batch(tmp_path: Path) -> None:
    bare = [LogRow(request_id=f"bare {number}", started_at=float(number)) for number in range(70)]
    first = LogRow(request_id="first", started_at=70.0, error_message="it broke")
    full = row_of_distinct_values(1)
    rows = [first, *bare, full]
    path = tmp_path / "log.db"
    store = open_store(path, keep_content=True)
    store.append(rows)
    store.close()
    engine = open_readable(address_of(path))
    with engine.connect() as connection:
        found = connection.execute(select(inference_log).order_by(inference_log.c.row_number)).all()
    engine.dispose()
    assert [one.request_id for one in found] == [row.request_id for row in rows]
    assert [one.error_message for one in found] == [row.error_message for row in rows]
    assert [one.key_id for one in found] == [row.key_id for row in rows]
    assert [one.operation for one in found] == [row.operation for row in rows]
