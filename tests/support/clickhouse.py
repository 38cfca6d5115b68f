"""A server that speaks the HTTP interface of ClickHouse, over one of two engines.

`RealEngine` is ClickHouse itself, as the package chdb has it. `StrictEngine` knows the few statements that an export sends, and refuses
what the real one refuses: another form of SQL, a JSON value that does not fit its column, an unknown field, a missing table. The server
checks what belongs to HTTP: the method, who asks, the database, and the names of settings.

Source: clickhouse.com/docs/interfaces/http and the codes of errors of ClickHouse 26.9, read 2026-11.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

USER, PASSWORD = "exporter", "pass-word-9f8e7d"
SETTINGS = {
    "wait_end_of_query",
    "async_insert",
    "input_format_skip_unknown_fields",
    "input_format_null_as_default",
}
_HTTP = {
    516: 403,
    194: 401,
    62: 400,
    117: 400,
    27: 400,
    26: 400,
    6: 400,
    41: 400,
    53: 400,
    60: 404,
    81: 404,
    115: 404,
    47: 404,
}
_CREATE = re.compile(
    r"CREATE TABLE IF NOT EXISTS `(\w+)` \((.*)\) ENGINE = ReplacingMergeTree\((\w+)\) "
    r"PARTITION BY toYYYYMM\((\w+)\) ORDER BY \((\w+), (\w+)\)"
)
_COLUMN = re.compile(r"`(\w+)` (DateTime64\(6, 'UTC'\)|\w+(?:\(\w+(?:\(\w+\))?\))?)(?:, |$)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")


class Refused(Exception):
    """A statement that is not run."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Engine(Protocol):
    """What runs statements."""

    def run(self, statement: str, data: bytes, settings: dict[str, str]) -> bytes: ...

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return what a query with FINAL sees."""


class RealEngine:
    """ClickHouse in this process."""

    def __init__(self, folder: Path) -> None:
        self._session = import_module("chdb.session").Session(str(folder))
        self._lock = threading.Lock()

    def run(self, statement: str, data: bytes, settings: dict[str, str]) -> bytes:
        with self._lock:
            try:
                for name, value in settings.items():
                    if name.startswith(("input_", "async_")):
                        self._session.query(f"SET {name} = {value}")
                whole = statement + ("\n" + data.decode() if data else "")
                return bytes(self._session.query(whole).bytes() or b"")
            except Exception as problem:
                found = re.search(r"Code: (\d+)", str(problem))
                raise Refused(int(found[1]) if found else 1001, str(problem)) from problem

    def rows(self, table: str) -> list[dict[str, Any]]:
        sql = f"SELECT * FROM {table} FINAL ORDER BY row_number FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 0"
        return [json.loads(line) for line in self.run(sql, b"", {}).splitlines()]

    def close(self) -> None:
        self._session.close()


class StrictEngine:
    """Tables in memory."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, str]] = {}
        self._keys: dict[str, tuple[str, str, str]] = {}
        self._stored: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}

    def run(self, statement: str, data: bytes, settings: dict[str, str]) -> bytes:
        if made := _CREATE.fullmatch(statement):
            self._create(made)
        elif made := re.fullmatch(r"DESCRIBE TABLE `(\w+)` FORMAT JSONEachRow", statement):
            columns = self._table(made[1])
            return b"".join(json.dumps({"name": name, "type": kind}).encode() + b"\n" for name, kind in columns.items())
        elif made := re.fullmatch(r"ALTER TABLE `(\w+)` (.*)", statement):
            parts = made[2].replace("ADD COLUMN IF NOT EXISTS ", "")
            if made[2].count("ADD COLUMN IF NOT EXISTS ") != len(_columns(parts)):
                raise Refused(62, "Syntax error")
            self._table(made[1]).update({**_columns(parts), **self._table(made[1])})
        elif made := re.fullmatch(r"INSERT INTO `(\w+)` \(((?:`\w+`(?:, )?)+)\) FORMAT JSONEachRow", statement):
            self._insert(made[1], re.findall(r"`(\w+)`", made[2]), data, settings)
        else:
            raise Refused(62, f"Syntax error: failed at position 1 ({statement[:20]})")
        return b""

    def rows(self, table: str) -> list[dict[str, Any]]:
        return sorted(self._stored[table].values(), key=lambda row: int(row["row_number"]))

    def _create(self, made: re.Match[str]) -> None:
        if made[1] in self._tables:
            return
        columns = _columns(made[2])
        if any(name not in columns or "Nullable" in columns[name] for name in (made[3], made[4], made[5], made[6])):
            raise Refused(47, "Missing columns, or a Nullable one in the sorting key")
        self._tables[made[1]], self._keys[made[1]], self._stored[made[1]] = columns, (made[3], made[5], made[6]), {}

    def _table(self, name: str) -> dict[str, str]:
        if name not in self._tables:
            raise Refused(60, f"Table default.{name} does not exist")
        return self._tables[name]

    def _insert(self, name: str, into: list[str], data: bytes, settings: dict[str, str]) -> None:
        columns = self._table(name)
        if unknown := [one for one in into if one not in columns]:
            raise Refused(16, f"No such column {unknown[0]} in table default.{name}")
        rows = []
        for number, line in enumerate(data.decode().rstrip("\n").split("\n"), start=1):
            row: dict[str, Any] = json.loads(line)
            for key, value in row.items():
                if key not in into:
                    if settings.get("input_format_skip_unknown_fields") == "0":
                        raise Refused(
                            117, f"Unknown field found while parsing JSONEachRow format: {key}: (at row {number})"
                        )
                elif not _fits(columns[key], value, settings):
                    raise Refused(
                        27, f"Cannot parse input: expected {columns[key]} before: {value!r}: (at row {number})"
                    )
            rows.append(row)
        version, began, call = self._keys[name]
        for row in rows:
            place = (row[began], row[call])
            before = self._stored[name].get(place)
            if before is None or before[version] <= row[version]:
                self._stored[name][place] = {one: row.get(one) for one in columns}


