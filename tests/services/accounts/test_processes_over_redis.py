"""Several processes count over one Redis, as machines of a fleet do: together they never exceed a limit or a budget of a key."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import create_engine, func, select

from bardo.adapters.stores.log import LogWriter
from bardo.adapters.stores.log.database import inference_log
from support.patience import PATIENCE, read_line

PROCESSES, CALLS = 3, 40
PER_MINUTE, AT_ONCE, BUDGET, COST = 60, 7, 50_000, 1_000
PROGRAM = """
import asyncio, sys
from pathlib import Path
import redis
from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account
from bardo.services.accounts.admissions import Admissions
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.accounts.redis_leases import RedisLeaseStore
from bardo.services.accounts.usage import LogSpend
from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.adapters.stores.log.row import PendingCall
from bardo.values.errors import OverBudget, RateLimited

server, name, log_path, folder, limit, cost, calls = sys.argv[1:]
limit_name, _, most = limit.partition("=")
TEAM = Account(id="team", limits=KeyLimits(**{limit_name: int(most)}))
NOON = 1_795_435_200.0
witness = redis.Redis.from_url(server)


async def call(admissions, log, number):
    request = f"{name}-{number}"
    try:
        admission = await admissions.admit(TEAM, CallFacts(request_id=request, nanos=int(cost)))
    except (OverBudget, RateLimited):
        return
    print("admitted", witness.incr("bardo:test:under-way"), flush=True)
    log.journal.begin(PendingCall(request, NOON, key_id="team"))
    await asyncio.sleep(0.001)
    witness.decr("bardo:test:under-way")
    row = LogRow(request_id=request, started_at=NOON, provider="p", model="m", key_id="team", cost_nanos=int(cost))
    admissions.settle(row)
    log.write(row)


async def main():
    log = LogWriter(log_path, journal=Path(folder) / "journal")
    admissions = Admissions(RedisLeaseStore(server, name, LogSpend(log_path)), log, clock=lambda: NOON)
    print("ready", flush=True)
    sys.stdin.readline()
    for first in range(0, int(calls), 8):
        await asyncio.gather(*(call(admissions, log, first + place) for place in range(8)))
        await admissions.sync()
    log.close()


asyncio.run(main())
"""


def admitted(server: str, folder: Path, limit: str) -> list[int]:
    """Run processes side by side, and return for each call that was admitted how many were under way then in all of them."""
    log = str(folder / "log.db")
    with LogWriter(log):
        pass
    with ExitStack() as stack:
        processes = [stack.enter_context(_process(server, folder, log, limit, place)) for place in range(PROCESSES)]
        for process in processes:
            assert read_line(process.stdout) == "ready\n"
        outputs = _let_go(processes)
    assert all(process.returncode == 0 for process in processes)
    return [int(line.split()[1]) for output in outputs for line in output.splitlines() if line.startswith("admitted")]


def _process(server: str, folder: Path, log: str, limit: str, place: int) -> subprocess.Popen[bytes]:
    own = folder / f"machine-{place}"
    own.mkdir()
    arguments = [server, own.name, log, str(own), limit, str(COST), str(CALLS)]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _let_go(processes: Sequence[subprocess.Popen[bytes]]) -> list[str]:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    return [process.communicate(timeout=PATIENCE)[0].decode() for process in processes]


def test_they_admit_no_more_calls_a_minute_than_one_would(redis_url: str, tmp_path: Path) -> None:
    calls = admitted(redis_url, tmp_path, f"requests_per_minute={PER_MINUTE}")
    assert 0 < len(calls) <= PER_MINUTE < PROCESSES * CALLS


def test_they_have_no_more_calls_at_once_than_one_would(redis_url: str, tmp_path: Path) -> None:
    calls = admitted(redis_url, tmp_path, f"concurrency={AT_ONCE}")
    assert calls
    assert max(calls) <= AT_ONCE


def test_they_spend_no_more_than_one_would(redis_url: str, tmp_path: Path) -> None:
    calls = admitted(redis_url, tmp_path, f"usd_per_day={BUDGET}")
    engine = create_engine(f"sqlite:///{tmp_path / 'log.db'}")
    with engine.connect() as connection:
        spent = connection.execute(select(func.sum(inference_log.c.cost_nanos))).scalar_one()
    engine.dispose()
    assert spent == len(calls) * COST
    assert 0 < spent <= BUDGET < PROCESSES * CALLS * COST
