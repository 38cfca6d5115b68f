"""A table of ClickHouse, written over its HTTP interface: https://clickhouse.com/docs/interfaces/http, read 2026-11-23.

Rows that are sent twice count once: the table replaces rows of the same call, and a query with FINAL sees the last of them.

Loads SQLAlchemy: import it where a log is exported, and nowhere above.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from bardo.adapters.net.calls import Call, Deadlines, Transport
from bardo.adapters.stores.database.problems import ExportFailed
from bardo.adapters.stores.export.files import ColumnKind, ExportColumn, Row, utc_text
from bardo.values.error_cleaning import printable
from bardo.values.errors import InvalidRequest, ProviderError
from bardo.values.secrets import secrets_of

TRIES = 5
FIRST_REST_SECONDS = 0.5
PASSWORD_VARIABLE = "BARDO_CLICKHOUSE_PASSWORD"
_DEADLINES = Deadlines(first_byte=300.0, idle=60.0)
_LONGEST_REPLY = 1 << 20
_LONGEST_WORDS = 300
_RETRIED = frozenset({429, 500, 502, 503, 504})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_PARAMETERS = ("database", "table", "user")
_TYPES: dict[ColumnKind, str] = {
    "text": "String",
    "name": "LowCardinality(String)",
    "json": "String",
    "integer": "Int64",
    "number": "Float64",
    "boolean": "Bool",
    "time": "DateTime64(6, 'UTC')",
}
_SETTINGS = {
    # An error after the first bytes of a reply would come with status 200.
    "wait_end_of_query": "1",
    # A server may gather rows and answer before they are stored.
    "async_insert": "0",
    # What a table cannot hold is an error, and neither left out nor replaced.
    "input_format_skip_unknown_fields": "0",
    "input_format_null_as_default": "0",
}


class ClickHouseTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A table and where it is; `address` has neither a user nor parameters."""

    address: str
    table: str
    database: str = "default"
    user: str = "default"

    @property
    def name(self) -> str:
        """Its name in messages and in the state of exports."""
        return f"{self.address} {self.database}.{self.table}"


