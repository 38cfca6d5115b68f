"""Periods, pages of rows, and the health of providers as the panel writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bardo.routing.health import Latency
from bardo.services.facts.cache_health import CacheHealth
from bardo.services.facts.health_report import HealthReport, KeyHealth, ProviderHealth, ServerHealth, TargetHealth
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.periods import read_period
from bardo.surfaces.panel.tables import Cell, paged
from bardo.surfaces.panel.views.health import caches_table, keys_table, plain_states_table, states_table
from bardo.values.errors import InvalidRequest

NOW = datetime(2026, 11, 23, 18, 30, tzinfo=UTC).timestamp()
DAY = 86_400.0


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("query", "since", "until", "words"),
    [
        ({}, day("2026-10-25"), None, "the last 30 days (UTC)"),
        ({"period": "1d"}, day("2026-11-23"), None, "today (UTC)"),
        ({"period": "all"}, None, None, "since the log began"),
        ({"period": "nonsense"}, day("2026-10-25"), None, "the last 30 days (UTC)"),
        ({"from": "2026-11-01"}, day("2026-11-01"), None, "2026-11-01 to today (UTC)"),
        ({"to": "2026-11-01"}, None, day("2026-11-02"), "the beginning to 2026-11-01 (UTC)"),
        ({"period": "7d", "from": "2026-11-01"}, day("2026-11-17"), None, "the last 7 days (UTC)"),
        ({"period": "own"}, day("2026-10-25"), None, "the last 30 days (UTC)"),
    ],
)
def test_periods_are_whole_days(query: dict[str, str], since: float | None, until: float | None, words: str) -> None:
    period = read_period(query, NOW)
    assert (period.since, period.until, period.words) == (since, until, words)
    assert read_period(period.fields, NOW) == period


@pytest.mark.parametrize("text", ["2026-13-01", "x", "0", "2026-02-30", "99999-01-01"])
def test_a_day_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no day"):
        read_period({"from": text}, NOW)


def test_pages_hold_every_row_once() -> None:
    rows = list(range(101))
    seen: list[int] = []
    for number in (1, 2, 3):
        shown, pager = paged(rows, "/p", {"page": str(number), "q": "a b"})
        seen += shown
    assert seen == rows
    assert (pager.first, pager.last, pager.total, pager.after) == (101, 101, 101, "")
    assert pager.before == "/p?page=2&q=a+b"
    assert paged(rows, "/p", {"page": "77"})[0] == [100]
    assert paged([], "/p", {})[1].first == 0


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "$0.00"),
        (1, "$0.000000001"),
        (12_500_000_000, "$12.50"),
        (-100_000_001, "-$0.100000001"),
        (1_234_567_000_000_000, "$1,234,567.00"),
    ],
)
def test_amounts_have_all_their_digits(nanos: int, text: str) -> None:
    assert exact_text(nanos) == text


def texts(row: tuple[object, ...]) -> list[str]:
    return [f"{cell.text} {cell.below}".strip() if isinstance(cell, Cell) else str(cell) for cell in row]


REPORT = HealthReport(
    at=NOW,
    providers=(
        ProviderHealth(
            provider="many",
            connection=TargetHealth(model="", state="healthy"),
            balances={"usd": 12.5, "diem": 3.0},
            servers=(
                ServerHealth(
                    address="10.0.0.1:8000",
                    in_flight=2,
                    connection=TargetHealth(model="", state="healthy", latency=Latency(calls=20, p50_ms=1200)),
                    models=(
                        TargetHealth(
                            model="m", state="down", calls=9, failed=7, faults={"timeout": 7}, wait_seconds=4.0
                        ),
                    ),
                    caches=(
                        CacheHealth(
                            model="m",
                            calls=5,
                            input_tokens=1000,
                            cached_tokens=250,
                            expected_tokens=300,
                            mean_error_tokens=9,
                            hit_rate=0.25,
                            half_life_seconds=240.0,
                            observations=4,
                        ),
                    ),
                ),
                ServerHealth(address="10.0.0.2:8000", in_flight=0, connection=TargetHealth(model="", state="unknown")),
            ),
        ),
        ProviderHealth(
            provider="keyed",
            connection=TargetHealth(model="", state="degraded", why="calls fail"),
            keys=(
                KeyHealth(
                    label="KEY_A", state="resting", why="a rate limit", models=("m",), wait_seconds=30.0, uses=2.0
                ),
                KeyHealth(label="KEY_B", state="missing", why="not set"),
            ),
        ),
    ),
)


def test_servers_of_a_provider_and_its_balances() -> None:
    rows = [texts(row) for row in states_table(REPORT).rows]
    assert [row[:3] for row in rows] == [
        ["many 3.00 DIEM left, 12.50 USD left", "connection", "healthy"],
        ["many at 10.0.0.1:8000 2 calls now", "connection", "healthy"],
        ["many at 10.0.0.1:8000", "m", "down"],
        ["many at 10.0.0.2:8000", "connection", "unknown"],
        ["keyed", "connection", "degraded"],
    ]
    assert rows[1][5] == "1,200 ms"
    assert rows[2][3:5] == ["7 of 9", "timeout 7"]
    assert rows[2][8] == "4.00 s"


def test_keys_by_their_variables() -> None:
    rows = [texts(row) for row in keys_table(REPORT).rows]
    assert rows == [
        ["keyed", "KEY_A", "resting", "2.0", "30.0 s", "a rate limit at m"],
        ["keyed", "KEY_B", "missing", "", "", "not set"],
    ]


def test_caches_with_their_half_life() -> None:
    assert [texts(row) for row in caches_table(REPORT).rows] == [
        ["many at 10.0.0.1:8000", "m", "5", "1,000", "250 (25%)", "4m 00s", "4 pauses"]
    ]


def test_others_see_states_without_figures() -> None:
    rows = [texts(row) for row in plain_states_table(REPORT, {("many", "m")}).rows]
    assert ["many", "m", "down", "4.00 s"] in rows
    assert not any("10.0.0.1" in cell or "DIEM" in cell or "KEY_A" in cell for row in rows for cell in row)


def test_others_do_not_see_which_models_were_called() -> None:
    rows = [texts(row) for row in plain_states_table(REPORT, {("keyed", "m")}).rows]
    assert [row[:2] for row in rows] == [["many", "connection"], ["keyed", "connection"]]
