"""What agents spent today, and how many calls their sessions had."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.services.accounts.agent_calls import IDLE_SECONDS, DaySpending, SessionSteps, SpendKey

NOON = 1_764_417_600.0 + 43_200


def row(number: int, nanos: int | None, *, at: float = NOON, **fields: Any) -> LogRow:
    return LogRow(
        request_id=f"r{number}",
        started_at=at,
        seconds=1.0,
        client_dialect="openai_chat",
        model_asked="bardo/dream_rem",
        provider="venice",
        subsystem="dream_rem",
        key_id="k1",
        outcome="ok",
        cost_nanos=nanos,
        **fields,
    )


def spent(spending: DaySpending, key: str = "k1") -> dict[SpendKey, int]:
    return asyncio.run(spending.of_key(key))


KEY = SpendKey("k1", "dream_rem", "venice")


def test_calls_of_this_process_count_at_once_and_only_for_their_key() -> None:
    spending = DaySpending(None, lambda: NOON)
    spending.note(row(1, 5))
    spending.note(row(2, None, cost_parts={"input": 3}))
    assert spent(spending) == {KEY: 8}
    assert spent(spending, "k2") == {}


def test_a_new_day_begins_with_nothing_and_calls_of_the_day_before_are_not_counted() -> None:
    now = [NOON]
    spending = DaySpending(None, lambda: now[0])
    spending.note(row(1, 5))
    now[0] += 86_400
    assert spent(spending) == {}
    spending.note(row(2, 7))
    assert spent(spending) == {}
    spending.note(row(3, 7, at=NOON + 86_400))
    assert spent(spending) == {KEY: 7}


def test_the_log_has_what_earlier_processes_and_other_workers_spent(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    _write(path, row(1, 100))
    now = [NOON]
    spending = DaySpending(path, lambda: now[0])
    assert spent(spending) == {KEY: 100}
    # This process knows its own call before the log has it, and it counts once when the log has it.
    spending.note(row(2, 10))
    assert spent(spending) == {KEY: 110}
    _write(path, row(2, 10))
    now[0] += 2
    assert spent(spending) == {KEY: 110}
    # A call of another worker.
    _write(path, row(3, 1_000))
    now[0] += 2
    assert spent(spending) == {KEY: 1_110}
    spending.close()


def test_a_call_that_ended_before_the_log_was_first_read_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    spending = DaySpending(path, lambda: NOON)
    _write(path, row(1, 100))
    spending.note(row(1, 100))
    assert spent(spending) == {KEY: 100}
    spending.close()


def test_what_the_log_does_not_have_yet_counts_beside_what_others_spent(tmp_path: Path) -> None:
    path, now, waiting = tmp_path / "log.db", [NOON], [0]
    _write(path, row(1, 100))
    spending = DaySpending(path, lambda: now[0], lambda: waiting[0])
    spending.note(row(2, 30))
    waiting[0] = 1
    assert spent(spending) == {KEY: 130}, "it ended before the log was first read"
    _write(path, row(2, 30), row(3, 50))
    waiting[0] = 0
    now[0] += 2
    spending.note(row(4, 7))
    waiting[0] = 1
    assert spent(spending) == {KEY: 187}, "another worker has spent meanwhile"
    _write(path, row(4, 7))
    waiting[0] = 0
    now[0] += 2
    assert spent(spending) == {KEY: 187}
    spending.close()


def test_a_log_that_cannot_be_read_leaves_what_this_process_knows(tmp_path: Path) -> None:
    spending = DaySpending(tmp_path / "none.db", lambda: NOON)
    spending.note(row(1, 5))
    assert spent(spending) == {KEY: 5}


def test_a_session_counts_its_own_calls_and_begins_anew_when_it_was_idle(tmp_path: Path) -> None:
    for path in (None, tmp_path / "steps.db"):
        now = [NOON]
        steps = SessionSteps(path, lambda: now[0])  # noqa: B023 - used within the loop
        other = steps if path is None else SessionSteps(path, lambda: now[0])  # noqa: B023
        assert [asyncio.run(steps.next("t", "a", "dream_rem")) for _ in range(3)] == [0, 1, 2]
        assert asyncio.run(steps.next("t", "b", "dream_rem")) == 0
        assert asyncio.run(other.next("t", "a", "dream_rem")) == 3
        now[0] += IDLE_SECONDS
        assert asyncio.run(steps.next("t", "a", "dream_rem")) == 0


def _write(path: Path, *rows: LogRow) -> None:
    writer = LogWriter(path)
    for one in rows:
        writer.write(one)
    writer.close()
