"""Subject `money`: what a key, its limits and a price take of one plain request.

The gateway's own parts are called as a request calls them, over a real state database: whose key it is, the call let through within its
limits and budget, its cost by the price list, and what it took counted when it ends. The database is asked in batches, outside the call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

from bardo.adapters.config.providers import provider_of
from bardo.adapters.config.settings import parse_settings
from bardo.adapters.stores.log.row import LogRow
from bardo.call.call import CallAttempts
from bardo.planning.route import Target
from bardo.services.accounts import opening
from bardo.services.accounts.accounts import Accounts
from bardo.services.accounts.call_gate import CallGate
from bardo.services.facts.directory import Placement
from bardo.services.facts.price_book import PriceBook
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from bardo.values.usage import Usage
from bardo.wiring import open_log
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

WHOSE, ADMITTED, PRICED, SETTLED = (
    "whose key it is",
    "admit and settle",
    "the cost of its one attempt",
    "all of them together",
)
LIMIT = 12
"""In microseconds, for all of them together."""
_KEY = "key-of-the-benchmark"
"""Not a secret: it opens nothing."""
_SETTINGS = """
[log]
path = "{folder}/log.db"
[state]
url = "{folder}/state.db"
[[providers]]
id = "openai"
preset = "openai"
api_key_env = "NOBODY"
[[keys]]
id = "team"
key_env = "TEAM_KEY"
requests_per_minute = 100000000
usd_per_day = 1000000.0
"""


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time each part, and all of them."""
    requests = 300 if bench.pace.quick else 5000
    figures = asyncio.run(_measured(bench.folder, requests, bench.pace.rounds))
    rows = tuple(Row(measure=name, unit="µs", figures={"bardo": figure}) for name, figure in figures.items())
    notes = (
        "A key with a limit of requests per minute and a budget, of a model whose price is known; the state database is an SQLite file, "
        "asked once for many calls.",
    )
    table = Table(subject="money", title="Money", columns=("bardo",), rows=rows, notes=notes)
    return [table], [Aim(says=SETTLED, limit=LIMIT, unit="µs", found=figures[SETTLED].median)]


async def _measured(folder: Path, requests: int, rounds: int) -> dict[str, Figure]:
    settings = parse_settings(_SETTINGS.format(folder=folder))
    environment = {"TEAM_KEY": _KEY}
    prices = PriceBook()
    log = open_log(settings, environment)
    accounts = opening.open_accounts(settings, environment)
    assert accounts is not None
    assert log is not None
    accounts.use_log(log)
    gate = CallGate(accounts, prices, settings.budgets, clock=time.time)
    target = Target(provider=provider_of(settings.providers[0]), model="gpt-5.4")
    works = _works(accounts, gate, prices, target)
    try:
        for work in works.values():
            await work()
        found = {name: [await _seconds(work, requests) for _ in range(rounds)] for name, work in works.items()}
    finally:
        await accounts.stop()
        log.close()
    figures = {name: Figure.of([1e6 * seconds for seconds in values]) for name, values in found.items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _works(
    accounts: Accounts, gate: CallGate, prices: PriceBook, target: Target
) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return what is timed, each for one request."""
    placed = Placement((target,))
    request = Request(model=target.model, messages=(Message("user", (TextBlock("2+2?"),)),), max_output_tokens=100)
    usage = Usage(input_tokens=1200, output_tokens=80, reasoning_tokens=20, cached_input_tokens=1000)
    numbers = count()

    async def whose() -> object:
        return accounts.authenticate(_KEY)

    async def admitted() -> object:
        account = accounts.authenticate(_KEY)
        assert account is not None
        name = f"req_{next(numbers)}"
        await gate.admit(account, request, placed, name)
        gate.settle(LogRow(request_id=name, started_at=0.0, input_tokens=1200, output_tokens=80, cost_nanos=4_000_000))
        return None

    async def priced() -> object:
        attempts = CallAttempts(time.monotonic, prices, time.time())
        attempts.end(attempts.send(target, cause="first"), usage=usage)
        return attempts.cost()

    async def all_of_them() -> object:
        await admitted()
        return await priced()

    return {WHOSE: whose, ADMITTED: admitted, PRICED: priced, SETTLED: all_of_them}


async def _seconds(work: Callable[[], Awaitable[object]], requests: int) -> float:
    """Return the processor seconds of this thread that one call took."""
    begin = time.thread_time()
    for _ in range(requests):
        await work()
    return (time.thread_time() - begin) / requests
