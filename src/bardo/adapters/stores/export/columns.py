"""The columns of an export: what they are called, what they hold, and how their values are written as text.

Loads SQLAlchemy: import it where a log is exported, and nowhere above.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
from sqlalchemy import BigInteger, Boolean, Column, Double, Text

from bardo.adapters.stores.log.database import ExactJson, inference_log
from bardo.adapters.stores.log.row import CONTENTS

ColumnKind = Literal["text", "name", "integer", "number", "boolean", "time", "json"]
"""A `name` is a text of which a log has few different ones; `json` is JSON as text, and a `time` is in UTC."""

_NAMES = frozenset(
    {
        "client_dialect", "provider", "provider_dialect", "model_asked", "model", "outcome", "error_class", "finish_reason", "finish_raw",
        "visibility", "reasoning_intent", "reasoning_layer", "reasoning_verdict", "operation", "price_source", "subsystem", "cache",
    }
)  # fmt: skip
_LEFT_OUT = frozenset({"cost_usd"})
"""The cost is in `cost_nanos`, exactly."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The years 1900 to 2299: what every target holds.
_FIRST_SECOND, _LAST_SECOND = -2_208_988_800.0, 10_413_791_999.0


class ExportColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column: its name in the log and in the export, its kind, and whether it may hold nothing."""

    name: str
    kind: ColumnKind
    nullable: bool


def export_columns(*, content: bool) -> tuple[ExportColumn, ...]:
    """Return the columns in their order; what was asked and answered is among them only with `content`."""
    return tuple(
        ExportColumn(name=column.name, kind=_kind(column), nullable=bool(column.nullable))
        for column in inference_log.columns
        if column.name not in _LEFT_OUT and (content or column.name not in CONTENTS)
    )


def _kind(column: Column[Any]) -> ColumnKind:
    if column.name == "started_at":
        return "time"
    if column.name in _NAMES:
        return "name"
    kinds: tuple[tuple[type[Any], ColumnKind], ...] = (
        (ExactJson, "json"),
        (Text, "text"),
        (Boolean, "boolean"),
        (Double, "number"),
        (BigInteger, "integer"),
    )
    return next((kind for type_, kind in kinds if isinstance(column.type, type_)), "integer")


def microseconds(seconds: float) -> int:
    """Return a Unix time in microseconds, within the years that every target holds."""
    return round(max(_FIRST_SECOND, min(seconds, _LAST_SECOND)) * 1_000_000)


def utc_text(seconds: float) -> str:
    """Return a Unix time as text in UTC: `2026-01-31T18:00:00.000000`."""
    moment = _EPOCH + timedelta(microseconds=microseconds(seconds))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")