def target_of(url: str) -> ClickHouseTarget:
    """Return what an address such as `https://host:8443/?database=logs&table=calls` names.

    Raises InvalidRequest for anything else, and for a password, without repeating it.
    """
    hint = f"write https://host:8443/?database=logs&table=calls; a password goes into {PASSWORD_VARIABLE}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidRequest("the address of ClickHouse cannot be read", hint=hint) from None
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.password is not None or "password" in given:
        raise InvalidRequest(
            "the address of ClickHouse holds a password, which others can see in lists of processes", hint=hint
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise InvalidRequest("the address of ClickHouse is not one of HTTP", hint=hint)
    if other := sorted(given.keys() - set(_PARAMETERS)):
        raise InvalidRequest(
            f"the address of ClickHouse has the parameter {other[0]!r}, which means nothing here", hint=hint
        )
    database, table = given.get("database", "default"), given.get("table", "")
    for what, name in (("table", table), ("database", database)):
        if not _NAME.fullmatch(name):
            raise InvalidRequest(f"the address of ClickHouse names no {what} of letters, digits and _", hint=hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    address = f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path or '/'}"
    user = given.get("user") or unquote(parts.username or "") or "default"
    return ClickHouseTarget(address=address, table=table, database=database, user=user)


class ClickHouseTable:
    """A table that rows are sent to; it is made where it is missing, and gets the columns that it has not."""

    def __init__(
        self,
        transport: Transport,
        target: ClickHouseTarget,
        columns: Sequence[ExportColumn],
        *,
        password: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._target = target
        self._columns = columns
        self._password = password
        self._sleep = sleep
        self._encode = msgspec.json.Encoder().encode_lines
        self._times = [place for place, column in enumerate(columns) if column.kind == "time"]

    async def prepare(self) -> None:
        """Make the table, or add the columns that it has not. Raises ExportFailed."""
        defined = ", ".join(map(_definition, self._columns))
        await self._run(
            f"CREATE TABLE IF NOT EXISTS `{self._target.table}` ({defined}) ENGINE = ReplacingMergeTree(row_number) "
            "PARTITION BY toYYYYMM(started_at) ORDER BY (started_at, request_id)"
        )
        described = await self._run(f"DESCRIBE TABLE `{self._target.table}` FORMAT JSONEachRow")
        try:
            names = {msgspec.json.decode(line)["name"] for line in described.splitlines() if line}
        except (msgspec.DecodeError, KeyError, TypeError) as problem:
            hint = "check the address: ClickHouse speaks HTTP at port 8123, or 8443 with TLS"
            raise ExportFailed(f"{self._target.name} does not answer as ClickHouse does", hint=hint) from problem
        if missing := [column for column in self._columns if column.name not in names]:
            added = ", ".join(f"ADD COLUMN IF NOT EXISTS {_definition(column)}" for column in missing)
            await self._run(f"ALTER TABLE `{self._target.table}` {added}")

    async def insert(self, rows: Sequence[Row]) -> None:
        """Store rows, trying again where that may help. Raises ExportFailed; some of the rows may be stored then."""
        names = [column.name for column in self._columns]
        insert = f"INSERT INTO `{self._target.table}` ({', '.join(f'`{name}`' for name in names)}) FORMAT JSONEachRow"
        lines = self._encode([dict(zip(names, self._values(row), strict=True)) for row in rows])
        await self._run(insert, lines)

    def _values(self, row: Row) -> list[Any]:
        values = list(row)
        for place in self._times:
            values[place] = utc_text(values[place]).replace("T", " ")
        return values

    async def _run(self, statement: str, data: bytes | None = None) -> bytes:
        """Run a statement, with its data behind it, and return what it gives."""
        parameters = {"database": self._target.database, **_SETTINGS}
        if data is not None:
            parameters["query"] = statement
        headers = {"X-ClickHouse-User": self._target.user, "Content-Type": "application/octet-stream"}
        if self._password:
            headers["X-ClickHouse-Key"] = self._password
        call = Call(
            url=f"{self._target.address}?{urlencode(parameters)}",
            headers=headers,
            body=statement.encode() if data is None else data,
        )
        rest = FIRST_REST_SECONDS
        for attempt in range(1, TRIES + 1):
            status, words = await self._send(call)
            if status == 200:
                return words
            if attempt == TRIES or status not in _RETRIED:
                break
            await self._sleep(rest)
            rest *= 2
        raise self._refused(status, words)

    async def _send(self, call: Call) -> tuple[int, bytes]:
        """Return the status and the body of a reply; 503 and what went wrong where there is none."""
        try:
            reply = await self._transport.send(call, _DEADLINES)
            try:
                body = await reply.read(_LONGEST_REPLY)
                failed = "x-clickhouse-exception-code" in reply.headers
                return (500 if failed and reply.status == 200 else reply.status), body
            finally:
                await reply.close()
        except ProviderError as problem:
            return 503, problem.message.encode()

    def _refused(self, status: int, words: bytes) -> ExportFailed:
        """Return the problem of a statement that failed. ClickHouse repeats parts of what it was sent, so little of it is shown."""
        secrets = secrets_of((self._password,) if self._password else ())
        text = printable(" ".join(secrets.in_text(words.decode("utf-8", "replace")).split()))
        # What follows quotes rows.
        text = text.partition(": (at row ")[0].partition(": While executing")[0][:_LONGEST_WORDS]
        hint = "check the address, the table and its columns, and the rights of the user"
        if status in (401, 403):
            hint = f"check the user in the address, and the password in {PASSWORD_VARIABLE}"
        return ExportFailed(f"{self._target.name} answered {status}: {text}", hint=hint)


def _definition(column: ExportColumn) -> str:
    type_ = _TYPES[column.kind]
    if column.nullable:
        type_ = "LowCardinality(Nullable(String))" if column.kind == "name" else f"Nullable({type_})"
    return f"`{column.name}` {type_}"
