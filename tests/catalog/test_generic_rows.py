"""A provider that is configured by its dialect alone is read as that dialect's generic row."""

from __future__ import annotations

from typing import get_args

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.rows import DialectName


@pytest.mark.parametrize("dialect", get_args(DialectName))
def test_every_dialect_has_one_generic_row(dialect: str) -> None:
    (row,) = (row for row in builtin().providers if row.generic and row.dialect == dialect)
    assert builtin().generic(dialect) is row
