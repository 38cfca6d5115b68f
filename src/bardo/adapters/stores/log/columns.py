"""The tables of the log as rows, and what a call's row stores in them.

`database` makes SQLAlchemy's tables of them, and `sqlite_store` the statements of SQLite. A change here comes with a new revision of the
branch `log` in `stores/migrations`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec.structs import astuple

from bardo.adapters.stores.log.rollup import ADDED_SUMS, CAUSES, SUMS, RollupKey, part_column
from bardo.adapters.stores.log.row import (
    CONTENTS,
    LISTS,
    LONGEST_NAME,
    LONGEST_TEXTS,
    LogRow,
    encode_costs,
    encode_counts,
    encode_json,
    encode_lists,
    encode_nulls,
    encode_texts,
)

WATCHED = "prompt_cache"
"""The name of a prompt that no provider can cache in a call's `degraded`, by which `bardo costs --cache` finds it."""
MALFORMED_CALLS = "malformed_tool_calls"
"""The key of a route's record that names calls of tools with unreadable arguments; only where it was chosen by what was learned."""

Kind = Literal["row", "id", "text", "count", "real", "flag", "json"]
"""What a column holds. `row` numbers the rows of its table, and numbers of removed rows are never given again, so a follower cannot miss
a row; an `id` is looked up by how it begins."""

ColumnEncoder = Callable[[Sequence[Any]], Sequence[Any]]


class LogColumn(NamedTuple):
    """A column of a table of the log. `default` is the value of rows that were stored before the column was there."""

    name: str
    kind: Kind
    nullable: bool = False
    indexed: bool = False
    default: str = ""
    primary: bool = False


def _optional(name: str, kind: Kind) -> LogColumn:
    return LogColumn(name, kind, nullable=True)


_ROW_NUMBER = LogColumn("row_number", "row", primary=True)
_REQUEST = LogColumn("request_id", "id", indexed=True)

LOG_COLUMNS = (
    _ROW_NUMBER,
    _REQUEST,
    LogColumn("started_at", "real", indexed=True),
    LogColumn("seconds", "real"),
    _optional("first_byte_seconds", "real"),
    LogColumn("client_dialect", "text"),
    LogColumn("provider", "text"),
    LogColumn("provider_dialect", "text"),
    LogColumn("model_asked", "text"),
    LogColumn("model", "text"),
    LogColumn("streamed", "flag"),
    LogColumn("passed_through", "flag"),
    LogColumn("attempts", "count"),
    _optional("status", "count"),
    LogColumn("outcome", "text"),
    _optional("error_class", "text"),
    _optional("error_message", "text"),
    _optional("finish_reason", "text"),
    _optional("finish_raw", "text"),
    _optional("visibility", "text"),
    _optional("input_tokens", "count"),
    _optional("output_tokens", "count"),
    _optional("reasoning_tokens", "count"),
    LogColumn("tokens_approx", "flag"),
    _optional("cached_input_tokens", "count"),
    _optional("cache_write_tokens", "count"),
    _optional("usage_raw", "json"),
    _optional("cost_usd", "real"),
    LogColumn("degraded", "json"),
    _optional("receipt", "json"),
    _optional("request_content", "text"),
    _optional("reply_content", "text"),
    # What later forms added stands last, as it does in a log that was migrated.
    _optional("reasoning_intent", "text"),
    _optional("reasoning_emitted", "text"),
    _optional("reasoning_layer", "text"),
    _optional("reasoning_verdict", "text"),
    LogColumn("operation", "text", default="generate"),
    _optional("tenant", "text"),
    _optional("route", "json"),
    _optional("cost_nanos", "count"),
    _optional("cost_parts", "json"),
    _optional("reported_cost_nanos", "count"),
    _optional("computed_cost_nanos", "count"),
    _optional("cache_saved_nanos", "count"),
    _optional("price_source", "text"),
    _optional("key_id", "text"),
    _optional("subsystem", "text"),
    _optional("tags", "json"),
    _optional("attempt_records", "json"),
    _optional("pipeline", "json"),
    _optional("cache", "text"),
    _optional("reply_saved_nanos", "count"),
    _optional("sent_content", "text"),
    LogColumn("session", "text", nullable=True, indexed=True),
    _optional("agent", "text"),
    _optional("repository", "text"),
)
ROLLUP_COLUMNS = (
    LogColumn("group_id", "id", primary=True),
    LogColumn("day", "count", indexed=True),
    *(LogColumn(name, "text") for name in RollupKey._fields[1:]),
    *(LogColumn(name, "real" if name == "seconds" else "count") for name in SUMS if name not in ADDED_SUMS),
    *(LogColumn(part_column(cause), "count") for cause in CAUSES),
    *(LogColumn(name, "count", default="0") for name in ADDED_SUMS),
)
FEEDBACK_COLUMNS = (
    _ROW_NUMBER,
    _REQUEST,
    LogColumn("given_at", "real"),
    LogColumn("score", "real"),
    _optional("comment", "text"),
)
GAP_COLUMNS = (_ROW_NUMBER, LogColumn("noticed_at", "real"), LogColumn("rows", "count"), LogColumn("why", "text"))
TABLES = {
    "inference_log": LOG_COLUMNS,
    "inference_rollup": ROLLUP_COLUMNS,
    "inference_feedback": FEEDBACK_COLUMNS,
    "inference_log_gaps": GAP_COLUMNS,
}


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
