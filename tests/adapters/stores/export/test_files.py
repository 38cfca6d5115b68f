"""Files of an export hold the rows of the log: all of them, typed, and read back by others' programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Text, cast, create_engine, select

from bardo.adapters.stores.database.problems import ExportFailed
from bardo.adapters.stores.export.exporting import ExportState, ExportSummary, FileExport, SinceLast
from bardo.adapters.stores.export.files import FileFormat, export_columns, microseconds, utc_text
from bardo.adapters.stores.log import LogReader, LogRow, LogWriter, queries
from bardo.adapters.stores.log.database import ExactJson, address_of, inference_log
from bardo.values.error_cleaning import table_cell
from support.hostile_rows import hostile_row
from support.hostile_text import HOSTILE

pytestmark = pytest.mark.each_python

NOW = 1_790_000_000.25
COLUMNS = export_columns(content=True)


def fill(place: str, *, first: int = 0) -> list[LogRow]:
    """Store rows that hold all there is, and rows that hold nothing."""
    rows = [hostile_row(text, first + at, started_at=NOW + at) for at, text in enumerate(HOSTILE.values())]
    rows += [
        LogRow(request_id=f"empty_{first}", started_at=NOW - 86_400),
        LogRow(request_id=f"exact_{first}", started_at=NOW, usage_raw={"n": 1e16, "s": "12"}, cost_nanos=2**53 - 1),
    ]
    with LogWriter(place, keep_content=True) as log:
        for row in rows:
            log.write(row)
    return rows


def stored(place: str) -> list[tuple[Any, ...]]:
    """Return what the database holds, JSON as its text."""
    columns = [inference_log.c[column.name] for column in COLUMNS]
    read = [cast(one, Text) if isinstance(one.type, ExactJson) else one for one in columns]
    engine = create_engine(address_of(place))
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(select(*read).order_by(inference_log.c.row_number))]
    engine.dispose()
    return found


def exported(place: str, path: Path, kind: FileFormat, **span: float) -> ExportSummary:
    with LogReader(place) as reader:
        return FileExport(format=kind, content=True).write(reader, reader.export_span(**span), path)


def test_parquet_holds_the_rows_of_the_log(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr(queries, "MOST_ROWS", 10)
    number = len(fill(place))
    assert exported(place, tmp_path / "a.parquet", "parquet") == ExportSummary(rows=number, row_number=number)
    table = parquet.read_table(tmp_path / "a.parquet")
    assert parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == -(-number // 10)
    assert table.schema.names == [column.name for column in COLUMNS]
    assert table.schema.field("cost_nanos").type == arrow.int64()
    assert table.schema.field("started_at").type == arrow.timestamp("us", tz="UTC")
    assert not table.schema.field("request_id").nullable
    for column, values in zip(COLUMNS, zip(*stored(place), strict=True), strict=True):
        found = table.column(column.name)
        if column.kind == "time":
            assert found.cast(arrow.int64()).to_pylist() == [microseconds(value) for value in values]
        else:
            assert found.to_pylist() == list(values), column.name


def test_json_lines_hold_the_rows_of_the_log(place: str, tmp_path: Path) -> None:
    fill(place)
    exported(place, tmp_path / "a.jsonl", "jsonl")
    lines = (tmp_path / "a.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    for line, row in zip(lines, stored(place), strict=True):
        found = json.loads(line)
        assert list(found) == [column.name for column in COLUMNS]
        for column, value in zip(COLUMNS, row, strict=True):
            wanted = value
            if column.kind == "json" and value is not None:
                wanted = json.loads(value)
            elif column.kind == "time":
                wanted = f"{utc_text(value)}Z"
            assert found[column.name] == wanted, column.name


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_no_file_of_text_controls_a_terminal(place: str, tmp_path: Path, kind: FileFormat) -> None:
    hostile = "\x1b]0;x\x07\x9b31m\x7f\u202e\x00"
    with LogWriter(place) as log:
        fields: dict[str, Any] = {
            "model": hostile,
            "error_message": hostile,
            "tags": (hostile,),
            "receipt": {hostile: hostile},
        }
        log.write(LogRow(request_id="req_1", started_at=NOW, **fields))
    exported(place, tmp_path / "a", kind)
    text = (tmp_path / "a").read_text(encoding="utf-8")
    assert "31m" in text
    assert all(letter.isprintable() or letter in "\r\n" for letter in text)


def test_csv_holds_the_rows_and_no_formula(place: str, tmp_path: Path) -> None:
    fill(place)
    with LogWriter(place) as log:
        log.write(LogRow(request_id="=1+1", started_at=NOW, model="@cmd", seconds=-1.5))
    exported(place, tmp_path / "a.csv", "csv")
    before = csv.field_size_limit(10_000_000)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    csv.field_size_limit(before)
    assert (rows[-1]["request_id"], rows[-1]["model"], rows[-1]["seconds"]) == ("'=1+1", "'@cmd", "-1.5")
    for found, row in zip(rows[:-1], stored(place), strict=False):
        for column, value in zip(COLUMNS, row, strict=True):
            if column.kind == "json":
                assert json.loads(found[column.name] or "null") == json.loads(value or "null")
            elif column.kind in ("text", "name"):
                assert found[column.name] == table_cell(value or "")
            elif column.kind == "integer":
                assert found[column.name] == ("" if value is None else str(value))
    assert not any(str(value).startswith(("=", "+", "@")) for row in rows for value in row.values())


def test_only_the_calls_of_a_time_are_copied(place: str, tmp_path: Path) -> None:
    fill(place)
    done = exported(place, tmp_path / "a.jsonl", "jsonl", since=NOW + 3, until=NOW + 6)
    times = [json.loads(line)["started_at"] for line in (tmp_path / "a.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert times == [f"{utc_text(NOW + place)}Z" for place in (3, 4, 5)]
    assert done.rows == 3


def test_content_is_copied_only_where_it_is_asked_for(place: str, tmp_path: Path) -> None:
    fill(place)
    with LogReader(place) as reader:
        FileExport(format="jsonl").write(reader, reader.export_span(), tmp_path / "a.jsonl")
    assert b"_content" not in (tmp_path / "a.jsonl").read_bytes()


def test_pieces_are_bounded_by_what_they_hold(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = len(fill(place))
    monkeypatch.setattr(queries, "MOST_CHARACTERS", 5_000)
    with LogReader(place) as reader:
        pieces = list(reader.export_pieces(reader.export_span(), [column.name for column in COLUMNS]))
    assert len(pieces) > 5
    assert [row[0] for piece in pieces for row in piece.rows] == list(range(1, number + 1))
    for piece in pieces:
        before = sum(len(value) for row in piece.rows[:-1] for value in row if isinstance(value, str))
        assert before < 5_000


def test_a_file_has_its_name_only_once_it_is_whole(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(place)
    path = tmp_path / "out" / "a.jsonl"
    path.parent.mkdir()
    path.write_text("before")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bardo.adapters.stores.export.files.JsonLines.write", fails)
    with pytest.raises(ExportFailed, match="No space left"):
        exported(place, path, "jsonl")
    assert path.read_text() == "before"
    assert list(path.parent.iterdir()) == [path]


def test_an_export_goes_on_where_the_last_one_ended(place: str, tmp_path: Path) -> None:
    number = len(fill(place))
    state = ExportState(tmp_path / "state.json")
    with LogReader(place) as reader:
        follow = SinceLast(reader, state, "there")
        assert follow.span()[0].last == number
        follow.note(number)
        assert follow.span() == (type(follow.span()[0])(after=number, last=number), False)
        assert SinceLast(reader, state, "elsewhere").span()[0].after == 0
    fill(place, first=1000)
    with LogReader(place) as reader:
        span, anew = SinceLast(reader, ExportState(tmp_path / "state.json"), "there").span()
    assert (span.after, span.last, anew) == (number, 2 * number, False)


def test_another_log_is_exported_from_its_beginning(tmp_path: Path) -> None:
    state = ExportState(tmp_path / "state.json")
    for name, first in (("a.db", 0), ("b.db", 5000)):
        number = len(fill(str(tmp_path / name), first=first))
        with LogReader(tmp_path / name) as reader:
            follow = SinceLast(reader, state, "there")
            span, anew = follow.span()
            assert (span.after, span.last, anew) == (0, number, name == "b.db")
            follow.note(span.last)


def test_two_exports_with_one_state_do_not_run_at_once(tmp_path: Path) -> None:
    state = ExportState(tmp_path / "state.json")
    with (
        state.alone(),
        pytest.raises(ExportFailed, match="another export"),
        ExportState(tmp_path / "state.json").alone(),
    ):
        pass
    with state.alone():
        pass


def test_a_state_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("[1, 2")
    with pytest.raises(ExportFailed, match="cannot be read"):
        ExportState(tmp_path / "state.json").get("there")
