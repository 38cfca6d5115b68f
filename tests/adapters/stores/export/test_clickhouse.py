"""Rows of the log in a table of ClickHouse: the same as in the log, once each, whatever happens on the way."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.stores.database.problems import ExportFailed
from bardo.adapters.stores.export import clickhouse as export_module
from bardo.adapters.stores.export.clickhouse import ClickHouseTable, target_of
from bardo.adapters.stores.export.exporting import ExportSummary, export_to_clickhouse
from bardo.adapters.stores.export.files import export_columns, utc_text
from bardo.adapters.stores.log import LogReader, LogRow, LogWriter, queries
from bardo.values.errors import InvalidRequest
from support.clickhouse import PASSWORD, USER, ClickHouse, RealEngine, StrictEngine, clickhouse
from support.hostile_rows import hostile_row
from support.hostile_text import HOSTILE

NOW = 1_790_000_000.25
INTO, AS = "INSERT INTO `calls`", "FORMAT JSONEachRow"


@pytest.fixture(params=["strict", "real"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClickHouse]:
    """Return a server over each engine; the real one where the package chdb is installed."""
    if request.param == "strict":
        with clickhouse(StrictEngine()) as found:
            yield found
        return
    pytest.importorskip("chdb", reason="the package chdb is not installed")
    engine = RealEngine(tmp_path / "clickhouse")
    try:
        with clickhouse(engine) as found:
            yield found
    finally:
        engine.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "FIRST_REST_SECONDS", 0.001)


def rows() -> list[LogRow]:
    hostile = [hostile_row(text, place, started_at=NOW + place) for place, text in enumerate(HOSTILE.values())]
    full = LogRow(
        request_id="req_1",
        started_at=NOW - 40 * 86_400,
        cost_nanos=2**53 - 1,
        usage_raw={"n": 1e16, "s": "1"},
        input_tokens=0,
        streamed=True,
        first_byte_seconds=0.125,
        tags=("a", "b"),
    )
    return [full, *hostile]


def written(path: Path, stored: list[LogRow]) -> str:
    with LogWriter(path, keep_content=True) as log:
        for row in stored:
            log.write(row)
    return str(path)


def sent(
    server: ClickHouse, log: str, *, password: str = PASSWORD, after: int | None = None, url: str = "", **more: Any
) -> ExportSummary:
    async def run() -> ExportSummary:
        transport = HttpTransport()
        try:
            with LogReader(log) as reader:
                span = reader.export_span()
                span = span if after is None else type(span)(after=after, last=span.last)
                target = target_of(url or server.url())
                return await export_to_clickhouse(reader, span, target, transport=transport, password=password, **more)
        finally:
            await transport.close()

    return asyncio.run(run())


def test_the_table_holds_the_rows_of_the_log(server: ClickHouse, tmp_path: Path) -> None:
    stored = rows()
    log = written(tmp_path / "log.db", stored)
    done = sent(server, log, content=True)
    assert done == ExportSummary(rows=len(stored), row_number=len(stored))
    found = server.engine.rows("calls")
    assert len(found) == len(stored)
    # JSON is the text that the log holds, to the letter.
    with sqlite3.connect(log) as raw:
        raw.row_factory = sqlite3.Row
        wanted = raw.execute("SELECT * FROM inference_log ORDER BY row_number").fetchall()
    raw.close()
    for row, values in zip(wanted, found, strict=True):
        for column in export_columns(content=True):
            value = values[column.name]
            if column.kind == "time":
                assert value.ljust(26, "0") == utc_text(row[column.name]).replace("T", " ")
            else:
                assert (value, type(value) is bool) == (row[column.name], column.kind == "boolean"), column.name


def test_what_is_sent_twice_counts_once(server: ClickHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_ROWS", 7)
    stored = rows()
    log = written(tmp_path / "log.db", stored)
    sent(server, log)
    sent(server, log, after=3)
    # The server stores these rows, and the connection breaks off before its answer.
    server.failures = [None, None, 200, 0, 503]  # type: ignore[list-item]
    sent(server, log)
    assert len(server.engine.rows("calls")) == len(stored)


def test_a_server_that_recovers_gets_all_rows(server: ClickHouse, tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", rows())
    server.failures = [503, 0, 500]
    assert sent(server, log).rows == len(rows())
    assert len(server.engine.rows("calls")) == len(rows())


def test_a_server_that_stays_down_is_given_up(server: ClickHouse, tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", rows()[:1])
    server.failures = [503] * 50
    with pytest.raises(ExportFailed, match="answered 503"):
        sent(server, log)
    assert len(server.failures) == 50 - export_module.TRIES


def test_progress_is_noted_only_for_what_is_stored(
    server: ClickHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MOST_ROWS", 5)
    log = written(tmp_path / "log.db", rows())
    noted: list[int] = []
    server.failures = [None, None, None, *[503] * 5]  # type: ignore[list-item]
    with pytest.raises(ExportFailed):
        sent(server, log, note=noted.append)
    assert noted == [5]


def test_a_wrong_password_is_said_without_it(server: ClickHouse, tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", rows()[:1])
    with pytest.raises(ExportFailed) as raised:
        sent(server, log, password="another-secret-1234")
    assert "403" in raised.value.message
    assert "BARDO_CLICKHOUSE_PASSWORD" in (raised.value.hint or "")
    assert "another-secret" not in str(vars(raised.value))
    assert server.statements == []


def test_a_missing_database_is_said(server: ClickHouse, tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", rows()[:1])
    with pytest.raises(ExportFailed, match=r"404.*does not exist"):
        sent(server, log, url=server.url(database="nowhere"))


def test_an_older_table_gets_the_columns_that_it_has_not(server: ClickHouse, tmp_path: Path) -> None:
    log = written(tmp_path / "log.db", rows()[:3])
    sent(server, log)
    assert "reply_content" not in server.engine.rows("calls")[0]
    sent(server, log, content=True)
    assert [row["reply_content"] for row in server.engine.rows("calls")] == [row.reply_content for row in rows()[:3]]


def test_a_table_that_cannot_hold_the_rows_is_an_error(server: ClickHouse, tmp_path: Path) -> None:
    text = next(iter(HOSTILE.values()))
    log = written(tmp_path / "log.db", [hostile_row("secret question of somebody", 0, started_at=NOW)])
    server.engine.run(
        "CREATE TABLE IF NOT EXISTS `calls` (`row_number` Int64, `request_id` String, `started_at` DateTime64(6, 'UTC'), "
        "`model` Int64) ENGINE = ReplacingMergeTree(row_number) PARTITION BY toYYYYMM(started_at) ORDER BY (started_at, request_id)",
        b"",
        {},
    )
    with pytest.raises(ExportFailed, match="answered 400") as raised:
        sent(server, log)
    assert text not in raised.value.message


@pytest.mark.parametrize(
    ("statement", "data", "statuses"),
    [
        (f"{INTO} (`row_number`) {AS}", '{"row_number": "x"}', {400}),
        (f"{INTO} (`row_number`) {AS}", '{"row_number": 1.5}', {400}),
        (f"{INTO} (`row_number`) {AS}", '{"row_number": 1, "other": 1}', {400}),
        (f"{INTO} (`row_number`, `started_at`) {AS}", '{"row_number": 1, "started_at": "yesterday"}', {400}),
        (f"{INTO} (`row_number`, `streamed`) {AS}", '{"row_number": 1, "streamed": "perhaps"}', {400, 500}),
        ("INSERT INTO `absent` (`row_number`) FORMAT JSONEachRow", '{"row_number": 1}', {404}),
        ("INSERT `calls` FORMAT", "{}", {400}),
    ],
)
def test_both_engines_refuse_what_is_wrong(
    server: ClickHouse, tmp_path: Path, statement: str, data: str, statuses: set[int]
) -> None:
    sent(server, written(tmp_path / "log.db", rows()[:1]))
    given = {"query": statement, "input_format_skip_unknown_fields": "0", "input_format_null_as_default": "0"}
    headers = {"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD}
    with pytest.raises(HTTPError) as raised:
        urlopen(Request(f"{server.address}/?{urlencode(given)}", data=data.encode(), headers=headers)).close()
    assert raised.value.code in statuses
    raised.value.close()
    assert len(server.engine.rows("calls")) == 1


def test_a_server_that_is_not_clickhouse_is_told(tmp_path: Path) -> None:
    class Other(StrictEngine):
        def run(self, statement: str, data: bytes, settings: dict[str, str]) -> bytes:
            return b"<html>welcome</html>"

    with clickhouse(Other()) as server, pytest.raises(ExportFailed, match="does not answer as ClickHouse"):
        sent(server, written(tmp_path / "log.db", rows()[:1]))


def test_an_error_repeats_no_more_than_300_characters_of_what_a_server_says() -> None:
    async def prepared() -> None:
        transport = FakeTransport(lambda _: FakeReply(status=400, chunks=[b"x" * 1_000]))
        await ClickHouseTable(
            transport, target_of("http://server.example/?table=calls"), export_columns(content=False)
        ).prepare()

    with pytest.raises(ExportFailed) as raised:
        asyncio.run(prepared())
    assert raised.value.message.partition("answered 400: ")[2] == "x" * 300


@pytest.mark.parametrize(
    "url",
    [
        "https://h:8443/?database=a",
        "https://h:8443/?table=a;b",
        "https://h:8443/?table=a&database=b`c",
        "https://h:8443/?table=a&readonly=1",
        "ftp://h/?table=a",
        "https:///?table=a",
        "https://h:x/?table=a",
        "https://h/?table=a#part",
        "https://[h/?table=a",
    ],
)
def test_a_wrong_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        target_of(url)


@pytest.mark.parametrize("url", ["https://u:geheim77@h/?table=a", "https://h/?table=a&password=geheim77"])
def test_a_password_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        target_of(url)
    assert "geheim77" not in str(vars(raised.value))


def test_an_address_says_all() -> None:
    found = target_of("https://me@[::1]:8443/ch/?database=logs&table=calls")
    assert (found.address, found.database, found.table, found.user) == ("https://[::1]:8443/ch/", "logs", "calls", "me")
