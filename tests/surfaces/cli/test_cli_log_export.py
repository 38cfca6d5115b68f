"""`bardo log export`: what it writes, what it refuses, and what it says."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bardo.adapters.stores.log import LogRow
from support.clickhouse import PASSWORD, StrictEngine, clickhouse
from support.hostile_rows import hostile_row
from support.hostile_text import HOSTILE
from surfaces.cli.support import bardo, logged, on_terminal, write_log

ROWS = [LogRow(request_id=f"req_{number}", started_at=time.time() - number) for number in range(5)]


def test_a_file_is_written_and_not_replaced(folder: Path) -> None:
    write_log(ROWS)
    ran = bardo("log", "export", "a.jsonl", "--json")
    assert ran.json == {"rows": 5, "target": "a.jsonl", "row_number": 5}
    assert [json.loads(line)["request_id"] for line in Path("a.jsonl").read_text().splitlines()] == [
        row.request_id for row in ROWS
    ]
    again = bardo("log", "export", "a.jsonl")
    assert again.code != 0
    assert "--force" in again.err
    assert bardo("log", "export", "a.jsonl", "--force").err == "5 calls copied to a.jsonl\n"


def test_stdout_is_a_stream_of_json_lines() -> None:
    write_log(ROWS)
    ran = bardo("log", "export", "-")
    assert [json.loads(line)["request_id"] for line in ran.out.splitlines()] == [row.request_id for row in ROWS]


def test_nothing_of_a_row_plays_with_a_terminal(folder: Path) -> None:
    write_log([hostile_row(text, number) for number, text in enumerate(HOSTILE.values())])
    for kind in ("jsonl", "csv"):
        code, _, shown = on_terminal("log", "export", "-", "--format", kind)
        assert code == 0
        assert not [letter for letter in shown if not letter.isprintable() and letter not in "\r\n\t"]


def test_since_last_copies_each_call_once(folder: Path) -> None:
    write_log(ROWS[:3])
    assert bardo("log", "export", "a.jsonl", "--since-last", "--json").json["rows"] == 3
    assert "no calls since the last export" in bardo("log", "export", "b.jsonl", "--since-last").err
    assert not Path("b.jsonl").exists()
    write_log(ROWS[3:])
    assert bardo("log", "export", "c.jsonl", "--since-last", "--json").json["rows"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a.xyz",),
        ("a.jsonl", "--to", "http://h/?table=a"),
        ("-", "--format", "parquet"),
        ("-", "--since-last"),
        ("a.jsonl", "--since-last", "--since", "2h"),
        ("--to", "http://h/?table=a", "--format", "csv"),
        ("nowhere/a.jsonl",),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...]) -> None:
    write_log(ROWS)
    ran = bardo("log", "export", *arguments)
    assert ran.code != 0
    assert ran.err.startswith("bardo: ")


def test_a_table_of_clickhouse_is_filled_from_cron(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARDO_CLICKHOUSE_PASSWORD", PASSWORD)
    with clickhouse(StrictEngine()) as server:
        write_log(ROWS[:3])
        ran = bardo("log", "export", "--to", server.url(), "--since-last", "--json")
        assert ran.json["rows"] == 3
        write_log(ROWS[3:])
        ran = bardo("log", "export", server.url(), "--since-last", "--json")
        assert (ran.json["rows"], len(server.engine.rows("calls"))) == (2, 5)
        assert PASSWORD not in ran.out + ran.err


def test_a_password_is_nowhere_in_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARDO_CLICKHOUSE_PASSWORD", "wrong-one-77441")
    with clickhouse(StrictEngine()) as server:
        write_log(ROWS)
        ran = bardo("log", "export", "--to", server.url())
    assert ran.code != 0
    assert "403" in ran.err
    assert "77441" not in ran.out + ran.err


def test_old_calls_are_removed_when_somebody_says_yes() -> None:
    old = LogRow(request_id="req_old", started_at=time.time() - 90 * 86_400, cost_nanos=7_000_000_000)
    write_log([*ROWS, old])
    asked = bardo("log", "prune", "--before", "30d")
    assert asked.code != 0
    assert "1 call before" in asked.err
    assert len(logged()) == 6
    ran = bardo("log", "prune", "--before", "30d", "--yes", "--shrink", "--json")
    assert (ran.json["calls"], ran.json["shrunk"]) == (1, True)
    assert [row.request_id for row in logged()] == [row.request_id for row in ROWS]
    assert "7.00" in bardo("costs").out
    assert "0 calls before" in bardo("log", "prune", "--before", "2020-01-31").err


@pytest.mark.parametrize("arguments", [(), ("--before", "soon"), ("--before", "1d", "--config", "absent.toml")])
def test_a_time_must_be_given_and_a_log_must_be_there(arguments: tuple[str, ...]) -> None:
    ran = bardo("log", "prune", *arguments)
    assert ran.code != 0
    assert ran.err
