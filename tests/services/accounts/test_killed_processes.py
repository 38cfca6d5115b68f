"""Processes that are killed while they count money: no settled cost is lost, and none is counted twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select

from bardo.accounting.limits import day_number
from bardo.adapters.stores.database.engines import address_of
from bardo.adapters.stores.log import LogWriter
from bardo.adapters.stores.log.database import inference_log
from bardo.services.accounts.key_store import open_keys
from bardo.services.accounts.lease_store import SqlLeaseStore
from bardo.services.accounts.leases import STALE_SECONDS
from bardo.services.accounts.usage import LogSpend
from support.patience import PATIENCE, read_line

BUDGET = 400_000
COST = 1_000
PROGRAM = """
import asyncio, sys, time
from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account
from bardo.services.accounts.admissions import Admissions
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.key_store import open_keys
from bardo.services.accounts.lease_store import SqlLeaseStore
from bardo.services.accounts.usage import LogSpend
from bardo.adapters.stores.log import LogWriter, LogRow
from bardo.adapters.stores.log.row import PendingCall
from bardo.values.errors import OverBudget

log_path, state_path, journal, name, budget, cost = sys.argv[1:]
TEAM = Account(id="team", limits=KeyLimits(usd_per_day=int(budget), concurrency=50))


async def call(admissions, log, number):
    request = f"{name}-{number}"
    try:
        await admissions.admit(TEAM, CallFacts(request_id=request, nanos=int(cost)))
    except OverBudget:
        print("over", flush=True)
        await asyncio.sleep(3600)
    log.journal.begin(PendingCall(request, time.time(), key_id="team"))
    await asyncio.sleep(0)
    row = LogRow(request_id=request, started_at=time.time(), provider="p", model="m", key_id="team", cost_nanos=int(cost))
    admissions.settle(row)
    log.write(row)


async def main():
    log = LogWriter(log_path, flush_seconds=0.02, journal=__import__("pathlib").Path(journal))
    store = SqlLeaseStore(open_keys(state_path), name, LogSpend(log_path))
    admissions = Admissions(store, log, clock=time.time)
    stored = False
    for number in range(10**9):
        await asyncio.gather(*(call(admissions, log, 8 * number + place) for place in range(8)))
        if not stored and log.waiting < 8 * (number + 1):
            stored = True
            print("stored", flush=True)
        if number % 3 == 0:
            await admissions.sync()


asyncio.run(main())
"""


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Where the log and the keys are."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db"), str(tmp_path / "state.db")
    address = str(request.getfixturevalue("postgres_url"))
    return address, address


@pytest.mark.sampled(1)
def test_killed_processes_lose_no_cost_and_count_none_twice(places: tuple[str, str], tmp_path: Path) -> None:
    log, state = places
    journal = tmp_path / "journal"
    first_day = day_number(time.time())
    over, rounds = False, 0
    while not over and rounds < 12:
        rounds += 1
        arguments = [log, state, str(journal), f"worker-{rounds}", str(BUDGET), str(COST)]
        with subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE) as process:
            said = read_line(process.stdout)
            assert said in ("stored\n", "over\n")
            time.sleep(0.03 * (1 + rounds % 5))
            process.send_signal(signal.SIGKILL)
            assert process.stdout is not None
            over = said == "over\n" or b"over" in process.stdout.read()
            process.wait(PATIENCE)
    with LogWriter(log, journal=journal):
        pass  # What the killed processes left in their journals is stored.
    today = day_number(time.time())
    by_sums = LogSpend(log)
    engine = create_engine(address_of(log))
    with engine.connect() as connection:
        row = inference_log.c
        by_rows, calls, distinct = connection.execute(
            select(func.sum(row.cost_nanos), func.count(), func.count(row.request_id.distinct()))
        ).one()
    engine.dispose()
    assert calls == distinct > 0
    # A test that runs into the next day has spent of two budgets.
    spent = by_sums("team", first_day, today)
    assert spent == by_rows
    assert all(by_sums("team", day, day) <= BUDGET for day in range(first_day, today + 1))
    _check_what_is_left(state, by_sums)
    by_sums.close()


def _check_what_is_left(state: str, by_sums: LogSpend) -> None:
    """Look at the budget as the next process sees it, once the killed ones are known to be gone."""
    keys = open_keys(state)
    later = time.time() + STALE_SECONDS + 1
    # By the clock that it is told, since the server's goes on only as time does.
    used = SqlLeaseStore(keys, "later", by_sums, clock=":now").used("team", later)
    keys.dispose()
    # A test that runs into the next day sees a new budget.
    day = day_number(later)
    assert used.total("usd_per_day", later) == by_sums("team", day, day)
