"""The `[[models]]` of `bardo.toml`: what an operator knows of a model's thinking, with the keys of the catalog's rows.

`bardo probe` writes such rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bardo.catalog.models import ModelRow
from bardo.edge.settings_formats import choices_of
from bardo.edge.settings_problems import Place, explain
from bardo.values.errors import ConfigError

TABLE = "models"


def read_models(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[ModelRow, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    return tuple(_row(table, Place(text, source, TABLE, index)) for index, table in enumerate(tables))


def _row(table: Mapping[str, Any], place: Place) -> ModelRow:
    try:
        row = msgspec.convert(table, ModelRow)
    except msgspec.ValidationError as problem:
        raise explain(problem, place, ModelRow.__struct_fields__, choices_of(ModelRow)) from problem
    if not row.match or not all(row.match):
        hint = 'name models or globs: match = ["my-model*"]'
        raise ConfigError(f"{place.of('match')}: the row fits no model", hint=hint)
    return row