def _columns(text: str) -> dict[str, str]:
    found = _COLUMN.findall(text)
    if ", ".join(f"`{name}` {kind}" for name, kind in found) != text:
        raise Refused(62, "Syntax error in the columns")
    return dict(found)


def _fits(kind: str, value: Any, settings: dict[str, str]) -> bool:
    if value is None:
        return "Nullable(" in kind or settings.get("input_format_null_as_default") != "0"
    inner = re.sub(r"LowCardinality\((.*)\)", r"\1", kind)
    match re.sub(r"Nullable\((.*)\)", r"\1", inner):
        case "String":
            return isinstance(value, str)
        case "Int64":
            return type(value) is int and -(2**63) <= value < 2**63
        case "Float64":
            return type(value) in (int, float)
        case "Bool":
            return isinstance(value, bool)
        case "DateTime64(6, 'UTC')":
            return isinstance(value, str) and _TIME.fullmatch(value) is not None
    raise Refused(50, f"Unknown data type family: {kind}")


class ClickHouse:
    """A running server: what it was asked, and what it does next instead of answering."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.address = ""
        self.statements: list[str] = []
        self.bodies: list[bytes] = []
        self.failures: list[int] = []
        """Statuses with which the next statements are refused; 0 closes the connection, 200 runs them and closes it."""

    def url(self, table: str = "calls", database: str = "default") -> str:
        return f"{self.address}/?database={database}&table={table}&user={USER}"


@contextmanager
def clickhouse(engine: Engine) -> Iterator[ClickHouse]:
    """Run a server for the length of a block."""
    found = ClickHouse(engine)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            failure = found.failures.pop(0) if found.failures else None
            if failure == 0:
                self.close_connection = True
                return
            try:
                if failure not in (None, 200):
                    raise Refused(252, "Too many parts")
                answer = self._answer(body)
            except Refused as problem:
                self._send(
                    failure or _HTTP.get(problem.code, 500),
                    f"Code: {problem.code}. DB::Exception: {problem}\n".encode(),
                    problem.code,
                )
                return
            if failure == 200:
                self.close_connection = True
                return
            self._send(200, answer)

        def _answer(self, body: bytes) -> bytes:
            if (self.headers.get("x-clickhouse-user"), self.headers.get("x-clickhouse-key")) != (USER, PASSWORD):
                raise Refused(
                    516, f"{self.headers.get('x-clickhouse-user')}: Authentication failed: password is incorrect"
                )
            given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
            database, query = given.pop("database", "default"), given.pop("query", None)
            if database != "default":
                raise Refused(81, f"Database {database} does not exist")
            if unknown := given.keys() - SETTINGS:
                raise Refused(115, f"Unknown setting {sorted(unknown)[0]!r}")
            statement, data = (body.decode(), b"") if query is None else (query, body)
            found.statements.append(statement)
            found.bodies.append(data)
            return found.engine.run(statement, data, given)

        def do_GET(self) -> None:
            self._send(500, b"Code: 164. DB::Exception: Cannot execute query in readonly mode", 164)

        def _send(self, status: int, body: bytes, code: int | None = None) -> None:
            self.send_response(status)
            if code is not None:
                self.send_header("X-ClickHouse-Exception-Code", str(code))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's.
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
